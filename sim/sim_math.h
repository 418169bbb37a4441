// Deterministic mathematics: the same bits on every processor, vector width and compiler.
//
// Built from IEEE + - * /, square root and explicit fma only, without branches, tables or calls, so that a loop over
// lanes vectorises. Needs -ffp-contract=off (nvcc: -fmad=false). Errors are the largest ones over every float of the
// range named, in units in the last place (ulp) of the exact result; tests/sim/math_test.cc asserts them.
//
// The ...f functions take floats. Those without the f take `real`: the same functions, or libm's in the double build.
// The coefficients are minimax fits of our own (Lawson's iteration, rounded one after the other).
#ifndef SHOAL_SIM_SIM_MATH_H
#define SHOAL_SIM_SIM_MATH_H

#include "sim/sim.h"

#define SIM_PI R(3.141592653589793)

typedef struct SimSinCosf {
    float sin, cos;
} SimSinCosf;

#if defined(__CUDA_ARCH__)
SIM_FN uint32_t sim_bits_from_float(float x) { return __float_as_uint(x); }
SIM_FN float sim_float_from_bits(uint32_t bits) { return __uint_as_float(bits); }
SIM_FN float sim_fmaf(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SIM_FN float sim_sqrtf(float x) { return __fsqrt_rn(x); }
#else
SIM_FN uint32_t sim_bits_from_float(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
SIM_FN float sim_float_from_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
// a * b + c, rounded once.
SIM_FN float sim_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
// Correctly rounded; NaN below zero.
SIM_FN float sim_sqrtf(float x) { return __builtin_sqrtf(x); }
#endif

SIM_FN float sim_fabsf(float x) { return sim_float_from_bits(sim_bits_from_float(x) & 0x7fffffffu); }

#define SIM_INFINITYF sim_float_from_bits(0x7f800000u)
#define SIM_NANF      sim_float_from_bits(0x7fc00000u)

// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even, for |x| <= 2^22; the sum's lowest bits
// are the integer's.
#define SIM_ROUND_MAGICF 0x1.8p23f

// The largest integer not above x, exactly; zero results are +0. NaN and infinities come back as they are.
// No conversion to int and back: gcc 12 makes that a truncation where the processor has one, and then -0 stays -0.
SIM_FN float sim_floorf(float x) {
    float magic = sim_float_from_bits(0x4b000000u | (sim_bits_from_float(x) & 0x80000000u)); // 2^23 with the sign of x
    float rounded = (x + magic) - magic;
    float floored = rounded > x ? rounded - 1.0f : rounded;
    return sim_fabsf(x) < 0x1p23f ? floored : x; // larger floats are integers already
}

// Sine and cosine of x in radians.
// |x| <= 4096: within 1.53 ulp. Up to 4,194,304 the absolute error is within 3e-7. Beyond, infinite or NaN: NaN.
// Sine is exactly odd, but for sin(-0) = +0; cosine is exactly even.
SIM_FN SimSinCosf sim_sincosf(float x) {
    // x = q pi/2 + r with pi/2 in three parts. They are cut, not rounded, so that they share their sign and -0 stays
    // -0.
    float in_range = sim_fabsf(x) <= 0x1p22f ? x : SIM_NANF;
    float shifted = sim_fmaf(in_range, 0x1.45f306p-1f, SIM_ROUND_MAGICF);
    float q = shifted - SIM_ROUND_MAGICF;
    uint32_t quadrant = sim_bits_from_float(shifted);
    float r = sim_fmaf(q, -0x1.921fb4p0f, in_range);
    r = sim_fmaf(q, -0x1.4442d0p-24f, r);
    r = sim_fmaf(q, -0x1.846988p-48f, r);

    float z = r * r;
    float s = sim_fmaf(z, -0x1.9953p-13f, 0x1.110776p-7f);
    s = sim_fmaf(z, s, -0x1.555546p-3f);
    s = sim_fmaf(r * z, s, r);
    float c = sim_fmaf(z, 0x1.99e904p-16f, -0x1.6c0c2ap-10f);
    c = sim_fmaf(z, c, 0x1.55554ap-5f);
    c = sim_fmaf(z, c, -0.5f);
    c = sim_fmaf(z, c, 1.0f);

    int32_t odd = (quadrant & 1u) != 0;
    SimSinCosf out;
    out.sin = sim_float_from_bits(sim_bits_from_float(odd ? c : s) ^ ((quadrant & 2u) << 30));
    out.cos = sim_float_from_bits(sim_bits_from_float(odd ? s : c) ^ (((quadrant + 1u) & 2u) << 30));
    return out;
}

SIM_FN float sim_sinf(float x) { return sim_sincosf(x).sin; }
SIM_FN float sim_cosf(float x) { return sim_sincosf(x).cos; }

// e^x: within 1.02 ulp where the result is normal, within 1 unit of 2^-149 where it is subnormal; +infinity
// from 88.7229 on, 0 below -103.98. NaN propagates.
SIM_FN float sim_expf(float x) {
    float y = x < -104.0f ? -104.0f : x;
    y = y > 89.0f ? 89.0f : y;
    float shifted = sim_fmaf(y, 0x1.715476p0f, SIM_ROUND_MAGICF);
    float n = shifted - SIM_ROUND_MAGICF;
    float r = sim_fmaf(n, -0x1.62e43p-1f, y);
    r = sim_fmaf(n, 0x1.05c61p-29f, r);
    float p = sim_fmaf(r, 0x1.6a4d5cp-10f, 0x1.12398ep-7f);
    p = sim_fmaf(r, p, 0x1.5558bp-5f);
    p = sim_fmaf(r, p, 0x1.555492p-3f);
    p = sim_fmaf(r, p, 0x1.fffffcp-2f);
    p = sim_fmaf(r * r, p, r) + 1.0f;
    // 2^n in two factors: n runs from -150 to 128, further than one float's exponent. Only the last product rounds.
    int32_t exponent = (int32_t)(sim_bits_from_float(shifted) - sim_bits_from_float(SIM_ROUND_MAGICF));
    int32_t half = exponent >> 1;
    float scale0 = sim_float_from_bits((uint32_t)(half + 127) << 23);
    float scale1 = sim_float_from_bits((uint32_t)(exponent - half + 127) << 23);
    return p * scale0 * scale1;
}

// The natural logarithm: within 1 ulp for every positive x, subnormal ones too. log(0) is -infinity, log(+infinity)
// +infinity; NaN below zero.
SIM_FN float sim_logf(float x) {
    int32_t subnormal = x < 0x1p-126f;
    float scaled = subnormal ? x * 0x1p23f : x;
    // x = 2^e m with m in [2/3, 4/3)
    uint32_t bits = sim_bits_from_float(scaled);
    uint32_t e = (bits - 0x3f2aaaabu) & 0xff800000u;
    float f = sim_float_from_bits(bits - e) - 1.0f;
    float exponent = sim_fmaf((float)(int32_t)e, 0x1p-23f, subnormal ? -23.0f : 0.0f);
    float z = f * f;
    float p = sim_fmaf(f, 0x1.e9d188p-4f, -0x1.06c2bap-3f);
    p = sim_fmaf(f, p, 0x1.b91efap-4f);
    p = sim_fmaf(f, p, -0x1.f3b02cp-4f);
    p = sim_fmaf(f, p, 0x1.24eb6ep-3f);
    p = sim_fmaf(f, p, -0x1.55978cp-3f);
    p = sim_fmaf(f, p, 0x1.9997eep-3f);
    p = sim_fmaf(f, p, -0x1.ffff18p-3f);
    p = sim_fmaf(f, p, 0x1.555556p-2f);
    p = sim_fmaf(f, p, -0.5f);
    float r = sim_fmaf(exponent, 0x1.62e43p-1f, sim_fmaf(z, p, f));
    r = x < SIM_INFINITYF ? r : x;
    r = x < 0.0f ? SIM_NANF : r;
    return x == 0.0f ? -SIM_INFINITYF : r;
}

// tanh(x), the policies' activation, as x (1/8 + R(x^2) / Q(x^2)): one division, eleven other operations and a clamp.
// Within 3.1 ulp for every x; exactly odd; below 1 in magnitude (a search over the coefficients' last bits saw to
// that), 1 - 2^-24 in the tails; NaN propagates.
#define SIM_TANH_BOUND 0x1.07068ep+3f // y: x clamped to +-this

// The body of a function of `y`, for floats and for a backend's own vectors of them: NUMBER their type, SET(float) a
// constant, FMA(a, b, c).
#define SIM_TANH_BODY(NUMBER, SET, FMA)                              \
    NUMBER z = y * y;                                                \
    NUMBER r = FMA(z, SET(-0x1.68bf5ep-24f), SET(-0x1.5770ccp-16f)); \
    r = FMA(z, r, SET(0x1.12a216p-12f));                             \
    r = FMA(z, r, SET(0x1.34f80ap-4f));                              \
    r = FMA(z, r, SET(0.875f));                                      \
    NUMBER q = FMA(z, SET(0x1.a23d04p-21f), SET(0x1.58d338p-12f));   \
    q = FMA(z, q, SET(0x1.a816ep-6f));                               \
    q = FMA(z, q, SET(0x1.de5f36p-2f));                              \
    q = FMA(z, q, SET(1.0f));                                        \
    return FMA(y, r / q, SET(0.125f) * y);

SIM_FN float sim_tanhf(float x) {
    float y = x < -SIM_TANH_BOUND ? -SIM_TANH_BOUND : x;
    y = y > SIM_TANH_BOUND ? SIM_TANH_BOUND : y;
    SIM_TANH_BODY(float, (float), sim_fmaf)
}

// The angle of the point (x, y), in [-pi, pi]: within 2 ulp, with C's results for zeros and infinities. NaN propagates.
SIM_FN float sim_atan2f(float y, float x) {
    float ax = sim_fabsf(x), ay = sim_fabsf(y);
    int32_t steep = ay > ax;
    int32_t left = (int32_t)(sim_bits_from_float(x) >> 31);
    float num = steep ? ax : ay, den = steep ? ay : ax;
    // 0 / 0 counts as 0 / 1, infinity / infinity as 1 / 1
    float t = (num == den ? (den == 0.0f ? 0.0f : 1.0f) : num) / (num == den ? 1.0f : den);
    float z = t * t;
    float p = sim_fmaf(z, 0x1.7eb1a4p-9f, -0x1.0c1c26p-6f);
    p = sim_fmaf(z, p, 0x1.61f14p-5f);
    p = sim_fmaf(z, p, -0x1.35519p-4f);
    p = sim_fmaf(z, p, 0x1.b4dedep-4f);
    p = sim_fmaf(z, p, -0x1.230a96p-3f);
    p = sim_fmaf(z, p, 0x1.9978ecp-3f);
    p = sim_fmaf(z, p, -0x1.5554dcp-2f);
    float r = sim_fmaf(t * z, p, t);
    // r, pi/2 - r, pi/2 + r or pi - r, with pi in two parts
    float base = steep ? 0x1.921fb6p0f : (left ? 0x1.921fb6p1f : 0.0f);
    float rest = steep ? -0x1.777a5cp-25f : (left ? -0x1.777a5cp-24f : 0.0f);
    float turned = sim_float_from_bits(sim_bits_from_float(r) ^ ((uint32_t)(steep ^ left) << 31));
    float angle = base + (rest + turned);
    return sim_float_from_bits(sim_bits_from_float(angle) | (sim_bits_from_float(y) & 0x80000000u));
}

// The same for `real`, which physics is written over.
#ifdef SIM_REAL_DOUBLE
#define SIM_ROUND_MAGIC 0x1.8p52
#define SIM_TWO_PI_HIGH 0x1.921fb54442d18p2
#define SIM_TWO_PI_LOW  0x1.1a62633145c07p-52
typedef struct SimSinCos {
    double sin, cos;
} SimSinCos;
SIM_FN double sim_sin(double x) { return __builtin_sin(x); }
SIM_FN double sim_cos(double x) { return __builtin_cos(x); }
SIM_FN double sim_exp(double x) { return __builtin_exp(x); }
SIM_FN double sim_log(double x) { return __builtin_log(x); }
SIM_FN double sim_tanh(double x) { return __builtin_tanh(x); }
SIM_FN double sim_atan2(double y, double x) { return __builtin_atan2(y, x); }
SIM_FN double sim_sqrt(double x) { return __builtin_sqrt(x); }
SIM_FN double sim_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
SIM_FN double sim_fabs(double x) { return __builtin_fabs(x); }
SIM_FN double sim_floor(double x) { return __builtin_floor(x); }
SIM_FN SimSinCos sim_sincos(double x) {
    SimSinCos out = {__builtin_sin(x), __builtin_cos(x)};
    return out;
}
#else
#define SIM_ROUND_MAGIC SIM_ROUND_MAGICF
#define SIM_TWO_PI_HIGH 0x1.921fb6p2f
#define SIM_TWO_PI_LOW  (-0x1.777a5cp-23f)
typedef SimSinCosf SimSinCos;
SIM_FN float sim_sin(float x) { return sim_sinf(x); }
SIM_FN float sim_cos(float x) { return sim_cosf(x); }
SIM_FN float sim_exp(float x) { return sim_expf(x); }
SIM_FN float sim_log(float x) { return sim_logf(x); }
SIM_FN float sim_tanh(float x) { return sim_tanhf(x); }
SIM_FN float sim_atan2(float y, float x) { return sim_atan2f(y, x); }
SIM_FN float sim_sqrt(float x) { return sim_sqrtf(x); }
SIM_FN float sim_fma(float a, float b, float c) { return sim_fmaf(a, b, c); }
SIM_FN float sim_fabs(float x) { return sim_fabsf(x); }
SIM_FN float sim_floor(float x) { return sim_floorf(x); }
SIM_FN SimSinCos sim_sincos(float x) { return sim_sincosf(x); }
#endif

// The angle x turned by whole revolutions into [-pi, pi] (as `real`s): |x| <= 4096, absolute error within 3e-7.
SIM_FN real sim_wrap_pi(real x) {
    real turns = x * R(0.15915494309189535) + SIM_ROUND_MAGIC - SIM_ROUND_MAGIC;
    real y = sim_fma(-turns, SIM_TWO_PI_LOW, sim_fma(-turns, SIM_TWO_PI_HIGH, x));
    // rounding may have chosen the neighbour of the right number of turns
    real more = y > SIM_PI ? R(1.0) : (y < -SIM_PI ? R(-1.0) : R(0.0));
    return sim_fma(-more, SIM_TWO_PI_LOW, sim_fma(-more, SIM_TWO_PI_HIGH, y));
}

#endif
