// The CUDA runtime's own header, read so that the stand-in defines the functions that it declares. Those whose calls
// can be watched are defined as vgpu_<name>, by a macro for each: programs enter them through entry_points.cc.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_CUDA_API_H
#define SHOAL_TESTS_VGPU_RUNTIME_CUDA_API_H

#ifndef VGPU_KEEP_NAMES
#include "cudart_renames.h"
#endif

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

// For those that it does not declare.
#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

#endif
