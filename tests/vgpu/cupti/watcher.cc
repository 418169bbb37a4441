#include "tests/vgpu/cupti/watcher.h"

#include <chrono>

#include "tests/vgpu/cupti/calls.h"
#include "tests/vgpu/cupti/identifiers.h"
#include "tests/vgpu/cupti/kinds.h"
#include "tests/vgpu/cupti/records.h"
#include "tests/vgpu/cupti/subscriber.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

struct ObservingCosts {
    uint64_t call_before = vgpu_number_setting("VGPU_COST_CALL_BEFORE", 0, 0, 1'000'000'000);
    uint64_t call_inside = vgpu_number_setting("VGPU_COST_CALL_INSIDE", 0, 0, 1'000'000'000);
    uint64_t record = vgpu_number_setting("VGPU_COST_RECORD", 0, 0, 1'000'000'000);
    uint64_t kernel = vgpu_number_setting("VGPU_COST_TRACED_KERNEL", 0, 0, 1'000'000'000);
};

const ObservingCosts &observing_costs() {
    static const ObservingCosts only;
    return only;
}

void spend(uint64_t ns) {
    if (ns == 0) return;
    auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
    while (std::chrono::steady_clock::now() < end) {
    }
}

struct ResourceId {
    Resource what;
    CUpti_CallbackIdResource id;
};

constexpr ResourceId RESOURCE_IDS[] = {
    {Resource::stream_created, CUPTI_CBID_RESOURCE_STREAM_CREATED},
    {Resource::stream_destroyed, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING},
    {Resource::graph_created, CUPTI_CBID_RESOURCE_GRAPH_CREATED},
    {Resource::graph_cloned, CUPTI_CBID_RESOURCE_GRAPH_CLONED},
    {Resource::graph_destroyed, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING},
    {Resource::node_created, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
    {Resource::node_cloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
    {Resource::node_destroyed, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING},
    {Resource::exec_creating, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING},
    {Resource::exec_created, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED},
    {Resource::exec_destroyed, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING},
};

CUpti_CallbackIdResource resource_id(Resource what) {
    for (const ResourceId &row : RESOURCE_IDS) {
        if (row.what == what) return row.id;
    }
    return CUPTI_CBID_RESOURCE_INVALID;
}

// The types of nodes have the same numbers in the runtime's and the driver's interfaces.
static_assert(int(cudaGraphNodeTypeMemFree) == int(CU_GRAPH_NODE_TYPE_MEM_FREE));

class Watcher final : public Observer {
  public:
    void enter(ApiCall &call) override {
        call.has_callback = callback_is_on(CUPTI_CB_DOMAIN_RUNTIME_API, call.cbid);
        call.is_recorded = is_recorded(call);
        if (!call.has_callback && !call.is_recorded) return;
        spend(observing_costs().call_before);
        if (call.has_callback) tell_call(call, CUPTI_API_ENTER);
        call.begin = vgpu_now();
        spend(observing_costs().call_inside);
    }

    void leave(ApiCall &call) override {
        bool is_traced = call.has_callback || call.is_recorded;
        if (is_traced && (call_has_records(call) || call_has_work(call))) spend(observing_costs().record);
        if (call.is_recorded) record_call(call, vgpu_now());
        tell_synchronization(call);
        if (call.has_callback) tell_call(call, CUPTI_API_EXIT);
    }

    void resource(const ResourceChange &change) override {
        CUpti_CallbackIdResource cbid = resource_id(change.what);
        if (!callback_is_on(CUPTI_CB_DOMAIN_RESOURCE, cbid)) return;
        CUpti_GraphData graph{};
        graph.graph = change.graph, graph.originalGraph = change.original_graph;
        graph.node = change.node, graph.originalNode = change.original_node;
        graph.nodeType = static_cast<CUgraphNodeType>(change.node_type);
        graph.graphExec = change.exec;
        CUpti_ResourceData data{};
        data.context = context_of(change.device);
        data.resourceHandle.stream = change.stream;
        data.resourceDescriptor = change.stream == nullptr ? &graph : nullptr;
        call_back(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
    }

    void ended(const DeviceWork &work) override { record_work(work); }

    uint64_t kernel_cost_ns() const override {
        return kind_is_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ? observing_costs().kernel : 0;
    }

  private:
    static bool is_recorded(const ApiCall &call) { return runtime_call_is_on(call.cbid) || call_has_records(call); }

    // Waits that the host made for a stream or a device, once they are over.
    static void tell_synchronization(const ApiCall &call) {
        if (call.result != cudaSuccess) return;
        auto what = synchronization_of(call);
        if (!what) return;
        bool is_stream = what->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        if (!is_stream && what->type != CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE) return;
        CUpti_CallbackIdSync cbid =
            is_stream ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED : CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
        if (!callback_is_on(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid)) return;
        CUpti_SynchronizeData data{context_of(vgpu_current_device()), what->stream};
        call_back(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
    }

    static void tell_call(ApiCall &call, CUpti_ApiCallbackSite site) {
        int device = vgpu_current_device();
        CUpti_CallbackData data{};
        data.callbackSite = site;
        data.functionName = call.name;
        data.functionParams = call.parameters;
        data.functionReturnValue = site == CUPTI_API_EXIT ? &call.result : nullptr;
        data.symbolName = launched_name(call);
        data.context = context_of(device);
        data.contextUid = context_id(device);
        data.correlationData = &call.data;
        data.correlationId = call.correlation;
        call_back(CUPTI_CB_DOMAIN_RUNTIME_API, call.cbid, &data);
    }
};

} // namespace

void watch() {
    static auto *const only = new Watcher;
    vgpu_observe(only);
}

} // namespace vgpu
