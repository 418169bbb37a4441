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
DEVICE_FN void build_weights(const CudaEvaluateArgs &a, int32_t member, float *w) {
    int count = a.policy.params, threads = (int)blockDim.x;
    if (a.sigma == 0.0f) {
        for (int i = (int)threadIdx.x; i < count; i += threads)
            w[i] = a.params[i];
        return;
    }
    float sigma = member % 2 == 0 ? a.sigma : -a.sigma;
    for (int block = (int)threadIdx.x; block < a.params_pad / 4; block += threads) {
        SimNormal4 n = es_noise4(a.seed, a.generation, (uint32_t)(member / 2), (uint32_t)block);
        int i = block / 16 * CUDA_NOISE_GROUP + block % 16;
        if (i < count) w[i] = sim_fmaf(sigma, n.x0, a.params[i]);
        if (i + 16 < count) w[i + 16] = sim_fmaf(sigma, n.x1, a.params[i + 16]);
        if (i + 32 < count) w[i + 32] = sim_fmaf(sigma, n.x2, a.params[i + 32]);
        if (i + 48 < count) w[i + 48] = sim_fmaf(sigma, n.x3, a.params[i + 48]);
    }
}

DEVICE_FN float finish(float sum, bool last, PolicyActivation activation) {
    return last ? sum : policy_activate(sum, activation);
}

// A thread has two outputs at a time, so that two chains of dependent operations overlap. x: aligned to 16 bytes.
DEVICE_FN void dense_wide(const float *w, int in, int out, const float *x, float *y, bool last,
                          PolicyActivation activation) {
    int threads = (int)blockDim.x;
    for (int o = (int)threadIdx.x; o < out; o += 2 * threads) {
        int other = o + threads < out ? o + threads : o;
        float sum0 = w[in * out + o], sum1 = w[in * out + other];
        const float *row = w;
        int i = 0;
        for (; i + 4 <= in; i += 4) {
            float4 v = *(const float4 *)(x + i);
            sum0 = sim_fmaf(row[o], v.x, sum0), sum1 = sim_fmaf(row[other], v.x, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.y, sum0), sum1 = sim_fmaf(row[other], v.y, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.z, sum0), sum1 = sim_fmaf(row[other], v.z, sum1), row += out;
            sum0 = sim_fmaf(row[o], v.w, sum0), sum1 = sim_fmaf(row[other], v.w, sum1), row += out;
        }
        for (; i < in; i++, row += out) {
            sum0 = sim_fmaf(row[o], x[i], sum0);
            sum1 = sim_fmaf(row[other], x[i], sum1);
        }
        y[o] = finish(sum0, last, activation);
        if (other != o) y[other] = finish(sum1, last, activation);
    }
}

// 16 lanes are the 16 partial sums of one output; a warp has two outputs at a time.
DEVICE_FN void dense_narrow(const float *w, int in, int out, const float *x, float *y, bool last,
                            PolicyActivation activation) {
    int lane = (int)threadIdx.x % 32, k = lane % 16;
    for (int first = (int)threadIdx.x / 32 * 2; first < out; first += (int)blockDim.x / 16) {
        int o = first + lane / 16;
        float partial = 0.0f;
        if (o < out) {
            for (int i = k; i < in; i += 16)
                partial = sim_fmaf(w[i * out + o], x[i], partial);
        }
        float sum = fold_lanes16(partial, 0xffffffffu);
        if (k == 0 && o < out) y[o] = finish(sum + w[in * out + o], last, activation);
    }
}

DEVICE_FN void dense_layer(const float *w, int in, int out, const float *x, float *y, bool last,
                           PolicyActivation activation) {
    if (out >= POLICY_NARROW) {
        dense_wide(w, in, out, x, y, last, activation);
    } else {
        dense_narrow(w, in, out, x, y, last, activation);
    }
}

// From the inputs in activation[0] (shared memory, [2][width_pad]) to the outputs, whose place is returned. Weights in
// shared memory and in global memory take different instructions, so each has its own call.
DEVICE_FN const float *policy_outputs(const CudaEvaluateArgs &a, const float *shared_weights,
                                      const float *global_weights, float *activations) {
    int offset = 0;
    float *x = activations, *y = activations + a.width_pad;
    for (int layer = 0; layer < a.policy.layers; layer++) {
        int in = a.policy.size[layer], out = a.policy.size[layer + 1];
        bool last = layer + 1 == a.policy.layers;
        if (global_weights == NULL) {
            dense_layer(shared_weights + offset, in, out, x, y, last, a.policy.activation);
        } else {
            dense_layer(global_weights + offset, in, out, x, y, last, a.policy.activation);
        }
        block_sync();
        offset += (in + 1) * out;
        float *swap = x;
        x = y;
        y = swap;
    }
    return x;
}

#endif
