// Dense layers of the policy for a few samples at a time, in the order of arithmetic that kernels/policy.h defines.
// Compiled for each instruction set; included by kernels/cpu/evaluate.c only.
//
// Packed weights of one member, layer after layer, each part aligned to 64 bytes:
//   wide layer      weights [in][out_pad], biases [out_pad]         out_pad: out rounded up to 16, padding is 0
//   narrow layer    weights [out][in_pad], biases [16]              in_pad: in rounded up to 16, padding is 0
#ifndef SHOAL_KERNELS_CPU_DENSE_H
#define SHOAL_KERNELS_CPU_DENSE_H

#include "kernels/cpu/wide.h"
#include "kernels/policy.h"
#include "sim/sim_math.h"

enum { DENSE_SAMPLES_MAX = 4 };

// One group of samples on its way through the network. `w` is the same pointer for all where they share weights.
typedef struct DenseGroup {
    const float *w[DENSE_SAMPLES_MAX]; // packed weights of each sample's member
    const float *x[DENSE_SAMPLES_MAX]; // inputs of the present layer, `stride` floats apart
    float *y[DENSE_SAMPLES_MAX];       // its outputs, contiguous, aligned to 64 bytes
} DenseGroup;

// Outputs [first, first + J WIDE) of a wide layer for `n` samples.
#define DENSE_TILE(n, J, shared)                                                                                       \
    for (; first + J * WIDE <= out_pad; first += J * WIDE) {                                                           \
        Wide sum[n][J];                                                                                                \
        _Pragma("GCC unroll 4") for (int s = 0; s < n; s++) {                                                          \
            _Pragma("GCC unroll 4") for (int j = 0; j < J; j++) {                                                      \
                sum[s][j] = wide_load(g->w[shared ? 0 : s] + in * out_pad + first + j * WIDE);                         \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 2") for (int i = 0; i < in; i++) {                                                         \
            _Pragma("GCC unroll 4") for (int s = 0; s < n; s++) {                                                      \
                Wide input = wide_set(g->x[s][i * stride]);                                                            \
                _Pragma("GCC unroll 4") for (int j = 0; j < J; j++) {                                                  \
                    Wide weight = wide_load(g->w[shared ? 0 : s] + i * out_pad + first + j * WIDE);                    \
                    sum[s][j] = wide_fma(weight, input, sum[s][j]);                                                    \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 4") for (int s = 0; s < n; s++) {                                                          \
            _Pragma("GCC unroll 4") for (int j = 0; j < J; j++) { wide_store(g->y[s] + first + j * WIDE, sum[s][j]); } \
        }                                                                                                              \
    }

// As many accumulators as the instruction set has registers for, with room for weights and inputs.
#if WIDE == 16
#define DENSE_TILES(n, shared) DENSE_TILE(n, 4, shared) DENSE_TILE(n, 2, shared) DENSE_TILE(n, 1, shared)
#else
#define DENSE_TILES(n, shared)           \
    if (n <= 2) DENSE_TILE(n, 4, shared) \
    DENSE_TILE(n, 2, shared)
#endif

WIDE_FN void dense_wide(const DenseGroup *g, int n, int shared, int in, int out_pad, int stride) {
    int first = 0;
    if (n == 1) {
        DENSE_TILES(1, 0)
    } else if (n == 2 && !shared) {
        DENSE_TILES(2, 0)
    } else if (n == 2) {
        DENSE_TILES(2, 1)
    } else if (!shared) {
        DENSE_TILES(4, 0)
    } else {
        DENSE_TILES(4, 1)
    }
}

// One sample's share of a wide layer: adds inputs [first, end) to the sums at `start`, and puts them in y.
WIDE_FN void dense_add(const float *w, const float *x, const float *start, float *y, int first, int end, int out_pad) {
    int at = 0;
    for (; at + 4 * WIDE <= out_pad; at += 4 * WIDE) {
        Wide sum[4];
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] = wide_load(start + at + j * WIDE);
        _Pragma("GCC unroll 8") for (int i = first; i < end; i++) {
            Wide input = wide_set(x[i]);
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
                sum[j] = wide_fma(wide_load(w + i * out_pad + at + j * WIDE), input, sum[j]);
            }
        }
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) wide_store(y + at + j * WIDE, sum[j]);
    }
    for (; at < out_pad; at += WIDE) {
        Wide sum = wide_load(start + at);
        for (int i = first; i < end; i++)
            sum = wide_fma(wide_load(w + i * out_pad + at), wide_set(x[i]), sum);
        wide_store(y + at, sum);
    }
}

// Inputs are contiguous and padded with zeros to in_pad.
WIDE_FN void dense_narrow(const DenseGroup *g, int n, int in_pad, int out) {
    for (int s = 0; s < n; s++) {
        const float *w = g->w[s], *bias = w + out * in_pad;
        for (int o = 0; o < out; o++) {
            Wide partial[16 / WIDE];
            for (int k = 0; k < 16 / WIDE; k++)
                partial[k] = wide_set(0.0f);
            for (int i = 0; i < in_pad; i += 16) {
                for (int k = 0; k < 16 / WIDE; k++) {
                    int at = i + k * WIDE;
                    partial[k] = wide_fma(wide_load(w + o * in_pad + at), wide_load(g->x[s] + at), partial[k]);
                }
            }
            g->y[s][o] = wide_fold16(partial) + bias[o];
        }
    }
}

// count: a multiple of 16.
WIDE_FN void dense_activate(float *restrict y, int count, PolicyActivation activation) {
    float *aligned = __builtin_assume_aligned(y, 64);
    if (activation == POLICY_TANH) {
        for (int i = 0; i < count; i++) // vectorises
            aligned[i] = sim_tanhf(aligned[i]);
    } else {
        for (int i = 0; i < count; i++) // vectorises
            aligned[i] = aligned[i] < 0.0f ? 0.0f : aligned[i];
    }
}

#endif
