// The API of graphs' nodes: adding them, and asking after and changing what they do, in a graph and in an executable.
#include <cstring>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/graph_nodes.h"
#include "tests/vgpu/runtime/resources.h"
#include "tests/vgpu/runtime/runtime_memory.h"

namespace vgpu {
namespace {

// ---- from the API's parameters to work -----------------------------------------------------------------------------

Launch launch_of(const cudaKernelNodeParams *parameters) {
    require(parameters != nullptr);
    require(parameters->extra == nullptr, cudaErrorNotSupported);
    return launch_prepare(kernel_find(parameters->func), current_device_index(), parameters->gridDim,
                          parameters->blockDim, parameters->kernelParams, parameters->sharedMemBytes, false);
}

Copy copy_of(const cudaMemcpy3DParms *parameters) {
    require(parameters != nullptr);
    Copy copy = copy_of_box(*parameters);
    copy_check(copy, parameters->kind);
    return copy;
}

cudaMemcpy3DParms parameters_of_bytes(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms parameters{};
    parameters.dstPtr = {to, bytes, bytes, 1};
    parameters.srcPtr = {const_cast<void *>(from), bytes, bytes, 1};
    parameters.extent = {bytes, 1, 1};
    parameters.kind = kind;
    return parameters;
}

Fill fill_of(const cudaMemsetParams *parameters) {
    require(parameters != nullptr);
    Fill fill;
    fill.to = reinterpret_cast<uint64_t>(parameters->dst);
    fill.pitch = parameters->pitch, fill.width = parameters->width, fill.height = parameters->height;
    fill.value = parameters->value, fill.element_bytes = parameters->elementSize;
    fill_check(fill);
    return fill;
}

HostCall call_of(const cudaHostNodeParams *parameters) {
    require(parameters != nullptr && parameters->fn != nullptr);
    return {parameters->fn, parameters->userData};
}

ChildGraph child_of(cudaGraph_t graph) { return {graph_clone(*graph_find(graph))}; }

// ---- adding and changing -------------------------------------------------------------------------------------------

cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                const std::function<Work()> &make) {
    return api([&] {
        require(node != nullptr && (dependencies != nullptr || count == 0));
        GraphPtr into = graph_find(graph);
        std::vector<GraphNode *> nodes;
        for (size_t i = 0; i < count; i++)
            nodes.push_back(node_find(dependencies[i]).get());
        const GraphNode *added = graph_add(*into, make(), nodes);
        *node = added->handle;
        tell_node(*added);
    });
}

// The node's work, which has to be of that type.
template <typename Type> Type &work_of(GraphNode &node) {
    auto *work = std::get_if<Type>(&node.work);
    require(work != nullptr);
    return *work;
}

template <typename Type> cudaError_t change(cudaGraphNode_t node, const std::function<Type()> &make) {
    return api([&] { work_of<Type>(*node_find(node)) = make(); });
}

// In a copy that takes the graph's place: launches that wait keep theirs.
template <typename Type>
cudaError_t change_in(cudaGraphExec_t exec, cudaGraphNode_t node, const std::function<Type()> &make) {
    return api([&] {
        GraphExecPtr changed = exec_find(exec);
        std::lock_guard lock(changed->mutex);
        size_t index = 0;
        while (index < changed->originals.size() && changed->originals[index] != node)
            index++;
        require(index < changed->originals.size());
        Type work = make();
        GraphPtr graph = graph_clone(*changed->graph);
        work_of<Type>(*graph->nodes[index]) = std::move(work);
        graph_take_ids(*graph, *changed->graph);
        changed->graph = graph;
    });
}

} // namespace
} // namespace vgpu

using namespace vgpu;

// ---- kernels -------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaKernelNodeParams *parameters) {
    return add(node, graph, dependencies, count, [&] { return launch_of(parameters); });
}

// The pointers to the values stay good until the node is changed or goes.
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *parameters) {
    return api([&] {
        require(parameters != nullptr);
        GraphNodePtr found = node_find(node);
        Launch &launch = work_of<Launch>(*found);
        launch.arguments.clear();
        for (const KernelParameter &parameter : kernel_info(launch.code.kernel).parameters) {
            launch.arguments.push_back(launch.parameters.data() + parameter.offset);
        }
        const Dim3 &grid = launch.config.grid, &block = launch.config.block;
        *parameters = {};
        parameters->func = launch.entry->handle;
        parameters->gridDim = dim3(grid.x, grid.y, grid.z);
        parameters->blockDim = dim3(block.x, block.y, block.z);
        parameters->sharedMemBytes = static_cast<unsigned>(launch.config.dynamic_shared_bytes);
        parameters->kernelParams = launch.arguments.data();
    });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *parameters) {
    return change<Launch>(node, [&] { return launch_of(parameters); });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *parameters) {
    return change_in<Launch>(exec, node, [&] { return launch_of(parameters); });
}

// ---- copies --------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaMemcpy3DParms *parameters) {
    return add(node, graph, dependencies, count, [&] { return copy_of(parameters); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                     size_t count, void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms parameters = parameters_of_bytes(to, from, bytes, kind);
    return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &parameters);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *parameters) {
    return api([&] {
        require(parameters != nullptr);
        *parameters = work_of<Copy>(*node_find(node)).parameters;
    });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *parameters) {
    return change<Copy>(node, [&] { return copy_of(parameters); });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           cudaMemcpyKind kind) {
    cudaMemcpy3DParms parameters = parameters_of_bytes(to, from, bytes, kind);
    return cudaGraphMemcpyNodeSetParams(node, &parameters);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms *parameters) {
    return change_in<Copy>(exec, node, [&] { return copy_of(parameters); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
                                               size_t bytes, cudaMemcpyKind kind) {
    cudaMemcpy3DParms parameters = parameters_of_bytes(to, from, bytes, kind);
    return cudaGraphExecMemcpyNodeSetParams(exec, node, &parameters);
}

// ---- fills ---------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const cudaMemsetParams *parameters) {
    return add(node, graph, dependencies, count, [&] { return fill_of(parameters); });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *parameters) {
    return api([&] {
        require(parameters != nullptr);
        const Fill &fill = work_of<Fill>(*node_find(node));
        *parameters = {
            reinterpret_cast<void *>(fill.to), fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
    });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *parameters) {
    return change<Fill>(node, [&] { return fill_of(parameters); });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams *parameters) {
    return change_in<Fill>(exec, node, [&] { return fill_of(parameters); });
}

// ---- host functions, child graphs, empty nodes ---------------------------------------------------------------------

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                 size_t count, const cudaHostNodeParams *parameters) {
    return add(node, graph, dependencies, count, [&] { return call_of(parameters); });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *parameters) {
    return api([&] {
        require(parameters != nullptr);
        const HostCall &call = work_of<HostCall>(*node_find(node));
        *parameters = {call.function, call.data};
    });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *parameters) {
    return change<HostCall>(node, [&] { return call_of(parameters); });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams *parameters) {
    return change_in<HostCall>(exec, node, [&] { return call_of(parameters); });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                       size_t count, cudaGraph_t child) {
    cudaError_t error = add(node, graph, dependencies, count, [&] { return child_of(child); });
    if (error == cudaSuccess) tell_nodes_cloned(*work_of<ChildGraph>(*node_find(*node)).graph, *graph_find(child));
    return error;
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
    return change_in<ChildGraph>(exec, node, [&] {
        require_acyclic(*graph_find(child));
        return child_of(child);
    });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count) {
    return add(node, graph, dependencies, count, [] { return Empty{}; });
}
