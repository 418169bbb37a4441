// Work for a GPU, for tests of what a profile says of it.
#ifndef SHOAL_TESTS_PROFILER_GPU_WORK_H
#define SHOAL_TESTS_PROFILER_GPU_WORK_H

#include <cuda_runtime_api.h>

// Kernels that write block and thread numbers to `out`, of 4 x blocks x threads bytes.
cudaError_t gpu_work_first(unsigned *out, unsigned blocks, unsigned threads, cudaStream_t stream);
cudaError_t gpu_work_second(unsigned *out, unsigned blocks, unsigned threads, cudaStream_t stream);

#endif
