// The twins of functions for programs that were compiled with --default-stream per-thread: a null stream, and none at
// all, is the calling thread's own.
#include "tests/vgpu/runtime/runtime_memory.h"

using namespace vgpu;

namespace {

cudaStream_t own(cudaStream_t stream) { return stream == nullptr ? cudaStreamPerThread : stream; }

} // namespace

#define PER_THREAD_STREAM(name, parameters, arguments) \
    VGPU_EXPORT cudaError_t name##_ptsz parameters { return name arguments; }

// ---- streams and events --------------------------------------------------------------------------------------------

PER_THREAD_STREAM(cudaStreamQuery, (cudaStream_t stream), (own(stream)))
PER_THREAD_STREAM(cudaStreamSynchronize, (cudaStream_t stream), (own(stream)))
PER_THREAD_STREAM(cudaStreamGetDevice, (cudaStream_t stream, int *device), (own(stream), device))
PER_THREAD_STREAM(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags), (own(stream), flags))
PER_THREAD_STREAM(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (own(stream), id))
PER_THREAD_STREAM(cudaStreamGetPriority, (cudaStream_t stream, int *priority), (own(stream), priority))
PER_THREAD_STREAM(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), (own(to), own(from)))
PER_THREAD_STREAM(cudaStreamGetAttribute,
                  (cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *value),
                  (own(stream), attribute, value))
PER_THREAD_STREAM(cudaStreamSetAttribute,
                  (cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue *value),
                  (own(stream), attribute, value))
PER_THREAD_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
                  (own(stream), event, flags))
PER_THREAD_STREAM(cudaStreamAddCallback,
                  (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags),
                  (own(stream), callback, data, flags))
PER_THREAD_STREAM(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t bytes, unsigned flags),
                  (own(stream), pointer, bytes, flags))
PER_THREAD_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, own(stream)))
PER_THREAD_STREAM(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
                  (event, own(stream), flags))
PER_THREAD_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
                  (own(stream), function, data))

// ---- launches ------------------------------------------------------------------------------------------------------

PER_THREAD_STREAM(cudaLaunchKernel,
                  (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                   cudaStream_t stream),
                  (function, grid, block, arguments, shared_bytes, own(stream)))
PER_THREAD_STREAM(cudaLaunchCooperativeKernel,
                  (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                   cudaStream_t stream),
                  (function, grid, block, arguments, shared_bytes, own(stream)))

VGPU_EXPORT cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function,
                                                 void **arguments) {
    if (config == nullptr) return cudaLaunchKernelExC(config, function, arguments);
    cudaLaunchConfig_t changed = *config;
    changed.stream = own(config->stream);
    return cudaLaunchKernelExC(&changed, function, arguments);
}

// ---- graphs --------------------------------------------------------------------------------------------------------

PER_THREAD_STREAM(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, own(stream)))
PER_THREAD_STREAM(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, own(stream)))
PER_THREAD_STREAM(cudaGraphInstantiateWithParams,
                  (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *parameters),
                  (exec, graph, parameters))
PER_THREAD_STREAM(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), (own(stream), mode))
PER_THREAD_STREAM(cudaStreamBeginCaptureToGraph,
                  (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                   const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode),
                  (own(stream), graph, dependencies, edges, count, mode))
PER_THREAD_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (own(stream), graph))
PER_THREAD_STREAM(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status), (own(stream), status))
PER_THREAD_STREAM(cudaStreamGetCaptureInfo,
                  (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                   const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
                  (own(stream), status, id, graph, dependencies, edges, count))
PER_THREAD_STREAM(cudaStreamUpdateCaptureDependencies,
                  (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges, size_t count,
                   unsigned flags),
                  (own(stream), dependencies, edges, count, flags))

// ---- memory --------------------------------------------------------------------------------------------------------

PER_THREAD_STREAM(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream), (pointer, bytes, own(stream)))
PER_THREAD_STREAM(cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, own(stream)))
PER_THREAD_STREAM(cudaMallocFromPoolAsync, (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                  (pointer, bytes, pool, own(stream)))
PER_THREAD_STREAM(cudaMemPrefetchAsync,
                  (const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags, cudaStream_t stream),
                  (pointer, bytes, location, flags, own(stream)))
PER_THREAD_STREAM(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
                  (to, from, bytes, kind, own(stream)))
PER_THREAD_STREAM(cudaMemcpy2DAsync,
                  (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  (to, to_pitch, from, from_pitch, width, height, kind, own(stream)))
PER_THREAD_STREAM(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *parameters, cudaStream_t stream),
                  (parameters, own(stream)))
PER_THREAD_STREAM(cudaMemcpyToSymbolAsync,
                  (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                   cudaStream_t stream),
                  (symbol, from, bytes, offset, kind, own(stream)))
PER_THREAD_STREAM(cudaMemcpyFromSymbolAsync,
                  (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
                  (to, symbol, bytes, offset, kind, own(stream)))
PER_THREAD_STREAM(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream),
                  (to, value, bytes, own(stream)))
PER_THREAD_STREAM(cudaMemset2DAsync,
                  (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
                  (to, pitch, value, width, height, own(stream)))
PER_THREAD_STREAM(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream),
                  (to, value, extent, own(stream)))

VGPU_EXPORT cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return copy_on(cudaStreamPerThread, to, from, bytes, kind);
}

VGPU_EXPORT cudaError_t cudaMemcpy2D_ptds(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                          size_t height, cudaMemcpyKind kind) {
    return copy_2d_on(cudaStreamPerThread, to, to_pitch, from, from_pitch, width, height, kind);
}

VGPU_EXPORT cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms *parameters) {
    return copy_3d_on(cudaStreamPerThread, parameters);
}

VGPU_EXPORT cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *from, size_t bytes, size_t offset,
                                                cudaMemcpyKind kind) {
    return copy_to_symbol_on(cudaStreamPerThread, symbol, from, bytes, offset, kind);
}

VGPU_EXPORT cudaError_t cudaMemcpyFromSymbol_ptds(void *to, const void *symbol, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind) {
    return copy_from_symbol_on(cudaStreamPerThread, to, symbol, bytes, offset, kind);
}

VGPU_EXPORT cudaError_t cudaMemset_ptds(void *to, int value, size_t bytes) {
    return fill_on(cudaStreamPerThread, to, value, bytes);
}

VGPU_EXPORT cudaError_t cudaMemset2D_ptds(void *to, size_t pitch, int value, size_t width, size_t height) {
    return fill_2d_on(cudaStreamPerThread, to, pitch, value, width, height);
}

VGPU_EXPORT cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent) {
    return fill_3d_on(cudaStreamPerThread, to, value, extent);
}

VGPU_EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, unsigned long long flags,
                                                     cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

VGPU_EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version,
                                                              unsigned long long flags,
                                                              cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, version, flags, status);
}
