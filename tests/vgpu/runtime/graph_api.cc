// The API of graphs: building them and asking what is in them, making them executable and launching them.
#include <algorithm>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/graph_nodes.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/resources.h"

namespace vgpu {

GraphPtr graph_find(cudaGraph_t handle) { return graph_handles().find(handle, cudaErrorInvalidValue); }

GraphNodePtr node_find(cudaGraphNode_t handle) { return graph_node_handles().find(handle, cudaErrorInvalidValue); }

GraphExecPtr exec_find(cudaGraphExec_t handle) { return graph_exec_handles().find(handle, cudaErrorInvalidValue); }

namespace {

// How the functions that list things answer: into `list`, which may be null, up to *count of them; the count of all
// where it is null, else of those written. What is left of the list is set to null.
template <typename T> void give_list(const std::vector<T> &all, T *list, size_t *count) {
    require(count != nullptr);
    if (list == nullptr) {
        *count = all.size();
        return;
    }
    for (size_t i = 0; i < *count; i++)
        list[i] = i < all.size() ? all[i] : T{};
    *count = std::min(*count, all.size());
}

void require_plain(const cudaGraphEdgeData *edges, size_t count) {
    for (size_t i = 0; edges != nullptr && i < count; i++) {
        bool is_plain = edges[i].from_port == 0 && edges[i].to_port == 0 && edges[i].type == 0;
        require(is_plain, cudaErrorNotSupported);
    }
}

bool depends_on(const GraphNode &node, const GraphNode &other) {
    return std::find(node.dependencies.begin(), node.dependencies.end(), &other) != node.dependencies.end();
}

void add_dependency(GraphNode &from, GraphNode &to) {
    require(from.graph == to.graph && &from != &to && !depends_on(to, from));
    to.dependencies.push_back(&from);
}

void remove_dependency(GraphNode &from, GraphNode &to) {
    require(depends_on(to, from));
    to.dependencies.erase(std::find(to.dependencies.begin(), to.dependencies.end(), &from));
}

GraphExecPtr instantiate(cudaGraph_t handle, unsigned long long flags) {
    GraphPtr graph = graph_find(handle);
    require((flags & cudaGraphInstantiateFlagDeviceLaunch) == 0, cudaErrorNotSupported);
    require_acyclic(*graph);
    tell_graph(Resource::exec_creating, handle);
    auto exec = std::make_shared<GraphExec>();
    exec->device = current_device_index();
    exec->flags = flags;
    exec->graph = graph_clone(*graph);
    exec->id = exec->graph->id;
    for (const GraphNodePtr &node : graph->nodes)
        exec->originals.push_back(node->handle);
    exec->handle = graph_exec_handles().add(exec);
    tell_nodes_cloned(*exec->graph, *graph);
    tell_graph(Resource::exec_created, handle, exec->handle);
    return exec;
}

// What is launched of an executable graph runs one after the other, whatever the streams. Its mutex is held.
void submit_in_turn(GraphExec &exec, Stream &stream, Work work) {
    std::vector<OperationPtr> waits;
    if (exec.last_launch != nullptr) waits.push_back(exec.last_launch);
    OperationPtr launch = submit(stream, std::move(work), std::move(waits));
    if (launch != nullptr) exec.last_launch = launch;
}

bool same_shape(const Graph &own, const Graph &other) {
    if (own.nodes.size() != other.nodes.size()) return false;
    for (size_t i = 0; i < own.nodes.size(); i++) {
        std::vector<size_t> first, second;
        for (const GraphNode *node : own.nodes[i]->dependencies)
            first.push_back(own.index_of(node));
        for (const GraphNode *node : other.nodes[i]->dependencies)
            second.push_back(other.index_of(node));
        std::sort(first.begin(), first.end());
        std::sort(second.begin(), second.end());
        if (first != second) return false;
    }
    return true;
}

// Fills in what cannot be updated; true: everything can be.
bool check_update(const Graph &own, const Graph &other, cudaGraphExecUpdateResultInfo *info) {
    *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    if (!same_shape(own, other)) info->result = cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; i < own.nodes.size() && info->result == cudaGraphExecUpdateSuccess; i++) {
        const Work &before = own.nodes[i]->work, &after = other.nodes[i]->work;
        if (before.index() != after.index()) {
            info->result = cudaGraphExecUpdateErrorNodeTypeChanged;
        } else if (const auto *child = std::get_if<ChildGraph>(&before)) {
            check_update(*child->graph, *std::get<ChildGraph>(after).graph, info);
        }
        if (info->result != cudaGraphExecUpdateSuccess) info->errorNode = other.nodes[i]->handle;
    }
    return info->result == cudaGraphExecUpdateSuccess;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

// ---- building ------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    return api([&] {
        require(graph != nullptr && flags == 0);
        auto made = std::make_shared<Graph>();
        graph_name(made);
        *graph = made->handle;
    });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return api([&] {
        graph_find(graph);
        tell_graph(Resource::graph_destroyed, graph);
        graph_handles().remove(graph, cudaErrorInvalidValue);
    });
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
    return api([&] {
        require(clone != nullptr);
        GraphPtr original = graph_find(graph);
        GraphPtr made = graph_clone(*original);
        for (size_t i = 0; i < made->nodes.size(); i++)
            made->nodes[i]->original = original->nodes[i]->handle;
        made->handle = graph_handles().add(made);
        tell_graph_cloned(*made, *original);
        *clone = made->handle;
    });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t original, cudaGraph_t clone) {
    return api([&] {
        require(found != nullptr);
        for (const GraphNodePtr &node : graph_find(clone)->nodes) {
            if (node->original != original) continue;
            *found = node->handle;
            return;
        }
        fail(cudaErrorInvalidValue);
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    return api([&] {
        GraphNodePtr found = node_find(node);
        tell_node(*found, Resource::node_destroyed);
        graph_remove(*found);
    });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t count) {
    return api([&] {
        GraphPtr found = graph_find(graph);
        require((from != nullptr && to != nullptr) || count == 0);
        require_plain(edges, count);
        for (size_t i = 0; i < count; i++) {
            GraphNodePtr first = node_find(from[i]), second = node_find(to[i]);
            require(first->graph == found.get());
            add_dependency(*first, *second);
        }
    });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t count) {
    return api([&] {
        GraphPtr found = graph_find(graph);
        require((from != nullptr && to != nullptr) || count == 0);
        require_plain(edges, count);
        for (size_t i = 0; i < count; i++) {
            GraphNodePtr first = node_find(from[i]), second = node_find(to[i]);
            require(first->graph == found.get());
            remove_dependency(*first, *second);
        }
    });
}

// ---- asking --------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
    return api([&] {
        require(type != nullptr);
        *type = work_type(node_find(node)->work);
    });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    return api([&] {
        std::vector<cudaGraphNode_t> all;
        for (const GraphNodePtr &node : graph_find(graph)->nodes)
            all.push_back(node->handle);
        give_list(all, nodes, count);
    });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    return api([&] {
        std::vector<cudaGraphNode_t> all;
        for (const GraphNodePtr &node : graph_find(graph)->nodes) {
            if (node->dependencies.empty()) all.push_back(node->handle);
        }
        give_list(all, nodes, count);
    });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
                              size_t *count) {
    return api([&] {
        require(count != nullptr && (from == nullptr) == (to == nullptr));
        std::vector<cudaGraphNode_t> sources, targets;
        for (const GraphNodePtr &node : graph_find(graph)->nodes) {
            for (const GraphNode *dependency : node->dependencies) {
                sources.push_back(dependency->handle);
                targets.push_back(node->handle);
            }
        }
        size_t room = *count;
        give_list(sources, from, count);
        if (to == nullptr) return;
        give_list(targets, to, &room);
        if (edges != nullptr) std::fill_n(edges, room, cudaGraphEdgeData{});
    });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies, cudaGraphEdgeData *edges,
                                         size_t *count) {
    return api([&] {
        std::vector<cudaGraphNode_t> all;
        for (const GraphNode *dependency : node_find(node)->dependencies)
            all.push_back(dependency->handle);
        give_list(all, dependencies, count);
        if (edges != nullptr && dependencies != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
    });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents, cudaGraphEdgeData *edges,
                                           size_t *count) {
    return api([&] {
        GraphNodePtr found = node_find(node);
        std::vector<cudaGraphNode_t> all;
        for (const GraphNodePtr &other : found->graph->nodes) {
            if (depends_on(*other, *found)) all.push_back(other->handle);
        }
        give_list(all, dependents, count);
        if (edges != nullptr && dependents != nullptr) std::fill_n(edges, *count, cudaGraphEdgeData{});
    });
}

// ---- executable graphs ---------------------------------------------------------------------------------------------

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags) {
    return api([&] {
        require(exec != nullptr);
        *exec = instantiate(graph, flags)->handle;
    });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *parameters) {
    return api([&] {
        require(exec != nullptr && parameters != nullptr);
        parameters->errNode_out = nullptr;
        parameters->result_out = cudaGraphInstantiateError;
        *exec = instantiate(graph, parameters->flags)->handle;
        parameters->result_out = cudaGraphInstantiateSuccess;
    });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags) {
    return api([&] {
        require(flags != nullptr);
        *flags = exec_find(exec)->flags;
    });
}

// What was launched of it goes on.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    return api([&] {
        exec_find(exec);
        tell_graph(Resource::exec_destroyed, nullptr, exec);
        graph_exec_handles().remove(exec, cudaErrorInvalidValue);
    });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info) {
    return api([&] {
        require(info != nullptr);
        GraphExecPtr updated = exec_find(exec);
        GraphPtr other = graph_find(graph);
        std::lock_guard lock(updated->mutex);
        require(check_update(*updated->graph, *other, info), cudaErrorGraphExecUpdateFailure);
        GraphPtr copy = graph_clone(*other);
        graph_take_ids(*copy, *updated->graph);
        updated->graph = copy;
    });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
    return api([&] {
        GraphExecPtr uploaded = exec_find(exec);
        StreamPtr in = stream_find(stream);
        std::lock_guard lock(uploaded->mutex);
        submit_in_turn(*uploaded, *in, Empty{});
    });
}

// Inside a capture it becomes a child graph.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    return api([&] {
        GraphExecPtr launched = exec_find(exec);
        StreamPtr in = stream_find(stream);
        std::lock_guard lock(launched->mutex);
        submit_in_turn(*launched, *in, ChildGraph{launched->graph});
    });
}
