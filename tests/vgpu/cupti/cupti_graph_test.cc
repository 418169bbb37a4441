// Graphs: which node a kernel's record is of, and where that node comes from.
#include <map>
#include <set>

#include "tests/vgpu/cupti/cupti_test_util.h"

namespace {

// What NVIDIA's own way of following nodes finds: the call that each was made in, through copies.
struct Followed {
    std::string call; // that is under way
    std::map<uint64_t, std::string> made_in;
    int created = 0, cloned = 0;
    std::vector<CUpti_CallbackId> graphs;
};

class CuptiGraph : public CuptiTest {
  protected:
    void SetUp() override {
        CuptiTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        subscribe(follow, &followed_);
        ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
        ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE));
    }

    static void follow(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *callback_data) {
        auto &all = *static_cast<Followed *>(data);
        if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
            const auto *call = static_cast<const CUpti_CallbackData *>(callback_data);
            all.call = call->callbackSite == CUPTI_API_ENTER ? call->functionName : "";
            return;
        }
        const auto *resource = static_cast<const CUpti_ResourceData *>(callback_data);
        const auto *graph = static_cast<const CUpti_GraphData *>(resource->resourceDescriptor);
        uint64_t node = 0, original = 0;
        if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
            all.created++;
            EXPECT_CUPTI(cuptiGetGraphNodeId(graph->node, &node));
            all.made_in.emplace(node, all.call);
        } else if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
            all.cloned++;
            EXPECT_CUPTI(cuptiGetGraphNodeId(graph->node, &node));
            EXPECT_CUPTI(cuptiGetGraphNodeId(graph->originalNode, &original));
            EXPECT_NE(node, original);
            EXPECT_EQ(all.made_in.count(original), 1u);
            all.made_in[node] = all.made_in[original];
        } else {
            all.graphs.push_back(cbid);
        }
    }

    // A graph of kernels, captured.
    cudaGraph_t capture(cudaStream_t stream, uint32_t *words, int kernels) {
        cudaGraph_t graph = nullptr;
        EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < kernels; i++)
            EXPECT_CUDA(launch("mix", words, 256, 1, stream));
        EXPECT_CUDA(cudaStreamEndCapture(stream, &graph));
        return graph;
    }

    Followed followed_;
};

TEST_F(CuptiGraph, ACapturedNodesRunsAreTheLaunchsAndOfTheNode) {
    DeviceWords words(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME});
    cudaGraph_t graph = capture(stream, words.get(), 3);
    EXPECT_EQ(followed_.created, 3);
    EXPECT_EQ(followed_.cloned, 0);
    for (const auto &[node, call] : followed_.made_in)
        EXPECT_EQ(call, "cudaLaunchKernel");
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(followed_.cloned, 3);
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    flush();
    uint32_t exec_id = 0, graph_id = 0;
    EXPECT_CUPTI(cuptiGetGraphExecId(exec, &exec_id));
    EXPECT_CUPTI(cuptiGetGraphId(graph, &graph_id));
    EXPECT_NE(exec_id, graph_id);
    auto kernels = Records::get().kernels();
    auto calls = Records::get().calls();
    ASSERT_EQ(kernels.size(), 6u);
    std::set<uint64_t> nodes;
    std::set<uint32_t> launches;
    for (const CUpti_ActivityKernel10 &kernel : kernels) {
        EXPECT_EQ(kernel.graphId, exec_id);
        ASSERT_EQ(followed_.made_in.count(kernel.graphNodeId), 1u);
        EXPECT_EQ(followed_.made_in[kernel.graphNodeId], "cudaLaunchKernel");
        nodes.insert(kernel.graphNodeId);
        launches.insert(kernel.correlationId);
        const CUpti_ActivityAPI *call = find_correlated(calls, kernel.correlationId);
        ASSERT_NE(call, nullptr);
        EXPECT_EQ(call->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000));
    }
    EXPECT_EQ(nodes.size(), 3u);
    EXPECT_EQ(launches.size(), 2u);
    for (size_t i = 1; i < 6; i++)
        EXPECT_GE(kernels[i].start, kernels[i - 1].end);
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(CuptiGraph, CopiesAndChildGraphsAreFollowed) {
    DeviceWords words(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    cudaGraph_t inner = capture(stream, words.get(), 2), outer = nullptr, copy = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&outer, 0));
    cudaGraphNode_t node = nullptr;
    ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
    ASSERT_CUDA(cudaGraphClone(&copy, outer));
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, copy, 0));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 2u);
    for (const CUpti_ActivityKernel10 &kernel : kernels)
        EXPECT_EQ(followed_.made_in[kernel.graphNodeId], "cudaLaunchKernel");
    EXPECT_NE(kernels[0].graphNodeId, kernels[1].graphNodeId);
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    for (cudaGraph_t graph : {inner, outer, copy})
        ASSERT_CUDA(cudaGraphDestroy(graph));
}

// An update changes what nodes do, and not which they are.
TEST_F(CuptiGraph, NodesKeepTheirIdsThroughUpdates) {
    DeviceWords words(256), others(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    cudaGraph_t first = capture(stream, words.get(), 2), second = capture(stream, others.get(), 2);
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, first, 0));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    cudaGraphExecUpdateResultInfo info{};
    ASSERT_CUDA(cudaGraphExecUpdate(exec, second, &info));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 4u);
    EXPECT_EQ(kernels[0].graphNodeId, kernels[2].graphNodeId);
    EXPECT_EQ(kernels[1].graphNodeId, kernels[3].graphNodeId);
    EXPECT_EQ(kernels[0].graphId, kernels[2].graphId);
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroy(first));
    ASSERT_CUDA(cudaGraphDestroy(second));
}

TEST_F(CuptiGraph, TracedAsAWholeAGraphHidesItsNodes) {
    DeviceWords words(256);
    Stream stream;
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    cudaGraph_t graph = capture(stream, words.get(), 3);
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    flush();
    auto nodes = Records::get().kernels();
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_TRUE(Records::get().all<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE).empty());
    enable({CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
    ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    ASSERT_CUDA(launch("fill", words.get(), 256, 1, stream));
    flush();
    auto kernels = Records::get().kernels();
    ASSERT_EQ(kernels.size(), 4u); // the last is not of the graph
    EXPECT_STREQ(kernels[3].name, "fill");
    auto graphs = Records::get().all<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    ASSERT_EQ(graphs.size(), 1u);
    EXPECT_EQ(graphs[0].graphId, nodes[0].graphId);
    EXPECT_EQ(graphs[0].streamId, nodes[0].streamId);
    EXPECT_NE(graphs[0].correlationId, nodes[0].correlationId);
    EXPECT_LE(graphs[0].end, kernels[3].start);
    if (is_virtual()) {
        EXPECT_EQ(graphs[0].end - graphs[0].start, nodes[2].end - nodes[0].start);
    }
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroy(graph));
}

// Also where a callback calls the runtime in the middle of another call.
TEST_F(CuptiGraph, ACallKeepsItsNumberThroughCallbacksInIt) {
    ASSERT_CUPTI(cuptiUnsubscribe(subscriber_));
    static uint32_t create_correlation;
    subscribe(
        [](void *, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data) {
            int device = 0;
            if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
                EXPECT_CUDA(cudaGetDevice(&device));
            } else if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000) {
                create_correlation = static_cast<const CUpti_CallbackData *>(data)->correlationId;
            }
        },
        nullptr);
    ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    ASSERT_CUPTI(cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE));
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    { Stream stream; }
    flush();
    auto calls = Records::get().calls();
    const CUpti_ActivityAPI *call = find_correlated(calls, create_correlation);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->cbid, uint32_t(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000));
}

TEST_F(CuptiGraph, GraphsComeAndGo) {
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t node = nullptr;
    ASSERT_CUDA(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
    cudaGraphExec_t exec = nullptr;
    ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    ASSERT_CUDA(cudaGraphExecDestroy(exec));
    ASSERT_CUDA(cudaGraphDestroyNode(node));
    ASSERT_CUDA(cudaGraphDestroy(graph));
    for (CUpti_CallbackId cbid :
         {CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING,
          CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
          CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING}) {
        EXPECT_EQ(std::count(followed_.graphs.begin(), followed_.graphs.end(), cbid), 1) << cbid;
    }
    uint64_t id = 0;
    EXPECT_EQ(cuptiGetGraphNodeId(nullptr, &id), CUPTI_ERROR_INVALID_PARAMETER);
}

} // namespace
