// PPO's actor and critic by one block, forwards and backwards for up to scratch.rows rows (samples or envs), in the
// order of arithmetic that kernels/policy.h and design rule 4 define. Weights keep the order of the parameter vector;
// activations are [unit][pitch], a unit's rows side by side.
#ifndef SHOAL_KERNELS_CUDA_PPO_NET_CUH
#define SHOAL_KERNELS_CUDA_PPO_NET_CUH

#include "kernels/cuda/fold16.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/ppo_launch.h"

// A block on its way through the layers.
typedef struct PpoBlock {
    const CudaPpoScratch &scratch;
    GemmShared &gemm;
    float *memory; // [scratch.floats]
    int rows;      // in work
    // With recurrent layers: the states before the first row's step, a unit's `envs` apart. Rows are envs side by side,
    // or, where `ended` is not NULL, the steps of one: its flags, `envs` apart.
    const float *state;
    const int32_t *ended;
} PpoBlock;

extern __shared__ float4 ppo_shared_memory[];

// The block's scratch memory. All of it holds numbers, since tiles of it are read as a whole.
DEVICE_FN float *ppo_scratch(const CudaPpoArgs &a, const CudaPpoScratch &scratch) {
    if (!scratch.is_shared) return a.scratch + (int64_t)blockIdx.x * scratch.floats;
    float *memory = (float *)ppo_shared_memory;
    for (int i = (int)threadIdx.x; i < scratch.floats; i += (int)blockDim.x)
        memory[i] = 0.0f;
    __syncthreads();
    return memory;
}

// The dynamic shared memory of its kernel.
static inline size_t ppo_shared_bytes(const CudaPpoScratch *scratch) {
    return scratch->is_shared ? (size_t)scratch->floats * sizeof(float) : 0;
}

// How many such blocks one SM takes; also allows the kernel all the shared memory that a block can have, since its
// users differ in what they need.
static inline cudaError_t ppo_occupancy(const void *kernel, const CudaPpoScratch *scratch, size_t shared_limit_bytes,
                                        int *blocks) {
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_limit_bytes);
    if (error != cudaSuccess) return error;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, scratch->threads, ppo_shared_bytes(scratch));
}

DEVICE_FN float *ppo_input(const PpoBlock &b, const PpoNode &layer) {
    return b.memory + (layer.from < 0 ? b.scratch.input : b.scratch.output[layer.from]);
}

// ---- forwards ------------------------------------------------------------------------------------------------------

DEVICE_FN bool ppo_rounds_output(const PolicyShape &actor, const PpoNode &layer) {
    return actor.precision == POLICY_BF16 && layer.kind == POLICY_HIDDEN;
}

// 16 lanes are the 16 partial sums of one output of one row.
DEVICE_FN void ppo_forward_narrow(const PpoBlock &b, const PpoNode &layer, const float *w, const float *x, float *y,
                                  const PolicyShape &actor) {
    int lane = (int)threadIdx.x % 32, k = lane % 16, pitch = b.scratch.pitch, sums = layer.out * b.rows;
    for (int first = (int)threadIdx.x / 32 * 2; first < sums; first += (int)blockDim.x / 16) {
        int sum = first + lane / 16, row = sum % b.rows, o = sum / b.rows;
        float partial = 0.0f;
        for (int i = k; i < layer.in && sum < sums; i += 16)
            partial = sim_fmaf(w[i * layer.out + o], x[i * pitch + row], partial);
        float total = fold_lanes16(partial, 0xffffffffu);
        if (k != 0 || sum >= sums) continue;
        total = total + w[layer.in * layer.out + o];
        float finished = policy_finish(total, layer.kind, actor.activation);
        y[o * pitch + row] = ppo_rounds_output(actor, layer) ? policy_bf16(finished) : finished;
    }
}

// Where a network's recurrent states begin in b.state.
DEVICE_FN const float *ppo_states(const CudaPpoArgs &a, const PpoBlock &b, const PpoNode &layer) {
    return b.state + (layer.is_critic ? (int64_t)a.actor.recurrent * a.envs : 0);
}

// One step of each row's states.
DEVICE_FN void ppo_step_states(const CudaPpoArgs &a, const PpoBlock &b, int32_t at) {
    const PpoNode &layer = a.network.layer[at];
    const float *gate = b.memory + b.scratch.output[at - 2], *candidate = b.memory + b.scratch.output[at - 1];
    const float *before = ppo_states(a, b, layer);
    float *state = b.memory + b.scratch.output[at];
    for (int e = (int)threadIdx.x; e < layer.out * b.rows; e += (int)blockDim.x) {
        int unit = e / b.rows, row = e % b.rows, i = unit * b.scratch.pitch + row;
        state[i] = policy_state(gate[i], candidate[i], before[(int64_t)unit * a.envs + row]);
    }
}

// All steps of one env's states, a unit each thread.
DEVICE_FN void ppo_run_states(const CudaPpoArgs &a, const PpoBlock &b, int32_t at) {
    const PpoNode &layer = a.network.layer[at];
    const float *before = ppo_states(a, b, layer);
    for (int unit = (int)threadIdx.x; unit < layer.out; unit += (int)blockDim.x) {
        int first = unit * b.scratch.pitch;
        const float *gate = b.memory + b.scratch.output[at - 2] + first;
        const float *candidate = b.memory + b.scratch.output[at - 1] + first;
        float *state = b.memory + b.scratch.output[at] + first, now = before[(int64_t)unit * a.envs];
        for (int r = 0; r < b.rows; r++) {
            now = policy_state(gate[r], candidate[r], now);
            state[r] = now;
            if (b.ended[(int64_t)r * a.envs]) now = 0.0f;
        }
    }
}

// From the input's rows to the outputs of every layer; all threads, and all is there when it returns.
DEVICE_FN void ppo_forward(const CudaPpoArgs &a, const PpoBlock &b) {
    __syncthreads();
    for (int i = 0; i < a.network.layers; i++) {
        const PpoNode &layer = a.network.layer[i];
        const float *w = a.weights + layer.params, *x = ppo_input(b, layer);
        float *y = b.memory + b.scratch.output[i];
        if (layer.kind == POLICY_STATE) {
            if (b.ended == NULL) {
                ppo_step_states(a, b, i);
            } else {
                ppo_run_states(a, b, i);
            }
        } else if (layer.out < POLICY_NARROW) {
            ppo_forward_narrow(b, layer, w, x, y, a.actor);
        } else {
            Gemm g = {};
            g.rows = layer.out, g.cols = b.rows, g.depth = layer.in;
            g.a = {w, 1, layer.out};
            g.b = {x, 1, b.scratch.pitch};
            g.c = y, g.c_pitch = b.scratch.pitch, g.is_aligned = true;
            g.bias = w + layer.in * layer.out;
            g.finish = GEMM_ACTIVATE;
            g.kind = layer.kind;
            g.activation = a.actor.activation;
            g.rounds = ppo_rounds_output(a.actor, layer);
            gemm(g, b.gemm);
        }
        __syncthreads();
    }
}

// Row r's outputs of a head are scratch.pitch apart.
DEVICE_FN const float *ppo_head(const PpoBlock &b, int32_t head, int row) {
    return b.memory + b.scratch.output[head] + row;
}

DEVICE_FN float ppo_value(const CudaPpoArgs &a, const PpoBlock &b, int row) {
    return *ppo_head(b, a.network.critic_head, row);
}

// ---- backwards -----------------------------------------------------------------------------------------------------

// Adds the rows to a layer's gradient, or begins it with them.
DEVICE_FN void ppo_weight_gradient(const PpoBlock &b, const PpoNode &layer, const float *x, const float *delta,
                                   float *gradient, bool adds) {
    int pitch = b.scratch.pitch;
    if (layer.out < POLICY_NARROW) {
        for (int e = (int)threadIdx.x; e < layer.in * layer.out; e += (int)blockDim.x) {
            const float *from = x + e / layer.out * pitch, *d = delta + e % layer.out * pitch;
            float sum = adds ? gradient[e] : 0.0f;
            for (int r = 0; r < b.rows; r++)
                sum = sim_fmaf(from[r], d[r], sum);
            gradient[e] = sum;
        }
    } else {
        Gemm g = {};
        g.rows = layer.in, g.cols = layer.out, g.depth = b.rows;
        g.a = {x, pitch, 1};
        g.b = {delta, pitch, 1};
        g.c = gradient, g.c_pitch = layer.out;
        g.adds = adds;
        gemm(g, b.gemm);
    }
    float *biases = gradient + layer.in * layer.out;
    for (int o = (int)threadIdx.x; o < layer.out; o += (int)blockDim.x) {
        float sum = adds ? biases[o] : 0.0f;
        for (int r = 0; r < b.rows; r++)
            sum = sum + delta[o * pitch + r];
        biases[o] = sum;
    }
}

// Whether another layer still has its part to add to the gradient of the input of both: a shared critic's head after
// the actor's, a gate after its candidate.
DEVICE_FN bool ppo_is_incomplete(const CudaPpoArgs &a, const PpoNode &layer) {
    if (layer.kind == POLICY_HEAD) return !layer.adds_delta && a.network.layer[a.network.critic_head].adds_delta;
    return layer.kind == POLICY_CANDIDATE;
}

// The loss by the sums of the layer that `layer` gets its input from, or by recurrent states. Complete, it takes in the
// derivative of the activation, and may take the place of the activations.
DEVICE_FN void ppo_input_gradient(const CudaPpoArgs &a, const PpoBlock &b, const PpoNode &layer, const float *delta) {
    bool is_by_sums = !ppo_is_incomplete(a, layer) && a.network.layer[layer.from].kind != POLICY_STATE;
    Gemm g = {};
    g.rows = layer.in, g.cols = b.rows, g.depth = layer.out;
    g.a = {a.weights + layer.params, layer.out, 1};
    g.b = {delta, 1, b.scratch.pitch};
    g.c = b.memory + b.scratch.delta[layer.from], g.c_pitch = b.scratch.pitch, g.is_aligned = true;
    g.adds = layer.adds_delta;
    g.finish = is_by_sums ? GEMM_DERIVE : GEMM_AS_IS;
    g.y = b.memory + b.scratch.output[layer.from];
    g.activation = a.actor.activation;
    g.rounds = is_by_sums && a.actor.precision == POLICY_BF16;
    gemm(g, b.gemm);
}

// Back through the steps of one env, a unit each thread: from the loss by states to the loss by the gate's and the
// candidate's sums.
DEVICE_FN void ppo_states_gradient(const CudaPpoArgs &a, const PpoBlock &b, int32_t at) {
    const PpoNode &layer = a.network.layer[at];
    const float *before = ppo_states(a, b, layer);
    bool rounds = a.actor.precision == POLICY_BF16;
    for (int unit = (int)threadIdx.x; unit < layer.out; unit += (int)blockDim.x) {
        int first = unit * b.scratch.pitch;
        const float *state = b.memory + b.scratch.output[at] + first,
                    *by_state = b.memory + b.scratch.delta[at] + first;
        // Both give their place to the loss by their sums.
        float *gate = b.memory + b.scratch.delta[at - 2] + first,
              *candidate = b.memory + b.scratch.delta[at - 1] + first;
        float by_next = 0.0f; // what the next step adds
        int32_t ended = b.ended[(int64_t)(b.rows - 1) * a.envs];
        for (int r = b.rows - 1; r >= 0; r--) {
            if (ended) by_next = 0.0f; // the next step's state is another episode's
            ended = r > 0 ? b.ended[(int64_t)(r - 1) * a.envs] : 0;
            float z = gate[r], c = candidate[r];
            float h = r == 0 ? before[(int64_t)unit * a.envs] : ended ? 0.0f : state[r - 1];
            PpoStateGradient g = ppo_state_gradient(z, c, h, by_state[r] + by_next);
            float by_gate = ppo_sigmoid_gradient(g.gate, z), by_candidate = ppo_tanh_gradient(g.candidate, c);
            gate[r] = rounds ? policy_bf16(by_gate) : by_gate;
            candidate[r] = rounds ? policy_bf16(by_candidate) : by_candidate;
            by_next = g.before;
        }
    }
}

// From the heads' deltas to the gradient of every weight and bias; all threads.
DEVICE_FN void ppo_backward(const CudaPpoArgs &a, const PpoBlock &b, float *gradient, bool adds) {
    for (int i = 0; i < a.network.layers; i++) {
        __syncthreads();
        int index = a.network.backward[i];
        const PpoNode &layer = a.network.layer[index];
        const float *delta = b.memory + b.scratch.delta[index];
        if (layer.kind == POLICY_STATE) {
            ppo_states_gradient(a, b, index);
            continue;
        }
        ppo_weight_gradient(b, layer, ppo_input(b, layer), delta, gradient + layer.params, adds);
        __syncthreads();
        if (layer.from >= 0) ppo_input_gradient(a, b, layer, delta);
    }
}

#endif
