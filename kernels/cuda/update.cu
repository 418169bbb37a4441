// The ES update and the ranking of fitness on the GPU.
#include "kernels/cuda/names.cuh"
#include "kernels/es_math.h"

enum { UPDATE_THREADS = 128, SHAPE_THREADS = 256, SHAPE_BLOCKS = 256 };

// What one pair adds to the sums of four parameters.
DEVICE_FN SimNormal4 add_pair(SimNormal4 sum, float weight, SimNormal4 n) {
    SimNormal4 after = {sim_fmaf(weight, n.x0, sum.x0), sim_fmaf(weight, n.x1, sum.x1), sim_fmaf(weight, n.x2, sum.x2),
                        sim_fmaf(weight, n.x3, sum.x3)};
    return after;
}

// The partial sums of one chunk of pairs (blockIdx.y) for one noise block of four parameters (a thread).
static __global__ void __launch_bounds__(UPDATE_THREADS) update_partial(const __grid_constant__ CudaUpdateArgs a) {
    __shared__ const float *slices[ES_PAIR_CHUNK];
    int block = a.begin / 4 + (int)(blockIdx.x * UPDATE_THREADS + threadIdx.x);
    int first = (a.chunk + (int)blockIdx.y) * ES_PAIR_CHUNK;
    int end = first + ES_PAIR_CHUNK < a.pairs ? first + ES_PAIR_CHUNK : a.pairs;
    if (a.noise.table != NULL) {
        for (int pair = first + (int)threadIdx.x; pair < end; pair += UPDATE_THREADS)
            slices[pair - first] = a.noise.table + es_slice(&a.noise, a.step.generation, (uint32_t)pair);
        __syncthreads();
    }
    if (block >= (a.end + CUDA_NOISE_GROUP - 1) / CUDA_NOISE_GROUP * (CUDA_NOISE_GROUP / 4)) return;
    int param = block / 16 * CUDA_NOISE_GROUP + block % 16; // and those 16, 32 and 48 later
    SimNormal4 sum = {};
    if (a.noise.table != NULL) {
        for (int pair = first; pair < end; pair++) {
            const float *at = slices[pair - first] + param;
            SimNormal4 n = {at[0], at[16], at[32], at[48]};
            sum = add_pair(sum, a.shaped[2 * pair] - a.shaped[2 * pair + 1], n);
        }
    } else {
        for (int pair = first; pair < end; pair++) {
            SimNormal4 n = es_noise4(a.noise.seed, a.step.generation, (uint32_t)pair, (uint32_t)block);
            sum = add_pair(sum, a.shaped[2 * pair] - a.shaped[2 * pair + 1], n);
        }
    }
    float *at = a.partial + (int64_t)blockIdx.y * a.params_pad + param;
    at[0] = sum.x0;
    at[16] = sum.x1;
    at[32] = sum.x2;
    at[48] = sum.x3;
}

// Adds a round's partial sums in the order of their chunks; one thread a parameter.
static __global__ void __launch_bounds__(UPDATE_THREADS) update_fold(const __grid_constant__ CudaUpdateArgs a) {
    int i = a.begin + (int)(blockIdx.x * UPDATE_THREADS + threadIdx.x);
    if (i >= a.end) return;
    float sum = a.is_first ? 0.0f : a.sum[i];
    for (int chunk = 0; chunk < a.chunks; chunk++)
        sum = sum + a.partial[(int64_t)chunk * a.params_pad + i];
    if (!a.is_last) {
        a.sum[i] = sum;
        return;
    }
    EsAdam before = {a.params[i], a.first[i], a.second[i]};
    EsAdam after = es_adam(before, sum, &a.step);
    a.params[i] = after.param;
    a.first[i] = after.first;
    a.second[i] = after.second;
}

int cuda_launch_update(const CudaUpdateArgs *args, cudaStream_t stream) {
    unsigned threads = UPDATE_THREADS, params = (unsigned)(args->end - args->begin);
    unsigned blocks = (params + CUDA_NOISE_GROUP - 1) / CUDA_NOISE_GROUP * (CUDA_NOISE_GROUP / 4);
    dim3 grid((blocks + threads - 1) / threads, (unsigned)args->chunks);
    update_partial<<<grid, threads, 0, stream>>>(*args);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    update_fold<<<(params + threads - 1) / threads, threads, 0, stream>>>(*args);
    return cudaGetLastError();
}

// A member's rank is how many are below it, and how many others are its equals: whole numbers, so the order of counting
// does not matter. Quadratic, and still a fraction of a second for a million members, in launches of SHAPE_BLOCKS.
static __global__ void __launch_bounds__(SHAPE_THREADS)
    shape_ranks(const float *fitness, int32_t n, int32_t begin, float *shaped) {
    __shared__ float tile[SHAPE_THREADS];
    int thread = (int)threadIdx.x, member = begin + (int)blockIdx.x * SHAPE_THREADS + thread;
    float mine = member < n ? fitness[member] : 0.0f;
    int32_t less = 0, equal = -1; // not counting itself
    for (int first = 0; first < n; first += SHAPE_THREADS) {
        int count = n - first < SHAPE_THREADS ? n - first : SHAPE_THREADS;
        if (thread < count) tile[thread] = fitness[first + thread];
        __syncthreads();
        for (int i = 0; i < count; i++) {
            less += tile[i] < mine;
            equal += tile[i] == mine;
        }
        __syncthreads();
    }
    if (member < n) shaped[member] = es_centred_rank(less, equal, n);
}

int cuda_launch_shape(const float *fitness, int32_t n, float *shaped, cudaStream_t stream) {
    for (int32_t begin = 0; begin < n; begin += SHAPE_BLOCKS * SHAPE_THREADS) {
        int32_t blocks = (n - begin + SHAPE_THREADS - 1) / SHAPE_THREADS;
        if (blocks > SHAPE_BLOCKS) blocks = SHAPE_BLOCKS;
        shape_ranks<<<(unsigned)blocks, SHAPE_THREADS, 0, stream>>>(fitness, n, begin, shaped);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
