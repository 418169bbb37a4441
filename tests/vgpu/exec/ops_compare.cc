// Comparisons, and the selections that go by them.
#include "tests/vgpu/exec/ops_float.h"

namespace vgpu::VGPU_ISA {
namespace {

// ---- comparisons ---------------------------------------------------------------------------------------------------

// Numbers are unordered if one is NaN. The ordered comparisons do not hold then, those with a u do.
struct Equal {
    template <class T> static bool run(T a, T b) { return a == b; }
};
struct NotEqual {
    template <class T> static bool run(T a, T b) { return a < b || a > b; }
};
struct Less {
    template <class T> static bool run(T a, T b) { return a < b; }
};
struct LessEqual {
    template <class T> static bool run(T a, T b) { return a <= b; }
};
struct Greater {
    template <class T> static bool run(T a, T b) { return a > b; }
};
struct GreaterEqual {
    template <class T> static bool run(T a, T b) { return a >= b; }
};
struct Ordered {
    template <class T> static bool run(T a, T b) { return a == a && b == b; }
};
template <class Opposite> struct Unless {
    template <class T> static bool run(T a, T b) { return !Opposite::run(a, b); }
};

// What a comparison sees of a lane: a number, or one that is converted or flushed first.
template <class T> struct Plain {
    using Stored = T;
    static T value(T x) { return x; }
};
struct Flushed {
    using Stored = float;
    static float value(float x) { return flush<true>(x); }
};
template <class Format, bool FTZ, int SHIFT, class T> struct Half { // in the bits of a T from SHIFT on
    using Stored = T;
    static float value(T x) {
        const uint32_t bits = (uint32_t)x >> SHIFT & 0xffff, mantissa = (1U << Format::MANTISSA) - 1;
        const bool is_subnormal = (bits & 0x7fff) <= mantissa;
        return decode<Format>(FTZ && is_subnormal ? bits & 0x8000 : bits);
    }
};

// Compares the lanes of two operands, the first of which is `first`.
using Compare = Mask (*)(const Warp &warp, const Instr &in, int first);

template <class Op, class View> Mask compare(const Warp &warp, const Instr &in, int first) {
    const auto *a = warp.lanes<const typename View::Stored>(in.at[first]);
    const auto *b = warp.lanes<const typename View::Stored>(in.at[first + 1]);
    return mask_of([&](int l) { return Op::run(View::value(a[l]), View::value(b[l])); });
}

// Calls pick with the form's operator.
template <class F> auto with_operator(const Form &form, F &&pick) {
    if (form.has("eq")) return pick(Equal{});
    if (form.has("ne")) return pick(NotEqual{});
    if (form.has("lt") || form.has("lo")) return pick(Less{});
    if (form.has("le") || form.has("ls")) return pick(LessEqual{});
    if (form.has("gt") || form.has("hi")) return pick(Greater{});
    return pick(GreaterEqual{});
}
template <class F> auto with_floating_operator(const Form &form, F &&pick) {
    if (form.has("equ")) return pick(Unless<NotEqual>{});
    if (form.has("neu")) return pick(Unless<Equal>{});
    if (form.has("ltu")) return pick(Unless<GreaterEqual>{});
    if (form.has("leu")) return pick(Unless<Greater>{});
    if (form.has("gtu")) return pick(Unless<LessEqual>{});
    if (form.has("geu")) return pick(Unless<Less>{});
    if (form.has("num")) return pick(Ordered{});
    if (form.has("nan")) return pick(Unless<Ordered>{});
    return with_operator(form, pick);
}

// Calls pick with the form's operator and the view of an operand of `type`, which has one number in a lane.
template <class F> auto with_comparison(const Form &form, ptx::Type type, F &&pick) {
    const auto integers = [&](auto view) { return with_operator(form, [&](auto op) { return pick(op, view); }); };
    const auto floating = [&](auto view) {
        return with_floating_operator(form, [&](auto op) { return pick(op, view); });
    };
    switch (type) {
    case ptx::Type::f32:
        return form.has("ftz") ? floating(Flushed{}) : floating(Plain<float>{});
    case ptx::Type::f64:
        return floating(Plain<double>{});
    case ptx::Type::f16:
        return form.has("ftz") ? floating(Half<F16, true, 0, uint16_t>{}) : floating(Half<F16, false, 0, uint16_t>{});
    case ptx::Type::bf16:
        return floating(Half<BF16, false, 0, uint16_t>{});
    case ptx::Type::s16:
        return integers(Plain<int16_t>{});
    case ptx::Type::s32:
        return integers(Plain<int32_t>{});
    case ptx::Type::s64:
        return integers(Plain<int64_t>{});
    default:
        break;
    }
    const size_t bytes = ptx::type_bytes(type);
    return bytes == 2   ? integers(Plain<uint16_t>{})
           : bytes == 4 ? integers(Plain<uint32_t>{})
                        : integers(Plain<uint64_t>{});
}

// Calls pick with the form's operator and the views of the two halves of a lane.
template <class Format, bool FTZ, class F> auto with_halves(const Form &form, F &&pick) {
    return with_floating_operator(
        form, [&](auto op) { return pick(op, Half<Format, FTZ, 0, uint32_t>{}, Half<Format, FTZ, 16, uint32_t>{}); });
}
template <class F> auto with_pair_comparison(const Form &form, ptx::Type type, F &&pick) {
    if (type == ptx::Type::bf16x2) return with_halves<BF16, false>(form, pick);
    return form.has("ftz") ? with_halves<F16, true>(form, pick) : with_halves<F16, false>(form, pick);
}

struct And {
    static Mask run(Mask t, Mask c) { return t & c; }
};
struct Or {
    static Mask run(Mask t, Mask c) { return t | c; }
};
struct Xor {
    static Mask run(Mask t, Mask c) { return t ^ c; }
};
struct Alone { // without a third operand
    static Mask run(Mask t, Mask) { return t; }
};

// ---- setp ----------------------------------------------------------------------------------------------------------

// p|q = a, b, c: p = Op(a compared with b, c), q = Op(the opposite, c)
template <Compare COMPARE, class Op> void setp(Warp &warp, const Instr &in, Mask active) {
    const Mask t = COMPARE(warp, in, 2), c = std::is_same_v<Op, Alone> ? 0 : warp.predicate(in, 4);
    warp.set_predicate(in, 0, Op::run(t, c), active);
    warp.set_predicate(in, 1, Op::run(~t, c), active);
}

// For pairs p is the lower half's and q the upper one's.
template <Compare LOWER, Compare UPPER, class Op> void setp_pair(Warp &warp, const Instr &in, Mask active) {
    const Mask lower = LOWER(warp, in, 2), upper = UPPER(warp, in, 2);
    const Mask c = std::is_same_v<Op, Alone> ? 0 : warp.predicate(in, 4);
    warp.set_predicate(in, 0, Op::run(lower, c), active);
    warp.set_predicate(in, 1, Op::run(upper, c), active);
}

template <class F> Run with_combination(const Form &form, F &&pick) {
    return form.has("and") ? pick(And{}) : form.has("or") ? pick(Or{}) : form.has("xor") ? pick(Xor{}) : pick(Alone{});
}

// A comparison of single halves has one result.
bool has_results(const Form &form) {
    const bool is_half = form.type() == ptx::Type::f16 || form.type() == ptx::Type::bf16;
    return !is_half || form.source->operands[0].kind != ptx::Operand::Kind::pair;
}

Run select_setp(const Form &form) {
    if (!has_results(form)) return nullptr;
    return with_comparison(form, form.type(), [&](auto op, auto view) {
        return with_combination(form, [&](auto combination) -> Run {
            return setp<compare<decltype(op), decltype(view)>, decltype(combination)>;
        });
    });
}
Run select_setp_pair(const Form &form) {
    return with_pair_comparison(form, form.type(), [&](auto op, auto lower, auto upper) {
        return with_combination(form, [&](auto combination) -> Run {
            return setp_pair<compare<decltype(op), decltype(lower)>, compare<decltype(op), decltype(upper)>,
                             decltype(combination)>;
        });
    });
}

// ---- set -----------------------------------------------------------------------------------------------------------

// set is rare and has many forms, so it looks its comparison up whenever it runs.
Mask combine(const Warp &warp, const Instr &in, Mask t) {
    const Form &form = *in.form;
    if (form.has("and")) return And::run(t, warp.predicate(in, 3));
    if (form.has("or")) return Or::run(t, warp.predicate(in, 3));
    return form.has("xor") ? Xor::run(t, warp.predicate(in, 3)) : t;
}

// TRUE: the bits of a result that holds; in a pair, of each half.
template <class D, D TRUE> void set(Warp &warp, const Instr &in, Mask active) {
    const auto pick = [](auto op, auto view) -> Compare { return compare<decltype(op), decltype(view)>; };
    const Mask t = combine(warp, in, with_comparison(*in.form, in.form->types[1], pick)(warp, in, 1));
    D *d = warp.lanes<D>(in.at[0]);
    for (int l = 0; l < LANES; l++)
        d[l] = active >> l & 1 ? (t >> l & 1 ? TRUE : D{0}) : d[l];
}

template <uint16_t TRUE> void set_pair(Warp &warp, const Instr &in, Mask active) {
    const auto pick_lower = [](auto op, auto view, auto) -> Compare { return compare<decltype(op), decltype(view)>; };
    const auto pick_upper = [](auto op, auto, auto view) -> Compare { return compare<decltype(op), decltype(view)>; };
    const Form &form = *in.form;
    const Mask lower = combine(warp, in, with_pair_comparison(form, form.types[1], pick_lower)(warp, in, 1));
    const Mask upper = combine(warp, in, with_pair_comparison(form, form.types[1], pick_upper)(warp, in, 1));
    uint32_t *d = warp.lanes<uint32_t>(in.at[0]);
    for (int l = 0; l < LANES; l++) {
        const uint32_t value = TRUE * (lower >> l & 1) | TRUE * (upper >> l & 1) << 16;
        d[l] = active >> l & 1 ? value : d[l];
    }
}

constexpr uint16_t ONE_F16 = 0x3c00, ONE_BF16 = 0x3f80, ONES_16 = 0xffff;
constexpr uint32_t ONE_F32 = 0x3f800000, ONES_32 = 0xffffffff;

Run select_set(const Form &form) {
    switch (form.type()) {
    case ptx::Type::f32:
        return set<uint32_t, ONE_F32>;
    case ptx::Type::f16:
        return set<uint16_t, ONE_F16>;
    case ptx::Type::bf16:
        return set<uint16_t, ONE_BF16>;
    default:
        return ptx::type_bytes(form.type()) == 2 ? set<uint16_t, ONES_16> : set<uint32_t, ONES_32>;
    }
}
Run select_set_pair(const Form &form) {
    if (form.type() == ptx::Type::f16x2) return set_pair<ONE_F16>;
    return form.type() == ptx::Type::bf16x2 ? set_pair<ONE_BF16> : set_pair<ONES_16>;
}

// ---- selections ----------------------------------------------------------------------------------------------------

template <class T> void selp(Warp &warp, const Instr &in, Mask active) {
    const Mask c = warp.predicate(in, 3);
    T *d = warp.lanes<T>(in.at[0]);
    const T *a = warp.lanes<const T>(in.at[1]), *b = warp.lanes<const T>(in.at[2]);
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++) {
        const T chosen = c >> l & 1 ? a[l] : b[l];
        d[l] = active >> l & 1 ? chosen : d[l];
    }
}

template <bool FTZ> struct Slct {
    template <class T, class C> static T run(T a, T b, C c) { return c >= 0 ? a : b; }
    template <class T> static T run(T a, T b, float c) { return flush<FTZ>(c) >= 0 ? a : b; }
};

// Calls pick with the unsigned number that has as many bits as the form's first type.
template <class F> Run with_bits(const Form &form, F &&pick) {
    const size_t bytes = ptx::type_bytes(form.type());
    return bytes == 2 ? pick(uint16_t{}) : bytes == 4 ? pick(uint32_t{}) : pick(uint64_t{});
}
Run select_selp(const Form &form) {
    return with_bits(form, [](auto t) -> Run { return selp<decltype(t)>; });
}
template <class C> Run select_slct(const Form &form) {
    return with_bits(form, [&](auto t) -> Run {
        using T = decltype(t);
        return form.has("ftz") ? map<Slct<true>, T, T, T, C> : map<Slct<false>, T, T, T, C>;
    });
}

#define OF_BITS     "eq|ne "
#define OF_SIGNED   "eq|ne|lt|le|gt|ge "
#define OF_UNSIGNED "eq|ne|lt|le|gt|ge|lo|ls|hi|hs "
#define OF_FLOATS   "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan "
#define ANY         "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"

// The rows of a comparison without and with a third operand.
#define SETP(ops, rest, select) \
    {"setp", ops rest, "p|p t t", select}, { "setp", ops "and|or|xor " rest, "p|p t t p", select }
#define SET(ops, rest, select) \
    {"set", ops rest, "t1 t2 t2", select}, { "set", ops "and|or|xor " rest, "t1 t2 t2 p", select }

const Row rows[] = {
    SETP(OF_BITS, "b16|b32|b64", select_setp),
    SETP(OF_SIGNED, "s16|s32|s64", select_setp),
    SETP(OF_UNSIGNED, "u16|u32|u64", select_setp),
    SETP(OF_FLOATS, "ftz? f32|f16", select_setp),
    SETP(OF_FLOATS, "f64|bf16", select_setp),
    SETP(OF_FLOATS, "ftz? f16x2", select_setp_pair),
    SETP(OF_FLOATS, "bf16x2", select_setp_pair),
    SET(OF_BITS, "u32|s32|f32|f16|bf16 b16|b32|b64", select_set),
    SET(OF_SIGNED, "u32|s32|f32|f16|bf16 s16|s32|s64", select_set),
    SET(OF_UNSIGNED, "u32|s32|f32|f16|bf16 u16|u32|u64", select_set),
    SET(OF_FLOATS, "ftz? u32|s32|f32|f16 f32", select_set),
    SET(OF_FLOATS, "u32|s32|f32|f16|bf16 f64", select_set),
    SET(OF_FLOATS, "ftz? u16|s16|u32|s32|f16 f16", select_set),
    SET(OF_FLOATS, "bf16 f32|f16", select_set),
    SET(OF_FLOATS, "u16|s16|u32|s32|bf16 bf16", select_set),
    SET(OF_FLOATS, "ftz? f16x2|u32|s32 f16x2", select_set_pair),
    SET(OF_FLOATS, "bf16x2|u32|s32 bf16x2", select_set_pair),
    {"selp", ANY, "t t t p", select_selp},
    {"slct", ANY " s32", "t1 t1 t1 t2", select_slct<int32_t>},
    {"slct", "ftz? " ANY " f32", "t1 t1 t1 t2", select_slct<float>},
};

} // namespace

extern const Rows compare_rows;
const Rows compare_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
