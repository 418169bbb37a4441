// Finding graphs and nodes by their handles.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_GRAPH_NODES_H
#define SHOAL_TESTS_VGPU_RUNTIME_GRAPH_NODES_H

#include "tests/vgpu/runtime/graphs.h"

namespace vgpu {

// They throw cudaErrorInvalidValue.
GraphPtr graph_find(cudaGraph_t handle);
GraphNodePtr node_find(cudaGraphNode_t handle);
GraphExecPtr exec_find(cudaGraphExec_t handle);

} // namespace vgpu

#endif
