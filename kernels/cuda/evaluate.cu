// Fused evaluation on the GPU: policy and simulator for whole episodes, in slices of a limited number of steps.
#include "kernels/cuda/dense.cuh"
#include "kernels/cuda/probe.cuh"

// A block's shared memory.
typedef struct EvaluateShared {
    int32_t *done;
    uint32_t *taken;
    float *obs;         // [obs] as the simulator gives it
    float *sums;        // [2][obs]
    float *activations; // [2][width_pad]
    float *recurrent;   // [recurrent] the policy's state
    float *weights;     // [params_pad], unless the weights are in global memory
} EvaluateShared;

// Rounded up to 4 floats, so that each part is aligned to 16 bytes.
static __host__ __device__ int pad4(int count) { return (count + 3) / 4 * 4; }

DEVICE_FN EvaluateShared evaluate_shared(const CudaEvaluateArgs &a, int obs) {
    extern __shared__ float4 shared_memory[];
    float *at = (float *)shared_memory;
    EvaluateShared m;
    m.done = (int32_t *)at;
    m.taken = (uint32_t *)at + 1;
    m.obs = at + 4;
    m.sums = m.obs + pad4(obs);
    m.activations = m.sums + pad4(2 * obs);
    m.recurrent = m.activations + 2 * a.width_pad;
    m.weights = m.recurrent + pad4(a.policy.recurrent);
    return m;
}

size_t cuda_evaluate_shared_bytes(const PolicyShape *policy, int32_t width_pad, int32_t weights) {
    int obs = policy->size[0], fixed = 4 + pad4(obs) + pad4(2 * obs) + pad4(policy->recurrent);
    return 4 * ((size_t)fixed + 2 * (size_t)width_pad + (size_t)weights);
}

#define CUDA_BODY "kernels/cuda/evaluate_body.cuh"
#include "kernels/cuda_sims.inc"

typedef void EvaluateKernel(const CudaEvaluateArgs args);

#define EVALUATE_ROW(name, Name, NAME) name##_evaluate,
static EvaluateKernel *const evaluate_kernels[] = {SIM_LIST(EVALUATE_ROW)};

int cuda_evaluate_occupancy(int sim, int threads, size_t shared_bytes, size_t shared_limit_bytes, int *blocks) {
    const void *kernel = (const void *)evaluate_kernels[sim];
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_limit_bytes);
    if (error != cudaSuccess) return error;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_bytes);
}

int cuda_launch_evaluate(int sim, const CudaEvaluateArgs *args, int slots, int threads, size_t shared_bytes,
                         cudaStream_t stream) {
    evaluate_kernels[sim]<<<(unsigned)slots, (unsigned)threads, shared_bytes, stream>>>(*args);
    return cudaGetLastError();
}
