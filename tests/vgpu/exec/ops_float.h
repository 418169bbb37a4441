// Floating-point numbers: their bits, the narrow formats, rounding.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_FLOAT_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_FLOAT_H

#include <cfenv>

#include "tests/vgpu/exec/ops.h"

namespace vgpu::VGPU_ISA {
namespace {

// ---- f32 and f64 ---------------------------------------------------------------------------------------------------

template <class To, class From> To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "only the type changes");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

constexpr uint32_t SIGN_32 = 0x80000000, EXPONENT_32 = 0x7f800000, NAN_32 = 0x7fffffff;
constexpr uint64_t SIGN_64 = 0x8000000000000000, EXPONENT_64 = 0x7ff0000000000000, QUIET_64 = 0x0008000000000000;

// The NaN that every f32 operation gives.
inline float canonical(float x) { return x == x ? x : bits_as<float>(NAN_32); }

// f64 operations hand on the first of their NaN operands, made quiet, and make this one themselves.
inline double nan_of() { return bits_as<double>(SIGN_64 | EXPONENT_64 | QUIET_64); }
template <class... A> double nan_of(double first, A... rest) {
    const double other = nan_of(rest...);
    return first != first ? bits_as<double>(bits_as<uint64_t>(first) | QUIET_64) : other;
}

// .ftz: subnormal numbers are zeros of the same sign.
template <bool FTZ> float flush(float x) {
    const uint32_t bits = bits_as<uint32_t>(x);
    return FTZ && (bits & EXPONENT_32) == 0 ? bits_as<float>(bits & SIGN_32) : x;
}

// .sat: NaN gives +0.
template <class T> T saturate(T x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// ---- rounding ------------------------------------------------------------------------------------------------------

// Runs RUN with the CPU rounding in MODE. The call is opaque to the compiler, so no computation moves out of it.
template <Run RUN, int MODE> void rounded(Warp &warp, const Instr &in, Mask active) {
    const int before = fegetround();
    fesetround(MODE);
    Run run = RUN;
    asm volatile("" : "+r"(run) : : "memory");
    run(warp, in, active);
    fesetround(before);
}

// To the nearest, ties to even, is the default.
template <Run RUN> Run with_rounding(const Form &form) {
    if (form.has("rz")) return rounded<RUN, FE_TOWARDZERO>;
    if (form.has("rm")) return rounded<RUN, FE_DOWNWARD>;
    if (form.has("rp")) return rounded<RUN, FE_UPWARD>;
    return RUN;
}

enum class Rounding { nearest_even, nearest_away, toward_zero, down, up };

// ---- narrow formats ------------------------------------------------------------------------------------------------

// The bits of a format's mantissa, the exponent of its least normal number, the encodings (without a sign) of its
// largest number and of its NaN. What lies between those two is infinity, if there is one.
template <int M, int E, uint32_t L, uint32_t N> struct FloatFormat {
    static constexpr int MANTISSA = M, LEAST_EXPONENT = E;
    static constexpr uint32_t LARGEST = L, CANONICAL_NAN = N;
};
using F16 = FloatFormat<10, -14, 0x7bff, 0x7fff>;
using BF16 = FloatFormat<7, -126, 0x7f7f, 0x7fff>;
using TF32 = FloatFormat<10, -126, 0x3fbff, 0x3ffff>; // without the 13 low bits, which are zero
using F32 = FloatFormat<23, -126, 0x7f7fffff, NAN_32>;
using E4M3 = FloatFormat<3, -6, 0x7e, 0x7f>;
using E5M2 = FloatFormat<2, -14, 0x7b, 0x7f>;

// The nearest encodings of a number, without its sign: truncated to the format and, where `up`, one more. The exponent
// is that of the last place kept; the hidden bit of the significand adds one to the exponent that is encoded.
template <class Format, Rounding ROUNDING> uint64_t round_magnitude(uint64_t bits, bool is_negative) {
    constexpr int64_t LEAST = Format::LEAST_EXPONENT + 1023;
    const int64_t field = (int64_t)(bits >> 52), exponent = field > LEAST ? field : LEAST;
    const int64_t distance = 52 - Format::MANTISSA + exponent - field, shift = distance < 60 ? distance : 60;
    const uint64_t hidden = field > 0 ? uint64_t{1} << 52 : 0;
    const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | hidden;
    const uint64_t kept = significand >> shift, rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    uint64_t up = 0;
    if (ROUNDING == Rounding::nearest_even)
        up = rest + (kept & 1) > half;
    else if (ROUNDING == Rounding::nearest_away)
        up = rest >= half;
    else if (ROUNDING == Rounding::down)
        up = is_negative && rest != 0;
    else if (ROUNDING == Rounding::up)
        up = !is_negative && rest != 0;
    return ((uint64_t)(exponent - LEAST) << Format::MANTISSA) + kept + up;
}

// Rounds a number once to a format. SATURATE_FINITE: numbers too large, infinity too, give the largest number.
template <class Format, Rounding ROUNDING, bool SATURATE_FINITE = false> uint64_t encode(double x) {
    constexpr uint64_t INFINITY_BITS = Format::LARGEST + 1;
    const bool is_negative = bits_as<uint64_t>(x) >> 63;
    const uint64_t bits = bits_as<uint64_t>(x) & ~SIGN_64;
    uint64_t result = round_magnitude<Format, ROUNDING>(bits, is_negative);
    constexpr bool TRUNCATES = ROUNDING == Rounding::toward_zero;
    const bool ends_at_largest = SATURATE_FINITE || TRUNCATES || (ROUNDING == Rounding::down && !is_negative) ||
                                 (ROUNDING == Rounding::up && is_negative);
    const bool is_finite = bits < EXPONENT_64;
    const uint64_t beyond = SATURATE_FINITE || (ends_at_largest && is_finite) ? Format::LARGEST : INFINITY_BITS;
    result = result > Format::LARGEST ? beyond : result;
    constexpr int SIGN_SHIFT = sizeof(uint64_t) * 8 - 1 - __builtin_clzll(Format::CANONICAL_NAN) + 1;
    result |= (uint64_t)is_negative << SIGN_SHIFT;
    return bits > EXPONENT_64 ? Format::CANONICAL_NAN : result;
}

// The numbers that encodings stand for: all exact in f32. NaNs stay NaNs.
template <class Format> float decode(uint32_t bits);
template <> inline float decode<F16>(uint32_t bits) {
    const uint32_t sign = (bits & 0x8000) << 16, magnitude = (bits & 0x7fff) << 13;
    const uint32_t number = bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p112f);
    return bits_as<float>((magnitude < 0x7c00 << 13 ? number : magnitude | EXPONENT_32) | sign);
}
template <> inline float decode<BF16>(uint32_t bits) { return bits_as<float>(bits << 16); }
template <> inline float decode<E5M2>(uint32_t bits) { return decode<F16>(bits << 8); }
template <> inline float decode<E4M3>(uint32_t bits) {
    const uint32_t sign = (bits & 0x80) << 24, magnitude = bits & 0x7f;
    const uint32_t number = bits_as<uint32_t>(bits_as<float>(magnitude << 20) * 0x1p120f);
    return bits_as<float>((magnitude < E4M3::CANONICAL_NAN ? number : NAN_32) | sign);
}

} // namespace
} // namespace vgpu::VGPU_ISA

#endif
