// Dense layers of the policy for a few samples at a time, in the order of arithmetic that kernels/policy.h defines.
// Compiled for each instruction set.
//
// Packed weights of one member, layer after layer, each part aligned to 64 bytes:
//   wide layer      weights [in][out_pad], biases [out_pad]         out_pad: out rounded up to 16, padding is 0
//   narrow layer    weights [out][in_pad], biases [16]              in_pad: in rounded up to 16, padding is 0
#ifndef SHOAL_KERNELS_CPU_DENSE_H
#define SHOAL_KERNELS_CPU_DENSE_H

#include "kernels/cpu/wide.h"
#include "kernels/policy_math.h"

enum { DENSE_SAMPLES_MAX = 4 };

// One group of samples on its way through the network. `w` is the same pointer for all where they share weights.
typedef struct DenseGroup {
    const float *w[DENSE_SAMPLES_MAX]; // packed weights of each sample's member
    const float *x[DENSE_SAMPLES_MAX]; // inputs of the present layer, `stride` floats apart
    float *y[DENSE_SAMPLES_MAX];       // its outputs, contiguous, aligned to 64 bytes
} DenseGroup;

// Outputs [first, first + vectors WIDE) of a wide layer for `n` samples. n, vectors and shared are constants where this
// is inlined, so that the sums are registers.
WIDE_FN void dense_tile(const DenseGroup *g, int n, int vectors, int shared, int in, int out_pad, int stride,
                        int first) {
    Wide sum[DENSE_SAMPLES_MAX][4];
#pragma GCC unroll 4
    for (int s = 0; s < n; s++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sum[s][j] = wide_load(g->w[shared ? 0 : s] + in * out_pad + first + j * WIDE);
    }
#pragma GCC unroll 2
    for (int i = 0; i < in; i++) {
#pragma GCC unroll 4
        for (int s = 0; s < n; s++) {
            Wide input = wide_set(g->x[s][i * stride]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) {
                Wide weight = wide_load(g->w[shared ? 0 : s] + i * out_pad + first + j * WIDE);
                sum[s][j] = wide_fma(weight, input, sum[s][j]);
            }
        }
    }
#pragma GCC unroll 4
    for (int s = 0; s < n; s++) {
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            wide_store(g->y[s] + first + j * WIDE, sum[s][j]);
    }
}

// A wide layer in tiles of as many sums as there are registers for, with room for weights and inputs.
WIDE_FN void dense_tiles(const DenseGroup *g, int n, int shared, int in, int out_pad, int stride) {
    int first = 0;
    if (WIDE == 16 || n <= 2) {
        for (; first + 4 * WIDE <= out_pad; first += 4 * WIDE)
            dense_tile(g, n, 4, shared, in, out_pad, stride, first);
    }
    for (; first + 2 * WIDE <= out_pad; first += 2 * WIDE)
        dense_tile(g, n, 2, shared, in, out_pad, stride, first);
    for (; first < out_pad; first += WIDE)
        dense_tile(g, n, 1, shared, in, out_pad, stride, first);
}

WIDE_FN void dense_wide(const DenseGroup *g, int n, int shared, int in, int out_pad, int stride) {
    if (n == 1) {
        dense_tiles(g, 1, 1, in, out_pad, stride);
    } else if (n == 2 && !shared) {
        dense_tiles(g, 2, 0, in, out_pad, stride);
    } else if (n == 2) {
        dense_tiles(g, 2, 1, in, out_pad, stride);
    } else if (!shared) {
        dense_tiles(g, 4, 0, in, out_pad, stride);
    } else {
        dense_tiles(g, 4, 1, in, out_pad, stride);
    }
}

// Adds inputs [first, end) of one sample to the sums of 4 WIDE outputs; w: their weights of input 0.
WIDE_FN void dense_add4(const float *w, const float *x, Wide *sum, int first, int end, int out_pad) {
    _Pragma("GCC unroll 8") for (int i = first; i < end; i++) {
        Wide input = wide_set(x[i]);
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
            sum[j] = wide_fma(wide_load(w + i * out_pad + j * WIDE), input, sum[j]);
        }
    }
}

// One sample's share of a wide layer: adds inputs [first, end) to the sums at `start`, and puts them in y.
WIDE_FN void dense_add(const float *w, const float *x, const float *start, float *y, int first, int end, int out_pad) {
    int at = 0;
    for (; at + 4 * WIDE <= out_pad; at += 4 * WIDE) {
        Wide sum[4];
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) sum[j] = wide_load(start + at + j * WIDE);
        dense_add4(w + at, x, sum, first, end, out_pad);
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

// sim_tanhf, bit for bit.
WIDE_FN Wide wide_tanh(Wide x) {
    Wide y = wide_clamp(x, -SIM_TANH_BOUND, SIM_TANH_BOUND);
    SIM_TANH_BODY(Wide, wide_set, wide_fma)
}

// policy_bf16, bit for bit.
WIDE_FN Wide wide_bf16(Wide x) {
    WideBits bits = (WideBits)x, is_number = (WideBits)(x == x);
    WideBits rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    return (Wide)((rounded & is_number) | (bits & ~is_number));
}

// policy_finish() of a gate's sums, `count` of them, a multiple of 16.
WIDE_FN void dense_sigmoid(float *restrict y, int count) {
    float *aligned = __builtin_assume_aligned(y, 64);
    for (int i = 0; i < count; i += WIDE)
        wide_store(aligned + i,
                   wide_fma(wide_set(0.5f), wide_tanh(wide_set(0.5f) * wide_load(aligned + i)), wide_set(0.5f)));
}

// policy_bf16 of `count` floats, a multiple of 16.
WIDE_FN void dense_round(float *y, int count) {
    for (int i = 0; i < count; i += WIDE)
        wide_store(y + i, wide_bf16(wide_load(y + i)));
}

// count: a multiple of 16.
WIDE_FN void dense_activate(float *restrict y, int count, PolicyActivation activation) {
    float *aligned = __builtin_assume_aligned(y, 64);
    if (activation == POLICY_TANH) {
        for (int i = 0; i < count; i += WIDE)
            wide_store(aligned + i, wide_tanh(wide_load(aligned + i)));
    } else {
        for (int i = 0; i < count; i++) // vectorises
            aligned[i] = aligned[i] < 0.0f ? 0.0f : aligned[i];
    }
}

#endif
