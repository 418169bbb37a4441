// Batches of envs on the CPU: memory and the spread of blocks over the pool.
#include <stdlib.h>
#include <string.h>

#include "host/trace.h"
#include "kernels/cpu/cpu.h"
#include "sim/sim_rng.h"

enum { BATCH_GRAIN_ENVS = 2048 }; // envs in one piece of a parallel loop: their state fits the second-level cache

typedef struct CpuBatch {
    KernBatch base;
    const LanesOps *sim;
    HostPool *pool;
    HostBlock block;
    LanesBatch lanes;
    const uint8_t *mask;
} CpuBatch;

// The order of BatchBuffer is the order of the plan's items.
#define BATCH_BUFFERS(B)                                                        \
    B(state, "simulator state", state_words)                                    \
    B(params, "simulator parameters of each env", any_random ? param_words : 0) \
    B(obs, "observations", spec_obs)                                            \
    B(final_obs, "final observations", same_step ? spec_obs : 0)                \
    B(discrete, "discrete actions", discrete_words)                             \
    B(continuous, "continuous actions", continuous_words)                       \
    B(reward, "rewards", 1)                                                     \
    B(terminated, "terminated flags", 1)                                        \
    B(truncated, "truncated flags", 1)                                          \
    B(length, "episode lengths", 1)                                             \
    B(episode_return, "episode returns", 1)                                     \
    B(final_length, "final lengths", 1)                                         \
    B(final_return, "final returns", 1)                                         \
    B(episode, "episode counters", 1)

enum BatchBuffer {
#define BATCH_ENUM(name, purpose, words) BATCH_##name,
    BATCH_BUFFERS(BATCH_ENUM)
#undef BATCH_ENUM
};

Status cpu_batch_plan(KernBackend *backend, const KernBatchSpec *spec, HostPlan *plan) {
    const CpuBackend *cpu = (const CpuBackend *)backend;
    if (spec->envs < 1 || spec->envs > UINT32_MAX) {
        return host_fail(STATUS_USAGE, "%lld envs: 1 to %u", (long long)spec->envs, UINT32_MAX);
    }
    const LanesOps *sim = cpu_sim_ops(cpu, spec->sim.spec);
    size_t state_words = sim->state_words, param_words = sim->param_words, spec_obs = (size_t)spec->sim.spec->obs;
    size_t discrete_words = (size_t)sim_spec_discrete_actions(spec->sim.spec);
    size_t continuous_words = (size_t)spec->sim.spec->continuous;
    bool any_random = spec->sim.any_random, same_step = spec->autoreset == KERN_AUTORESET_SAME_STEP;
    size_t blocks = (size_t)((spec->envs + cpu->lanes - 1) / cpu->lanes);
#define BATCH_ADD(name, purpose, words) \
    TRY(host_plan_add(plan, purpose, blocks, (size_t)(words) * (size_t)cpu->lanes * 4, NULL));
    BATCH_BUFFERS(BATCH_ADD)
#undef BATCH_ADD
    return STATUS_OK;
}

Status cpu_batch_open(KernBackend *backend, const KernBatchSpec *spec, KernBatch **out) {
    CpuBackend *cpu = (CpuBackend *)backend;
    HostPlan plan;
    host_plan_init(&plan);
    TRY(cpu_batch_plan(backend, spec, &plan));
    CpuBatch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) return host_fail(STATUS_MEMORY, "no memory for a batch");
    HostMemory memory = host_memory_cpu();
    Status status = host_plan_alloc(&plan, &memory, &batch->block);
    if (status != STATUS_OK) {
        free(batch);
        return status;
    }
    batch->base.backend = backend;
    batch->pool = cpu->pool;
    batch->sim = cpu_sim_ops(cpu, spec->sim.spec);
    LanesBatch *lanes = &batch->lanes;
    KernBatchView *view = &lanes->view;
    view->envs = spec->envs;
    view->lanes = cpu->lanes;
    view->blocks = (spec->envs + cpu->lanes - 1) / cpu->lanes;
#define BUFFER(name) host_block_at(&batch->block, &plan, BATCH_##name)
    view->state = BUFFER(state), view->obs = BUFFER(obs), view->final_obs = BUFFER(final_obs);
    view->discrete = BUFFER(discrete), view->continuous = BUFFER(continuous), view->reward = BUFFER(reward);
    view->terminated = BUFFER(terminated), view->truncated = BUFFER(truncated), view->length = BUFFER(length);
    view->episode_return = BUFFER(episode_return), view->final_length = BUFFER(final_length);
    view->final_return = BUFFER(final_return), lanes->episode = BUFFER(episode), lanes->params = BUFFER(params);
#undef BUFFER
    lanes->sim = spec->sim;
    lanes->seed_low = (uint32_t)spec->seed;
    lanes->seed_high = (uint32_t)(spec->seed >> 32);
    lanes->autoreset = spec->autoreset;
    atomic_flag_clear(&lanes->infinite.lock);
    *out = &batch->base;
    return cpu_batch_reset(*out, NULL);
}

void cpu_batch_close(KernBatch *base) {
    if (base == NULL) return;
    CpuBatch *batch = (CpuBatch *)base;
    host_block_free(&batch->block);
    free(batch);
}

KernBatchView cpu_batch_view(KernBatch *base) { return ((CpuBatch *)base)->lanes.view; }

static void reset_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    CpuBatch *batch = context;
    batch->sim->batch_reset(&batch->lanes, batch->mask, begin, end);
}

static void step_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    CpuBatch *batch = context;
    batch->sim->batch_step(&batch->lanes, begin, end);
}

static int64_t grain(const CpuBatch *batch) { return BATCH_GRAIN_ENVS / batch->sim->lanes; }

Status cpu_batch_reset(KernBatch *base, const uint8_t *mask) {
    HOST_TRACE_SCOPE(SIMULATION, "batch reset");
    CpuBatch *batch = (CpuBatch *)base;
    batch->mask = mask;
    host_pool_for(batch->pool, batch->lanes.view.blocks, grain(batch), reset_piece, batch);
    return STATUS_OK;
}

Status cpu_batch_step(KernBatch *base) {
    HOST_TRACE_SCOPE(SIMULATION, "batch step");
    CpuBatch *batch = (CpuBatch *)base;
    LanesBatch *lanes = &batch->lanes;
    lanes->step++;
    lanes->infinite.at = -1;
    host_pool_for(batch->pool, lanes->view.blocks, grain(batch), step_piece, batch);
    if (lanes->infinite.at < 0) return STATUS_OK;
    return host_fail(STATUS_NUMERIC, "%s: env %lld, step %lld: %s is NaN or infinite", lanes->sim.spec->name,
                     (long long)lanes->infinite.at, (long long)lanes->infinite.step,
                     lanes->infinite.field != NULL ? lanes->infinite.field : "the reward");
}

Status cpu_batch_read(KernBatch *base, void *host, const void *buffer, size_t size_bytes) {
    (void)base;
    memcpy(host, buffer, size_bytes);
    return STATUS_OK;
}

Status cpu_batch_write(KernBatch *base, void *buffer, const void *host, size_t size_bytes) {
    (void)base;
    memcpy(buffer, host, size_bytes);
    return STATUS_OK;
}
