// A member's weights and the policy's forward pass by one block, in the order of arithmetic that kernels/policy.h
// defines. Weights keep the order of the parameter vector: [in][out], then biases.
#ifndef SHOAL_KERNELS_CUDA_DENSE_CUH
#define SHOAL_KERNELS_CUDA_DENSE_CUH

#include "kernels/cuda/fold16.cuh"
#include "kernels/cuda/names.cuh"
#include "kernels/es_math.h"
#include "kernels/policy_math.h"

// A block of one warp needs no barrier.
DEVICE_FN void block_sync(void) {
    if (blockDim.x == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

// The perturbed parameters of a member, or the parameters themselves where sigma is 0.
DEVICE_FN void build_params(const CudaEvaluateArgs &a, int32_t member, float *w) {
    int count = a.policy.params, threads = (int)blockDim.x;
    if (a.sigma == 0.0f) {
        for (int i = (int)threadIdx.x; i < count; i += threads)
            w[i] = a.params[i];
        return;
    }
    float sigma = member % 2 == 0 ? a.sigma : -a.sigma;
    if (a.noise.table != NULL) {
        const float *noise = a.noise.table + es_slice(&a.noise, a.generation, (uint32_t)(member / 2));
        for (int i = (int)threadIdx.x; i < count; i += threads)
            w[i] = sim_fmaf(sigma, noise[i], a.params[i]);
        return;
    }
    for (int block = (int)threadIdx.x; block < a.params_pad / 4; block += threads) {
        SimNormal4 n = es_noise4(a.noise.seed, a.generation, (uint32_t)(member / 2), (uint32_t)block);
        int i = block / 16 * CUDA_NOISE_GROUP + block % 16;
        if (i < count) w[i] = sim_fmaf(sigma, n.x0, a.params[i]);
        if (i + 16 < count) w[i + 16] = sim_fmaf(sigma, n.x1, a.params[i + 16]);
        if (i + 32 < count) w[i + 32] = sim_fmaf(sigma, n.x2, a.params[i + 32]);
        if (i + 48 < count) w[i + 48] = sim_fmaf(sigma, n.x3, a.params[i + 48]);
    }
}

// A member's weights as the layers take them.
DEVICE_FN void build_weights(const CudaEvaluateArgs &a, int32_t member, float *w) {
    build_params(a, member, w);
    if (a.policy.precision == POLICY_FLOAT32) return;
    block_sync();
    for (int layer = 0; layer < a.layers; layer++) {
        const PolicyLayer &l = a.layer[layer];
        int count = policy_rounds(a.policy.precision, l.kind) ? l.in * l.out : 0;
        for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x)
            w[l.params + i] = policy_bf16(w[l.params + i]);
    }
}

// A layer on its way. Each of its outputs is one thread's from the sum to the end: the same thread's in gate and
// candidate, which have as many.
typedef struct DenseLayer {
    PolicyLayerKind kind;
    PolicyActivation activation;
    PolicyPrecision precision;
    int in, out;
    const float *x; // [in] aligned to 16 bytes
    float *y;       // [out] where a candidate finds the gate
    float *state;   // [out] takes the step that gate and candidate make
} DenseLayer;

DEVICE_FN void dense_put(const DenseLayer &l, int o, float sum) {
    float y = policy_finish(sum, l.kind, l.activation);
    if (l.precision == POLICY_BF16 && l.kind == POLICY_HIDDEN) y = policy_bf16(y);
    if (l.kind == POLICY_CANDIDATE) {
        l.state[o] = policy_state(l.y[o], y, l.state[o]);
    } else {
        l.y[o] = y;
    }
}

// A thread has two outputs at a time, so that two chains of dependent operations overlap.
DEVICE_FN void dense_wide(const DenseLayer &l, const float *w) {
    int threads = (int)blockDim.x, in = l.in, out = l.out;
    for (int o = (int)threadIdx.x; o < out; o += 2 * threads) {
        int other = o + threads < out ? o + threads : o;
        float sum0 = w[in * out + o], sum1 = w[in * out + other];
        const float *row = w;
        int i = 0;
        for (; i + 4 <= in; i += 4) {
            float4 v = *(const float4 *)(l.x + i);
            sum0 = sim_fmaf(row[o], v.x, sum0), sum1 = sim_fmaf(row[other], v.x, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.y, sum0), sum1 = sim_fmaf(row[other], v.y, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.z, sum0), sum1 = sim_fmaf(row[other], v.z, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.w, sum0), sum1 = sim_fmaf(row[other], v.w, sum1), row += out;
        }
        for (; i < in; i++, row += out) {
            sum0 = sim_fmaf(row[o], l.x[i], sum0);
            sum1 = sim_fmaf(row[other], l.x[i], sum1);
        }
        dense_put(l, o, sum0);
        if (other != o) dense_put(l, other, sum1);
    }
}

// 16 lanes are the 16 partial sums of one output; a warp has two outputs at a time.
DEVICE_FN void dense_narrow(const DenseLayer &l, const float *w) {
    int lane = (int)threadIdx.x % 32, k = lane % 16;
    for (int first = (int)threadIdx.x / 32 * 2; first < l.out; first += (int)blockDim.x / 16) {
        int o = first + lane / 16;
        float partial = 0.0f;
        if (o < l.out) {
            for (int i = k; i < l.in; i += 16)
                partial = sim_fmaf(w[i * l.out + o], l.x[i], partial);
        }
        float sum = fold_lanes16(partial, 0xffffffffu);
        if (k == 0 && o < l.out) dense_put(l, o, sum + w[l.in * l.out + o]);
    }
}

DEVICE_FN void dense_layer(const DenseLayer &l, const float *w) {
    if (l.out >= POLICY_NARROW) {
        dense_wide(l, w);
    } else {
        dense_narrow(l, w);
    }
}

// From the inputs in activations[0] (shared memory, [2][width_pad]) to the outputs, whose place is returned; `state`,
// the recurrent layer's, takes a step. Weights in shared memory and in global memory take different instructions, so
// each has its own call.
DEVICE_FN const float *policy_outputs(const CudaEvaluateArgs &a, const float *shared_weights,
                                      const float *global_weights, float *activations, float *state) {
    DenseLayer l = {};
    l.activation = a.policy.activation;
    l.precision = a.policy.precision;
    l.x = activations;
    l.y = activations + a.width_pad;
    l.state = state;
    for (int i = 0; i < a.layers; i++) {
        const PolicyLayer &layer = a.layer[i];
        l.kind = layer.kind;
        l.in = layer.in;
        l.out = layer.out;
        if (global_weights == NULL) {
            dense_layer(l, shared_weights + layer.params);
        } else {
            dense_layer(l, global_weights + layer.params);
        }
        if (l.kind == POLICY_GATE) continue; // the candidate has the same inputs
        block_sync();
        l.x = l.kind == POLICY_CANDIDATE ? state : l.y;
        l.y = activations + (l.y == activations ? a.width_pad : 0);
    }
    return l.x;
}

#endif
