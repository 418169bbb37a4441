// The CUDA backend: opening a GPU, its memory, and the table of functions. The library's one entry is at the end.
#include "kernels/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim_list.h"

Status cuda_failed(const CudaBackend *backend, int error, const char *call, const char *file, int line) {
    cudaError_t code = (cudaError_t)error;
    // What sticks is there again after it was taken away.
    (void)cudaGetLastError();
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone; // a stream that is captured has no answer
    cudaError_t after = backend->stream != NULL ? cudaStreamIsCapturing(backend->stream, &capture) : cudaSuccess;
    if (backend->stream != NULL && after == cudaSuccess && capture == cudaStreamCaptureStatusNone)
        after = cudaStreamQuery(backend->stream);
    bool lost = after != cudaSuccess && after != cudaErrorNotReady;
    int length = (int)strcspn(call, "(");
    return backend->host.fail_at(file, line, STATUS_DEVICE, "GPU %d: %.*s: %s (%s)%s", backend->device, length, call,
                                 cudaGetErrorString(code), cudaGetErrorName(code),
                                 lost ? "; this process can no longer use the GPU" : "");
}

Status cuda_enter(const CudaBackend *backend) {
    CUDA_TRY(backend, cudaSetDevice(backend->device));
    return STATUS_OK;
}

Status cuda_download(const CudaBackend *backend, void *host, const void *device, size_t size_bytes) {
    if (size_bytes == 0) return STATUS_OK;
    CUDA_TRY(backend, cudaMemcpyAsync(host, device, size_bytes, cudaMemcpyDeviceToHost, backend->stream));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}

Status cuda_upload(const CudaBackend *backend, void *device, const void *host, size_t size_bytes) {
    if (size_bytes == 0) return STATUS_OK;
    CUDA_TRY(backend, cudaMemcpyAsync(device, host, size_bytes, cudaMemcpyHostToDevice, backend->stream));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}

// ---- memory --------------------------------------------------------------------------------------------------------

static void memory_release(void *self, void *block, size_t size_bytes) {
    const CudaBackend *backend = self;
    (void)size_bytes;
    // Nobody to tell: after a fault every call fails, and the process ends soon.
    (void)cudaSetDevice(backend->device);
    (void)cudaFree(block);
}

static Status memory_alloc(void *self, size_t size_bytes, void **block) {
    const CudaBackend *backend = self;
    TRY(cuda_enter(backend));
    void *base = NULL;
    cudaError_t error = cudaMalloc(&base, size_bytes);
    if (error == cudaErrorMemoryAllocation) {
        size_t free_bytes = 0, total_bytes = 0;
        char asked[16], left[16], all[16];
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&free_bytes, &total_bytes);
        return cuda_fail(backend, STATUS_MEMORY, "%s: cannot allocate %s: %s of %s are free", backend->memory_name,
                         backend->host.bytes_text(size_bytes, asked), backend->host.bytes_text(free_bytes, left),
                         backend->host.bytes_text(total_bytes, all));
    }
    CUDA_TRY(backend, error);
    error = cudaMemsetAsync(base, 0, size_bytes, backend->stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(backend->stream);
    if (error != cudaSuccess) {
        Status status = cuda_failed(backend, (int)error, "cudaMemsetAsync", __FILE__, __LINE__);
        memory_release(self, base, size_bytes);
        return status;
    }
    *block = base;
    return STATUS_OK;
}

HostMemory cuda_memory(KernBackend *base) {
    CudaBackend *backend = (CudaBackend *)base;
    return (HostMemory){
        .name = backend->memory_name, .self = backend, .alloc = memory_alloc, .release = memory_release};
}

// ---- simulators ----------------------------------------------------------------------------------------------------

#define SIM_NAME_ROW(name, Name, NAME) #name,
static const char *const sim_names[] = {SIM_LIST(SIM_NAME_ROW)};

Status cuda_sim_index(const CudaBackend *backend, const SimSpec *spec, int *index) {
    for (int i = 0; i < (int)(sizeof sim_names / sizeof sim_names[0]); i++) {
        if (strcmp(sim_names[i], spec->name) == 0) {
            *index = i;
            return STATUS_OK;
        }
    }
    return cuda_fail(backend, STATUS_DEVICE, "%s: this " CUDA_LIBRARY " was built without it", spec->name);
}

const char *cuda_field_name(const SimSpec *spec, int field) {
    return field < spec->state_words ? spec->state[field].name : "the reward";
}

// ---- the backend ---------------------------------------------------------------------------------------------------

static void close_backend(KernBackend *base) {
    if (base == NULL) return;
    CudaBackend *backend = (CudaBackend *)base;
    (void)cudaSetDevice(backend->device);
    if (backend->begin != NULL) (void)cudaEventDestroy(backend->begin);
    if (backend->end != NULL) (void)cudaEventDestroy(backend->end);
    if (backend->stream != NULL) (void)cudaStreamDestroy(backend->stream);
    free(backend);
}

static void describe(KernBackend *base, char *text, int size) {
    const CudaBackend *backend = (const CudaBackend *)base;
    snprintf(text, (size_t)size, "cuda: %s (GPU %d), %d SMs", backend->name, backend->device, backend->processors);
}

static const KernOps cuda_ops = {
    .name = "cuda",
    .close = close_backend,
    .memory = cuda_memory,
    .describe = describe,
    .batch_plan = cuda_batch_plan,
    .batch_open = cuda_batch_open,
    .batch_close = cuda_batch_close,
    .batch_view = cuda_batch_view,
    .batch_reset = cuda_batch_reset,
    .batch_step = cuda_batch_step,
    .batch_read = cuda_batch_read,
    .batch_write = cuda_batch_write,
    .es_plan = cuda_es_plan,
    .es_open = cuda_es_open,
    .es_close = cuda_es_close,
    .es_write = cuda_es_write,
    .es_read = cuda_es_read,
    .es_evaluate = cuda_es_evaluate,
    .es_shape = cuda_es_shape,
    .es_update = cuda_es_update,
    .ppo_plan = cuda_ppo_plan,
    .ppo_open = cuda_ppo_open,
    .ppo_close = cuda_ppo_close,
    .ppo_write = cuda_ppo_write,
    .ppo_read = cuda_ppo_read,
    .ppo_join = cuda_ppo_join,
    .ppo_update = cuda_ppo_update,
    .comm_describe = cuda_comm_describe,
    .comm_open = cuda_comm_open,
    .es_gather = cuda_es_gather,
};

// The runtime's own text for a machine without a driver speaks of a driver that is too old.
static Status no_device(const CudaHost *host, cudaError_t error) {
    int driver = 0, runtime = 0;
    (void)cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = 0;
    char versions[100] = "no NVIDIA driver is installed";
    if (driver > 0) {
        snprintf(versions, sizeof versions, "the driver is for CUDA %d.%d, the runtime is %d.%d", driver / 1000,
                 driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    }
    return host->fail_at(__FILE__, __LINE__, STATUS_DEVICE, "device cuda: no GPU: %s; cudaGetDeviceCount: %s (%s)",
                         versions, cudaGetErrorString(error), cudaGetErrorName(error));
}

// A driver that is missing or too old, and a machine without a GPU, show here first.
static Status find_device(const CudaHost *host, int *device) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) return no_device(host, error != cudaSuccess ? error : cudaErrorNoDevice);
    if (*device < 0) *device = (-1 - *device) % count; // kern_cuda_in_turn()
    if (*device >= count) {
        return host->fail_at(__FILE__, __LINE__, STATUS_DEVICE, "device cuda: there is no GPU %d: 0 to %d", *device,
                             count - 1);
    }
    return STATUS_OK;
}

static Status attribute(const CudaBackend *backend, enum cudaDeviceAttr which, int *value) {
    CUDA_TRY(backend, cudaDeviceGetAttribute(value, which, backend->device));
    return STATUS_OK;
}

static Status open_device(CudaBackend *backend) {
    TRY(cuda_enter(backend));
    struct cudaDeviceProp properties;
    int shared_bytes = 0;
    CUDA_TRY(backend, cudaGetDeviceProperties(&properties, backend->device));
    TRY(attribute(backend, cudaDevAttrMultiProcessorCount, &backend->processors));
    TRY(attribute(backend, cudaDevAttrMaxSharedMemoryPerBlockOptin, &shared_bytes));
    backend->shared_bytes = (size_t)shared_bytes;
    backend->memory_bytes = properties.totalGlobalMem;
    snprintf(backend->name, sizeof backend->name, "%s", properties.name);
    snprintf(backend->memory_name, sizeof backend->memory_name, "GPU %d memory", backend->device);
    CUDA_TRY(backend, cudaStreamCreateWithFlags(&backend->stream, cudaStreamNonBlocking));
    CUDA_TRY(backend, cudaEventCreate(&backend->begin));
    CUDA_TRY(backend, cudaEventCreate(&backend->end));
    return STATUS_OK;
}

CudaBackendOpen shoal_cuda_backend_open;

__attribute__((visibility("default"))) Status shoal_cuda_backend_open(const CudaHost *host, int device,
                                                                      KernBackend **out) {
    if (host->version != CUDA_HOST_VERSION) {
        return host->fail_at(__FILE__, __LINE__, STATUS_DEVICE,
                             "device cuda: " CUDA_LIBRARY
                             " is of version %d, this program of %d: install both from one "
                             "build",
                             CUDA_HOST_VERSION, host->version);
    }
    if (host->table_bytes != sizeof(CudaHost) || host->ops_bytes != sizeof(KernOps) ||
        host->es_bytes != sizeof(KernEsSpec) || host->batch_bytes != sizeof(KernBatchSpec) ||
        host->ppo_bytes != sizeof(KernPpoSpec) || host->ppo_step_bytes != sizeof(KernPpoStep) ||
        host->ppo_state_bytes != sizeof(KernPpoState) || host->ppo_report_bytes != sizeof(KernPpoReport) ||
        host->ppo_network_bytes != sizeof(PpoNetwork) || host->ppo_group_bytes != sizeof(PpoGroup)) {
        return host->fail_at(__FILE__, __LINE__, STATUS_DEVICE,
                             "device cuda: " CUDA_LIBRARY " and this program differ: install both from one build");
    }
    TRY(find_device(host, &device));
    CudaBackend *backend = calloc(1, sizeof *backend);
    if (backend == NULL) return host->fail_at(__FILE__, __LINE__, STATUS_MEMORY, "no memory for the CUDA backend");
    backend->base.ops = &cuda_ops;
    backend->host = *host;
    backend->device = device;
    Status status = open_device(backend);
    if (status != STATUS_OK) {
        close_backend(&backend->base);
        return status;
    }
    *out = &backend->base;
    return STATUS_OK;
}
