// Doing what operations and nodes stand for.
#include "tests/vgpu/runtime/work.h"

#include <cstring>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/graphs.h"
#include "tests/vgpu/runtime/runtime_memory.h"

namespace vgpu {
namespace {

cudaError_t run(const Empty &) { return cudaSuccess; }

// What a device does, in its place in the operation that the thread runs.
template <typename T, typename Run, typename Duration>
cudaError_t run_timed(const T &what, const Run &run, const Duration &duration_ns) {
    TimedOperation *timed = TimedOperation::current();
    if (timed == nullptr) return run();
    DeviceWork work = device_work(what);
    timed->begin(work);
    cudaError_t error = run();
    timed->finish(work, duration_ns(work));
    return error;
}

cudaError_t run(const Launch &launch) {
    uint64_t instructions = 0;
    return run_timed(
        launch, [&] { return launch_run(launch, &instructions); },
        [&](const DeviceWork &) { return kernel_duration_ns(launch.config.grid.count(), instructions); });
}

uint64_t duration_of_bytes_ns(const DeviceWork &work) { return copy_duration_ns(work.bytes); }

cudaError_t make_copy(const Copy &copy) {
    if (!copy_is_in_memory(copy)) return cudaErrorIllegalAddress;
    if (copy.staged != nullptr) {
        memory_copy(copy.to, reinterpret_cast<uint64_t>(copy.staged->data()), copy.width);
        return cudaSuccess;
    }
    for (size_t z = 0; z < copy.depth; z++) {
        for (size_t y = 0; y < copy.height; y++) {
            memory_copy(copy.to + z * copy.to_slice + y * copy.to_pitch,
                        copy.from + z * copy.from_slice + y * copy.from_pitch, copy.width);
        }
    }
    return cudaSuccess;
}

cudaError_t run(const Copy &copy) {
    return run_timed(
        copy, [&] { return make_copy(copy); }, duration_of_bytes_ns);
}

cudaError_t make_fill(const Fill &fill) {
    if (!fill_is_in_memory(fill)) return cudaErrorIllegalAddress;
    // A row of elements, where one byte alone does not say it.
    std::vector<uint8_t> row(fill.element_bytes > 1 ? fill.width * fill.element_bytes : 0);
    for (size_t i = 0; i < row.size(); i += fill.element_bytes)
        memcpy(&row[i], &fill.value, fill.element_bytes);
    for (size_t z = 0; z < fill.depth; z++) {
        for (size_t y = 0; y < fill.height; y++) {
            uint64_t to = fill.to + z * fill.slice + y * fill.pitch;
            if (row.empty()) {
                memory_fill(to, static_cast<uint8_t>(fill.value), fill.width);
            } else {
                memory_copy(to, reinterpret_cast<uint64_t>(row.data()), row.size());
            }
        }
    }
    return cudaSuccess;
}

cudaError_t run(const Fill &fill) {
    return run_timed(
        fill, [&] { return make_fill(fill); }, duration_of_bytes_ns);
}

cudaError_t run(const HostCall &call) {
    {
        HostFunctionScope scope;
        call.function(call.data);
    }
    if (TimedOperation *timed = TimedOperation::current()) timed->host_function_ended();
    return cudaSuccess;
}

cudaError_t run(const Free &free) {
    allocation_release(free.base);
    return cudaSuccess;
}

cudaError_t run(const ChildGraph &child) { return graph_run(*child.graph); }

} // namespace

cudaError_t work_run(const Work &work) {
    return std::visit([](const auto &kind) { return run(kind); }, work);
}

OperationPtr submit(Stream &stream, Work work, std::vector<OperationPtr> waits) {
    if (capture_submit(stream, work)) return nullptr;
    auto operation = std::make_shared<Operation>();
    operation->is_host_function = std::holds_alternative<HostCall>(work);
    operation->waits = std::move(waits);
    operation->run = [held = std::move(work)] { return work_run(held); };
    return stream_submit(stream, std::move(operation));
}

} // namespace vgpu
