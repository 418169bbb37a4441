// The functions of CUDA's runtime that are missing here: each says so and fails, so that a program that names one it
// does not need still starts. cudart_functions.inc, made from the toolkit's library, names all functions; weak
// definitions give way to those that other files have. CUDA's header would declare them with their parameters.
#include "tests/vgpu/runtime/unsupported.h"
#include "cudart_renames.h"

// By which tests know this library.
extern "C" __attribute__((visibility("default"))) const int vgpu_is_virtual;
const int vgpu_is_virtual = 1;

#define FUNCTION(name)                                                  \
    extern "C" __attribute__((weak, visibility("default"))) int name(); \
    int name() { return vgpu::refuse_unsupported(#name); }
#include "cudart_functions.inc"
