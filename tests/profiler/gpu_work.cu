#include "tests/profiler/gpu_work.h"

__global__ void first_kernel(unsigned *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }
__global__ void second_kernel(unsigned *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

cudaError_t gpu_work_first(unsigned *out, unsigned blocks, unsigned threads, cudaStream_t stream) {
    first_kernel<<<blocks, threads, 0, stream>>>(out);
    return cudaGetLastError();
}

cudaError_t gpu_work_second(unsigned *out, unsigned blocks, unsigned threads, cudaStream_t stream) {
    second_kernel<<<blocks, threads, 0, stream>>>(out);
    return cudaGetLastError();
}
