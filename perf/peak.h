// The fp32 FMA peak of one core, in the widest instruction set that it has: a case for perf.h.
#ifndef SHOAL_PERF_PEAK_H
#define SHOAL_PERF_PEAK_H

enum { PEAK_LOOPS = 2000000 };
#define PEAK_FLOPS (12.0 * 16 * 2 * PEAK_LOOPS) // of one run

typedef float Vector16 __attribute__((vector_size(64)));
typedef float Vector8 __attribute__((vector_size(32)));
typedef float Vector4 __attribute__((vector_size(16)));

#ifdef __clang__
#define PEAK_TARGET(isa) __attribute__((target(isa)))
#define PEAK_CONTRACT    _Pragma("clang fp contract(fast)")
#else
#define PEAK_TARGET(isa) __attribute__((target(isa ",prefer-vector-width=512"), optimize("fp-contract=fast")))
#define PEAK_CONTRACT
#endif

// Twelve independent chains of fused multiply-adds, each in one register of the instruction set: wider vectors would be
// two registers each, more than there are, and what is spilled makes the peak look low. `loops` makes the work equal.
#define PEAK_BODY(Vector, loops)                                                       \
    PEAK_CONTRACT                                                                      \
    float start = *(volatile float *)context;                                          \
    Vector sum[12], x = start - (Vector){0}, y = 0.999f - (Vector){0};                 \
    for (int k = 0; k < 12; k++)                                                       \
        sum[k] = x;                                                                    \
    for (int i = 0; i < (loops); i++) {                                                \
        _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++) sum[k] = sum[k] * y + x; \
    }                                                                                  \
    for (int k = 1; k < 12; k++)                                                       \
        sum[0] += sum[k];                                                              \
    *(volatile float *)context = sum[0][0] > 1e30f ? 1.0f : start;

#if defined(__x86_64__)
PEAK_TARGET("avx512f,fma")
static void peak_avx512(void *context){
    PEAK_BODY(Vector16, PEAK_LOOPS)} PEAK_TARGET("avx2,fma") static void peak_avx2(void *context) {
    PEAK_BODY(Vector8, 2 * PEAK_LOOPS)
}
#endif
static void peak_plain(void *context) { PEAK_BODY(Vector4, 4 * PEAK_LOOPS) }

static void (*choose_peak(void))(void *) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return peak_avx512;
    if (__builtin_cpu_supports("fma")) return peak_avx2;
#endif
    return peak_plain;
}

#endif
