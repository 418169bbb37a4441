// Floating-point numbers: their bits, the narrow formats, rounding.
#ifndef SHOAL_TESTS_VGPU_EXEC_OPS_FLOAT_H
#define SHOAL_TESTS_VGPU_EXEC_OPS_FLOAT_H

// With AVX2 the CPU's conversions of f16 are the fastest; 512 bits that the compiler's loops fill are no slower.
#if defined(__F16C__) && !defined(__AVX512F__)
#define VGPU_F16C
#include <immintrin.h>
#endif

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
inline uint64_t nan_of() { return SIGN_64 | EXPONENT_64 | QUIET_64; }
template <class... A> uint64_t nan_of(double first, A... rest) {
    const uint64_t other = nan_of(rest...), quiet = bits_as<uint64_t>(first) | QUIET_64;
    return first != first ? quiet : other;
}

// .ftz: subnormal numbers are zeros of the same sign.
template <bool FTZ> float flush(float x) {
    const uint32_t bits = bits_as<uint32_t>(x);
    return FTZ && (bits & EXPONENT_32) == 0 ? bits_as<float>(bits & SIGN_32) : x;
}

// .sat: NaN gives +0.
template <class T> T saturate(T x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

struct Saturate {
    static double run(double a) { return saturate(a); }
};
struct Rectify { // .relu: negative numbers give +0, NaN stays
    static double run(double a) { return a <= 0 ? 0 : a; }
};

// ---- rounding ------------------------------------------------------------------------------------------------------

// Runs RUN with the CPU rounding in MODE. The call is opaque to the compiler, so no computation moves out of it
// and none is done at compile time; -frounding-math is not needed, and would keep fma and sqrt from being vectorised.
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

// The bits of 2^exponent.
constexpr uint64_t power_bits(int exponent) { return (uint64_t)(exponent + 1023) << 52; }

// Rounds a magnitude, which is not above the power of two that is too large for the format, to the format's precision
// and encodes it. Adding a number whose last place is the last one kept makes the CPU round; the sum's bits count those
// places. The hidden bit is among them and adds one to the exponent that is encoded.
template <class Format, Rounding ROUNDING> uint64_t encode_magnitude(double magnitude, bool is_negative) {
    constexpr int M = Format::MANTISSA;
    const double least = bits_as<double>(power_bits(Format::LEAST_EXPONENT));
    const uint64_t exponent = bits_as<uint64_t>(magnitude > least ? magnitude : least) & EXPONENT_64;
    const uint64_t rounder_bits = exponent + ((uint64_t)(52 - M) << 52);
    const double rounder = bits_as<double>(rounder_bits), sum = magnitude + rounder, nearest = sum - rounder;
    uint64_t places = bits_as<uint64_t>(sum) - rounder_bits;
    if (ROUNDING == Rounding::nearest_away) {
        const double half = bits_as<double>(exponent - ((uint64_t)(M + 1) << 52));
        places += magnitude - nearest == half;
    } else if (ROUNDING == Rounding::down || ROUNDING == Rounding::up) {
        const bool is_away = is_negative == (ROUNDING == Rounding::down);
        places += is_away ? (uint64_t)(nearest < magnitude) : 0 - (uint64_t)(nearest > magnitude);
    } else if (ROUNDING == Rounding::toward_zero) {
        places -= nearest > magnitude;
    }
    return ((exponent - power_bits(Format::LEAST_EXPONENT)) >> (52 - M)) + places;
}

// Rounds a number once to a format. SATURATE_FINITE: numbers too large, infinity too, give the largest number.
template <class Format, Rounding ROUNDING, bool SATURATE_FINITE = false> uint64_t encode(double x) {
    constexpr uint64_t INFINITY_BITS = Format::LARGEST + 1;
    constexpr int LIMIT = (int)(Format::LARGEST >> Format::MANTISSA) + Format::LEAST_EXPONENT; // 2^LIMIT is too large
    const bool is_negative = bits_as<uint64_t>(x) >> 63;
    const uint64_t bits = bits_as<uint64_t>(x) & ~SIGN_64;
    const double magnitude = bits_as<double>(bits), limit = bits_as<double>(power_bits(LIMIT));
    const uint64_t rounded = encode_magnitude<Format, ROUNDING>(magnitude < limit ? magnitude : limit, is_negative);
    constexpr bool TRUNCATES = ROUNDING == Rounding::toward_zero;
    const bool ends_at_largest = SATURATE_FINITE || TRUNCATES || (ROUNDING == Rounding::down && !is_negative) ||
                                 (ROUNDING == Rounding::up && is_negative);
    const bool is_finite = bits < EXPONENT_64;
    const uint64_t beyond = SATURATE_FINITE || (ends_at_largest && is_finite) ? Format::LARGEST : INFINITY_BITS;
    constexpr int SIGN_SHIFT = 64 - __builtin_clzll(Format::CANONICAL_NAN);
    const uint64_t result = rounded > Format::LARGEST ? beyond : rounded;
    return magnitude == magnitude ? result | (uint64_t)is_negative << SIGN_SHIFT : Format::CANONICAL_NAN;
}

// The numbers that encodings stand for: all exact in f32. NaNs stay NaNs, and may become quiet.
template <class Format> float decode(uint32_t bits);
template <> inline float decode<F16>(uint32_t bits) {
    const uint32_t sign = (bits & 0x8000) << 16, magnitude = (bits & 0x7fff) << 13;
    const uint32_t rebiased = magnitude + (112U << 23); // f32's bias is 127, f16's 15
    const float subnormal = bits_as<float>(rebiased + (1U << 23)) - 0x1p-14f;
    const uint32_t finite = magnitude < 1U << 23 ? bits_as<uint32_t>(subnormal) : rebiased;
    return bits_as<float>((magnitude < 0x7c00U << 13 ? finite : magnitude | EXPONENT_32) | sign);
}
template <> inline float decode<BF16>(uint32_t bits) { return bits_as<float>(bits << 16); }
template <> inline float decode<E5M2>(uint32_t bits) { return decode<F16>(bits << 8); }
template <> inline float decode<E4M3>(uint32_t bits) {
    const uint32_t sign = (bits & 0x80) << 24, magnitude = bits & 0x7f;
    const uint32_t number = bits_as<uint32_t>(bits_as<float>(magnitude << 20) * 0x1p120f);
    return bits_as<float>((magnitude < E4M3::CANONICAL_NAN ? number : NAN_32) | sign);
}

template <class Format> void decode_halves(const uint16_t *from, float *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = decode<Format>(from[i]);
}

#ifdef VGPU_F16C
// Eight at once. To f16 it rounds to the nearest, ties to even; NaNs keep what bits they can.
template <> inline void decode_halves<F16>(const uint16_t *from, float *to, int count) {
    for (int i = 0; i < count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
}
inline void encode_f16(const float *from, uint16_t *to, int count) {
    for (int i = 0; i < count; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
}
#endif

} // namespace
} // namespace vgpu::VGPU_ISA

#endif
