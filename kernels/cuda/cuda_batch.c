// Batches of envs on the GPU: memory, and the calls of the kernels in batch.cu.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"

typedef struct CudaBatch {
    KernBatch base;
    CudaBackend *backend;
    int sim;
    HostPlan plan;
    HostBlock block;
    CudaBatchArgs args;
    uint8_t *mask;
    int64_t step; // calls of batch_step
} CudaBatch;

// In the order of the plan's items; words of each env.
#define BATCH_BUFFERS(B)                                                                           \
    B(state, "simulator state", sim->state_words)                                                  \
    B(params, "simulator parameters of each env", spec->sim.any_random ? sim->param_count : 0)     \
    B(obs, "observations", sim->obs)                                                               \
    B(final_obs, "final observations", spec->autoreset == KERN_AUTORESET_SAME_STEP ? sim->obs : 0) \
    B(discrete, "discrete actions", sim_spec_discrete_actions(sim))                                \
    B(continuous, "continuous actions", sim->continuous)                                           \
    B(reward, "rewards", 1)                                                                        \
    B(terminated, "terminated flags", 1)                                                           \
    B(truncated, "truncated flags", 1)                                                             \
    B(length, "episode lengths", 1)                                                                \
    B(episode_return, "episode returns", 1)                                                        \
    B(final_length, "final lengths", 1)                                                            \
    B(final_return, "final returns", 1)                                                            \
    B(episode, "episode counters", 1)

enum BatchItem {
#define BATCH_ENUM(name, purpose, words) BATCH_##name,
    BATCH_BUFFERS(BATCH_ENUM)
#undef BATCH_ENUM
        BATCH_mask,
    BATCH_infinite
};

Status cuda_batch_plan(KernBackend *base, const KernBatchSpec *spec, HostPlan *plan) {
    const CudaBackend *backend = (const CudaBackend *)base;
    const CudaHost *host = &backend->host;
    const SimSpec *sim = spec->sim.spec;
    if (spec->envs < 1 || spec->envs > UINT32_MAX) {
        return cuda_fail(backend, STATUS_USAGE, "%lld envs: 1 to %u", (long long)spec->envs, UINT32_MAX);
    }
    size_t blocks = (size_t)((spec->envs + CUDA_LANES - 1) / CUDA_LANES);
#define BATCH_ADD(name, purpose, words) \
    TRY(host->plan_add(plan, purpose, blocks, (size_t)(words)*CUDA_LANES * 4, NULL));
    BATCH_BUFFERS(BATCH_ADD)
#undef BATCH_ADD
    TRY(host->plan_add(plan, "reset mask", (size_t)spec->envs, 1, NULL));
    return host->plan_add(plan, "report of infinite values", 1, sizeof(uint64_t), NULL);
}

// Fills in the view and the kernels' arguments.
static void place_buffers(CudaBatch *batch, const KernBatchSpec *spec) {
    CudaBatchArgs *args = &batch->args;
    KernBatchView *view = &args->view;
    view->envs = spec->envs;
    view->lanes = CUDA_LANES;
    view->blocks = (spec->envs + CUDA_LANES - 1) / CUDA_LANES;
#define BUFFER(name) host_block_at(&batch->block, &batch->plan, BATCH_##name)
    view->state = BUFFER(state), view->obs = BUFFER(obs), view->final_obs = BUFFER(final_obs);
    view->discrete = BUFFER(discrete), view->continuous = BUFFER(continuous), view->reward = BUFFER(reward);
    view->terminated = BUFFER(terminated), view->truncated = BUFFER(truncated), view->length = BUFFER(length);
    view->episode_return = BUFFER(episode_return), view->final_length = BUFFER(final_length);
    view->final_return = BUFFER(final_return), args->episode = BUFFER(episode), args->params = BUFFER(params);
    args->infinite = BUFFER(infinite);
    batch->mask = BUFFER(mask);
#undef BUFFER
    args->sim = spec->sim;
    args->seed_low = (uint32_t)spec->seed;
    args->seed_high = (uint32_t)(spec->seed >> 32);
    args->autoreset = (int32_t)spec->autoreset;
}

static Status open_batch(CudaBatch *batch, const KernBatchSpec *spec) {
    CudaBackend *backend = batch->backend;
    TRY(cuda_enter(backend));
    TRY(cuda_sim_index(backend, spec->sim.spec, &batch->sim));
    backend->host.plan_init(&batch->plan);
    TRY(cuda_batch_plan(&backend->base, spec, &batch->plan));
    HostMemory memory = cuda_memory(&backend->base);
    TRY(backend->host.plan_alloc(&batch->plan, &memory, &batch->block));
    place_buffers(batch, spec);
    uint64_t none = CUDA_INFINITE_NONE;
    TRY(cuda_upload(backend, batch->args.infinite, &none, sizeof none));
    return cuda_batch_reset(&batch->base, NULL);
}

Status cuda_batch_open(KernBackend *base, const KernBatchSpec *spec, KernBatch **out) {
    CudaBackend *backend = (CudaBackend *)base;
    CudaBatch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) return cuda_fail(backend, STATUS_MEMORY, "no memory for a batch");
    batch->base.backend = base;
    batch->backend = backend;
    Status status = open_batch(batch, spec);
    if (status != STATUS_OK) {
        cuda_batch_close(&batch->base);
        return status;
    }
    *out = &batch->base;
    return STATUS_OK;
}

void cuda_batch_close(KernBatch *base) {
    if (base == NULL) return;
    CudaBatch *batch = (CudaBatch *)base;
    batch->backend->host.block_free(&batch->block);
    free(batch);
}

KernBatchView cuda_batch_view(KernBatch *base) { return ((CudaBatch *)base)->args.view; }

Status cuda_batch_reset(KernBatch *base, const uint8_t *mask) {
    CudaBatch *batch = (CudaBatch *)base;
    CudaBackend *backend = batch->backend;
    CUDA_TRACE_SCOPE(backend, SIMULATION, "batch reset");
    TRY(cuda_enter(backend));
    CudaBatchArgs args = batch->args;
    if (mask != NULL) {
        TRY(cuda_upload(backend, batch->mask, mask, (size_t)args.view.envs));
        args.mask = batch->mask;
    }
    CUDA_TRY(backend, cuda_launch_batch_reset(batch->sim, &args, backend->stream));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}

Status cuda_batch_step(KernBatch *base) {
    CudaBatch *batch = (CudaBatch *)base;
    CudaBackend *backend = batch->backend;
    CUDA_TRACE_SCOPE(backend, SIMULATION, "batch step");
    TRY(cuda_enter(backend));
    batch->step++;
    uint64_t infinite = CUDA_INFINITE_NONE;
    CUDA_TRY(backend, cuda_launch_batch_step(batch->sim, &batch->args, backend->stream));
    TRY(cuda_download(backend, &infinite, batch->args.infinite, sizeof infinite));
    if (infinite == CUDA_INFINITE_NONE) return STATUS_OK;
    // The next call reports for itself.
    uint64_t none = CUDA_INFINITE_NONE;
    TRY(cuda_upload(backend, batch->args.infinite, &none, sizeof none));
    const SimSpec *spec = batch->args.sim.spec;
    return cuda_fail(backend, STATUS_NUMERIC, "%s: env %lld, step %lld: %s is NaN or infinite", spec->name,
                     (long long)(infinite >> CUDA_FIELD_BITS), (long long)batch->step,
                     cuda_field_name(spec, (int)(infinite & CUDA_FIELD_REWARD)));
}

Status cuda_batch_read(KernBatch *base, void *host, const void *buffer, size_t size_bytes) {
    const CudaBackend *backend = ((CudaBatch *)base)->backend;
    TRY(cuda_enter(backend));
    return cuda_download(backend, host, buffer, size_bytes);
}

Status cuda_batch_write(KernBatch *base, void *buffer, const void *host, size_t size_bytes) {
    const CudaBackend *backend = ((CudaBatch *)base)->backend;
    TRY(cuda_enter(backend));
    return cuda_upload(backend, buffer, host, size_bytes);
}
