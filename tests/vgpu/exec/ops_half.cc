// Arithmetic in f16 and bf16, alone or in pairs. Operands become f64, in which an operation is exact or so close that
// rounding its result once more gives what rounding the exact one would:
//   - products have at most 22 bits and are exact, so are sums of f16;
//   - a sum of bf16 is rounded to 53 bits, which is harmless since it is more than twice bf16's 8 bits and two;
//   - a fused multiply-add is rounded to odd, which keeps apart from a tie whatever is not one: a product of bf16 may
//   be
//     a tie that an addend decides which 53 bits do not hold.
// NaN results are canonical.
#include "tests/vgpu/exec/ops_float.h"

#include <cmath>

namespace vgpu::VGPU_ISA {
namespace {

struct Add {
    static double run(double a, double b) { return a + b; }
};
struct Sub {
    static double run(double a, double b) { return a - b; }
};
struct Mul {
    static double run(double a, double b) { return a * b; }
};
struct FmaToOdd {
    static double run(double a, double b, double c) {
        const double product = a * b, sum = product + c, added = sum - product;
        const double error = (product - (sum - added)) + (c - added); // exactly what the sum lacks
        const bool is_inexact = error > 0 || error < 0, is_greater = (error > 0) == (sum > 0);
        const uint64_t bits = bits_as<uint64_t>(sum), next = is_greater ? bits + 1 : bits - 1;
        return bits_as<double>(is_inexact && (bits & 1) == 0 ? next : bits);
    }
};
struct Exp2 {
    static double run(double a) { return std::exp2(a); }
};
struct HyperbolicTangent {
    static double run(double a) { return std::tanh(a); }
};

// What becomes of the result before it is rounded; NaN stays but for .sat.
struct Unlimited {
    static double run(double a) { return a; }
};

constexpr uint32_t SIGN_16 = 0x8000, MAGNITUDE_16 = 0x7fff;

template <class Format, bool FTZ> uint32_t flush_half(uint32_t bits) {
    constexpr uint32_t LEAST_NORMAL = 1U << Format::MANTISSA;
    return FTZ && (bits & MAGNITUDE_16) < LEAST_NORMAL ? bits & SIGN_16 : bits;
}

// The halves of operands in f64, the operation, and its results: loops of their own, of which each can be vectorised.
// A lane is T, of one half or two.
template <class Format, bool FTZ, int HALVES> void widen(const uint16_t *from, double *to) {
    alignas(64) uint16_t halves[HALVES];
    alignas(64) float numbers[HALVES];
    for (int i = 0; i < HALVES; i++)
        halves[i] = (uint16_t)flush_half<Format, FTZ>(from[i]);
    decode_halves<Format>(halves, numbers, HALVES);
    for (int i = 0; i < HALVES; i++)
        to[i] = (double)numbers[i];
}
template <class Format, bool FTZ, int HALVES> void narrow(const double *from, uint16_t *to) {
    for (int i = 0; i < HALVES; i++)
        to[i] = (uint16_t)flush_half<Format, FTZ>((uint32_t)encode<Format, Rounding::nearest_even>(from[i]));
}

template <class Format, bool FTZ, class Op, class Limit, class T, size_t... I>
void compute_operands(Warp &warp, const Instr &in, Mask active, std::index_sequence<I...>) {
    constexpr int HALVES = LANES * sizeof(T) / sizeof(uint16_t);
    alignas(64) double operands[sizeof...(I)][HALVES], results[HALVES];
    alignas(64) uint16_t halves[HALVES];
    alignas(64) T lanes[LANES];
    (widen<Format, FTZ, HALVES>(warp.lanes<const uint16_t>(in.at[I + 1]), operands[I]), ...);
    for (int i = 0; i < HALVES; i++)
        results[i] = Limit::run(Op::run(operands[I][i]...));
    narrow<Format, FTZ, HALVES>(results, halves);
    __builtin_memcpy(lanes, halves, sizeof lanes);
    map_lanes<Copy>(active, warp.lanes<T>(in.at[0]), lanes);
}
template <class Format, bool FTZ, class Op, class Limit, class T, int OPERANDS>
void compute(Warp &warp, const Instr &in, Mask active) {
    compute_operands<Format, FTZ, Op, Limit, T>(warp, in, active, std::make_index_sequence<OPERANDS>{});
}

// The sign alone changes, of NaNs too.
template <class Format, bool FTZ> struct Abs {
    static uint16_t run(uint16_t a) { return (uint16_t)(flush_half<Format, FTZ>(a) & MAGNITUDE_16); }
};
template <class Format, bool FTZ> struct Neg {
    static uint16_t run(uint16_t a) { return (uint16_t)(flush_half<Format, FTZ>(a) ^ SIGN_16); }
};

// As in ops_float.cc: the other operand where one is NaN, unless NANS says that NaN wins; -0 is less than +0; XOR_SIGN:
// of the magnitudes, with the product's sign.
template <class Format, bool FTZ, bool MAXIMUM, bool NANS, bool XOR_SIGN> struct Extreme {
    static uint16_t run(uint16_t first, uint16_t second) {
        uint32_t left = flush_half<Format, FTZ>(first), right = flush_half<Format, FTZ>(second);
        const uint32_t sign = XOR_SIGN ? (left ^ right) & SIGN_16 : 0;
        if (XOR_SIGN) left &= MAGNITUDE_16, right &= MAGNITUDE_16;
        const float a = decode<Format>(left), b = decode<Format>(right);
        const uint32_t same = MAXIMUM ? left & right : left | right; // equal numbers may differ in their signs
        const uint32_t number = a == b ? same : (MAXIMUM ? a > b : a < b) ? left : right;
        if (a == a && b == b) return (uint16_t)(number | sign);
        if (NANS || (a != a && b != b)) return Format::CANONICAL_NAN;
        return (uint16_t)((a != a ? right : left) | sign);
    }
};

// Op for both halves of the operands.
template <class Op> struct Pair {
    template <class... A> static uint32_t run(A... a) {
        return Op::run((uint16_t)a...) | (uint32_t)Op::run((uint16_t)(a >> 16)...) << 16;
    }
};

// Selects. A: uint32_t as often as the operation has operands.
template <class Op, class... A> Run single_or_pair(const Form &form) {
    if (ptx::type_bytes(form.type()) == 4) return map<Pair<Op>, uint32_t, A...>;
    return map<Op, uint16_t, std::conditional_t<true, uint16_t, A>...>;
}

template <class Format, class Op, class Limit, int OPERANDS> Run with_width(const Form &form) {
    return with_flag(form.has("ftz"), [&](auto ftz) -> Run {
        constexpr bool FTZ = decltype(ftz)::value;
        if (ptx::type_bytes(form.type()) == 4) return compute<Format, FTZ, Op, Limit, uint32_t, OPERANDS>;
        return compute<Format, FTZ, Op, Limit, uint16_t, OPERANDS>;
    });
}
template <class Op, class Limit, int OPERANDS> Run with_format(const Form &form) {
    if (form.type() == ptx::Type::bf16 || form.type() == ptx::Type::bf16x2)
        return with_width<BF16, Op, Limit, OPERANDS>(form);
    return with_width<F16, Op, Limit, OPERANDS>(form);
}
template <class Op, int OPERANDS> Run arithmetic(const Form &form) {
    if (form.has("sat")) return with_format<Op, Saturate, OPERANDS>(form);
    if (form.has("relu")) return with_format<Op, Rectify, OPERANDS>(form);
    return with_format<Op, Unlimited, OPERANDS>(form);
}

template <template <class, bool> class Op> Run sign_only(const Form &form) {
    if (form.type() == ptx::Type::bf16 || form.type() == ptx::Type::bf16x2)
        return single_or_pair<Op<BF16, false>, uint32_t>(form);
    return form.has("ftz") ? single_or_pair<Op<F16, true>, uint32_t>(form)
                           : single_or_pair<Op<F16, false>, uint32_t>(form);
}

template <class Format, bool MAXIMUM> Run extreme(const Form &form) {
    return with_flag(form.has("ftz"), [&](auto ftz) {
        return with_flag(form.has("NaN"), [&](auto nans) {
            return with_flag(form.has("xorsign"), [&](auto xor_sign) -> Run {
                constexpr bool FTZ = decltype(ftz)::value, NANS = decltype(nans)::value;
                using Op = Extreme<Format, FTZ, MAXIMUM, NANS, decltype(xor_sign)::value>;
                return single_or_pair<Op, uint32_t, uint32_t>(form);
            });
        });
    });
}

const Row rows[] = {
    {"add", "rn? ftz? sat? f16|f16x2", "t t t", arithmetic<Add, 2>},
    {"add", "rn? bf16|bf16x2", "t t t", arithmetic<Add, 2>},
    {"sub", "rn? ftz? sat? f16|f16x2", "t t t", arithmetic<Sub, 2>},
    {"sub", "rn? bf16|bf16x2", "t t t", arithmetic<Sub, 2>},
    {"mul", "rn? ftz? sat? f16|f16x2", "t t t", arithmetic<Mul, 2>},
    {"mul", "rn? bf16|bf16x2", "t t t", arithmetic<Mul, 2>},
    {"fma", "rn ftz? sat? f16|f16x2", "t t t t", arithmetic<FmaToOdd, 3>},
    {"fma", "rn ftz? relu f16|f16x2", "t t t t", arithmetic<FmaToOdd, 3>},
    {"fma", "rn relu? bf16|bf16x2", "t t t t", arithmetic<FmaToOdd, 3>},
    {"abs", "ftz? f16|f16x2", "t t", sign_only<Abs>},
    {"abs", "bf16|bf16x2", "t t", sign_only<Abs>},
    {"neg", "ftz? f16|f16x2", "t t", sign_only<Neg>},
    {"neg", "bf16|bf16x2", "t t", sign_only<Neg>},
    {"min", "ftz? NaN? f16|f16x2", "t t t", extreme<F16, false>},
    {"min", "ftz? NaN? xorsign abs f16|f16x2", "t t t", extreme<F16, false>},
    {"min", "NaN? bf16|bf16x2", "t t t", extreme<BF16, false>},
    {"min", "NaN? xorsign abs bf16|bf16x2", "t t t", extreme<BF16, false>},
    {"max", "ftz? NaN? f16|f16x2", "t t t", extreme<F16, true>},
    {"max", "ftz? NaN? xorsign abs f16|f16x2", "t t t", extreme<F16, true>},
    {"max", "NaN? bf16|bf16x2", "t t t", extreme<BF16, true>},
    {"max", "NaN? xorsign abs bf16|bf16x2", "t t t", extreme<BF16, true>},
    {"ex2", "approx f16|f16x2", "t t", arithmetic<Exp2, 1>},
    {"ex2", "approx ftz bf16|bf16x2", "t t", arithmetic<Exp2, 1>},
    {"tanh", "approx f16|f16x2|bf16|bf16x2", "t t", arithmetic<HyperbolicTangent, 1>},
};

} // namespace

extern const Rows half_rows;
const Rows half_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
