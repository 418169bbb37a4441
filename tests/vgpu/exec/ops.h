// For the files of the instruction table: what executes an operation on the lanes of a warp, and how a row picks the
// operation of a type. These files are compiled once for each instruction set (VGPU_ISA names it), so they include
// nothing whose inline functions other files use as well.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_H

#include "tests/vgpu/exec/table.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu::VGPU_ISA {

// map<Op, D, A...>: d[lane] = Op::run(a[lane] ...) for every active lane. The whole-warp loop and the masked one are
// vectorised; Op::run must have no effect but its result and must not trap, since it runs for inactive lanes as well.
template <class Op, class D, class A> void map1(Warp &warp, const Instr &in, Mask active) {
    D *d = warp.lanes<D>(in.at[0]);
    const A *a = warp.lanes<A>(in.at[1]);
    if (active == ALL_LANES) {
#pragma GCC ivdep
        for (int l = 0; l < LANES; l++)
            d[l] = Op::run(a[l]);
        return;
    }
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++)
        d[l] = active >> l & 1 ? Op::run(a[l]) : d[l];
}

template <class Op, class D, class A, class B> void map2(Warp &warp, const Instr &in, Mask active) {
    D *d = warp.lanes<D>(in.at[0]);
    const A *a = warp.lanes<A>(in.at[1]);
    const B *b = warp.lanes<B>(in.at[2]);
    if (active == ALL_LANES) {
#pragma GCC ivdep
        for (int l = 0; l < LANES; l++)
            d[l] = Op::run(a[l], b[l]);
        return;
    }
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++)
        d[l] = active >> l & 1 ? Op::run(a[l], b[l]) : d[l];
}

template <class Op, class D, class A, class B, class C> void map3(Warp &warp, const Instr &in, Mask active) {
    D *d = warp.lanes<D>(in.at[0]);
    const A *a = warp.lanes<A>(in.at[1]);
    const B *b = warp.lanes<B>(in.at[2]);
    const C *c = warp.lanes<C>(in.at[3]);
    if (active == ALL_LANES) {
#pragma GCC ivdep
        for (int l = 0; l < LANES; l++)
            d[l] = Op::run(a[l], b[l], c[l]);
        return;
    }
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++)
        d[l] = active >> l & 1 ? Op::run(a[l], b[l], c[l]) : d[l];
}

// The C type that computes a PTX type; bit types are unsigned. Halves are stored as uint16_t.
template <class F> Run with_integer(ptx::Type type, F &&pick) {
    switch (type) {
    case ptx::Type::b8:
    case ptx::Type::u8:
        return pick(uint8_t{});
    case ptx::Type::s8:
        return pick(int8_t{});
    case ptx::Type::b16:
    case ptx::Type::u16:
        return pick(uint16_t{});
    case ptx::Type::s16:
        return pick(int16_t{});
    case ptx::Type::b32:
    case ptx::Type::u32:
        return pick(uint32_t{});
    case ptx::Type::s32:
        return pick(int32_t{});
    case ptx::Type::b64:
    case ptx::Type::u64:
        return pick(uint64_t{});
    case ptx::Type::s64:
        return pick(int64_t{});
    default:
        return nullptr;
    }
}

// Selects for rows of integers whose operands and result have the form's type. Op has a run() for every integer type.
template <class Op> Run integer1(const Form &form) {
    return with_integer(form.type(), [](auto t) -> Run { return map1<Op, decltype(t), decltype(t)>; });
}
template <class Op> Run integer2(const Form &form) {
    return with_integer(form.type(), [](auto t) -> Run { return map2<Op, decltype(t), decltype(t), decltype(t)>; });
}
template <class Op> Run integer3(const Form &form) {
    return with_integer(form.type(),
                        [](auto t) -> Run { return map3<Op, decltype(t), decltype(t), decltype(t), decltype(t)>; });
}

} // namespace vgpu::VGPU_ISA

#endif
