// Graphs of work, and what is launched of them.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_GRAPHS_H
#define SHOAL_TESTS_VGPU_RUNTIME_GRAPHS_H

#include <memory>
#include <mutex>
#include <vector>

#include "tests/vgpu/runtime/work.h"

namespace vgpu {

struct GraphNode {
    cudaGraphNode_t handle = nullptr;
    uint64_t id = 0;                    // unique in the process, but for a graph that takes another's place
    cudaGraphNode_t original = nullptr; // of a clone: the node it is a copy of
    Graph *graph = nullptr;
    Work work;
    std::vector<GraphNode *> dependencies;
};
using GraphNodePtr = std::shared_ptr<GraphNode>;

struct Graph {
    uint32_t id = 0;                 // as a node's
    cudaGraph_t handle = nullptr;    // null: a child graph's, or that of an executable one
    std::vector<GraphNodePtr> nodes; // in the order in which they were added

    Graph();
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    size_t index_of(const GraphNode *node) const;
};
using GraphPtr = std::shared_ptr<Graph>;

// A graph made ready: a copy, which updates replace, so that launches that wait to run keep theirs.
struct GraphExec {
    cudaGraphExec_t handle = nullptr;
    uint32_t id = 0; // its graph's
    int device = 0;
    unsigned long long flags = 0;
    std::mutex mutex; // of what follows
    GraphPtr graph;
    std::vector<cudaGraphNode_t> originals; // of the nodes, in their order
    OperationPtr last_launch;               // null: none yet
};
using GraphExecPtr = std::shared_ptr<GraphExec>;

GraphNode *graph_add(Graph &graph, Work work, const std::vector<GraphNode *> &dependencies);
void graph_remove(GraphNode &node);
GraphPtr graph_clone(const Graph &graph);
// For a graph that takes the place of another, node by node.
void graph_take_ids(Graph &graph, const Graph &from);
// Gives it a handle, where it has none.
void graph_name(const GraphPtr &graph);
// The nodes so that each comes after those it depends on; nodes that do not depend on each other are shuffled by
// `seed`. Throws cudaErrorInvalidValue where there is a cycle.
std::vector<GraphNode *> graph_order(const Graph &graph, uint64_t seed);
// Throws cudaErrorInvalidValue where there is a cycle, in the graph or in a child graph.
void require_acyclic(const Graph &graph);
// Runs all nodes, each after those it depends on.
cudaError_t graph_run(const Graph &graph);
cudaGraphNodeType work_type(const Work &work);

HandleTable<Graph, cudaGraph_t> &graph_handles();
HandleTable<GraphNode, cudaGraphNode_t> &graph_node_handles();
HandleTable<GraphExec, cudaGraphExec_t> &graph_exec_handles();

} // namespace vgpu

#endif
