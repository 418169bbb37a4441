// What the stand-in runtime tells the libraries that watch it (CUPTI, NVML), and what it answers them, and NCCL's.
// They link to it and are attached by vgpu_observe(); while none is, a call costs one look at a flag.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_OBSERVER_H
#define SHOAL_TESTS_VGPU_RUNTIME_OBSERVER_H

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace vgpu {

// A call of a function of the API, from its entry to its exit.
struct ApiCall {
    uint32_t cbid = 0; // CUpti_runtime_api_trace_cbid
    const char *name = nullptr;
    const void *parameters = nullptr; // as generated_cuda_runtime_api_meta.h has them; null: the function has none
    uint32_t correlation = 0;         // counted from 1 over the process's life
    cudaError_t result = cudaSuccess; // at the exit
    uint32_t outer_correlation = 0;   // of the call that is under way in this thread, which a callback calls from
    // The observer's own, from the entry to the exit.
    uint64_t begin = 0, data = 0;
    bool has_callback = false, is_recorded = false;
};

enum class MemoryPlace : uint8_t { pageable, pinned, managed, device, variable };

// Work that a device did, with the times of the cost model (timeline.h).
struct DeviceWork {
    enum class Kind : uint8_t {
        kernel,
        copy,
        fill,
        graph, // a launch of an executable graph as a whole, which comes after its nodes
    } kind = Kind::kernel;
    int device = 0;
    uint64_t stream = 0;                     // as cudaStreamGetId() gives it
    uint32_t correlation = 0;                // of the call that launched it; 0: no observer was attached then
    uint64_t issued = 0, begin = 0, end = 0; // by the clock
    uint32_t graph = 0;                      // that was launched; 0: none
    uint64_t node = 0;                       // of that graph

    // A kernel's. `name`, as mangled, is good until the observer returns.
    const char *name = nullptr;
    uint32_t grid[3] = {}, block[3] = {};
    uint64_t static_shared_bytes = 0, dynamic_shared_bytes = 0, local_bytes = 0;
    uint32_t registers = 0;
    bool is_cooperative = false;

    // A copy's, and what of it a fill has.
    uint64_t bytes = 0;
    MemoryPlace from = MemoryPlace::device, to = MemoryPlace::device;
    int from_device = 0, to_device = 0;
    uint32_t value = 0;
    bool is_async = false;
};

enum class Resource : uint8_t {
    stream_created,
    stream_destroyed, // is about to be, as all that are destroyed
    graph_created,
    graph_cloned,
    graph_destroyed,
    node_created,
    node_cloned,
    node_destroyed,
    exec_creating,
    exec_created,
    exec_destroyed,
};

struct ResourceChange {
    Resource what = Resource::stream_created;
    int device = 0;
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr, original_graph = nullptr;
    cudaGraphNode_t node = nullptr, original_node = nullptr;
    cudaGraphNodeType node_type = cudaGraphNodeTypeKernel;
    cudaGraphExec_t exec = nullptr;
};

// All functions may be called from any thread, and several at once.
class Observer {
  public:
    virtual void enter(ApiCall &) {} // in the thread that calls, as the next two
    virtual void leave(ApiCall &) {}
    virtual void resource(const ResourceChange &) {}
    // Work has begun, whose end is not known yet, and has ended: when the host can know it.
    virtual void begun(const DeviceWork &) {}
    virtual void ended(const DeviceWork &) {}
    // What observing costs a kernel on the device, in ns.
    virtual uint64_t kernel_cost_ns() const { return 0; }

  protected:
    ~Observer() = default;
};

} // namespace vgpu

extern "C" {
#pragma GCC visibility push(default)

// Attaches an observer, which lives as long as the process. Once attached, it stays.
void vgpu_observe(vgpu::Observer *observer);
// Counted: while someone wants it, work takes the time that the cost model says.
void vgpu_keep_time(bool is_wanted);
// The clock of all times, in ns. The first is CLOCK_REALTIME; null brings it back.
void vgpu_set_clock(uint64_t (*clock)());
uint64_t vgpu_now();

// An environment variable that is a number; a wrong one ends the process.
uint64_t vgpu_number_setting(const char *variable, uint64_t otherwise, uint64_t least, uint64_t most);

// The call of the calling thread that is under way; 0: none.
uint32_t vgpu_correlation();
// What handles stand for; false: there is no such.
bool vgpu_stream(cudaStream_t handle, bool is_per_thread, uint64_t *id, int *device);
bool vgpu_graph(cudaGraph_t handle, uint32_t *id);
bool vgpu_graph_exec(cudaGraphExec_t handle, uint32_t *id);
bool vgpu_graph_node(cudaGraphNode_t handle, uint64_t *id);
// What a function of the host stands for; null: no kernel.
const char *vgpu_kernel_name(const void *function);
int vgpu_device_count();
int vgpu_current_device();
// False: there is no such device.
bool vgpu_device_properties(int device, cudaDeviceProp *properties);
void vgpu_device_memory(int device, uint64_t *used_bytes, uint64_t *total_bytes);
// Copies now, in the calling thread, as an operation of a stream does: addresses are the devices' or the host's own.
void vgpu_copy_memory(void *to, const void *from, size_t bytes);
// Of all devices, whatever CUDA_VISIBLE_DEVICES says; a device's number among them; and who one of them is: 16 bytes of
// uuid, and "0000:07:00.0" with its zero.
int vgpu_physical_count();
int vgpu_physical_index(int device);
void vgpu_physical_identity(int physical, const char **name, char *uuid, char *pci);
uint64_t vgpu_physical_memory_bytes();

#pragma GCC visibility pop
}

#endif
