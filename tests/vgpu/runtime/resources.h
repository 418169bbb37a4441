// Telling observers of streams, graphs and nodes that come and go.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_RESOURCES_H
#define SHOAL_TESTS_VGPU_RUNTIME_RESOURCES_H

#include "tests/vgpu/runtime/observers.h"

namespace vgpu {

struct Graph;
struct GraphNode;
struct Stream;

void tell_stream(Resource what, const Stream &stream);
void tell_graph(Resource what, cudaGraph_t graph, cudaGraphExec_t exec = nullptr);
void tell_node(const GraphNode &node, Resource what = Resource::node_created);
// All nodes of a copy, those of child graphs too, are created and cloned.
void tell_nodes_cloned(const Graph &clone, const Graph &original);
void tell_graph_cloned(const Graph &clone, const Graph &original);

} // namespace vgpu

#endif
