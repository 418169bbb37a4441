// Building, copying, ordering and running graphs.
#include "tests/vgpu/runtime/graphs.h"

#include <algorithm>
#include <atomic>

#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/environment.h"
#include "tests/vgpu/runtime/resources.h"

namespace vgpu {

Graph::Graph() {
    static std::atomic<uint32_t> made{0};
    id = ++made;
}

Graph::~Graph() {
    for (const GraphNodePtr &node : nodes)
        graph_node_handles().remove(node->handle);
}

size_t Graph::index_of(const GraphNode *node) const {
    auto found =
        std::find_if(nodes.begin(), nodes.end(), [node](const GraphNodePtr &own) { return own.get() == node; });
    require(found != nodes.end());
    return static_cast<size_t>(found - nodes.begin());
}

GraphNode *graph_add(Graph &graph, Work work, const std::vector<GraphNode *> &dependencies) {
    for (const GraphNode *dependency : dependencies)
        require(dependency->graph == &graph);
    static std::atomic<uint64_t> made{0};
    auto node = std::make_shared<GraphNode>();
    node->id = ++made;
    node->graph = &graph;
    node->work = std::move(work);
    for (GraphNode *dependency : dependencies) {
        bool is_new =
            std::find(node->dependencies.begin(), node->dependencies.end(), dependency) == node->dependencies.end();
        if (is_new) node->dependencies.push_back(dependency);
    }
    node->handle = graph_node_handles().add(node);
    graph.nodes.push_back(node);
    return node.get();
}

void graph_remove(GraphNode &node) {
    Graph &graph = *node.graph;
    for (const GraphNodePtr &other : graph.nodes) {
        auto &own = other->dependencies;
        own.erase(std::remove(own.begin(), own.end(), &node), own.end());
    }
    graph_node_handles().remove(node.handle);
    graph.nodes.erase(graph.nodes.begin() + static_cast<ptrdiff_t>(graph.index_of(&node)));
}

GraphPtr graph_clone(const Graph &graph) {
    auto clone = std::make_shared<Graph>();
    for (const GraphNodePtr &node : graph.nodes) {
        Work work = node->work;
        if (auto *child = std::get_if<ChildGraph>(&work)) child->graph = graph_clone(*child->graph);
        graph_add(*clone, std::move(work), {});
    }
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        for (const GraphNode *dependency : graph.nodes[i]->dependencies) {
            clone->nodes[i]->dependencies.push_back(clone->nodes[graph.index_of(dependency)].get());
        }
    }
    return clone;
}

void graph_take_ids(Graph &graph, const Graph &from) {
    graph.id = from.id;
    for (size_t i = 0; i < std::min(graph.nodes.size(), from.nodes.size()); i++) {
        graph.nodes[i]->id = from.nodes[i]->id;
        const auto *child = std::get_if<ChildGraph>(&graph.nodes[i]->work);
        const auto *before = std::get_if<ChildGraph>(&from.nodes[i]->work);
        if (child != nullptr && before != nullptr) graph_take_ids(*child->graph, *before->graph);
    }
}

void graph_name(const GraphPtr &graph) {
    if (graph->handle != nullptr) return;
    graph->handle = graph_handles().add(graph);
    tell_graph(Resource::graph_created, graph->handle);
}

std::vector<GraphNode *> graph_order(const Graph &graph, uint64_t seed) {
    std::vector<size_t> missing(graph.nodes.size());
    std::vector<std::vector<size_t>> dependents(graph.nodes.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        missing[i] = graph.nodes[i]->dependencies.size();
        for (const GraphNode *dependency : graph.nodes[i]->dependencies) {
            dependents[graph.index_of(dependency)].push_back(i);
        }
        if (missing[i] == 0) ready.push_back(i);
    }
    std::vector<GraphNode *> order;
    while (!ready.empty()) {
        size_t pick = mix(seed + order.size()) % ready.size();
        size_t next = ready[pick];
        ready.erase(ready.begin() + static_cast<ptrdiff_t>(pick));
        order.push_back(graph.nodes[next].get());
        for (size_t dependent : dependents[next]) {
            if (--missing[dependent] == 0) ready.push_back(dependent);
        }
    }
    require(order.size() == graph.nodes.size());
    return order;
}

void require_acyclic(const Graph &graph) {
    graph_order(graph, 0);
    for (const GraphNodePtr &node : graph.nodes) {
        if (const auto *child = std::get_if<ChildGraph>(&node->work)) require_acyclic(*child->graph);
    }
}

// All nodes in such an order, another one each time.
static cudaError_t run_nodes(const Graph &graph) {
    static std::atomic<uint64_t> runs{0};
    for (const GraphNode *node : graph_order(graph, mix(shuffle_seed() ^ mix(runs++)))) {
        if (TimedOperation *timed = TimedOperation::current()) timed->set_node(node->id);
        cudaError_t error = work_run(node->work);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t graph_run(const Graph &graph) {
    TimedOperation *timed = TimedOperation::current();
    if (timed == nullptr || timed->is_in_graph()) return run_nodes(graph);
    timed->begin_graph(graph.id);
    cudaError_t error = run_nodes(graph);
    timed->finish_graph();
    return error;
}

cudaGraphNodeType work_type(const Work &work) {
    struct Types {
        cudaGraphNodeType operator()(const Empty &) const { return cudaGraphNodeTypeEmpty; }
        cudaGraphNodeType operator()(const Launch &) const { return cudaGraphNodeTypeKernel; }
        cudaGraphNodeType operator()(const Copy &) const { return cudaGraphNodeTypeMemcpy; }
        cudaGraphNodeType operator()(const Fill &) const { return cudaGraphNodeTypeMemset; }
        cudaGraphNodeType operator()(const HostCall &) const { return cudaGraphNodeTypeHost; }
        cudaGraphNodeType operator()(const Free &) const { return cudaGraphNodeTypeMemFree; }
        cudaGraphNodeType operator()(const ChildGraph &) const { return cudaGraphNodeTypeGraph; }
    };
    return std::visit(Types{}, work);
}

HandleTable<Graph, cudaGraph_t> &graph_handles() {
    static auto *const table = new HandleTable<Graph, cudaGraph_t>(HandleKind::graph);
    return *table;
}

HandleTable<GraphNode, cudaGraphNode_t> &graph_node_handles() {
    static auto *const table = new HandleTable<GraphNode, cudaGraphNode_t>(HandleKind::graph_node);
    return *table;
}

HandleTable<GraphExec, cudaGraphExec_t> &graph_exec_handles() {
    static auto *const table = new HandleTable<GraphExec, cudaGraphExec_t>(HandleKind::graph_exec);
    return *table;
}

} // namespace vgpu
