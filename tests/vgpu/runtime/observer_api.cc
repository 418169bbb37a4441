// What observers ask the runtime: see observer.h.
#include <cstring>

#include "tests/vgpu/exec/report.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/libraries.h"
#include "tests/vgpu/runtime/observers.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {
namespace {

// Runs what may throw ApiError; false: it did.
template <typename Body> bool succeeds(Body &&body) {
    try {
        body();
        return true;
    } catch (const ApiError &) {
        return false;
    }
}

} // namespace
} // namespace vgpu

using namespace vgpu;

uint64_t vgpu_number_setting(const char *variable, uint64_t otherwise, uint64_t least, uint64_t most) {
    return number_setting(variable, otherwise, least, most);
}

bool vgpu_stream(cudaStream_t handle, bool is_per_thread, uint64_t *id, int *device) {
    return succeeds([&] {
        StreamPtr stream = stream_find(handle == nullptr && is_per_thread ? cudaStreamPerThread : handle);
        *id = stream->id;
        *device = stream->device;
    });
}

bool vgpu_graph(cudaGraph_t handle, uint32_t *id) {
    GraphPtr graph = graph_handles().lookup(handle);
    if (graph != nullptr) *id = graph->id;
    return graph != nullptr;
}

bool vgpu_graph_exec(cudaGraphExec_t handle, uint32_t *id) {
    GraphExecPtr exec = graph_exec_handles().lookup(handle);
    if (exec != nullptr) *id = exec->id;
    return exec != nullptr;
}

bool vgpu_graph_node(cudaGraphNode_t handle, uint64_t *id) {
    GraphNodePtr node = graph_node_handles().lookup(handle);
    if (node != nullptr) *id = node->id;
    return node != nullptr;
}

const char *vgpu_kernel_name(const void *function) {
    const char *name = nullptr;
    succeeds([&] { name = kernel_find(function)->name.c_str(); });
    return name;
}

int vgpu_device_count() { return device_count(); }

int vgpu_current_device() { return current_device_index(); }

bool vgpu_device_properties(int device, cudaDeviceProp *properties) {
    return succeeds([&] { model_properties(device_at(device).index, properties); });
}

void vgpu_copy_memory(void *to, const void *from, size_t bytes) {
    memory_copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes);
}

void vgpu_device_memory(int device, uint64_t *used_bytes, uint64_t *total_bytes) {
    *used_bytes = memory_used(device);
    *total_bytes = memory_limit(device);
}

int vgpu_physical_count() { return physical_count(); }

int vgpu_physical_index(int device) { return device_physical_index(device); }

void vgpu_physical_identity(int physical, const char **name, char *uuid, char *pci) {
    *name = model().name;
    physical_uuid(physical, uuid);
    strcpy(pci, physical_pci_text(physical).c_str());
}

uint64_t vgpu_physical_memory_bytes() { return model().memory_bytes; }
