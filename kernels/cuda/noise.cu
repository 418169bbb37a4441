// The table of noise on the GPU.
#include "kernels/cuda/names.cuh"

enum { NOISE_THREADS = 128 };

// A thread makes a block of four elements.
static __global__ void __launch_bounds__(NOISE_THREADS)
    noise_table(uint64_t seed, uint32_t first, uint32_t blocks, float *table) {
    uint32_t i = blockIdx.x * NOISE_THREADS + threadIdx.x;
    if (i >= blocks) return;
    uint32_t block = first + i;
    SimNormal4 n = es_normal4(seed, block, 0, SIM_RNG_TABLE);
    float *at = table + (int64_t)(block / 16) * CUDA_NOISE_GROUP + block % 16;
    at[0] = n.x0;
    at[16] = n.x1;
    at[32] = n.x2;
    at[48] = n.x3;
}

int cuda_launch_noise_table(uint64_t seed, int64_t first, int64_t count, float *table, cudaStream_t stream) {
    uint32_t blocks = (uint32_t)(count / 4);
    noise_table<<<(blocks + NOISE_THREADS - 1) / NOISE_THREADS, NOISE_THREADS, 0, stream>>>(seed, (uint32_t)(first / 4),
                                                                                            blocks, table);
    return cudaGetLastError();
}
