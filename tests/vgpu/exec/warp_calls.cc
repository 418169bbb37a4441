// Frames: a kernel's, and those of the functions that it calls.
#include <cstring>

#include "tests/vgpu/exec/block.h"
#include "tests/vgpu/exec/memory.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu {
namespace {

constexpr size_t FRAME_ALIGN = 64;

// A thread's place in its block and its block's in the grid; false: the register is another.
bool place_value(const Block &block, uint32_t thread, Special special, uint64_t *value) {
    const Dim3 &size = block.config().block, &grid = block.config().grid, &at = block.position();
    const uint32_t places[] = {thread % size.x,
                               thread / size.x % size.y,
                               thread / size.x / size.y,
                               size.x,
                               size.y,
                               size.z,
                               at.x,
                               at.y,
                               at.z,
                               grid.x,
                               grid.y,
                               grid.z};
    int index = int(special) - int(Special::tid_x);
    static_assert(int(Special::nctaid_z) - int(Special::tid_x) == 11, "in the order of the array");
    if (special < Special::tid_x || special > Special::nctaid_z) return false;
    *value = places[index];
    return true;
}

// The value of a special register in a lane.
uint64_t special_value(const Block &block, const Warp &warp, const Fill &fill, int lane) {
    uint64_t value = 0;
    if (place_value(block, uint32_t(warp.thread(lane)), fill.special, &value)) return value;
    switch (fill.special) {
    case Special::laneid:
        return uint64_t(lane);
    case Special::warpid:
        return uint64_t(warp.index());
    case Special::nwarpid:
        return (block.config().block.count() + LANES - 1) / LANES;
    case Special::lanemask_eq:
        return Mask{1} << lane;
    case Special::lanemask_lt:
        return (Mask{1} << lane) - 1;
    case Special::lanemask_le:
        return (Mask{2} << lane) - 1;
    case Special::lanemask_gt:
        return Mask(~((Mask{2} << lane) - 1));
    case Special::lanemask_ge:
        return Mask(~((Mask{1} << lane) - 1));
    case Special::smid:
        return block.processor();
    case Special::nsmid:
        return block.processors();
    case Special::gridid:
        return block.grid_number();
    case Special::dynamic_smem_size:
        return block.config().dynamic_shared_bytes;
    case Special::total_smem_size:
        return block.shared_bytes();
    case Special::dynamic_shared:
        return block.dynamic_shared_at() + fill.addend;
    case Special::workspace_low:
        return block.workspace() & 0xffffffff;
    case Special::workspace_high:
        return block.workspace() >> 32;
    case Special::one:
        return 1;
    default:
        return 0;
    }
}

void put(uint8_t *lanes, uint8_t width, int lane, uint64_t value) { memcpy(lanes + lane * width, &value, width); }

} // namespace

Frame *Warp::new_frame(const Code &code, Frame *caller, uint64_t local_base) {
    Frame *frame = nullptr;
    for (size_t i = 0; i < free_frames_.size() && frame == nullptr; i++) {
        if (free_frames_[i]->code != &code) continue;
        frame = free_frames_[i];
        free_frames_[i] = free_frames_.back();
        free_frames_.pop_back();
    }
    if (frame == nullptr) {
        frames_.push_back(std::make_unique<Frame>());
        frame = frames_.back().get();
        frame->code = &code;
        frame->storage.reset(new uint8_t[code.image.size() + FRAME_ALIGN]);
        uint64_t base = reinterpret_cast<uint64_t>(frame->storage.get());
        frame->registers = reinterpret_cast<uint8_t *>((base + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN);
        // Nothing writes to what the image holds, so that a frame used again needs it no more.
        memcpy(frame->registers, code.image.data(), code.image.size());
    }
    frame->caller = caller;
    frame->call = nullptr;
    frame->depth = caller == nullptr ? 0 : caller->depth + 1;
    frame->local_base = local_base;
    frame->lanes = 0;
    fill_special(*frame);
    return frame;
}

void Warp::fill_special(Frame &frame) {
    for (const Fill &fill : frame.code->fills) {
        uint8_t *lanes = frame.registers + fill.slot;
        uint64_t local = memory_windows().local + frame.local_base + fill.addend;
        for (int l = 0; l < LANES; l++) {
            bool is_local = fill.special == Special::local_address;
            put(lanes, fill.width, l, is_local ? local : special_value(block_, *this, fill, l));
        }
    }
}

void Warp::release_frame(Frame *frame, Mask lanes) {
    frame->lanes &= ~lanes;
    if (frame->lanes == 0) free_frames_.push_back(frame);
}

// ---- calls ---------------------------------------------------------------------------------------------------------

// The operands of a call: (results), the function, (arguments), a prototype's name.
namespace {

struct CallOperands {
    const ptx::Operand *results = nullptr, *function = nullptr, *arguments = nullptr;
};

CallOperands call_operands(const Instr &in) {
    CallOperands call;
    for (const ptx::Operand &operand : in.form->source->operands) {
        bool is_list = operand.kind == ptx::Operand::Kind::list;
        if (is_list && call.function == nullptr) {
            call.results = &operand;
        } else if (is_list) {
            call.arguments = &operand;
        } else if (call.function == nullptr) {
            call.function = &operand;
        }
    }
    return call;
}

} // namespace

// The function that the first active lane calls, and which lanes call the same.
const Code &Warp::callee(const Instr &in, Mask active, Mask *same) {
    const ptx::Operand &function = *call_operands(in).function;
    Module &module = *running_.frame->code->module;
    int lane = __builtin_ctz(active);
    const Code *code;
    *same = active;
    if (function.kind == ptx::Operand::Kind::reg) {
        const uint64_t *address = lanes<uint64_t>(in.at[0]);
        *same = 0;
        for (int l = 0; l < LANES; l++) {
            *same |= Mask{(active >> l & 1) != 0 && address[l] == address[lane]} << l;
        }
        code = code_at(module.device, address[lane]);
    } else {
        code = module.code(size_t(function.index));
    }
    if (code == nullptr) throw Trap{Fault::illegal_instruction, "a call of something that is not a function", lane};
    if (code->names_shared && code->module != block_.code().module) {
        throw Trap{Fault::illegal_instruction, "a call of another module's function that has shared memory", lane};
    }
    return *code;
}

void Warp::copy_arguments(const Instr &in, const Code &callee, uint64_t callee_base, Mask active) {
    const ptx::Operand *arguments = call_operands(in).arguments;
    const Code &caller = *running_.frame->code;
    size_t given = arguments == nullptr ? 0 : arguments->parts.size();
    if (given != callee.source->parameters.size()) {
        throw Trap{Fault::illegal_instruction,
                   "a call of " + callee.source->name + " with " + std::to_string(given) + " arguments",
                   __builtin_ctz(active)};
    }
    for (size_t i = 0; i < given; i++) {
        const ptx::Parameter &parameter = callee.source->parameters[i];
        uint64_t from = running_.frame->local_base + caller.variable_offsets[size_t(arguments->parts[i].index)];
        for (int l = 0; l < LANES; l++) {
            if ((active >> l & 1) == 0) continue;
            memcpy(block_.local_bytes(thread(l), callee_base + parameter.offset, parameter.size_bytes),
                   block_.local_bytes(thread(l), from, parameter.size_bytes), parameter.size_bytes);
            block_.mark_local_written(thread(l), callee_base + parameter.offset, parameter.size_bytes);
        }
    }
}

void Warp::call(const Instr &in, Mask active) {
    Mask same;
    const Code &code = callee(in, active, &same);
    uint64_t end = running_.frame->local_base + running_.frame->code->local_bytes;
    uint64_t base = (end + code.local_align - 1) / code.local_align * code.local_align;
    if (base + code.local_bytes > block_.local_bytes_per_thread()) {
        throw Trap{Fault::illegal_address, "stack overflow: the calls are nested too deep", __builtin_ctz(active)};
    }
    copy_arguments(in, code, base, same);
    Frame *frame = new_frame(code, running_.frame, base);
    frame->call = &in;
    frame->return_to = running_.pc;
    frame->lanes = same;
    Group inside;
    inside.frame = frame;
    inside.mask = same;
    park(inside);
    if (same != active) { // another function's callers
        Group others = running_;
        others.pc--;
        others.mask = active & ~same;
        park(others);
    }
    leave(active);
    stop();
}

void Warp::copy_results(const Frame &callee, Mask active) {
    const ptx::Operand *results = call_operands(*callee.call).results;
    if (results == nullptr) return;
    const Frame &caller = *callee.caller;
    for (size_t i = 0; i < results->parts.size() && i < callee.code->source->results.size(); i++) {
        const ptx::Parameter &result = callee.code->source->results[i];
        uint64_t from = callee.local_base + callee.code->results_at + result.offset;
        uint64_t to = caller.local_base + caller.code->variable_offsets[size_t(results->parts[i].index)];
        for (int l = 0; l < LANES; l++) {
            if ((active >> l & 1) == 0) continue;
            memcpy(block_.local_bytes(thread(l), to, result.size_bytes),
                   block_.local_bytes(thread(l), from, result.size_bytes), result.size_bytes);
            block_.mark_local_written(thread(l), to, result.size_bytes);
        }
    }
}

void Warp::ret(Mask active) {
    Frame *frame = running_.frame;
    if (frame->caller == nullptr) {
        exit(active);
        return;
    }
    copy_results(*frame, active);
    Group outside = running_;
    outside.frame = frame->caller;
    outside.pc = frame->return_to;
    outside.mask = active;
    park(outside);
    leave(active);
    release_frame(frame, active);
    stop();
}

} // namespace vgpu
