// Vectors of floats as wide as the instruction set that this file is compiled for: WIDE lanes. Sums, differences and
// products use the compiler's own operators on Wide; what it has no operator for is here.
#ifndef SHOAL_KERNELS_CPU_WIDE_H
#define SHOAL_KERNELS_CPU_WIDE_H

#include <stdint.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define WIDE 16
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define WIDE 8
#elif defined(__aarch64__)
#include <arm_neon.h>
#define WIDE 4
#else
#define WIDE 4
#endif

#define WIDE_FN static inline __attribute__((always_inline, unused))

typedef float Wide __attribute__((vector_size(4 * WIDE), may_alias));
typedef uint32_t WideBits __attribute__((vector_size(4 * WIDE)));
typedef float Wide8 __attribute__((vector_size(32)));
typedef float Wide4 __attribute__((vector_size(16)));
typedef float Wide2 __attribute__((vector_size(8)));

// p: aligned to 4 * WIDE bytes.
WIDE_FN Wide wide_load(const float *p) { return *(const Wide *)p; }
WIDE_FN void wide_store(float *p, Wide x) { *(Wide *)p = x; }

// Computes x here and not later: compilers move operations to where their results are used.
WIDE_FN void wide_pin(Wide *x) {
#if defined(__AVX512F__)
    __asm__ volatile("" : "+v"(*x));
#elif defined(__x86_64__)
    __asm__ volatile("" : "+x"(*x));
#elif defined(__aarch64__)
    __asm__ volatile("" : "+w"(*x));
#else
    (void)x;
#endif
}

WIDE_FN Wide wide_set(float x) { return x - (Wide){0}; }

// a * b + c, rounded once.
WIDE_FN Wide wide_fma(Wide a, Wide b, Wide c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif WIDE == 8
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
    return vfmaq_f32(c, a, b);
#else
    Wide r;
    for (int k = 0; k < WIDE; k++)
        r[k] = __builtin_fmaf(a[k], b[k], c[k]);
    return r;
#endif
}

// sim_clamp, bit for bit: with the bound first, the processor's maximum and minimum return x where it is NaN and where
// both are equal.
WIDE_FN Wide wide_clamp(Wide x, float low, float high) {
#if defined(__AVX512F__)
    return _mm512_min_ps(wide_set(high), _mm512_max_ps(wide_set(low), x));
#elif WIDE == 8
    return _mm256_min_ps(wide_set(high), _mm256_max_ps(wide_set(low), x));
#else
    for (int k = 0; k < WIDE; k++) {
        float y = x[k] < low ? low : x[k];
        x[k] = y > high ? high : y;
    }
    return x;
#endif
}

// Bit l is set where flags[l] is not 0. count: 1, 8 or 16.
WIDE_FN uint32_t wide_flags(const uint32_t *flags, int count) {
    uint32_t mask = 0;
#if defined(__AVX512F__)
    if (count == 16) return _mm512_test_epi32_mask(_mm512_loadu_si512(flags), _mm512_loadu_si512(flags));
#endif
#if WIDE >= 8
    for (int l = 0; count >= 8 && l < count; l += 8) {
        __m256i zero = _mm256_cmpeq_epi32(_mm256_loadu_si256((const __m256i *)(flags + l)), _mm256_setzero_si256());
        mask |= (uint32_t)(~_mm256_movemask_ps(_mm256_castsi256_ps(zero)) & 0xff) << l;
    }
    if (count >= 8) return mask;
#endif
    for (int l = 0; l < count; l++)
        mask |= (uint32_t)(flags[l] != 0) << l;
    return mask;
}

// Folds 16 partial sums p[16 / WIDE]: partial k += partial k + 8, then + 4, + 2, + 1.
WIDE_FN float wide_fold16(const Wide *p) {
#if WIDE == 16
    Wide8 a = __builtin_shufflevector(p[0], p[0], 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(p[0], p[0], 8, 9, 10, 11, 12, 13, 14, 15);
    Wide4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
#elif WIDE == 8
    Wide8 a = p[0] + p[1];
    Wide4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
#else
    Wide4 b = (p[0] + p[2]) + (p[1] + p[3]);
#endif
    Wide2 c = __builtin_shufflevector(b, b, 0, 1) + __builtin_shufflevector(b, b, 2, 3);
    return c[0] + c[1];
}

// To be called where a function compiled for this instruction set goes back to code that is not: gcc 12 forgets it
// before some tail calls, and SSE code that follows then runs up to 60 times slower.
WIDE_FN void wide_end(void) {
#if defined(__AVX__)
    _mm256_zeroupper();
#endif
}

#endif
