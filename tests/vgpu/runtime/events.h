// Events: the last operation that recorded them.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_EVENTS_H
#define SHOAL_TESTS_VGPU_RUNTIME_EVENTS_H

#include <mutex>

#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/handles.h"

namespace vgpu {

struct Event {
    int device = 0;
    unsigned flags = 0;
    std::mutex mutex;       // of what follows
    OperationPtr operation; // null: not recorded yet
    CapturedRecord captured;
};
using EventPtr = std::shared_ptr<Event>;

OperationPtr event_operation(Event &event);
CapturedRecord event_captured(Event &event);
HandleTable<Event, cudaEvent_t> &event_handles();

} // namespace vgpu

#endif
