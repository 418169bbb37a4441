// Operands that may be wider than the type of an instruction: reading takes their low bits, writing extends the result.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_WIDE_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_WIDE_H

#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

// Bytes of a lane of an operand that is a register.
inline size_t register_bytes(const Form &form, const ptx::Operand &operand) {
    return ptx::type_bytes(form.function->registers[(size_t)operand.index].type);
}

// Whether no register is narrower than the type it is used with, the first operand with the first type and so on; where
// a type is bf16 none may be wider either.
inline bool are_wide_enough(const Form &form) {
    const bool is_exact = form.types[0] == ptx::Type::bf16 || form.types[1] == ptx::Type::bf16;
    for (size_t i = 0; i < form.source->operands.size(); i++) {
        const ptx::Operand &operand = form.source->operands[i];
        if (operand.kind != ptx::Operand::Kind::reg) continue;
        const size_t bytes = register_bytes(form, operand), least = ptx::type_bytes(form.types[i]);
        if (is_exact ? bytes != least : bytes < least) return false;
    }
    return true;
}

template <class Stored, class T> void copy_lanes(const Stored *from, T *to) {
    for (int l = 0; l < LANES; l++)
        to[l] = (T)from[l];
}

template <class T> void load_low_bits(const Warp &warp, const Instr &in, int operand, T *to) {
    switch (in.width[operand]) {
    case 1:
        copy_lanes(warp.lanes<const uint8_t>(in.at[operand]), to);
        break;
    case 2:
        copy_lanes(warp.lanes<const uint16_t>(in.at[operand]), to);
        break;
    case 4:
        copy_lanes(warp.lanes<const uint32_t>(in.at[operand]), to);
        break;
    default:
        copy_lanes(warp.lanes<const uint64_t>(in.at[operand]), to);
        break;
    }
}

template <class Stored, class T> void extend_lanes(Stored *to, const T *from, Mask active) {
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++)
        to[l] = active >> l & 1 ? (Stored)from[l] : to[l];
}

// With copies of the sign where T is a signed integer, with zeros otherwise.
template <class T> void store_extended(Warp &warp, const Instr &in, int operand, const T *from, Mask active) {
    static_assert(std::is_integral_v<T>, "of a floating-point number its bits");
    switch (in.width[operand]) {
    case 0: // a sink
        break;
    case 1:
        extend_lanes(warp.lanes<uint8_t>(in.at[operand]), from, active);
        break;
    case 2:
        extend_lanes(warp.lanes<uint16_t>(in.at[operand]), from, active);
        break;
    case 4:
        extend_lanes(warp.lanes<uint32_t>(in.at[operand]), from, active);
        break;
    default:
        extend_lanes(warp.lanes<uint64_t>(in.at[operand]), from, active);
        break;
    }
}

} // namespace
} // namespace vgpu::VGPU_ISA

#endif
