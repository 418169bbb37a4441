// What nvcc's start-up code calls, before main(), for each translation unit's device code, and what its launches call.
#include <vector>

#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/kernel_launch.h"
#include "tests/vgpu/runtime/libraries.h"

namespace vgpu {
namespace {

// The handle of a fat binary is the address of one of these, which is never freed: the start-up code of a library that
// is unloaded may still ask for it.
struct FatBinary {
    LibraryPtr library;
};

LibraryPtr library_of(void **handle) { return reinterpret_cast<FatBinary *>(handle)->library; }

struct CallConfiguration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

std::vector<CallConfiguration> &call_configurations() {
    thread_local std::vector<CallConfiguration> stack;
    return stack;
}

} // namespace
} // namespace vgpu

using namespace vgpu;

VGPU_EXPORT void **__cudaRegisterFatBinary(void *wrapper) {
    return reinterpret_cast<void **>(new FatBinary{std::make_shared<Library>(wrapper)});
}

VGPU_EXPORT void __cudaRegisterFatBinaryEnd(void **) {}

VGPU_EXPORT void __cudaUnregisterFatBinary(void **handle) {
    if (handle == nullptr || library_of(handle) == nullptr) return;
    LibraryPtr library = library_of(handle);
    forget_registered(library);
    library->forget_kernels();
    reinterpret_cast<FatBinary *>(handle)->library = nullptr;
}

VGPU_EXPORT char __cudaInitModule(void **handle) {
    // Also on a device that has failed: host code goes on using the variables.
    cudaError_t error = api_without_device([&] { library_of(handle)->place_managed(current_device_index()); });
    return error == cudaSuccess ? 1 : 0;
}

VGPU_EXPORT void __cudaRegisterFunction(void **handle, const char *host_function, char *, const char *name, int,
                                        uint3 *, uint3 *, dim3 *, dim3 *, int *) {
    register_kernel(host_function, library_of(handle)->kernel(name));
}

VGPU_EXPORT void __cudaRegisterVar(void **handle, char *host_variable, char *, const char *name, int, size_t, int,
                                   int) {
    register_variable(host_variable, library_of(handle), name);
}

VGPU_EXPORT void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *, const char *name, int, size_t,
                                          int, int) {
    library_of(handle)->add_managed(host_pointer, name);
    register_variable(host_pointer, library_of(handle), name);
}

VGPU_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
    call_configurations().push_back({grid, block, shared_bytes, stream});
    return 0;
}

VGPU_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream) {
    return api_without_device([&] {
        require(!call_configurations().empty(), cudaErrorMissingConfiguration);
        const CallConfiguration &last = call_configurations().back();
        *grid = last.grid, *block = last.block, *shared_bytes = last.shared_bytes;
        *static_cast<cudaStream_t *>(stream) = last.stream;
        call_configurations().pop_back();
    });
}

VGPU_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host_function) {
    return api_without_device([&] { *kernel = kernel_find(host_function)->handle; });
}
