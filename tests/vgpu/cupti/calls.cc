#include "tests/vgpu/cupti/calls.h"

#include <generated_cuda_runtime_api_meta.h>

namespace vgpu {
namespace {

template <typename Parameters> const Parameters &parameters_of(const ApiCall &call) {
    return *static_cast<const Parameters *>(call.parameters);
}

Synchronization of_stream(CUpti_ActivitySynchronizationType type, cudaStream_t stream, bool is_per_thread) {
    Synchronization what;
    what.type = type;
    what.has_stream = true;
    what.stream = stream, what.is_per_thread = is_per_thread;
    return what;
}

Synchronization of_event(cudaEvent_t event) {
    Synchronization what;
    what.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    what.event = event;
    return what;
}

} // namespace

std::optional<Synchronization> synchronization_of(const ApiCall &call) {
    switch (call.cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020: {
        Synchronization what;
        what.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
        return what;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020:
        return of_stream(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
                         parameters_of<cudaStreamSynchronize_v3020_params>(call).stream, false);
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000:
        return of_stream(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
                         parameters_of<cudaStreamSynchronize_ptsz_v7000_params>(call).stream, true);
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020:
        return of_event(parameters_of<cudaEventSynchronize_v3020_params>(call).event);
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020: {
        const auto &parameters = parameters_of<cudaStreamWaitEvent_v3020_params>(call);
        Synchronization what =
            of_stream(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, parameters.stream, false);
        what.event = parameters.event;
        return what;
    }
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_ptsz_v7000: {
        const auto &parameters = parameters_of<cudaStreamWaitEvent_ptsz_v7000_params>(call);
        Synchronization what =
            of_stream(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, parameters.stream, true);
        what.event = parameters.event;
        return what;
    }
    default:
        return std::nullopt;
    }
}

CUpti_CallbackId driver_call(const ApiCall &call) {
    switch (call.cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
        return CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000:
        return CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000:
        return CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
        return CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx;
    case CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000:
        return CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch;
    case CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000:
        return CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
    case CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020:
        return CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize;
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize;
    case CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_ptsz_v7000:
        return CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz;
    case CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020:
        return CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize;
    case CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020:
        return CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2;
    case CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020:
        return CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2;
    default:
        return CUPTI_DRIVER_TRACE_CBID_INVALID;
    }
}

const char *launched_name(const ApiCall &call) {
    switch (call.cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
        return vgpu_kernel_name(parameters_of<cudaLaunchKernel_v7000_params>(call).func);
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000:
        return vgpu_kernel_name(parameters_of<cudaLaunchKernel_ptsz_v7000_params>(call).func);
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000:
        return vgpu_kernel_name(parameters_of<cudaLaunchCooperativeKernel_v9000_params>(call).func);
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000:
        return vgpu_kernel_name(parameters_of<cudaLaunchCooperativeKernel_ptsz_v9000_params>(call).func);
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
        return vgpu_kernel_name(parameters_of<cudaLaunchKernelExC_v11060_params>(call).func);
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060:
        return vgpu_kernel_name(parameters_of<cudaLaunchKernelExC_ptsz_v11060_params>(call).func);
    default:
        return nullptr;
    }
}

} // namespace vgpu
