// Launches of kernels: what is checked before one, and how many blocks a multiprocessor holds.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_KERNEL_LAUNCH_H
#define SHOAL_TESTS_VGPU_RUNTIME_KERNEL_LAUNCH_H

#include "tests/vgpu/runtime/libraries.h"

namespace vgpu {

// A launch that was checked, with its parameters copied.
struct Launch {
    KernelEntryPtr entry;
    KernelCode code;
    LaunchConfig config;
    std::vector<uint8_t> parameters;
    std::vector<void *> arguments; // what cudaGraphKernelNodeGetParams() gives a pointer to
};

// PTX does not say how many registers the machine code will take: each thread is taken to have this many, at which they
// never limit the blocks of a multiprocessor.
constexpr int ASSUMED_REGISTERS = 32;

// Throws the real runtime's errors. `arguments` are pointers to the values, one for each parameter.
Launch launch_prepare(const KernelEntryPtr &entry, int device, dim3 grid, dim3 block, void **arguments,
                      size_t shared_bytes, bool is_cooperative);
// `instructions`: thread-instructions that it executed.
cudaError_t launch_run(const Launch &launch, uint64_t *instructions);

// Blocks of so many threads that a multiprocessor holds at once; 0: not even one fits.
int resident_blocks(const KernelInfo &info, int block_threads, uint64_t dynamic_shared_bytes);
// The greatest block that the kernel may have.
uint32_t max_block_threads(const KernelInfo &info);
// Dynamic shared memory that it may have: what is left of 48 KiB, unless cudaFuncSetAttribute() said more.
uint64_t dynamic_shared_limit(KernelEntry &entry, const KernelInfo &info, int device);

} // namespace vgpu

#endif
