// The insides of the CUDA backend that its host files share. Nothing outside kernels/cuda includes this.
//
// The CUDA runtime's header is not included here, so that this header compiles where there is no toolkit; its stream
// and event handles are pointers to these structs, and an `int error` is a cudaError_t.
#ifndef SHOAL_KERNELS_CUDA_CUDA_BACKEND_H
#define SHOAL_KERNELS_CUDA_CUDA_BACKEND_H

#include "kernels/cuda/cuda_host.h"
#include "kernels/cuda/nccl_library.h"

struct CUstream_st;
struct CUevent_st;

typedef struct CudaBackend {
    KernBackend base;
    CudaHost host;
    int device;
    int processors;      // SMs
    size_t shared_bytes; // that one block may have
    size_t memory_bytes; // of the whole GPU
    struct CUstream_st *stream;
    struct CUevent_st *begin, *end;
    NcclLibrary nccl;     // opened when it is asked for
    char name[256];       // "NVIDIA H200"
    char memory_name[32]; // "GPU 0 memory"
} CudaBackend;

#define cuda_fail(backend, status, ...) ((backend)->host.fail_at(__FILE__, __LINE__, status, __VA_ARGS__))

// Returns from the enclosing function where a call of the CUDA runtime, or a launch, fails; the message names the call
// and the runtime's reason.
#define CUDA_TRY(backend, call)                                                                    \
    do {                                                                                           \
        int cuda_error_ = (int)(call);                                                             \
        if (cuda_error_ != 0) return cuda_failed(backend, cuda_error_, #call, __FILE__, __LINE__); \
    } while (0)

// Records that failure. An error that does not stick is cleared; one that does is called what it is.
Status cuda_failed(const CudaBackend *backend, int error, const char *call, const char *file, int line);

// Makes the backend's GPU the calling thread's.
Status cuda_enter(const CudaBackend *backend) HOST_MUST_CHECK;

// Between host memory and the GPU's; done when the call returns.
Status cuda_download(const CudaBackend *backend, void *host, const void *device, size_t size_bytes) HOST_MUST_CHECK;
Status cuda_upload(const CudaBackend *backend, void *device, const void *host, size_t size_bytes) HOST_MUST_CHECK;

HostMemory cuda_memory(KernBackend *backend);

// The index of a simulator in SIM_LIST.
Status cuda_sim_index(const CudaBackend *backend, const SimSpec *spec, int *index) HOST_MUST_CHECK;

// "the reward", or the field of the state that an infinite-report names.
const char *cuda_field_name(const SimSpec *spec, int field);

typedef struct CudaScope {
    const CudaBackend *backend;
    const HostTraceHooks *hooks;
} CudaScope;

static inline CudaScope cuda_scope_begin(const CudaBackend *backend, HostTraceCategory category, const char *name) {
    CudaScope scope = {backend, backend->host.trace_begin(category, name)};
    return scope;
}

static inline void cuda_scope_end(CudaScope *scope) { scope->backend->host.trace_end(scope->hooks); }

// HOST_TRACE_SCOPE through the program's table.
#define CUDA_TRACE_SCOPE(backend, category, name)                                                       \
    CudaScope HOST_TRACE_JOIN(cuda_scope_, __LINE__) __attribute__((cleanup(cuda_scope_end), unused)) = \
        cuda_scope_begin(backend, HOST_TRACE_##category, name)

// kernels/cuda/cuda_batch.c, cuda_es.c, cuda_ppo.c, cuda_ppo_exchange.c and cuda_ppo_update.c: the entries of KernOps.
Status cuda_batch_plan(KernBackend *backend, const KernBatchSpec *spec, HostPlan *plan);
Status cuda_batch_open(KernBackend *backend, const KernBatchSpec *spec, KernBatch **batch);
void cuda_batch_close(KernBatch *batch);
KernBatchView cuda_batch_view(KernBatch *batch);
Status cuda_batch_reset(KernBatch *batch, const uint8_t *mask);
Status cuda_batch_step(KernBatch *batch);
Status cuda_batch_read(KernBatch *batch, void *host, const void *buffer, size_t size_bytes);
Status cuda_batch_write(KernBatch *batch, void *buffer, const void *host, size_t size_bytes);

Status cuda_es_plan(KernBackend *backend, const KernEsSpec *spec, HostPlan *plan);
Status cuda_es_open(KernBackend *backend, const KernEsSpec *spec, KernEs **es);
void cuda_es_close(KernEs *es);
Status cuda_es_write(KernEs *es, const float *params, const float *first, const float *second);
Status cuda_es_read(KernEs *es, float *params, float *first, float *second);
Status cuda_es_evaluate(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                        float *sums);
Status cuda_es_shape(KernEs *es, const float *fitness, float *shaped);
Status cuda_es_update(KernEs *es, const KernEsStep *step, const float *shaped, int32_t first, int32_t count);
Status cuda_es_gather(KernEs *es, HostComm *comm, int32_t range);

// kernels/cuda/cuda_comm.c
void cuda_comm_describe(KernBackend *backend, const char *address, HostCommGpu *gpu);
Status cuda_comm_open(KernBackend *backend, const HostCommOptions *options, double deadline_s, HostComm **comm);

Status cuda_ppo_plan(KernBackend *backend, const KernPpoSpec *spec, HostPlan *plan);
Status cuda_ppo_open(KernBackend *backend, const KernPpoSpec *spec, KernPpo **ppo);
void cuda_ppo_close(KernPpo *ppo);
Status cuda_ppo_write(KernPpo *ppo, const KernPpoState *state);
Status cuda_ppo_read(KernPpo *ppo, KernPpoState *state);
Status cuda_ppo_join(KernPpo *ppo, HostComm *comm);
Status cuda_ppo_update(KernPpo *ppo, const KernPpoStep *step, KernPpoReport *report);

#endif
