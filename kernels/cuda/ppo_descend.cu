// From the gradients of chunks of samples to new parameters: the fold of chunks and shards, the norm, Adam.
#include "kernels/cuda/fold16.cuh"
#include "kernels/cuda/ppo_launch.h"
#include "kernels/policy_math.h"

enum {
    FOLD_PARAMS = 32, // of a block
    FOLD_LINES = 8,   // threads a parameter
    SQUARE_THREADS = 128,
    SQUARE_TILES = SQUARE_THREADS / 16, // of a block
    JUDGE_THREADS = 256,
    ADAM_THREADS = 256,
};

// ---- the fold ------------------------------------------------------------------------------------------------------

// The sum of one of its own shards with this round's chunks in it, in order; where `apart` shards are folded into one
// already, that one.
DEVICE_FN float shard_sum(const CudaPpoArgs &a, int64_t shard, int64_t param, int32_t first, int32_t chunks,
                          int32_t apart) {
    const float *partial = a.partial + shard * a.round_chunks * a.params_count + param;
    if (apart > 1) return a.sums[shard * a.params_count + param];
    float sum = first == 0 ? partial[0] : a.sums[shard * a.params_count + param];
    for (int32_t chunk = first == 0 ? 1 : 0; chunk < chunks; chunk++)
        sum = sum + partial[(int64_t)chunk * a.params_count];
    return sum;
}

// A block has FOLD_PARAMS parameters (blockIdx.x) and CUDA_PPO_FOLD_SHARDS of the shards (blockIdx.y), `apart` shards
// apart. It adds a round's chunks, and, after the last round, folds the shards in a binary tree into their first.
static __global__ void __launch_bounds__(FOLD_PARAMS *FOLD_LINES)
    ppo_fold(const __grid_constant__ CudaPpoArgs a, int32_t shards, int32_t first, int32_t chunks, int32_t apart) {
    __shared__ float sums[CUDA_PPO_FOLD_SHARDS][FOLD_PARAMS];
    if (a.report->end != CUDA_PPO_GOES_ON) return;
    int lane = (int)threadIdx.x, line = (int)threadIdx.y;
    int64_t param = (int64_t)blockIdx.x * FOLD_PARAMS + lane, base = (int64_t)blockIdx.y * CUDA_PPO_FOLD_SHARDS * apart;
    int32_t left = shards / apart - (int32_t)blockIdx.y * CUDA_PPO_FOLD_SHARDS;
    int32_t count = left < CUDA_PPO_FOLD_SHARDS ? left : CUDA_PPO_FOLD_SHARDS;
    bool is_last = first + chunks == a.chunks, is_there = param < a.params_count;
    for (int32_t shard = line; is_there && shard < count; shard += FOLD_LINES) {
        float sum = shard_sum(a, base + (int64_t)shard * apart, param, first, chunks, apart);
        sums[shard][lane] = sum;
        if (!is_last) a.sums[(base + (int64_t)shard * apart) * a.params_count + param] = sum;
    }
    if (!is_last) return;
    for (int32_t step = 1; step < count; step *= 2) {
        __syncthreads();
        for (int32_t shard = line * 2 * step; is_there && shard < count; shard += FOLD_LINES * 2 * step)
            sums[shard][lane] = sums[shard][lane] + sums[shard + step][lane];
    }
    if (line == 0 && is_there) a.sums[base * a.params_count + param] = sums[0][lane];
}

static cudaError_t launch_fold(const CudaPpoArgs *args, int32_t shards, int32_t first, int32_t chunks,
                               cudaStream_t stream) {
    dim3 threads(FOLD_PARAMS, FOLD_LINES);
    for (int64_t apart = 1; apart == 1 || apart < shards; apart *= CUDA_PPO_FOLD_SHARDS) {
        int64_t groups = (shards / apart + CUDA_PPO_FOLD_SHARDS - 1) / CUDA_PPO_FOLD_SHARDS;
        dim3 grid((unsigned)(args->params_count + FOLD_PARAMS - 1) / FOLD_PARAMS, (unsigned)groups);
        ppo_fold<<<grid, threads, 0, stream>>>(*args, shards, first, chunks, (int32_t)apart);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess || first + chunks < args->chunks) return error;
    }
    return cudaSuccess;
}

int cuda_launch_ppo_fold(const CudaPpoArgs *args, int32_t first, cudaStream_t stream) {
    int32_t chunks = args->chunks - first < args->round_chunks ? args->chunks - first : args->round_chunks;
    return launch_fold(args, args->own_shards, first, chunks, stream);
}

// What trainers have told has all its chunks.
int cuda_launch_ppo_fold_trainers(const CudaPpoArgs *args, int32_t trainers, cudaStream_t stream) {
    return launch_fold(args, trainers, args->chunks, 0, stream);
}

// ---- the norm ------------------------------------------------------------------------------------------------------

// The squares of each tile of the gradient, in sixteen partial sums; and whether all of it is finite.
static __global__ void __launch_bounds__(SQUARE_THREADS) ppo_squares(const __grid_constant__ CudaPpoArgs a) {
    if (a.report->end != CUDA_PPO_GOES_ON) return;
    int64_t tile = (int64_t)blockIdx.x * SQUARE_TILES + threadIdx.x / 16;
    int64_t end = (tile + 1) * PPO_TILE < a.params_count ? (tile + 1) * PPO_TILE : a.params_count;
    double sum = 0.0;
    for (int64_t i = tile * PPO_TILE + threadIdx.x % 16; i < end; i += 16) {
        float x = a.sums[i];
        if (ppo_is_infinite(x, a.step->step.max_grad_norm)) atomicMin(&a.report->infinite_param, (uint32_t)i);
        sum = sum + (double)x * (double)x;
    }
    sum = fold_lanes16(sum, 0xffffffffu);
    if (threadIdx.x % 16 == 0 && tile * PPO_TILE < a.params_count) a.squares[tile] = sum;
}

// One number after the other, which all threads fetch and the first one adds.
DEVICE_FN double add_in_order(const double *x, int64_t count, int64_t stride, double *stage) {
    double sum = 0.0;
    for (int64_t first = 0; first < count; first += JUDGE_THREADS) {
        int here = count - first < JUDGE_THREADS ? (int)(count - first) : JUDGE_THREADS;
        if ((int)threadIdx.x < here) stage[threadIdx.x] = x[(first + threadIdx.x) * stride];
        __syncthreads();
        for (int i = 0; threadIdx.x == 0 && i < here; i++)
            sum = sum + stage[i];
        __syncthreads();
    }
    return sum;
}

// ---- what to make of a minibatch -----------------------------------------------------------------------------------

// The chunks of each of its own shards in order, onto the epoch's minibatches before.
DEVICE_FN void add_losses(const CudaPpoArgs &a) {
    int32_t end = a.first_shard + a.own_shards;
    for (int32_t shard = a.first_shard + (int32_t)threadIdx.x; shard < end; shard += JUDGE_THREADS) {
        PpoLosses sum = {};
        if (a.report->minibatch > 0) sum = a.losses[shard];
        for (int32_t chunk = 0; chunk < a.chunks; chunk++)
            sum = ppo_losses_fold(sum, a.chunk_losses[(int64_t)shard * a.chunks + chunk]);
        a.losses[shard] = sum;
    }
}

// One block.
static __global__ void __launch_bounds__(JUDGE_THREADS) ppo_losses(const __grid_constant__ CudaPpoArgs a) {
    if (a.report->end == CUDA_PPO_GOES_ON) add_losses(a);
}

int cuda_launch_ppo_losses(const CudaPpoArgs *args, cudaStream_t stream) {
    ppo_losses<<<1, JUDGE_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

// The first thread: Adam's step, and on to the next minibatch; or the end of learning.
DEVICE_FN void judge(const CudaPpoArgs &a, double norm, PpoLosses losses) {
    const KernPpoStep &s = a.step->step;
    CudaPpoReport *report = a.report;
    report->grad_norm = norm;
    if (report->infinite_param != UINT32_MAX || ppo_infinite_loss(losses) != NULL) {
        report->end = report->infinite_param != UINT32_MAX ? CUDA_PPO_INFINITE_GRADIENT : CUDA_PPO_INFINITE_LOSS;
        report->losses = losses;
        return;
    }
    PpoAdamRates rates = {s.learning_rate, s.beta1, s.beta2, s.epsilon, s.max_grad_norm};
    report->adam_steps++;
    report->adam = ppo_adam_step(rates, a.step->adam_steps + report->adam_steps, norm);
    report->stepped = 1;
    report->minibatch++;
    if (report->minibatch < a.minibatches) return;
    double samples = (double)a.part * (double)a.minibatches * (double)a.shards;
    report->losses = losses;
    report->minibatch = 0;
    report->epoch++;
    if (s.target_kl > 0.0f && losses.kl / samples > (double)s.target_kl) report->end = CUDA_PPO_TARGET_KL;
}

// One block.
static __global__ void __launch_bounds__(JUDGE_THREADS)
    ppo_judge(const __grid_constant__ CudaPpoArgs a, int32_t adds_losses) {
    __shared__ double stage[JUDGE_THREADS];
    bool goes_on = a.report->end == CUDA_PPO_GOES_ON;
    if (threadIdx.x == 0) a.report->stepped = 0;
    if (!goes_on) return;
    if (adds_losses) add_losses(a);
    __syncthreads();
    double norm = ppo_sqrt(add_in_order(a.squares, (a.params_count + PPO_TILE - 1) / PPO_TILE, 1, stage));
    const double *shards = (const double *)a.losses;
    int64_t stride = sizeof(PpoLosses) / sizeof(double);
    PpoLosses losses = {
        add_in_order(shards, a.shards, stride, stage), add_in_order(shards + 1, a.shards, stride, stage),
        add_in_order(shards + 2, a.shards, stride, stage), add_in_order(shards + 3, a.shards, stride, stage),
        add_in_order(shards + 4, a.shards, stride, stage)};
    if (threadIdx.x == 0) judge(a, norm, losses);
}

// Parameter i as its layer takes it.
DEVICE_FN float ppo_weight(const CudaPpoArgs &a, int32_t i) {
    for (int k = 0; k < a.network.layers; k++) {
        const PpoNode &layer = a.network.layer[k];
        bool is_weight = layer.kind != POLICY_STATE && i >= layer.params && i < layer.params + layer.in * layer.out;
        if (is_weight && policy_rounds(a.actor.precision, layer.kind)) return policy_bf16(a.params[i]);
    }
    return a.params[i];
}

static __global__ void __launch_bounds__(ADAM_THREADS) ppo_round(const __grid_constant__ CudaPpoArgs a) {
    int64_t i = (int64_t)blockIdx.x * ADAM_THREADS + threadIdx.x;
    if (i < a.params_count) a.weights[i] = ppo_weight(a, (int32_t)i);
}

int cuda_launch_ppo_round(const CudaPpoArgs *args, cudaStream_t stream) {
    if (args->weights == args->params) return cudaSuccess;
    ppo_round<<<(unsigned)(args->params_count + ADAM_THREADS - 1) / ADAM_THREADS, ADAM_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

static __global__ void __launch_bounds__(ADAM_THREADS) ppo_adam_update(const __grid_constant__ CudaPpoArgs a) {
    int64_t i = (int64_t)blockIdx.x * ADAM_THREADS + threadIdx.x;
    if (!a.report->stepped || i >= a.params_count) return;
    PpoAdam before = {a.params[i], a.first[i], a.second[i]};
    PpoAdam after = ppo_adam(before, a.sums[i], a.report->adam);
    a.params[i] = after.param;
    a.first[i] = after.first;
    a.second[i] = after.second;
}

int cuda_launch_ppo_descend(const CudaPpoArgs *args, int32_t adds_losses, cudaStream_t stream) {
    int32_t tiles = (args->params_count + PPO_TILE - 1) / PPO_TILE;
    ppo_squares<<<(unsigned)(tiles + SQUARE_TILES - 1) / SQUARE_TILES, SQUARE_THREADS, 0, stream>>>(*args);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    ppo_judge<<<1, JUDGE_THREADS, 0, stream>>>(*args, adds_losses);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    ppo_adam_update<<<(unsigned)(args->params_count + ADAM_THREADS - 1) / ADAM_THREADS, ADAM_THREADS, 0, stream>>>(
        *args);
    error = cudaGetLastError();
    return error != cudaSuccess ? error : cuda_launch_ppo_round(args, stream);
}
