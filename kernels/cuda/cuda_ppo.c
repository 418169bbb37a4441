// PPO on the GPU: memory, and the state's way in and out. The update is in cuda_ppo_update.c, what several trainers
// tell each other in cuda_ppo_exchange.c, the kernels are in ppo_*.cu.
#include "kernels/cuda/cuda_ppo.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARDS_MAX = 1 << 21,
    GRAPH_MINIBATCHES_MAX = 32,
    // A slice of a rollout: so many multiply-adds a block, a few milliseconds, whatever the policy.
    SLICE_PRODUCTS = 1 << 28,
    SLICE_STEPS_MAX = 256,
    THREADS_MIN = 64,                // of a block
    STATIC_SHARED_BYTES = 20 * 1024, // at most, of each kernel
};

static const int64_t ROUND_FLOATS = 1 << 28; // partial sums of one round

static int64_t at_least(int64_t x, int64_t least) { return x > least ? x : least; }

static int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

// ---- what follows from the spec ------------------------------------------------------------------------------------

static int32_t place(CudaPpoScratch *scratch, int32_t floats) {
    int32_t at = scratch->floats;
    scratch->floats += floats;
    return at;
}

// Whether a layer's activations are needed longer than the loss by them is under way: those of a head, or of recurrent
// states; and what two layers have for their input.
static bool needs_both(const PpoNetwork *network, int32_t layer) {
    bool is_joint = false;
    for (int32_t i = 0; i < network->layers; i++)
        is_joint |= network->layer[i].adds_delta && network->layer[i].from == layer;
    return is_joint || network->layer[layer].kind == POLICY_HEAD || network->layer[layer].kind == POLICY_STATE;
}

// Where everything is in the scratch memory of a block of that many threads.
static CudaPpoScratch lay_out(const CudaPpoArgs *args, int threads, bool learns) {
    CudaPpoScratch s = {.threads = threads, .rows = threads / CUDA_PPO_THREADS_PER_ROW};
    const PpoNetwork *network = &args->network;
    int32_t outputs = network->layer[network->actor_head].out;
    if (learns && args->states > 0) s.rows = args->steps; // a sequence
    s.pitch = (s.rows + 3) / 4 * 4 + 4;                   // quadruples stay aligned
    s.input = place(&s, network->layer[0].in * s.pitch);
    for (int32_t i = 0; i < network->layers; i++) {
        int32_t floats = network->layer[i].out * s.pitch;
        s.output[i] = place(&s, floats);
        if (learns) s.delta[i] = needs_both(network, i) ? place(&s, floats) : s.output[i];
    }
    if (learns) {
        s.choices_pitch = (2 * (outputs - args->actor.continuous) + args->actor.discrete) | 1; // odd: banks take turns
        s.choices = place(&s, s.rows * s.choices_pitch);
        s.losses = place(&s, (int32_t)(sizeof(PpoLosses) / sizeof(double)) * s.pitch);
        s.log_std = place(&s, args->actor.continuous * s.pitch);
    }
    s.floats = (s.floats + 31) / 32 * 32;
    return s;
}

static size_t shared_limit_bytes(const CudaPpo *ppo) { return ppo->backend->shared_bytes - STATIC_SHARED_BYTES; }

static Status occupancy(const CudaPpo *ppo, const CudaPpoScratch *scratch, bool learns, int *blocks) {
    size_t limit_bytes = shared_limit_bytes(ppo);
    if (learns) {
        CUDA_TRY(ppo->backend, cuda_ppo_learn_occupancy(scratch, limit_bytes, blocks));
    } else {
        CUDA_TRY(ppo->backend, cuda_ppo_rollout_occupancy(ppo->sim, scratch, limit_bytes, blocks));
    }
    return STATUS_OK;
}

// The size of a block that has the most threads at work on one SM, and the largest of those; where no scratch fits a
// block's shared memory, the largest, in global memory. blocks: on one SM.
static Status choose_scratch(const CudaPpo *ppo, int most, bool learns, CudaPpoScratch *best, int *blocks) {
    size_t limit_bytes = shared_limit_bytes(ppo);
    *best = lay_out(&ppo->args, most, learns);
    *blocks = 0;
    for (int threads = most; threads >= THREADS_MIN; threads /= 2) {
        CudaPpoScratch scratch = lay_out(&ppo->args, threads, learns);
        scratch.is_shared = (size_t)scratch.floats * sizeof(float) <= limit_bytes;
        int here = 0;
        if (!scratch.is_shared) continue;
        TRY(occupancy(ppo, &scratch, learns, &here));
        if (here * threads <= *blocks * best->threads) continue;
        *best = scratch;
        *blocks = here;
    }
    TRY(occupancy(ppo, best, learns, blocks));
    if (*blocks > 0) return STATUS_OK;
    return cuda_fail(ppo->backend, STATUS_DEVICE, "GPU %d: a block of %d threads of PPO's %s does not fit",
                     ppo->backend->device, best->threads, learns ? "learning" : "rollout");
}

// Blocks that work at once: as many as there is work for, or as are resident; with their activations in global memory,
// in a quarter of it.
static int resident(const CudaPpo *ppo, const CudaPpoScratch *scratch, int blocks, int64_t jobs) {
    int64_t most = (int64_t)blocks * ppo->backend->processors;
    size_t fitting = ppo->backend->memory_bytes / 4 / ((size_t)scratch->floats * sizeof(float));
    if (!scratch->is_shared) most = at_most(most, at_least((int64_t)fitting, 1));
    return (int)at_most(jobs, most);
}

static Status choose_launches(CudaPpo *ppo) {
    const CudaBackend *backend = ppo->backend;
    CudaPpoArgs *args = &ppo->args;
    int blocks = 0, threads = CUDA_PPO_ROLLOUT_THREADS, learn_threads = CUDA_PPO_LEARN_THREADS;
    // Small blocks where there are few envs: more of them work at once.
    while (threads > THREADS_MIN && args->envs < (int64_t)backend->processors * threads / CUDA_PPO_THREADS_PER_ROW)
        threads /= 2;
    TRY(choose_scratch(ppo, threads, false, &args->rollout, &blocks));
    int64_t groups = (args->envs + args->rollout.rows - 1) / args->rollout.rows;
    ppo->rollout_blocks = resident(ppo, &args->rollout, blocks, groups);
    // And where sequences are short: threads beyond a tile's columns have nothing to do.
    while (args->states > 0 && learn_threads > THREADS_MIN &&
           learn_threads / CUDA_PPO_THREADS_PER_ROW / 2 >= args->steps)
        learn_threads /= 2;
    TRY(choose_scratch(ppo, learn_threads, true, &args->learn, &blocks));
    ppo->learn_blocks = resident(ppo, &args->learn, blocks, (int64_t)args->shards * args->round_chunks);
    int64_t turns = (groups + ppo->rollout_blocks - 1) / ppo->rollout_blocks;
    int64_t products = (int64_t)args->params_count * args->rollout.rows * turns;
    ppo->slice_steps = (int32_t)at_least(at_most(SLICE_PRODUCTS / products, SLICE_STEPS_MAX), 1);
    if (backend->host.slice_steps > 0) ppo->slice_steps = backend->host.slice_steps;
    for (int32_t m = 1; m <= GRAPH_MINIBATCHES_MAX; m++) {
        if (args->minibatches % m == 0) ppo->graph_minibatches = m;
    }
    return STATUS_OK;
}

static void describe_args(CudaPpo *ppo) {
    const KernPpoSpec *spec = &ppo->spec;
    const PpoShape *policy = &spec->policy;
    CudaPpoArgs *args = &ppo->args;
    ppo->backend->host.ppo_network(policy, &args->network);
    args->actor = policy->actor;
    args->envs = spec->envs;
    args->steps = spec->rollout;
    args->shards = spec->shards;
    args->minibatches = spec->minibatches;
    args->part = spec->envs / spec->shards * spec->rollout / spec->minibatches;
    args->states = args->network.states * policy->actor.recurrent;
    args->advantage_sums = (args->part + PPO_CHUNK - 1) / PPO_CHUNK;
    args->chunk = args->states > 0 ? spec->rollout : PPO_CHUNK;
    args->chunks = (args->part + args->chunk - 1) / args->chunk;
    args->round_chunks =
        (int32_t)at_least(at_most(ROUND_FLOATS / ((int64_t)args->shards * policy->params), args->chunks), 1);
    if (ppo->backend->host.slice_steps > 0) args->round_chunks = 1;
    args->params_count = policy->params;
    args->log_std = policy->params - policy->log_std_params;
    args->action_words = policy->actor.discrete + policy->actor.continuous;
    args->gamma = spec->gamma;
    args->lambda = spec->lambda;
    args->per_sample = (float)(1.0 / ((double)args->part * args->shards));
    args->normalize_reward = spec->normalize_reward;
    args->seed = spec->seed;
}

static void describe_batch(CudaPpo *ppo) {
    CudaBatchArgs *batch = &ppo->args.batch;
    batch->view.envs = ppo->spec.envs;
    batch->view.lanes = CUDA_LANES;
    batch->view.blocks = (ppo->spec.envs + CUDA_LANES - 1) / CUDA_LANES;
    batch->sim = ppo->spec.sim;
    batch->seed_low = (uint32_t)ppo->spec.seed;
    batch->seed_high = (uint32_t)(ppo->spec.seed >> 32);
    batch->autoreset = KERN_AUTORESET_SAME_STEP;
}

static Status describe_ppo(CudaPpo *ppo, CudaBackend *backend, const KernPpoSpec *spec) {
    memset(ppo, 0, sizeof *ppo);
    ppo->base.backend = &backend->base;
    ppo->backend = backend;
    ppo->spec = *spec;
    TRY(backend->host.ppo_check(spec));
    if (spec->shards > SHARDS_MAX) {
        return cuda_fail(backend, STATUS_USAGE, "%d shards: at most %d on a GPU", spec->shards, SHARDS_MAX);
    }
    TRY(cuda_enter(backend));
    TRY(cuda_sim_index(backend, spec->sim.spec, &ppo->sim));
    ppo->env_words = (size_t)backend->host.ppo_env_words(spec);
    describe_batch(ppo);
    describe_args(ppo);
    TRY(cuda_ppo_share(ppo, NULL));
    return choose_launches(ppo);
}

// ---- memory --------------------------------------------------------------------------------------------------------

// I(name of the item, what points to it, purpose, count, bytes of each).
#define PPO_ITEMS(I)                                                                                           \
    I(PARAMS, args->params, "parameters", params, 4)                                                           \
    I(WEIGHTS, args->weights, "weights in bfloat16", args->actor.precision == POLICY_BF16 ? params : 0, 4)     \
    I(FIRST, args->first, "Adam first moments", params, 4)                                                     \
    I(SECOND, args->second, "Adam second moments", params, 4)                                                  \
    I(STATE, view->state, "simulator state", lanes *(size_t)sim->state_words, 4)                               \
    I(SIM_PARAMS, batch->params, "simulator parameters of each env", batch->sim.any_random ? lanes : 0,        \
      (size_t)sim->param_count * 4)                                                                            \
    I(OBS, view->obs, "observations", lanes *obs, 4)                                                           \
    I(FINAL_OBS, view->final_obs, "final observations", lanes *obs, 4)                                         \
    I(DISCRETE, view->discrete, "discrete actions", lanes *(size_t)args->actor.discrete, 4)                    \
    I(CONTINUOUS, view->continuous, "continuous actions", lanes *(size_t)args->actor.continuous, 4)            \
    I(ENVS, env_rows, "rewards, flags and episodes", lanes, PPO_ENV_ROWS * 4)                                  \
    I(RECURRENT, args->state, "recurrent states", envs *(size_t)args->states, 4)                               \
    I(FIRST_RECURRENT, args->first_state, "rollout: first recurrent states", envs *(size_t)args->states, 4)    \
    I(WORDS, ppo->d_words, "envs to copy", envs, ppo->env_words * 4)                                           \
    I(SAMPLE_OBS, args->obs, "rollout: observations", samples *obs, 4)                                         \
    I(SAMPLE_ACTIONS, args->action, "rollout: actions", samples *(size_t)args->action_words, 4)                \
    I(SAMPLE_ROWS, sample_rows, "rollout: values, rewards, advantages", samples, PPO_SAMPLE_ROWS * 4)          \
    I(ORDER, args->order, "order of the samples", samples, 4)                                                  \
    I(OUTCOMES, args->outcomes, "statistics of envs", envs + shards, sizeof(PpoOutcome))                       \
    I(OBS_MOMENTS, args->obs_moments, "statistics of observations", (envs + shards) * obs, sizeof(PpoMoments)) \
    I(ADVANTAGES, args->advantage_moments, "statistics of advantages", advantage_sums, sizeof(PpoMoments))     \
    I(SHARD_ADVANTAGES, args->shard_advantages, "statistics of shards' advantages", shards *minibatches,       \
      sizeof(PpoMoments))                                                                                      \
    I(SCALES, args->advantages, "scales of advantages", minibatches, sizeof(PpoAdvantageScale))                \
    I(CHUNK_LOSSES, args->chunk_losses, "losses of chunks", chunks, sizeof(PpoLosses))                         \
    I(LOSSES, args->losses, "losses of shards", shards, sizeof(PpoLosses))                                     \
    I(PARTIAL, args->partial, "gradients of chunks", shards *(size_t)args->round_chunks, params * 4)           \
    I(SUMS, args->sums, "gradients of shards", shards, params * 4)                                             \
    I(SQUARES, args->squares, "squares of the gradient", (params + PPO_TILE - 1) / PPO_TILE, sizeof(double))   \
    I(SCRATCH, args->scratch, "activations of blocks", scratch_floats(ppo), 4)                                 \
    I(STEP, ppo->d_step, "settings of an update", 1, sizeof(CudaPpoStep))                                      \
    I(REPORT, args->report, "report of an update", 1, sizeof(CudaPpoReport))

enum PpoItem {
#define PPO_ENUM(name, pointer, purpose, count, item_bytes) ITEM_##name,
    PPO_ITEMS(PPO_ENUM)
#undef PPO_ENUM
};

// Rows of one word per lane, and per sample.
enum PpoEnvRow {
    ROW_REWARD,
    ROW_TERMINATED,
    ROW_TRUNCATED,
    ROW_LENGTH,
    ROW_RETURN,
    ROW_FINAL_LENGTH,
    ROW_FINAL_RETURN,
    ROW_EPISODE,
    ROW_DISCOUNTED,
    ROW_LAST_VALUE,
    PPO_ENV_ROWS
};
enum PpoSampleRow {
    ROW_LOG_PROB,
    ROW_VALUE,
    ROW_ADVANTAGE,
    ROW_TARGET,
    ROW_SAMPLE_REWARD,
    ROW_FINAL_VALUE,
    ROW_ENDED,
    PPO_SAMPLE_ROWS
};

static size_t scratch_floats(const CudaPpo *ppo) {
    const CudaPpoArgs *args = &ppo->args;
    size_t rollout = args->rollout.is_shared ? 0 : (size_t)args->rollout.floats * (size_t)ppo->rollout_blocks;
    size_t learn = args->learn.is_shared ? 0 : (size_t)args->learn.floats * (size_t)ppo->learn_blocks;
    return rollout > learn ? rollout : learn;
}

static size_t lanes_of(const CudaPpo *ppo) {
    return (size_t)(ppo->args.envs + CUDA_LANES - 1) / CUDA_LANES * CUDA_LANES;
}

static Status plan_ppo(const CudaPpo *ppo, HostPlan *plan) {
    const CudaPpoArgs *args = &ppo->args;
    const CudaBatchArgs *batch = &args->batch;
    const SimSpec *sim = ppo->spec.sim.spec;
    size_t params = (size_t)args->params_count, lanes = lanes_of(ppo), obs = (size_t)sim->obs;
    size_t envs = (size_t)args->envs, samples = envs * (size_t)args->steps, shards = (size_t)args->shards;
    size_t minibatches = (size_t)args->minibatches, chunks = shards * (size_t)args->chunks;
    size_t advantage_sums = minibatches * shards * (size_t)args->advantage_sums;
#define PPO_ADD(name, pointer, purpose, count, item_bytes) \
    TRY(ppo->backend->host.plan_add(plan, purpose, count, item_bytes, NULL));
    PPO_ITEMS(PPO_ADD)
#undef PPO_ADD
    return STATUS_OK;
}

Status cuda_ppo_plan(KernBackend *backend, const KernPpoSpec *spec, HostPlan *plan) {
    CudaPpo ppo;
    TRY(describe_ppo(&ppo, (CudaBackend *)backend, spec));
    return plan_ppo(&ppo, plan);
}

static void place_rows(CudaPpo *ppo, uint32_t *env_rows, float *sample_rows) {
    CudaPpoArgs *args = &ppo->args;
    KernBatchView *view = &args->batch.view;
    size_t lanes = lanes_of(ppo), samples = (size_t)args->envs * (size_t)args->steps;
    view->reward = (float *)(env_rows + ROW_REWARD * lanes);
    view->terminated = (int32_t *)(env_rows + ROW_TERMINATED * lanes);
    view->truncated = (int32_t *)(env_rows + ROW_TRUNCATED * lanes);
    view->length = (int32_t *)(env_rows + ROW_LENGTH * lanes);
    view->episode_return = (float *)(env_rows + ROW_RETURN * lanes);
    view->final_length = (int32_t *)(env_rows + ROW_FINAL_LENGTH * lanes);
    view->final_return = (float *)(env_rows + ROW_FINAL_RETURN * lanes);
    args->batch.episode = env_rows + ROW_EPISODE * lanes;
    args->discounted = (float *)(env_rows + ROW_DISCOUNTED * lanes);
    args->last_value = (float *)(env_rows + ROW_LAST_VALUE * lanes);
    args->log_prob = sample_rows + ROW_LOG_PROB * samples;
    args->value = sample_rows + ROW_VALUE * samples;
    args->advantage = sample_rows + ROW_ADVANTAGE * samples;
    args->target = sample_rows + ROW_TARGET * samples;
    args->reward = sample_rows + ROW_SAMPLE_REWARD * samples;
    args->final_value = sample_rows + ROW_FINAL_VALUE * samples;
    args->ended = (int32_t *)(sample_rows + ROW_ENDED * samples);
}

static void place_buffers(CudaPpo *ppo) {
    CudaPpoArgs *args = &ppo->args;
    CudaBatchArgs *batch = &args->batch;
    KernBatchView *view = &batch->view;
    uint32_t *env_rows = NULL;
    float *sample_rows = NULL;
#define PPO_PLACE(name, pointer, purpose, count, item_bytes) \
    pointer = host_block_at(&ppo->block, &ppo->plan, ITEM_##name);
    PPO_ITEMS(PPO_PLACE)
#undef PPO_PLACE
    place_rows(ppo, env_rows, sample_rows);
    if (args->actor.precision == POLICY_FLOAT32) args->weights = args->params;
    args->step = ppo->d_step;
    batch->infinite = &args->report->infinite;
}

static Status open_ppo(CudaPpo *ppo, CudaBackend *backend, const KernPpoSpec *spec) {
    TRY(describe_ppo(ppo, backend, spec));
    backend->host.plan_init(&ppo->plan);
    TRY(plan_ppo(ppo, &ppo->plan));
    HostMemory memory = cuda_memory(&backend->base);
    TRY(backend->host.plan_alloc(&ppo->plan, &memory, &ppo->block));
    place_buffers(ppo);
    void *mail = NULL;
    CUDA_TRY(backend, cudaMallocHost(&mail, sizeof *ppo->mail));
    ppo->mail = memset(mail, 0, sizeof *ppo->mail);
    for (int i = 0; i < CUDA_PPO_AHEAD; i++)
        CUDA_TRY(backend, cudaEventCreateWithFlags(&ppo->launched[i], cudaEventDisableTiming));
    CUDA_TRY(backend, cuda_launch_ppo_reset(ppo->sim, &ppo->args, backend->stream));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}

Status cuda_ppo_open(KernBackend *base, const KernPpoSpec *spec, KernPpo **out) {
    CudaBackend *backend = (CudaBackend *)base;
    CudaPpo *ppo = calloc(1, sizeof *ppo);
    if (ppo == NULL) return cuda_fail(backend, STATUS_MEMORY, "no memory for PPO");
    Status status = open_ppo(ppo, backend, spec);
    if (status != STATUS_OK) {
        cuda_ppo_close(&ppo->base);
        return status;
    }
    *out = &ppo->base;
    return STATUS_OK;
}

void cuda_ppo_close(KernPpo *base) {
    if (base == NULL) return;
    CudaPpo *ppo = (CudaPpo *)base;
    // Nobody to tell where these fail: after a fault every call does.
    (void)cudaSetDevice(ppo->backend->device);
    if (ppo->graph != NULL) (void)cudaGraphExecDestroy(ppo->graph);
    if (ppo->mail != NULL) (void)cudaFreeHost(ppo->mail);
    for (int i = 0; i < CUDA_PPO_AHEAD; i++)
        if (ppo->launched[i] != NULL) (void)cudaEventDestroy(ppo->launched[i]);
    cuda_ppo_leave(ppo);
    ppo->backend->host.block_free(&ppo->block);
    free(ppo);
}

// ---- the state's way in and out ------------------------------------------------------------------------------------

Status cuda_ppo_write(KernPpo *base, const KernPpoState *state) {
    CudaPpo *ppo = (CudaPpo *)base;
    const CudaBackend *backend = ppo->backend;
    size_t size_bytes = (size_t)ppo->args.params_count * 4, words_bytes = (size_t)ppo->args.envs * ppo->env_words * 4;
    TRY(cuda_enter(backend));
    TRY(cuda_upload(backend, ppo->args.params, state->params, size_bytes));
    TRY(cuda_upload(backend, ppo->args.first, state->first, size_bytes));
    TRY(cuda_upload(backend, ppo->args.second, state->second, size_bytes));
    if (state->envs != NULL) {
        TRY(cuda_upload(backend, ppo->d_words, state->envs, words_bytes));
        CUDA_TRY(backend,
                 cuda_launch_ppo_move_envs(&ppo->args, ppo->d_words, 0, ppo->args.envs, false, backend->stream));
        CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    }
    CUDA_TRY(backend, cuda_launch_ppo_round(&ppo->args, backend->stream));
    ppo->adam_steps = state->adam_steps;
    ppo_statistics_write(&ppo->statistics, ppo->spec.sim.spec->obs, state);
    return STATUS_OK;
}

Status cuda_ppo_read(KernPpo *base, KernPpoState *state) {
    CudaPpo *ppo = (CudaPpo *)base;
    const CudaBackend *backend = ppo->backend;
    size_t size_bytes = (size_t)ppo->args.params_count * 4, words_bytes = (size_t)ppo->args.envs * ppo->env_words * 4;
    TRY(cuda_enter(backend));
    TRY(cuda_download(backend, state->params, ppo->args.params, size_bytes));
    TRY(cuda_download(backend, state->first, ppo->args.first, size_bytes));
    TRY(cuda_download(backend, state->second, ppo->args.second, size_bytes));
    if (state->envs != NULL) {
        CUDA_TRY(backend,
                 cuda_launch_ppo_move_envs(&ppo->args, ppo->d_words, 0, ppo->args.envs, true, backend->stream));
        TRY(cuda_download(backend, state->envs, ppo->d_words, words_bytes));
    }
    state->adam_steps = ppo->adam_steps;
    ppo_statistics_read(&ppo->statistics, ppo->spec.sim.spec->obs, state);
    return STATUS_OK;
}
