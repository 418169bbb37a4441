// For the files of the instruction table: what executes an operation on the lanes of a warp, and how a row picks the
// operation of a type. These files are compiled once for each instruction set (VGPU_ISA names it), so they include
// nothing whose inline functions other files use as well.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_H

#include <type_traits>
#include <utility>

#include "tests/vgpu/exec/table.h"
#include "tests/vgpu/exec/warp.h"

namespace vgpu::VGPU_ISA {

// map<Op, D, A...>: d[lane] = Op::run(a[lane] ...) for every active lane. The whole-warp loop and the masked one are
// vectorised; Op::run must have no effect but its result and must not trap, since it runs for inactive lanes as well.
template <class Op, class D, class... A> void map_lanes(Mask active, D *d, const A *...a) {
    if (active == ALL_LANES) {
#pragma GCC ivdep
        for (int l = 0; l < LANES; l++)
            d[l] = Op::run(a[l]...);
        return;
    }
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++)
        d[l] = active >> l & 1 ? Op::run(a[l]...) : d[l];
}

// map_each<Op, D, A...>: the same for what is slow or must not run for inactive lanes.
template <class Op, class D, class... A> void map_each_lane(Mask active, D *d, const A *...a) {
    for (int l = 0; l < LANES; l++)
        if (active >> l & 1) d[l] = Op::run(a[l]...);
}

template <class Op, class D, class... A, size_t... I>
void map_operands(Warp &warp, const Instr &in, Mask active, std::index_sequence<I...>) {
    map_lanes<Op>(active, warp.lanes<D>(in.at[0]), warp.lanes<const A>(in.at[I + 1])...);
}
template <class Op, class D, class... A> void map(Warp &warp, const Instr &in, Mask active) {
    map_operands<Op, D, A...>(warp, in, active, std::index_sequence_for<A...>{});
}

template <class Op, class D, class... A, size_t... I>
void map_each_operands(Warp &warp, const Instr &in, Mask active, std::index_sequence<I...>) {
    map_each_lane<Op>(active, warp.lanes<D>(in.at[0]), warp.lanes<const A>(in.at[I + 1])...);
}
template <class Op, class D, class... A> void map_each(Warp &warp, const Instr &in, Mask active) {
    map_each_operands<Op, D, A...>(warp, in, active, std::index_sequence_for<A...>{});
}

// A bit for each lane, set where test(lane) holds.
template <class F> Mask mask_of(F &&test) {
    Mask mask = 0;
    for (int l = 0; l < LANES; l++)
        mask |= Mask{test(l)} << l;
    return mask;
}

// A modifier as a template argument: pick(std::true_type{}) where the form has it.
template <class F> Run with_flag(bool flag, F &&pick) {
    return flag ? pick(std::true_type{}) : pick(std::false_type{});
}

// The C type that computes a PTX type, of LEAST to MOST bytes; bit types are unsigned. Halves are stored as uint16_t.
template <size_t LEAST = 2, size_t MOST = 8, class F> Run with_integer(ptx::Type type, F &&pick) {
    const auto pick_within = [&](auto t) -> Run {
        if constexpr (sizeof t >= LEAST && sizeof t <= MOST)
            return pick(t);
        else
            return nullptr;
    };
    switch (type) {
    case ptx::Type::b8:
    case ptx::Type::u8:
        return pick_within(uint8_t{});
    case ptx::Type::s8:
        return pick_within(int8_t{});
    case ptx::Type::b16:
    case ptx::Type::u16:
        return pick_within(uint16_t{});
    case ptx::Type::s16:
        return pick_within(int16_t{});
    case ptx::Type::b32:
    case ptx::Type::u32:
        return pick_within(uint32_t{});
    case ptx::Type::s32:
        return pick_within(int32_t{});
    case ptx::Type::b64:
    case ptx::Type::u64:
        return pick_within(uint64_t{});
    case ptx::Type::s64:
        return pick_within(int64_t{});
    default:
        return nullptr;
    }
}

// Selects for rows of integers whose operands and result have the form's type. Op has a run() for the types of LEAST to
// MOST bytes.
template <class Op, size_t LEAST = 2, size_t MOST = 8> Run integer1(const Form &form) {
    return with_integer<LEAST, MOST>(form.type(), [](auto t) -> Run { return map<Op, decltype(t), decltype(t)>; });
}
template <class Op, size_t LEAST = 2, size_t MOST = 8> Run integer2(const Form &form) {
    return with_integer<LEAST, MOST>(form.type(),
                                     [](auto t) -> Run { return map<Op, decltype(t), decltype(t), decltype(t)>; });
}
template <class Op, size_t LEAST = 2, size_t MOST = 8> Run integer3(const Form &form) {
    return with_integer<LEAST, MOST>(
        form.type(), [](auto t) -> Run { return map<Op, decltype(t), decltype(t), decltype(t), decltype(t)>; });
}

// A select that needs no choice: the row stands for one function.
template <Run RUN> Run only(const Form &) { return RUN; }

// For what has no effect here.
inline void nothing(Warp &, const Instr &, Mask) {}

// Whether the form names shared memory by its own addresses.
inline bool is_shared(const Form &form) { return !form.one_of("shared|shared::cta").empty(); }

struct Copy {
    template <class T> static T run(T a) { return a; }
};

} // namespace vgpu::VGPU_ISA

#endif
