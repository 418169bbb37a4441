// Batches of envs on the GPU: the kernels of each simulator, and their launches.
#include "kernels/cuda/names.cuh"

enum { BATCH_THREADS = 128 };

#define CUDA_BODY "kernels/cuda/batch_body.cuh"
#include "kernels/cuda_sims.inc"

typedef void BatchKernel(const CudaBatchArgs args);

#define RESET_ROW(name, Name, NAME) name##_batch_reset,
#define STEP_ROW(name, Name, NAME)  name##_batch_step,
static BatchKernel *const reset_kernels[] = {SIM_LIST(RESET_ROW)};
static BatchKernel *const step_kernels[] = {SIM_LIST(STEP_ROW)};

static int launch(BatchKernel *kernel, const CudaBatchArgs *args, cudaStream_t stream) {
    unsigned blocks = (unsigned)((args->view.envs + BATCH_THREADS - 1) / BATCH_THREADS);
    kernel<<<blocks, BATCH_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

int cuda_launch_batch_reset(int sim, const CudaBatchArgs *args, cudaStream_t stream) {
    return launch(reset_kernels[sim], args, stream);
}

int cuda_launch_batch_step(int sim, const CudaBatchArgs *args, cudaStream_t stream) {
    return launch(step_kernels[sim], args, stream);
}
