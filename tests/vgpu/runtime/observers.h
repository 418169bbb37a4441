// The runtime's side of observer.h: telling those that are attached.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_OBSERVERS_H
#define SHOAL_TESTS_VGPU_RUNTIME_OBSERVERS_H

#include <array>
#include <atomic>

#include "tests/vgpu/runtime/cuda_api.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

struct Observers {
    std::array<std::atomic<Observer *>, 4> attached{}; // from the first on, the others null
    std::atomic<bool> is_any{false};
};

Observers &observers();

inline bool is_observed() { return observers().is_any.load(std::memory_order_relaxed); }

template <typename Function> void tell_observers(Function &&function) {
    if (!is_observed()) return;
    for (const auto &slot : observers().attached) {
        if (Observer *observer = slot.load(std::memory_order_acquire)) function(*observer);
    }
}

// The two ends of a call, be it one that an observer makes in the course of another.
void call_enter(ApiCall &call);
void call_leave(ApiCall &call);

} // namespace vgpu

#endif
