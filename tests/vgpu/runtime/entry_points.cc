// The functions of the API as programs find them: each calls what implements it, vgpu_<name>, and tells those who watch
// of the call. cuda_api.h says why that is the name; entry_points.py makes the list.
#define VGPU_KEEP_NAMES
#include "tests/vgpu/runtime/cuda_api.h"

#include <generated_cuda_runtime_api_meta.h>

#include <cupti_runtime_cbid.h>

#include "tests/vgpu/runtime/observers.h"

namespace vgpu {
namespace {

template <typename Body>
cudaError_t observed(uint32_t cbid, const char *name, const void *parameters, const Body &body) {
    ApiCall call;
    call.cbid = cbid, call.name = name, call.parameters = parameters;
    call_enter(call);
    call.result = body();
    call_leave(call);
    return call.result;
}

} // namespace
} // namespace vgpu

#define UNPACK(...) __VA_ARGS__
#define ENTRY(name, version, parameters, arguments)                                        \
    extern "C" cudaError_t vgpu_##name parameters;                                         \
    VGPU_EXPORT cudaError_t name parameters;                                               \
    cudaError_t name parameters {                                                          \
        if (!vgpu::is_observed()) return vgpu_##name arguments;                            \
        const name##_##version##_params values = {UNPACK arguments};                       \
        return vgpu::observed(CUPTI_RUNTIME_TRACE_CBID_##name##_##version, #name, &values, \
                              [&] { return vgpu_##name arguments; });                      \
    }
#define ENTRY_PLAIN(name, version)                                                                       \
    extern "C" cudaError_t vgpu_##name();                                                                \
    VGPU_EXPORT cudaError_t name();                                                                      \
    cudaError_t name() {                                                                                 \
        if (!vgpu::is_observed()) return vgpu_##name();                                                  \
        return vgpu::observed(CUPTI_RUNTIME_TRACE_CBID_##name##_##version, #name, nullptr, vgpu_##name); \
    }
#include "cudart_entries.inc"

// What nvcc makes of <<<>>>. CUPTI has no struct for its parameters.
#if CUDART_VERSION >= 13000
#define ENTRY_LAUNCH(name, of_stream)                                                                                 \
    VGPU_EXPORT cudaError_t name(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,   \
                                 cudaStream_t stream) {                                                               \
        auto launch = [&] { return vgpu_cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, of_stream); }; \
        if (!vgpu::is_observed()) return launch();                                                                    \
        return vgpu::observed(CUPTI_RUNTIME_TRACE_CBID_##name##_v13000, #name, nullptr, launch);                      \
    }
ENTRY_LAUNCH(__cudaLaunchKernel, stream)
ENTRY_LAUNCH(__cudaLaunchKernel_ptsz, stream == nullptr ? cudaStreamPerThread : stream)
#endif
