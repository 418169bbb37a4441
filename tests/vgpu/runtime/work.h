// What an operation of a stream or a node of a graph does.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_WORK_H
#define SHOAL_TESTS_VGPU_RUNTIME_WORK_H

#include <memory>
#include <variant>
#include <vector>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/kernel_launch.h"
#include "tests/vgpu/runtime/streams.h"

namespace vgpu {

struct Graph;

struct Empty {};

// A box of bytes: `depth` slices of `height` rows of `width` bytes. Ranges and kinds were checked.
struct Copy {
    uint64_t to = 0, from = 0;
    size_t width = 0, height = 1, depth = 1;
    size_t to_pitch = 0, from_pitch = 0; // from row to row
    size_t to_slice = 0, from_slice = 0; // from slice to slice
    bool to_pageable = false, from_pageable = false, is_async = false;
    std::shared_ptr<std::vector<uint8_t>> staged; // not null: the bytes, taken at the call
    cudaMemcpy3DParms parameters{};               // as the graph's functions give them back
};

// Sets elements of 1, 2 or 4 bytes; `width` counts elements.
struct Fill {
    uint64_t to = 0;
    size_t pitch = 0, width = 0, height = 1, depth = 1, slice = 0;
    uint32_t value = 0, element_bytes = 1;
    bool is_async = false;
};

struct HostCall {
    cudaHostFn_t function = nullptr;
    void *data = nullptr;
};

// Of memory from a pool.
struct Free {
    uint64_t base = 0;
};

struct ChildGraph {
    std::shared_ptr<Graph> graph;
};

using Work = std::variant<Empty, Launch, Copy, Fill, HostCall, Free, ChildGraph>;

// As observers are told of it.
DeviceWork device_work(const Launch &launch);
DeviceWork device_work(const Copy &copy);
DeviceWork device_work(const Fill &fill);

// Does it now, in the calling thread.
cudaError_t work_run(const Work &work);

// Puts it at the end of the stream, where it also waits for `waits`, or into the graph that the stream is captured
// into; then the result is null.
OperationPtr submit(Stream &stream, Work work, std::vector<OperationPtr> waits = {});

} // namespace vgpu

#endif
