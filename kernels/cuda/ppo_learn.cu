// PPO's learning on the GPU, up to the gradients of chunks of samples: the order of an epoch's samples, the scale of
// each minibatch's advantages, and the networks forwards and backwards. The semantics are those of
// kernels/cpu/ppo_update.c and kernels/cpu/ppo_learn.c.
#include "kernels/cuda/fold16.cuh"
#include "kernels/cuda/ppo_net.cuh"
#include "kernels/ppo_random.h"

enum { ORDER_THREADS = PPO_CHUNK };

// The samples in piece number `piece` of `whole` ones, in pieces of `size`.
DEVICE_FN int32_t piece_samples(int32_t whole, int32_t size, int32_t piece) {
    int32_t left = whole - piece * size;
    return left < size ? left : size;
}

// ---- the order of an epoch -----------------------------------------------------------------------------------------

// Where sample `number` of a shard's order is. Permuted are samples, or with recurrent layers envs, whose steps stay in
// their order.
DEVICE_FN uint32_t ordered_place(const CudaPpoArgs &a, int32_t shard, uint32_t number) {
    uint32_t envs = (uint32_t)(a.envs / a.shards), steps = (uint32_t)a.steps, units = a.states > 0 ? steps : 1;
    PpoPermutation p =
        ppo_permutation(a.seed, a.step->step.update, (uint32_t)a.report->epoch, (uint32_t)shard, envs * steps / units);
    uint32_t sample = ppo_permutation_at(&p, number / units) * units + number % units;
    return sample % steps * (uint32_t)a.envs + (uint32_t)shard * envs + sample / steps;
}

// One block a piece of a shard's part of a minibatch: where its samples are, and the moments of their advantages.
static __global__ void __launch_bounds__(ORDER_THREADS) ppo_order(const __grid_constant__ CudaPpoArgs a) {
    __shared__ float advantage[PPO_CHUNK];
    if (a.report->end != CUDA_PPO_GOES_ON) return;
    int thread = (int)threadIdx.x;
    int32_t piece = (int32_t)(blockIdx.x % (unsigned)a.advantage_sums);
    int32_t other = (int32_t)(blockIdx.x / (unsigned)a.advantage_sums);
    int32_t shard = a.first_shard + other / a.minibatches, minibatch = other % a.minibatches;
    int32_t samples = a.part * a.minibatches;
    int32_t count = piece_samples(a.part, PPO_CHUNK, piece), number = minibatch * a.part + piece * PPO_CHUNK + thread;
    if (thread < count) {
        uint32_t place = ordered_place(a, shard, (uint32_t)number);
        a.order[(int64_t)shard * samples + number] = place;
        advantage[thread] = a.advantage[place];
    }
    __syncthreads();
    if (thread >= 16) return;
    double sum = 0.0, square = 0.0;
    for (int i = thread; i < count; i += 16)
        sum = sum + (double)advantage[i];
    double mean = __shfl_sync(0xffffu, fold_lanes16(sum, 0xffffu) / (double)count, 0, 16);
    for (int i = thread; i < count; i += 16) {
        double apart = (double)advantage[i] - mean;
        square = square + apart * apart;
    }
    square = fold_lanes16(square, 0xffffu);
    PpoMoments moments = {(double)count, mean, square};
    if (thread == 0)
        a.advantage_moments[((int64_t)shard * a.minibatches + minibatch) * a.advantage_sums + piece] = moments;
}

// The pieces of part number `part` of all, [shard][minibatch], folded in order.
DEVICE_FN PpoMoments part_advantages(const PpoMoments *from, int32_t pieces, int64_t part) {
    PpoMoments sum = {};
    for (int32_t piece = 0; piece < pieces; piece++)
        sum = ppo_moments_fold(sum, from[part * pieces + piece]);
    return sum;
}

// One thread a part of its own shards.
static __global__ void __launch_bounds__(ORDER_THREADS) ppo_shard_advantages(const __grid_constant__ CudaPpoArgs a) {
    int64_t parts = (int64_t)a.own_shards * a.minibatches, at = (int64_t)blockIdx.x * ORDER_THREADS + threadIdx.x;
    int64_t part = (int64_t)a.first_shard * a.minibatches + at;
    if (a.report->end != CUDA_PPO_GOES_ON || at >= parts) return;
    a.shard_advantages[part] = part_advantages(a.advantage_moments, a.advantage_sums, part);
}

// One block a minibatch: pieces are folded in each shard, where they are not yet, then shards, in order.
static __global__ void __launch_bounds__(ORDER_THREADS)
    ppo_advantage_scales(const __grid_constant__ CudaPpoArgs a, int32_t of_shards) {
    __shared__ PpoMoments of_shard[ORDER_THREADS];
    if (a.report->end != CUDA_PPO_GOES_ON) return;
    int thread = (int)threadIdx.x;
    int32_t pieces = of_shards ? 1 : a.advantage_sums;
    const PpoMoments *from = of_shards ? a.shard_advantages : a.advantage_moments;
    PpoMoments all = {};
    for (int32_t first = 0; first < a.shards; first += ORDER_THREADS) {
        int32_t count = a.shards - first < ORDER_THREADS ? a.shards - first : ORDER_THREADS;
        int64_t part = (int64_t)(first + thread) * a.minibatches + blockIdx.x;
        if (thread < count) of_shard[thread] = part_advantages(from, pieces, part);
        __syncthreads();
        for (int32_t shard = 0; thread == 0 && shard < count; shard++)
            all = ppo_moments_fold(all, of_shard[shard]);
        __syncthreads();
    }
    if (thread == 0) a.advantages[blockIdx.x] = ppo_advantage_scale(all, a.step->step.normalize_advantage);
}

int cuda_launch_ppo_order(const CudaPpoArgs *args, cudaStream_t stream) {
    unsigned parts = (unsigned)args->minibatches * (unsigned)args->own_shards;
    ppo_order<<<parts *(unsigned)args->advantage_sums, ORDER_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

int cuda_launch_ppo_shard_advantages(const CudaPpoArgs *args, cudaStream_t stream) {
    int64_t parts = (int64_t)args->minibatches * args->own_shards;
    ppo_shard_advantages<<<(unsigned)((parts + ORDER_THREADS - 1) / ORDER_THREADS), ORDER_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

int cuda_launch_ppo_scales(const CudaPpoArgs *args, int32_t of_shards, cudaStream_t stream) {
    ppo_advantage_scales<<<(unsigned)args->minibatches, ORDER_THREADS, 0, stream>>>(*args, of_shards);
    return cudaGetLastError();
}

// ---- losses and their gradients by the heads' outputs --------------------------------------------------------------

// A row's losses go to their lines of the scratch memory.
typedef enum LossLine { LOSS_POLICY, LOSS_VALUE, LOSS_ENTROPY, LOSS_KL, LOSS_CLIPPED, LOSS_LINES } LossLine;

// The gradient by a row's outputs, and by log_std.
DEVICE_FN void policy_row(const CudaPpoArgs &a, const PpoBlock &b, int row, uint32_t place,
                          PpoAdvantageScale advantages) {
    const KernPpoStep &step = a.step->step;
    const uint32_t *words = a.action + (int64_t)place * a.action_words;
    const float *y = ppo_head(b, a.network.actor_head, row), *log_std = a.params + a.log_std;
    float *lines = b.memory + b.scratch.losses + row,
          *prob = b.memory + b.scratch.choices + row * b.scratch.choices_pitch;
    int pitch = b.scratch.pitch, choices_count = a.network.layer[a.network.actor_head].out - a.actor.continuous;
    PpoChoices choices = {prob, prob + choices_count, prob + 2 * choices_count};
    float advantage = (a.advantage[place] - advantages.mean) * advantages.scale;
    PpoLikelihood now = ppo_likelihood(&a.actor, y, pitch, log_std, words, choices);
    PpoPolicyLoss loss = ppo_policy_loss(now.log_prob, a.log_prob[place], advantage, step.clip);
    ppo_likelihood_gradient(&a.actor, y, pitch, log_std, words, choices, loss.gradient * a.per_sample,
                            -step.entropy_weight * a.per_sample, b.memory + b.scratch.delta[a.network.actor_head] + row,
                            b.memory + b.scratch.log_std + row);
    lines[LOSS_POLICY * pitch] = loss.loss;
    lines[LOSS_ENTROPY * pitch] = now.entropy;
    lines[LOSS_KL * pitch] = loss.kl;
    lines[LOSS_CLIPPED * pitch] = (float)loss.clipped;
}

DEVICE_FN void value_row(const CudaPpoArgs &a, const PpoBlock &b, int row, uint32_t place) {
    const KernPpoStep &step = a.step->step;
    PpoValueLoss loss =
        ppo_value_loss(ppo_value(a, b, row), a.value[place], a.target[place], step.clip, step.clip_value);
    b.memory[b.scratch.delta[a.network.critic_head] + row] = loss.gradient * (step.value_weight * a.per_sample);
    b.memory[b.scratch.losses + LOSS_VALUE * b.scratch.pitch + row] = loss.loss;
}

// ---- the gradient of a chunk ---------------------------------------------------------------------------------------

DEVICE_FN void gather_inputs(const CudaPpoArgs &a, const PpoBlock &b, const uint32_t *places) {
    int obs = a.network.layer[0].in;
    float *input = b.memory + b.scratch.input;
    for (int e = (int)threadIdx.x; e < b.rows * obs; e += (int)blockDim.x) {
        int row = e / obs, k = e % obs;
        input[k * b.scratch.pitch + row] =
            policy_input(a.obs[(int64_t)places[row] * obs + k], a.step->normalizer.mean[k], a.step->normalizer.scale[k],
                         a.actor.precision);
    }
}

// Sums over a chunk's rows, each made by one thread in their order: of the losses by the first ones, of the loss by
// log_std by those of the second warp.
typedef struct ChunkSums {
    double loss;
    float log_std;
} ChunkSums;

DEVICE_FN void add_rows(const CudaPpoArgs &a, const PpoBlock &b, ChunkSums &sums) {
    int thread = (int)threadIdx.x, pitch = b.scratch.pitch, action = thread - 32;
    if (thread < LOSS_LINES) {
        const float *line = b.memory + b.scratch.losses + thread * pitch;
        for (int r = 0; r < b.rows; r++)
            sums.loss = sums.loss + (double)line[r];
    } else if (action >= 0 && action < a.actor.continuous) {
        const float *line = b.memory + b.scratch.log_std + action * pitch;
        for (int r = 0; r < b.rows; r++)
            sums.log_std = sums.log_std + line[r];
    }
}

// One chunk: its gradient is one sum over its samples in their order, from 0. With recurrent layers, the steps of one
// env, all at once.
DEVICE_FN void chunk_gradient(const CudaPpoArgs &a, PpoBlock &b, int32_t shard, int32_t chunk, float *gradient) {
    int thread = (int)threadIdx.x;
    int32_t minibatch = a.report->minibatch, count = piece_samples(a.part, a.chunk, chunk);
    const uint32_t *places = a.order + ((int64_t)shard * a.minibatches + minibatch) * a.part + (int64_t)chunk * a.chunk;
    PpoAdvantageScale advantages = a.advantages[minibatch];
    ChunkSums sums = {};
    if (a.states > 0) { // the first step's places are the numbers of envs
        b.state = a.first_state + places[0];
        b.ended = a.ended + places[0];
    }
    for (int32_t first = 0; first < count; first += b.scratch.rows, places += b.scratch.rows) {
        b.rows = count - first < b.scratch.rows ? count - first : b.scratch.rows;
        gather_inputs(a, b, places);
        ppo_forward(a, b);
        for (int i = thread; i < 2 * b.rows; i += (int)blockDim.x) {
            if (i < b.rows) {
                policy_row(a, b, i, places[i], advantages);
            } else {
                value_row(a, b, i - b.rows, places[i - b.rows]);
            }
        }
        __syncthreads();
        add_rows(a, b, sums);
        ppo_backward(a, b, gradient, first > 0);
        __syncthreads();
    }
    if (thread < LOSS_LINES) {
        ((double *)&a.chunk_losses[(int64_t)shard * a.chunks + chunk])[thread] = sums.loss;
    } else if (thread >= 32 && thread - 32 < a.actor.continuous) {
        gradient[a.log_std + thread - 32] = sums.log_std;
    }
}

static __global__ void __launch_bounds__(CUDA_PPO_LEARN_THREADS, 2)
    ppo_gradient(const __grid_constant__ CudaPpoArgs a, int32_t first, int32_t chunks) {
    __shared__ GemmShared gemm_shared;
    if (a.report->end != CUDA_PPO_GOES_ON) return;
    PpoBlock b = {a.learn, gemm_shared, ppo_scratch(a, a.learn), 0, NULL, NULL};
    for (int64_t job = blockIdx.x; job < (int64_t)a.own_shards * chunks; job += gridDim.x) {
        int32_t own = (int32_t)(job / chunks), chunk = (int32_t)(job % chunks);
        float *gradient = a.partial + ((int64_t)own * a.round_chunks + chunk) * a.params_count;
        chunk_gradient(a, b, a.first_shard + own, first + chunk, gradient);
    }
}

int cuda_ppo_learn_occupancy(const CudaPpoScratch *scratch, size_t shared_limit_bytes, int *blocks) {
    return ppo_occupancy((const void *)ppo_gradient, scratch, shared_limit_bytes, blocks);
}

int cuda_launch_ppo_gradient(const CudaPpoArgs *args, int32_t first, int blocks, cudaStream_t stream) {
    const CudaPpoScratch *scratch = &args->learn;
    int32_t chunks = args->chunks - first < args->round_chunks ? args->chunks - first : args->round_chunks;
    ppo_gradient<<<(unsigned)blocks, (unsigned)scratch->threads, ppo_shared_bytes(scratch), stream>>>(*args, first,
                                                                                                      chunks);
    return cudaGetLastError();
}
