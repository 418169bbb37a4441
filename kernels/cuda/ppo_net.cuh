// PPO's actor and critic by one block, forwards and backwards for up to a.*.rows rows (samples or envs), in the order
// of arithmetic that kernels/policy.h and design rule 4 define. Weights keep the order of the parameter vector.
#ifndef SHOAL_KERNELS_CUDA_PPO_NET_CUH
#define SHOAL_KERNELS_CUDA_PPO_NET_CUH

#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/ppo_launch.h"

// A block on its way through the layers.
typedef struct PpoBlock {
    const CudaPpoScratch &scratch;
    GemmShared &gemm;
    float *memory; // [scratch.floats]
    int rows;      // in work
} PpoBlock;

extern __shared__ float4 ppo_shared_memory[];

DEVICE_FN float *ppo_scratch(const CudaPpoArgs &a, const CudaPpoScratch &scratch) {
    return scratch.is_shared ? (float *)ppo_shared_memory : a.scratch + (int64_t)blockIdx.x * scratch.floats;
}

// Where output `unit` of a layer is for row r: at + unit * unit_stride + r * row_stride.
typedef struct PpoUnits {
    float *at;
    int unit_stride, row_stride;
} PpoUnits;

DEVICE_FN PpoUnits ppo_units(const PpoBlock &b, int place, bool is_head) {
    PpoUnits units = {b.memory + place, is_head ? 1 : b.scratch.pitch, is_head ? (int)CUDA_PPO_HEAD_PITCH : 1};
    return units;
}

DEVICE_FN PpoUnits ppo_inputs(const PpoBlock &b, const PpoNode &layer) {
    return ppo_units(b, layer.from < 0 ? b.scratch.input : b.scratch.output[layer.from], false);
}

DEVICE_FN GemmMatrix ppo_by_unit(PpoUnits u) {
    GemmMatrix m = {u.at, u.unit_stride, u.row_stride};
    return m;
}

DEVICE_FN GemmMatrix ppo_by_row(PpoUnits u) {
    GemmMatrix m = {u.at, u.row_stride, u.unit_stride};
    return m;
}

// ---- forwards ------------------------------------------------------------------------------------------------------

DEVICE_FN float fold16(float partial) {
    partial = partial + __shfl_down_sync(0xffffffffu, partial, 8, 16);
    partial = partial + __shfl_down_sync(0xffffffffu, partial, 4, 16);
    partial = partial + __shfl_down_sync(0xffffffffu, partial, 2, 16);
    return partial + __shfl_down_sync(0xffffffffu, partial, 1, 16);
}

// 16 lanes are the 16 partial sums of one output of one row.
DEVICE_FN void ppo_forward_narrow(const PpoBlock &b, const PpoNode &layer, const float *w, PpoUnits x, PpoUnits y,
                                  PolicyActivation activation) {
    int lane = (int)threadIdx.x % 32, k = lane % 16, sums = layer.out * b.rows;
    for (int first = (int)threadIdx.x / 32 * 2; first < sums; first += (int)blockDim.x / 16) {
        int sum = first + lane / 16, row = sum % b.rows, o = sum / b.rows;
        float partial = 0.0f;
        for (int i = k; i < layer.in && sum < sums; i += 16)
            partial = sim_fmaf(w[i * layer.out + o], x.at[i * x.unit_stride + row], partial);
        float total = fold16(partial);
        if (k != 0 || sum >= sums) continue;
        total = total + w[layer.in * layer.out + o];
        y.at[o * y.unit_stride + row * y.row_stride] = layer.kind == POLICY_HEAD ? total : policy_activate(total, activation);
    }
}

// From the input's rows to the outputs of every layer; all threads, and all is there when it returns.
DEVICE_FN void ppo_forward(const CudaPpoArgs &a, const PpoBlock &b) {
    __syncthreads();
    for (int i = 0; i < a.network.layers; i++) {
        const PpoNode &layer = a.network.layer[i];
        const float *w = a.params + layer.params;
        PpoUnits x = ppo_inputs(b, layer), y = ppo_units(b, b.scratch.output[i], layer.kind == POLICY_HEAD);
        if (layer.out < POLICY_NARROW) {
            ppo_forward_narrow(b, layer, w, x, y, a.actor.activation);
        } else {
            Gemm g = {};
            g.rows = layer.out, g.cols = b.rows, g.depth = layer.in;
            g.a = {w, 1, layer.out};
            g.b = ppo_by_row(x);
            g.c = y.at, g.c_row = y.unit_stride, g.c_col = y.row_stride;
            g.bias = w + layer.in * layer.out;
            g.finish = layer.kind == POLICY_HEAD ? GEMM_AS_IS : GEMM_ACTIVATE;
            g.activation = a.actor.activation;
            gemm(g, b.gemm);
        }
        __syncthreads();
    }
}

DEVICE_FN float ppo_value(const CudaPpoArgs &a, const PpoBlock &b, int row) {
    return b.memory[b.scratch.output[a.network.critic_head] + row * CUDA_PPO_HEAD_PITCH];
}

// ---- backwards -----------------------------------------------------------------------------------------------------

// Adds the rows to a layer's weights' gradient, or begins it with them.
DEVICE_FN void ppo_weight_gradient(const PpoBlock &b, const PpoNode &layer, PpoUnits x, PpoUnits delta,
                                   float *gradient, bool adds) {
    if (layer.out < POLICY_NARROW) {
        for (int e = (int)threadIdx.x; e < layer.in * layer.out; e += (int)blockDim.x) {
            const float *from = x.at + e / layer.out * x.unit_stride, *d = delta.at + e % layer.out * delta.unit_stride;
            float sum = adds ? gradient[e] : 0.0f;
            for (int r = 0; r < b.rows; r++)
                sum = sim_fmaf(from[r], d[r * delta.row_stride], sum);
            gradient[e] = sum;
        }
    } else {
        Gemm g = {};
        g.rows = layer.in, g.cols = layer.out, g.depth = b.rows;
        g.a = ppo_by_unit(x);
        g.b = ppo_by_unit(delta);
        g.c = gradient, g.c_row = layer.out, g.c_col = 1;
        g.adds = adds;
        gemm(g, b.gemm);
    }
    float *biases = gradient + layer.in * layer.out;
    for (int o = (int)threadIdx.x; o < layer.out; o += (int)blockDim.x) {
        float sum = adds ? biases[o] : 0.0f;
        for (int r = 0; r < b.rows; r++)
            sum = sum + delta.at[o * delta.unit_stride + r * delta.row_stride];
        biases[o] = sum;
    }
}

// The loss by the sums of the layer that `layer` gets its input from. It is complete, and so takes in the derivative of
// the activation, unless a shared critic's head still has its part to add.
DEVICE_FN void ppo_input_gradient(const CudaPpoArgs &a, const PpoBlock &b, const PpoNode &layer, PpoUnits delta) {
    bool is_complete = layer.kind != POLICY_HEAD || layer.adds_delta || !a.network.layer[a.network.critic_head].adds_delta;
    PpoUnits to = ppo_units(b, b.scratch.delta[layer.from], false);
    Gemm g = {};
    g.rows = layer.in, g.cols = b.rows, g.depth = layer.out;
    g.a = {a.params + layer.params, layer.out, 1};
    g.b = ppo_by_row(delta);
    g.c = to.at, g.c_row = to.unit_stride, g.c_col = to.row_stride;
    g.adds = layer.adds_delta;
    g.finish = is_complete ? GEMM_DERIVE : GEMM_AS_IS;
    g.y = b.memory + b.scratch.output[layer.from];
    g.activation = a.actor.activation;
    gemm(g, b.gemm);
}

// From the heads' deltas to the gradient of every weight and bias; all threads.
DEVICE_FN void ppo_backward(const CudaPpoArgs &a, const PpoBlock &b, float *gradient, bool adds) {
    for (int i = 0; i < a.network.layers; i++) {
        __syncthreads();
        int index = a.network.backward[i];
        const PpoNode &layer = a.network.layer[index];
        PpoUnits delta = ppo_units(b, b.scratch.delta[index], layer.kind == POLICY_HEAD);
        ppo_weight_gradient(b, layer, ppo_inputs(b, layer), delta, gradient + layer.params, adds);
        if (layer.from >= 0) ppo_input_gradient(a, b, layer, delta);
    }
}

#endif
