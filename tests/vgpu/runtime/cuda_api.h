// The CUDA runtime's own header, read so that the functions it declares are exported from this library.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_CUDA_API_H
#define SHOAL_TESTS_VGPU_RUNTIME_CUDA_API_H

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

// For those that it does not declare.
#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

#endif
