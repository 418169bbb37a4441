// Who is attached, and the calls that they are told of.
#include "tests/vgpu/runtime/observers.h"

namespace vgpu {
namespace {

thread_local uint32_t current_correlation = 0;

} // namespace

Observers &observers() {
    static Observers only;
    return only;
}

void call_enter(ApiCall &call) {
    static std::atomic<uint32_t> calls{0};
    call.correlation = ++calls;
    call.outer_correlation = current_correlation;
    current_correlation = call.correlation;
    tell_observers([&](Observer &observer) { observer.enter(call); });
}

void call_leave(ApiCall &call) {
    tell_observers([&](Observer &observer) { observer.leave(call); });
    current_correlation = call.outer_correlation;
}

} // namespace vgpu

using namespace vgpu;

void vgpu_observe(Observer *observer) {
    for (auto &slot : observers().attached) {
        Observer *none = nullptr;
        if (slot.load() != observer && !slot.compare_exchange_strong(none, observer)) continue;
        observers().is_any = true;
        return;
    }
}

uint32_t vgpu_correlation() { return current_correlation; }
