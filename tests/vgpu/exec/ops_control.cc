// Branches, calls, and the end of a thread.
#include <cstring>
#include <ctime>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/device_calls.h"
#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

void branch(Warp &warp, const Instr &in, Mask active) { warp.branch(in.target, active); }
void branch_indexed(Warp &warp, const Instr &in, Mask active) { warp.branch_indexed(in, active); }
void call(Warp &warp, const Instr &in, Mask active) { warp.call(in, active); }
void ret(Warp &warp, const Instr &, Mask active) { warp.ret(active); }
void exit(Warp &warp, const Instr &, Mask active) { warp.exit(active); }
void yield(Warp &warp, const Instr &, Mask) { warp.yield(); }

void trap(Warp &, const Instr &, Mask active) {
    throw Trap{Fault::trap, "trap: the kernel executed a trap instruction", __builtin_ctz(active)};
}

// ---- functions of the runtime --------------------------------------------------------------------------------------

Run pick_call(const Form &form) {
    for (const ptx::Operand &operand : form.source->operands) {
        if (operand.kind == ptx::Operand::Kind::list) continue;
        if (operand.name == "vprintf") return device_printf;
        if (operand.name == "__assertfail") return device_assert;
        if (operand.name == "malloc") return device_malloc;
        if (operand.name == "free") return device_free;
        return call;
    }
    return nullptr;
}

// ---- clocks --------------------------------------------------------------------------------------------------------

// A warp's clock counts its own instructions, so that it is the same in every run; the global timer is the host's.
uint64_t warp_clock(const Warp &warp) { return warp.executed(); }

uint64_t global_timer(const Warp &) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

template <class T, uint64_t (*read)(const Warp &), int shift>
void read_clock(Warp &warp, const Instr &in, Mask active) {
    T *d = warp.lanes<T>(in.at[0]);
    T value = T(read(warp) >> shift);
    for (int l = 0; l < LANES; l++) {
        if (active >> l & 1) d[l] = value;
    }
}

Run pick_clock(const Form &form) {
    const std::string &name = form.source->operands[1].name;
    if (ptx::type_bytes(form.type()) == 8) {
        if (name == "%clock64") return read_clock<uint64_t, warp_clock, 0>;
        return name == "%globaltimer" ? Run(read_clock<uint64_t, global_timer, 0>) : nullptr;
    }
    if (name == "%clock") return read_clock<uint32_t, warp_clock, 0>;
    if (name == "%clock_hi") return read_clock<uint32_t, warp_clock, 32>;
    if (name == "%globaltimer_lo") return read_clock<uint32_t, global_timer, 0>;
    return name == "%globaltimer_hi" ? Run(read_clock<uint32_t, global_timer, 32>) : nullptr;
}

void activemask(Warp &warp, const Instr &in, Mask active) {
    uint32_t *d = warp.lanes<uint32_t>(in.at[0]);
    for (int l = 0; l < LANES; l++) {
        if (active >> l & 1) d[l] = active;
    }
}

const Row rows[] = {
    {"bra", "uni?", "", only<branch>},
    {"brx", "idx uni?", "u32", only<branch_indexed>},
    {"call", "uni?", "c", pick_call},
    {"ret", "uni?", "", only<ret>},
    {"exit", "", "", only<exit>},
    {"trap", "", "", only<trap>},
    {"brkpt", "", "", only<trap>},
    {"nanosleep", "u32", "t", only<yield>},
    {"activemask", "b32", "t", only<activemask>},
    {"mov", "b32|u32|s32|b64|u64|s64", "t clock", pick_clock},
    {"griddepcontrol", "launch_dependents|wait", "", only<nothing>},
    {"setmaxnreg", "inc|dec sync aligned u32", "t", only<nothing>},
    {"pmevent", "mask?", "u32", only<nothing>},
};

} // namespace

extern const Rows control_rows;
const Rows control_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
