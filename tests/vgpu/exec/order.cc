#include "tests/vgpu/exec/order.h"

namespace vgpu {
namespace {

bool is_acquire(const Form &form) { return form.has("acquire") || form.has("acq_rel"); }
bool is_release(const Form &form) { return form.has("release") || form.has("acq_rel"); }

// mbarriers acquire and release unless they are told not to, and those that track copies release what was copied.
uint8_t barrier_order(const Form &form, bool is_wait) {
    if (form.has("init") || form.has("inval") || form.has("pending_count")) return 0;
    if (form.has("relaxed") || form.has("expect_tx")) return ORDER_STRONG;
    return ORDER_STRONG | (is_wait ? ORDER_ACQUIRE : ORDER_RELEASE);
}

} // namespace

uint8_t memory_order(const Form &form) {
    std::string_view name = form.row->name;
    if (name == "mbarrier") return barrier_order(form, form.has("test_wait") || form.has("try_wait"));
    if (name == "cp") return barrier_order(form, false);
    bool is_atomic = name == "atom" || name == "red";
    if (!is_atomic && name != "ld" && name != "st" && name != "fence" && name != "membar") return 0;
    bool is_fence = name == "fence" || name == "membar";
    if (!is_atomic && !is_fence && form.one_of("volatile|relaxed|acquire|release|mmio").empty()) return 0;
    uint8_t order = ORDER_STRONG;
    if (!form.has("cta")) order |= ORDER_DEVICE;
    if (is_acquire(form)) order |= ORDER_ACQUIRE;
    if (is_release(form)) order |= ORDER_RELEASE;
    return order;
}

} // namespace vgpu
