// Arithmetic in f32 and f64. An f32 operation gives the canonical NaN; f64 operations hand NaNs on. What the manual
// calls approximate is computed in f64 by the host's mathematics library and rounded once.
#include "tests/vgpu/exec/ops_float.h"

#include <cmath>

namespace vgpu::VGPU_ISA {
namespace {

// ---- operations of both types --------------------------------------------------------------------------------------

struct Add {
    template <class T> static T run(T a, T b) { return a + b; }
};
struct Sub {
    template <class T> static T run(T a, T b) { return a - b; }
};
struct Mul {
    template <class T> static T run(T a, T b) { return a * b; }
};
struct Fma {
    static float run(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static double run(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Div {
    template <class T> static T run(T a, T b) { return a / b; }
};
struct Reciprocal {
    template <class T> static T run(T a) { return 1 / a; }
};
struct SquareRoot {
    static float run(float a) { return __builtin_sqrtf(a); }
    static double run(double a) { return __builtin_sqrt(a); }
};

// ---- rounded f32 and f64 -------------------------------------------------------------------------------------------

template <class Op, bool FTZ, bool SATURATES> struct Single {
    template <class... A> static float run(A... a) {
        const float result = flush<FTZ>(Op::run(flush<FTZ>(a)...));
        return SATURATES ? saturate(result) : canonical(result);
    }
};
template <class Op> struct Double {
    template <class... A> static double run(A... a) {
        const double result = Op::run(a...);
        const uint64_t nan = nan_of(a...);
        return result == result ? result : bits_as<double>(nan);
    }
};

// Selects for rows of operands of the types A.
template <class Op, class... A> Run single_precision(const Form &form) {
    return with_flag(form.has("ftz"), [&](auto ftz) {
        return with_rounding<map<Single<Op, decltype(ftz)::value, false>, float, A...>>(form);
    });
}
template <class Op, class... A> Run single_saturated(const Form &form) {
    if (!form.has("sat")) return single_precision<Op, A...>(form);
    return with_flag(form.has("ftz"), [&](auto ftz) {
        return with_rounding<map<Single<Op, decltype(ftz)::value, true>, float, A...>>(form);
    });
}
template <class Op, class... A> Run double_precision(const Form &form) {
    return with_rounding<map<Double<Op>, double, A...>>(form);
}

// ---- signs, minimum and maximum ------------------------------------------------------------------------------------

// These change nothing but the sign, of NaNs too.
template <bool FTZ> struct Abs {
    static float run(float a) { return bits_as<float>(bits_as<uint32_t>(flush<FTZ>(a)) & ~SIGN_32); }
    static double run(double a) { return bits_as<double>(bits_as<uint64_t>(a) & ~SIGN_64); }
};
template <bool FTZ> struct Neg {
    static float run(float a) { return bits_as<float>(bits_as<uint32_t>(flush<FTZ>(a)) ^ SIGN_32); }
    static double run(double a) { return bits_as<double>(bits_as<uint64_t>(a) ^ SIGN_64); }
};
struct CopySign { // the sign of a, the magnitude of b
    static uint32_t run(uint32_t a, uint32_t b) { return (a & SIGN_32) | (b & ~SIGN_32); }
    static uint64_t run(uint64_t a, uint64_t b) { return (a & SIGN_64) | (b & ~SIGN_64); }
};

template <template <bool> class Op> Run sign_only(const Form &form) {
    if (form.type() == ptx::Type::f64) return map<Op<false>, double, double>;
    return form.has("ftz") ? map<Op<true>, float, float> : map<Op<false>, float, float>;
}

// The other operand where one is NaN, unless NANS says that NaN wins. -0 is less than +0. XOR_SIGN: of the magnitudes,
// with the product's sign.
template <bool MAXIMUM, bool FTZ, bool NANS, bool XOR_SIGN> struct Extreme {
    template <class U, class T> static T of_numbers(T a, T b) {
        const U left = bits_as<U>(a), right = bits_as<U>(b);
        if (a == b) // their signs may differ
            return bits_as<T>(MAXIMUM ? left & right : left | right);
        return (MAXIMUM ? a > b : a < b) ? a : b;
    }
    static float run(float a, float b) {
        a = flush<FTZ>(a), b = flush<FTZ>(b);
        const uint32_t sign = (bits_as<uint32_t>(a) ^ bits_as<uint32_t>(b)) & SIGN_32;
        if (XOR_SIGN) a = Abs<false>::run(a), b = Abs<false>::run(b);
        const float number = of_numbers<uint32_t>(a, b), other = a != a ? b : a;
        const float result = a == a && b == b ? number : NANS ? bits_as<float>(NAN_32) : canonical(other);
        return XOR_SIGN && result == result ? bits_as<float>(bits_as<uint32_t>(result) | sign) : result;
    }
    static double run(double a, double b) {
        const double number = of_numbers<uint64_t>(a, b), other = a != a ? b : a;
        const double result = a == a && b == b ? number : other;
        return result == result ? result : bits_as<double>(nan_of(a));
    }
};

template <bool MAXIMUM> Run extreme(const Form &form) {
    return with_flag(form.has("ftz"), [&](auto ftz) -> Run {
        return with_flag(form.has("NaN"), [&](auto nans) -> Run {
            return with_flag(form.has("xorsign"), [&](auto xor_sign) -> Run {
                using Op = Extreme<MAXIMUM, decltype(ftz)::value, decltype(nans)::value, decltype(xor_sign)::value>;
                return map<Op, float, float, float>;
            });
        });
    });
}
template <bool MAXIMUM> constexpr Run EXTREME_F64 = map<Extreme<MAXIMUM, false, false, false>, double, double, double>;

// ---- testp ---------------------------------------------------------------------------------------------------------

// The bits without the sign are compared: INFINITE's, those of the least normal number.
template <class U> struct Classes {
    static constexpr U INFINITE = sizeof(U) == 4 ? (U)EXPONENT_32 : (U)EXPONENT_64;
    static constexpr U NORMAL = INFINITE & (U)(~INFINITE + 1); // the exponent's lowest bit
};
struct IsFinite {
    template <class U> static bool run(U bits) { return bits < Classes<U>::INFINITE; }
};
struct IsInfinite {
    template <class U> static bool run(U bits) { return bits == Classes<U>::INFINITE; }
};
struct IsNumber {
    template <class U> static bool run(U bits) { return bits <= Classes<U>::INFINITE; }
};
struct IsNan {
    template <class U> static bool run(U bits) { return bits > Classes<U>::INFINITE; }
};
struct IsNormal { // zeros are
    template <class U> static bool run(U bits) {
        return bits == 0 || (bits >= Classes<U>::NORMAL && bits < Classes<U>::INFINITE);
    }
};
struct IsSubnormal {
    template <class U> static bool run(U bits) { return bits > 0 && bits < Classes<U>::NORMAL; }
};

template <class Op, class U> void test_property(Warp &warp, const Instr &in, Mask active) {
    const U *a = warp.lanes<const U>(in.at[1]);
    const Mask holds = mask_of([&](int l) { return Op::run((U)(a[l] & (U)(~U{0} >> 1))); });
    warp.set_predicate(in, 0, holds, active);
}
template <class Op> Run testp(const Form &form) {
    return form.type() == ptx::Type::f64 ? test_property<Op, uint64_t> : test_property<Op, uint32_t>;
}

// ---- approximations ------------------------------------------------------------------------------------------------

template <class Op, bool FTZ> struct Approximate {
    static float run(float a) { return canonical(flush<FTZ>((float)Op::run((double)flush<FTZ>(a)))); }
};
struct ReciprocalSquareRoot {
    static double run(double a) { return 1 / __builtin_sqrt(a); }
};
struct Sine {
    static double run(double a) { return std::sin(a); }
};
struct Cosine {
    static double run(double a) { return std::cos(a); }
};
struct Log2 {
    static double run(double a) { return std::log2(a); }
};
struct Exp2 {
    static double run(double a) { return std::exp2(a); }
};
struct HyperbolicTangent {
    static double run(double a) { return std::tanh(a); }
};

template <class Op> Run approximate(const Form &form) {
    return form.has("ftz") ? map<Approximate<Op, true>, float, float> : map<Approximate<Op, false>, float, float>;
}
template <class Op> Run approximate_each(const Form &form) {
    return form.has("ftz") ? map_each<Approximate<Op, true>, float, float>
                           : map_each<Approximate<Op, false>, float, float>;
}

// div.approx multiplies by the reciprocal of b, which is zero for the largest b.
struct DivApproximate {
    static float run(float a, float b) {
        const float magnitude = Abs<false>::run(b);
        const float zero = bits_as<float>(bits_as<uint32_t>(b) & SIGN_32);
        return magnitude > 0x1p126f && magnitude < HUGE_VALF ? a * zero : a / b;
    }
};

// The f64 forms with .ftz read and give the upper 32 bits alone.
template <class Op> struct UpperWord {
    static double flushed(uint64_t bits) { return bits_as<double>((bits & EXPONENT_64) == 0 ? bits & SIGN_64 : bits); }
    static double run(double a) {
        constexpr uint64_t LOWER_WORD = 0xffffffff;
        const double result = Op::run(flushed(bits_as<uint64_t>(a) & ~LOWER_WORD));
        const uint64_t rounded_up = bits_as<uint64_t>(result) + (LOWER_WORD >> 1) + 1;
        const double upper = flushed(rounded_up & ~LOWER_WORD);
        return a == a && result == result ? upper : bits_as<double>((uint64_t)NAN_32 << 32);
    }
};
template <class Op> constexpr Run UPPER_WORD = map<UpperWord<Op>, double, double>;
constexpr Run RSQRT_F64 = map<Double<ReciprocalSquareRoot>, double, double>;

Run copysign(const Form &form) {
    return form.type() == ptx::Type::f64 ? map<CopySign, uint64_t, uint64_t, uint64_t>
                                         : map<CopySign, uint32_t, uint32_t, uint32_t>;
}

using F = float;
using D = double;
#define ROUNDING "rn|rz|rm|rp"

const Row rows[] = {
    {"add", ROUNDING "? ftz? sat? f32", "t t t", single_saturated<Add, F, F>},
    {"add", ROUNDING "? f64", "t t t", double_precision<Add, D, D>},
    {"sub", ROUNDING "? ftz? sat? f32", "t t t", single_saturated<Sub, F, F>},
    {"sub", ROUNDING "? f64", "t t t", double_precision<Sub, D, D>},
    {"mul", ROUNDING "? ftz? sat? f32", "t t t", single_saturated<Mul, F, F>},
    {"mul", ROUNDING "? f64", "t t t", double_precision<Mul, D, D>},
    {"fma", ROUNDING " ftz? sat? f32", "t t t t", single_saturated<Fma, F, F, F>},
    {"fma", ROUNDING " f64", "t t t t", double_precision<Fma, D, D, D>},
    {"mad", ROUNDING " ftz? sat? f32", "t t t t", single_saturated<Fma, F, F, F>},
    {"mad", ROUNDING " f64", "t t t t", double_precision<Fma, D, D, D>},
    {"div", ROUNDING " ftz? f32", "t t t", single_precision<Div, F, F>},
    {"div", "full ftz? f32", "t t t", single_precision<Div, F, F>},
    {"div", "approx ftz? f32", "t t t", single_precision<DivApproximate, F, F>},
    {"div", ROUNDING " f64", "t t t", double_precision<Div, D, D>},
    {"rcp", ROUNDING " ftz? f32", "t t", single_precision<Reciprocal, F>},
    {"rcp", "approx ftz? f32", "t t", single_precision<Reciprocal, F>},
    {"rcp", ROUNDING " f64", "t t", double_precision<Reciprocal, D>},
    {"rcp", "approx ftz f64", "t t", only<UPPER_WORD<Reciprocal>>},
    {"sqrt", ROUNDING " ftz? f32", "t t", single_precision<SquareRoot, F>},
    {"sqrt", "approx ftz? f32", "t t", single_precision<SquareRoot, F>},
    {"sqrt", ROUNDING " f64", "t t", double_precision<SquareRoot, D>},
    {"rsqrt", "approx ftz? f32", "t t", approximate<ReciprocalSquareRoot>},
    {"rsqrt", "approx f64", "t t", only<RSQRT_F64>},
    {"rsqrt", "approx ftz f64", "t t", only<UPPER_WORD<ReciprocalSquareRoot>>},
    {"sin", "approx ftz? f32", "t t", approximate_each<Sine>},
    {"cos", "approx ftz? f32", "t t", approximate_each<Cosine>},
    {"lg2", "approx ftz? f32", "t t", approximate_each<Log2>},
    {"ex2", "approx ftz? f32", "t t", approximate_each<Exp2>},
    {"tanh", "approx f32", "t t", approximate_each<HyperbolicTangent>},
    {"abs", "ftz? f32", "t t", sign_only<Abs>},
    {"abs", "f64", "t t", sign_only<Abs>},
    {"neg", "ftz? f32", "t t", sign_only<Neg>},
    {"neg", "f64", "t t", sign_only<Neg>},
    {"copysign", "f32|f64", "t t t", copysign},
    {"min", "ftz? NaN? f32", "t t t", extreme<false>},
    {"min", "ftz? NaN? xorsign abs f32", "t t t", extreme<false>},
    {"min", "f64", "t t t", only<EXTREME_F64<false>>},
    {"max", "ftz? NaN? f32", "t t t", extreme<true>},
    {"max", "ftz? NaN? xorsign abs f32", "t t t", extreme<true>},
    {"max", "f64", "t t t", only<EXTREME_F64<true>>},
    {"testp", "finite f32|f64", "p t", testp<IsFinite>},
    {"testp", "infinite f32|f64", "p t", testp<IsInfinite>},
    {"testp", "number f32|f64", "p t", testp<IsNumber>},
    {"testp", "notanumber f32|f64", "p t", testp<IsNan>},
    {"testp", "normal f32|f64", "p t", testp<IsNormal>},
    {"testp", "subnormal f32|f64", "p t", testp<IsSubnormal>},
};

} // namespace

extern const Rows float_rows;
const Rows float_rows = {rows, sizeof rows / sizeof rows[0]};

} // namespace vgpu::VGPU_ISA
