#include "tests/vgpu/runtime/resources.h"

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

void tell(ResourceChange change) {
    tell_observers([&](Observer &observer) { observer.resource(change); });
}

ResourceChange change_of_node(Resource what, const GraphNode &node) {
    ResourceChange change;
    change.what = what;
    change.device = current_device_index();
    change.graph = node.graph->handle;
    change.node = node.handle;
    change.node_type = work_type(node.work);
    return change;
}

} // namespace

void tell_stream(Resource what, const Stream &stream) {
    ResourceChange change;
    change.what = what;
    change.device = stream.device;
    change.stream = stream.handle;
    tell(change);
}

void tell_graph(Resource what, cudaGraph_t graph, cudaGraphExec_t exec) {
    ResourceChange change;
    change.what = what;
    change.device = current_device_index();
    change.graph = graph;
    change.exec = exec;
    tell(change);
}

void tell_node(const GraphNode &node, Resource what) {
    if (is_observed()) tell(change_of_node(what, node));
}

void tell_nodes_cloned(const Graph &clone, const Graph &original) {
    if (!is_observed()) return;
    for (size_t i = 0; i < clone.nodes.size(); i++) {
        const GraphNode &node = *clone.nodes[i], &from = *original.nodes[i];
        tell_node(node);
        ResourceChange change = change_of_node(Resource::node_cloned, node);
        change.original_graph = original.handle;
        change.original_node = from.handle;
        tell(change);
        const auto *child = std::get_if<ChildGraph>(&node.work);
        if (child != nullptr) tell_nodes_cloned(*child->graph, *std::get<ChildGraph>(from.work).graph);
    }
}

void tell_graph_cloned(const Graph &clone, const Graph &original) {
    ResourceChange change;
    change.what = Resource::graph_cloned;
    change.device = current_device_index();
    change.graph = clone.handle;
    change.original_graph = original.handle;
    tell(change);
    tell_nodes_cloned(clone, original);
}

} // namespace vgpu
