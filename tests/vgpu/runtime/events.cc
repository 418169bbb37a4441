// The API of events.
#include "tests/vgpu/runtime/events.h"

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"

namespace vgpu {

OperationPtr event_operation(Event &event) {
    std::lock_guard lock(event.mutex);
    return event.operation;
}

CapturedRecord event_captured(Event &event) {
    std::lock_guard lock(event.mutex);
    return event.captured;
}

HandleTable<Event, cudaEvent_t> &event_handles() {
    static auto *const table = new HandleTable<Event, cudaEvent_t>(HandleKind::event);
    return *table;
}

namespace {

// An event that was last recorded in a captured stream cannot be waited for by the host.
EventPtr find_uncaptured(cudaEvent_t handle) {
    EventPtr event = event_handles().find(handle);
    require(event_captured(*event).capture == nullptr, cudaErrorCapturedEvent);
    return event;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    return api([&] {
        constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
        require(event != nullptr && (flags & ~known) == 0);
        bool is_interprocess = (flags & cudaEventInterprocess) != 0;
        require(!is_interprocess || (flags & cudaEventDisableTiming) != 0);
        require(!is_interprocess, cudaErrorNotSupported);
        auto made = std::make_shared<Event>();
        made->device = current_device().index;
        made->flags = flags;
        *event = event_handles().add(made);
    });
}

// Work that waits for it goes on waiting.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return api([&] { event_handles().remove(event); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return api([&] {
        require(flags == cudaEventRecordDefault);
        EventPtr recorded = event_handles().find(event);
        StreamPtr in = stream_find(stream);
        require(recorded->device == in->device, cudaErrorInvalidResourceHandle);
        CapturedRecord captured = capture_record(*in);
        OperationPtr operation;
        if (captured.capture == nullptr) operation = stream_submit(*in, std::function<cudaError_t()>());
        std::lock_guard lock(recorded->mutex);
        recorded->captured = captured;
        recorded->operation = operation;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    bool is_done = false;
    cudaError_t error = api([&] {
        EventPtr queried = find_uncaptured(event);
        is_done = operation_is_done(event_operation(*queried));
        if (is_done) device_at(queried->device).surface_fault();
    });
    if (error == cudaSuccess && !is_done) return cudaErrorNotReady; // which is no error and is not kept as one
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return api([&] {
        EventPtr awaited = find_uncaptured(event);
        operation_wait(event_operation(*awaited));
        device_at(awaited->device).surface_fault();
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    bool is_done = false;
    cudaError_t error = api([&] {
        require(milliseconds != nullptr);
        EventPtr first = find_uncaptured(start), second = find_uncaptured(end);
        bool are_timed = ((first->flags | second->flags) & cudaEventDisableTiming) == 0;
        require(are_timed && first->device == second->device, cudaErrorInvalidResourceHandle);
        OperationPtr from = event_operation(*first), to = event_operation(*second);
        require(from != nullptr && to != nullptr, cudaErrorInvalidResourceHandle);
        is_done = operation_is_done(from) && operation_is_done(to);
        if (!is_done) return;
        std::chrono::duration<float, std::milli> elapsed = to->done_at - from->done_at;
        int64_t modelled_ns = 0;
        if (timing_difference_ns(from->timing, to->timing, &modelled_ns)) {
            elapsed = std::chrono::nanoseconds(modelled_ns);
        }
        *milliseconds = elapsed.count();
    });
    if (error == cudaSuccess && !is_done) return cudaErrorNotReady;
    return error;
}
