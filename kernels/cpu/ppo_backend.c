// PPO on the CPU backend: memory, the state's way in and out, and one update.
#include <stdlib.h>
#include <string.h>

#include "host/signals.h"
#include "host/trace.h"
#include "kernels/cpu/ppo_cpu.h"
#include "sim/sim_rng.h"

// P(name of the item, purpose, count, bytes of one). In words per env, lanes and step.
#define PPO_MEMORY(P)                                                                                         \
    P(PARAMS, "parameters", params, 4)                                                                        \
    P(FIRST, "Adam first moments", params, 4)                                                                 \
    P(SECOND, "Adam second moments", params, 4)                                                               \
    P(PACKED, "packed weights", (size_t)net->packed, 4)                                                       \
    P(STATE, "simulator state", lanes * sim->state_words, 4)                                                  \
    P(SIM_PARAMS, "simulator parameters of each env", spec->sim.any_random ? lanes * sim->param_words : 0, 4) \
    P(OBS, "observations", lanes *obs, 4)                                                                     \
    P(FINAL_OBS, "final observations", lanes *obs, 4)                                                         \
    P(DISCRETE, "discrete actions", lanes *(discrete > 0 ? discrete : 1), 4)                                  \
    P(CONTINUOUS, "continuous actions", lanes *continuous, 4)                                                 \
    P(ENVS, "rewards, flags and episodes", lanes *PPO_ENV_ROWS, 4)                                            \
    P(RECURRENT, "recurrent states", envs *(size_t)net->state_pad, 4)                                         \
    P(SAMPLE_RECURRENT, "rollout: first recurrent states", envs *(size_t)net->state_pad, 4)                   \
    P(SAMPLE_OBS, "rollout: observations", samples *obs, 4)                                                   \
    P(SAMPLE_ACTIONS, "rollout: actions", samples *(discrete + continuous), 4)                                \
    P(SAMPLE_ROWS, "rollout: values, rewards, advantages", samples *PPO_SAMPLE_ROWS, 4)                       \
    P(ORDER, "order of the samples", samples, 4)                                                              \
    P(ENV_OBS, "statistics of observations", envs *obs, sizeof(PpoMoments))                                   \
    P(OF_ENV, "statistics of envs", envs, sizeof(PpoOutcome))                                                 \
    P(SHARD_OBS, "statistics of shards: observations", shards *obs, sizeof(PpoMoments))                       \
    P(OF_SHARD, "statistics of shards", shards, sizeof(PpoOutcome))                                           \
    P(ADVANTAGES, "statistics of advantages", shards *(size_t)spec->minibatches, sizeof(PpoMoments))          \
    P(GRADIENTS, "gradients of groups of shards", groups *(size_t)net->gradient, 4)                           \
    P(BRANCHES, "gradients of shards", threads *PPO_BRANCHES *(size_t)net->gradient, 4)                       \
    P(GRADIENT, "gradient", params, 4)                                                                        \
    P(LOSSES, "losses of the shards", shards, sizeof(PpoLosses))                                              \
    P(SCRATCH, "activations of the threads", threads *(size_t)(net->rows + net->gradient), 4)                 \
    P(TABLE, "thread tables", threads, sizeof(PpoScratch))

// Rows of one word per env, and per sample.
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

enum PpoItem {
#define PPO_ENUM(name, purpose, count, bytes) ITEM_##name,
    PPO_MEMORY(PPO_ENUM)
#undef PPO_ENUM
};

static size_t padded_envs(const CpuPpo *ppo) { return (size_t)cpu_round_up(ppo->spec.envs, ppo->sim->lanes); }

static Status plan_ppo(const CpuPpo *ppo, HostPlan *plan) {
    const KernPpoSpec *spec = &ppo->spec;
    const PpoNet *net = &ppo->net;
    const LanesOps *sim = ppo->sim;
    size_t params = (size_t)net->shape.params, lanes = padded_envs(ppo), obs = (size_t)spec->sim.spec->obs;
    size_t envs = (size_t)spec->envs, samples = envs * (size_t)spec->rollout, shards = (size_t)spec->shards;
    size_t discrete = (size_t)net->shape.actor.discrete, continuous = (size_t)net->shape.actor.continuous;
    size_t threads = (size_t)host_pool_threads(ppo->pool), groups = shards / (size_t)ppo->group_shards;
#define PPO_ADD(name, purpose, count, bytes) TRY(host_plan_add(plan, purpose, count, bytes, NULL));
    PPO_MEMORY(PPO_ADD)
#undef PPO_ADD
    return STATUS_OK;
}

// Fills in what follows from the spec, without memory.
static Status describe_ppo(CpuPpo *ppo, KernBackend *backend, const KernPpoSpec *spec) {
    CpuBackend *cpu = (CpuBackend *)backend;
    TRY(ppo_check(spec));
    ppo->base.backend = backend;
    ppo->spec = *spec;
    ppo->isa = cpu->isa;
    ppo->pool = cpu->pool;
    ppo->sim = cpu_sim_ops(cpu, spec->sim.spec);
    ppo_net_make(&ppo->net, &spec->policy, spec->rollout);
    TRY(ppo_group_init(&ppo->group, spec, NULL));
    cpu_ppo_share(ppo);
    return STATUS_OK;
}

Status cpu_ppo_plan(KernBackend *backend, const KernPpoSpec *spec, HostPlan *plan) {
    CpuPpo ppo;
    memset(&ppo, 0, sizeof ppo);
    TRY(describe_ppo(&ppo, backend, spec));
    return plan_ppo(&ppo, plan);
}

static void carve_batch(CpuPpo *ppo) {
    LanesBatch *batch = &ppo->batch;
    KernBatchView *view = &batch->view;
    size_t lanes = padded_envs(ppo);
    uint32_t *rows = host_block_at(&ppo->block, &ppo->plan, ITEM_ENVS);
    view->envs = ppo->spec.envs;
    view->lanes = ppo->sim->lanes;
    view->blocks = (int64_t)lanes / view->lanes;
    view->obs = host_block_at(&ppo->block, &ppo->plan, ITEM_OBS);
    view->final_obs = host_block_at(&ppo->block, &ppo->plan, ITEM_FINAL_OBS);
    view->discrete = host_block_at(&ppo->block, &ppo->plan, ITEM_DISCRETE);
    view->continuous = host_block_at(&ppo->block, &ppo->plan, ITEM_CONTINUOUS);
    view->state = host_block_at(&ppo->block, &ppo->plan, ITEM_STATE);
    view->reward = (float *)(rows + ROW_REWARD * lanes);
    view->terminated = (int32_t *)(rows + ROW_TERMINATED * lanes);
    view->truncated = (int32_t *)(rows + ROW_TRUNCATED * lanes);
    view->length = (int32_t *)(rows + ROW_LENGTH * lanes);
    view->episode_return = (float *)(rows + ROW_RETURN * lanes);
    view->final_length = (int32_t *)(rows + ROW_FINAL_LENGTH * lanes);
    view->final_return = (float *)(rows + ROW_FINAL_RETURN * lanes);
    batch->episode = rows + ROW_EPISODE * lanes;
    ppo->discounted = (float *)(rows + ROW_DISCOUNTED * lanes);
    ppo->state = host_block_at(&ppo->block, &ppo->plan, ITEM_RECURRENT);
    batch->params = host_block_at(&ppo->block, &ppo->plan, ITEM_SIM_PARAMS);
    batch->sim = ppo->spec.sim;
    batch->seed_low = (uint32_t)ppo->spec.seed;
    batch->seed_high = (uint32_t)(ppo->spec.seed >> 32);
    batch->autoreset = KERN_AUTORESET_SAME_STEP;
    atomic_flag_clear(&batch->infinite.lock);
    atomic_flag_clear(&ppo->infinite.lock);
}

static void carve_learning(CpuPpo *ppo) {
    size_t samples = (size_t)ppo->spec.envs * (size_t)ppo->spec.rollout;
    float *rows = host_block_at(&ppo->block, &ppo->plan, ITEM_SAMPLE_ROWS);
    ppo->samples = (PpoSamples){.obs = host_block_at(&ppo->block, &ppo->plan, ITEM_SAMPLE_OBS),
                                .action = host_block_at(&ppo->block, &ppo->plan, ITEM_SAMPLE_ACTIONS),
                                .log_prob = rows + ROW_LOG_PROB * samples,
                                .value = rows + ROW_VALUE * samples,
                                .advantage = rows + ROW_ADVANTAGE * samples,
                                .target = rows + ROW_TARGET * samples,
                                .ended = (int32_t *)(rows + ROW_ENDED * samples),
                                .state = host_block_at(&ppo->block, &ppo->plan, ITEM_SAMPLE_RECURRENT)};
    ppo->reward = rows + ROW_SAMPLE_REWARD * samples;
    ppo->final_value = rows + ROW_FINAL_VALUE * samples;
    ppo->params = host_block_at(&ppo->block, &ppo->plan, ITEM_PARAMS);
    ppo->first = host_block_at(&ppo->block, &ppo->plan, ITEM_FIRST);
    ppo->second = host_block_at(&ppo->block, &ppo->plan, ITEM_SECOND);
    ppo->packed = host_block_at(&ppo->block, &ppo->plan, ITEM_PACKED);
    ppo->order = host_block_at(&ppo->block, &ppo->plan, ITEM_ORDER);
    ppo->env_obs = host_block_at(&ppo->block, &ppo->plan, ITEM_ENV_OBS);
    ppo->of_env = host_block_at(&ppo->block, &ppo->plan, ITEM_OF_ENV);
    ppo->shard_obs = host_block_at(&ppo->block, &ppo->plan, ITEM_SHARD_OBS);
    ppo->of_shard = host_block_at(&ppo->block, &ppo->plan, ITEM_OF_SHARD);
    ppo->advantage_moments = host_block_at(&ppo->block, &ppo->plan, ITEM_ADVANTAGES);
    ppo->gradients = host_block_at(&ppo->block, &ppo->plan, ITEM_GRADIENTS);
    ppo->gradient = host_block_at(&ppo->block, &ppo->plan, ITEM_GRADIENT);
    ppo->branches = host_block_at(&ppo->block, &ppo->plan, ITEM_BRANCHES);
    ppo->losses = host_block_at(&ppo->block, &ppo->plan, ITEM_LOSSES);
    ppo->scratch = host_block_at(&ppo->block, &ppo->plan, ITEM_TABLE);
    float *scratch = host_block_at(&ppo->block, &ppo->plan, ITEM_SCRATCH);
    for (int i = 0; i < host_pool_threads(ppo->pool); i++) {
        ppo_net_carve(&ppo->net, scratch, &ppo->scratch[i]);
        scratch += ppo->net.rows + ppo->net.gradient;
    }
}

Status cpu_ppo_open(KernBackend *backend, const KernPpoSpec *spec, KernPpo **out) {
    CpuPpo *ppo = calloc(1, sizeof *ppo);
    if (ppo == NULL) return host_fail(STATUS_MEMORY, "no memory for PPO");
    host_plan_init(&ppo->plan);
    HostMemory memory = host_memory_cpu();
    Status status = describe_ppo(ppo, backend, spec);
    if (status == STATUS_OK) status = plan_ppo(ppo, &ppo->plan);
    if (status == STATUS_OK) status = host_plan_alloc(&ppo->plan, &memory, &ppo->block);
    if (status != STATUS_OK) {
        free(ppo);
        return status;
    }
    carve_batch(ppo);
    carve_learning(ppo);
    ppo->sim->batch_reset(&ppo->batch, NULL, 0, ppo->batch.view.blocks);
    *out = &ppo->base;
    return STATUS_OK;
}

void cpu_ppo_close(KernPpo *base) {
    if (base == NULL) return;
    CpuPpo *ppo = (CpuPpo *)base;
    host_block_free(&ppo->group_block);
    host_block_free(&ppo->block);
    free(ppo);
}

// ---- the state's way in and out ------------------------------------------------------------------------------------

// Copies a word between an env's record and the backend's place for it.
static void move_word(void *place, uint32_t *word, bool out) {
    memcpy(out ? (void *)word : place, out ? place : (void *)word, 4);
}

static void move_env(CpuPpo *ppo, int32_t env, uint32_t *word, bool out) {
    const SimSpec *sim = ppo->spec.sim.spec;
    const KernBatchView *view = &ppo->batch.view;
    int64_t block = env / view->lanes, lane = env % view->lanes, lanes = view->lanes;
    for (int k = 0; k < sim->state_words; k++)
        move_word(view->state + (block * sim->state_words + k) * lanes + lane, word++, out);
    for (int k = 0; k < sim->param_count; k++, word++) {
        if (ppo->spec.sim.any_random) {
            move_word(ppo->batch.params + (block * sim->param_count + k) * lanes + lane, word, out);
        } else if (out) {
            memcpy(word, &ppo->spec.sim.value[k], 4);
        }
    }
    move_word(&ppo->batch.episode[env], word++, out);
    move_word(&view->length[env], word++, out);
    move_word(&view->episode_return[env], word++, out);
    move_word(&ppo->discounted[env], word++, out);
    for (int k = 0; k < sim->obs; k++)
        move_word(view->obs + (block * sim->obs + k) * lanes + lane, word++, out);
    float *state = ppo->state + (int64_t)env * ppo->net.state_pad;
    for (int32_t i = 0; i < ppo->net.network.states; i++) {
        const PpoLayer *layer = &ppo->net.layer[ppo->net.network.state[i]];
        for (int k = 0; k < layer->node.out; k++)
            move_word(state + k, word++, out);
        state += layer->out_pad;
    }
}

static void move_envs(CpuPpo *ppo, int32_t first, int32_t end, uint32_t *envs, bool out) {
    int32_t words = ppo_env_words(&ppo->spec);
    for (int32_t env = first; env < end; env++)
        move_env(ppo, env, envs + (int64_t)env * words, out);
}

void cpu_ppo_move_envs(CpuPpo *ppo, uint32_t *envs, bool out) {
    int32_t of_shard = ppo->spec.envs / ppo->spec.shards;
    // Out: its own. In: all.
    if (out)
        move_envs(ppo, ppo->group.first_shard * of_shard, (ppo->group.first_shard + ppo->group.own_shards) * of_shard,
                  envs, out);
    if (!out) move_envs(ppo, 0, ppo->spec.envs, envs, out);
}

static void move_vector(float *here, float *there, int32_t count, bool out) {
    memcpy(out ? there : here, out ? here : there, (size_t)count * sizeof *here);
}

static void move_state(CpuPpo *ppo, KernPpoState *state, bool out) {
    int32_t params = ppo->net.shape.params;
    move_vector(ppo->params, state->params, params, out);
    move_vector(ppo->first, state->first, params, out);
    move_vector(ppo->second, state->second, params, out);
    if (state->envs != NULL) move_envs(ppo, 0, ppo->spec.envs, state->envs, out);
}

Status cpu_ppo_write(KernPpo *base, const KernPpoState *state) {
    CpuPpo *ppo = (CpuPpo *)base;
    KernPpoState from = *state; // only read from
    move_state(ppo, &from, false);
    ppo->adam_steps = state->adam_steps;
    ppo_statistics_write(&ppo->statistics, ppo->spec.sim.spec->obs, state);
    ppo_net_pack(&ppo->net, ppo->params, ppo->packed);
    return STATUS_OK;
}

Status cpu_ppo_read(KernPpo *base, KernPpoState *state) {
    HOST_TRACE_SCOPE(HOST, "ppo read");
    CpuPpo *ppo = (CpuPpo *)base;
    move_state(ppo, state, true);
    state->adam_steps = ppo->adam_steps;
    ppo_statistics_read(&ppo->statistics, ppo->spec.sim.spec->obs, state);
    return STATUS_OK;
}

// ---- one update ----------------------------------------------------------------------------------------------------

enum { STRETCH_STEPS = 32 }; // between two decisions whether to record them

static void rollout_piece(void *context, int64_t begin, int64_t end, int worker) {
    CpuPpo *ppo = context;
    CpuProbe *probe = &ppo->scratch[worker].probe;
    cpu_probe_open(probe, STRETCH_STEPS);
    ppo->isa->ops->ppo_rollout(ppo, ppo->first_block + begin, ppo->first_block + end, worker);
    cpu_probe_close(probe);
}

static Status check_infinite(const CpuPpo *ppo) {
    const LanesInfinite *own = &ppo->infinite;
    const char *field = own->at < 0 ? NULL : own->field != NULL ? own->field : "the reward";
    PpoInfinite first = ppo_infinite(own->step, own->at, field);
    return ppo_group_infinite(&ppo->group, &ppo->spec, ppo->update, &first);
}

static Status roll_out(CpuPpo *ppo, const KernPpoStep *step) {
    HOST_TRACE_SCOPE(SIMULATION, "ppo rollout");
    KernPpoState state;
    ppo_statistics_read(&ppo->statistics, ppo->spec.sim.spec->obs, &state);
    ppo_normalizer(&ppo->spec, &state, &ppo->normalizer);
    ppo->reward_scale = ppo_reward_scale(ppo->statistics.discounted);
    ppo->update = step->update;
    ppo->infinite.at = -1;
    host_pool_for(ppo->pool, ppo->end_block - ppo->first_block, ppo->piece_blocks, rollout_piece, ppo);
    if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped during a rollout");
    return check_infinite(ppo);
}

static void fold_shard(CpuPpo *ppo, int32_t shard) {
    int32_t obs = ppo->spec.sim.spec->obs, envs = ppo->spec.envs / ppo->spec.shards;
    PpoMoments *of_obs = ppo->shard_obs + (int64_t)shard * obs;
    PpoOutcome outcome = {.episodes = 0};
    memset(of_obs, 0, (size_t)obs * sizeof *of_obs);
    for (int32_t env = shard * envs; env < (shard + 1) * envs; env++) {
        for (int32_t k = 0; k < obs; k++)
            of_obs[k] = ppo_moments_fold(of_obs[k], ppo->env_obs[(int64_t)env * obs + k]);
        outcome = ppo_outcome_fold(outcome, ppo->of_env[env]);
    }
    ppo->of_shard[shard] = outcome;
}

// Envs are folded in each shard, then shards, all in order; then the rollout with the updates before.
static Status take_statistics(CpuPpo *ppo, KernPpoReport *report) {
    HOST_TRACE_SCOPE(LEARNING, "ppo statistics");
    int32_t obs = ppo->spec.sim.spec->obs;
    PpoMoments of_obs[POLICY_OBS_MAX] = {{0}};
    PpoOutcome all = {.episodes = 0};
    for (int32_t i = 0; i < ppo->group.own_shards; i++)
        fold_shard(ppo, ppo->group.first_shard + i);
    TRY(cpu_ppo_gather_statistics(ppo));
    for (int32_t shard = 0; shard < ppo->spec.shards; shard++) {
        for (int32_t k = 0; k < obs; k++)
            of_obs[k] = ppo_moments_fold(of_obs[k], ppo->shard_obs[(int64_t)shard * obs + k]);
        all = ppo_outcome_fold(all, ppo->of_shard[shard]);
    }
    const char *infinite = ppo_statistics_add(&ppo->statistics, obs, of_obs, all.discounted);
    if (infinite != NULL) {
        return host_fail(STATUS_NUMERIC, "%s: update %u: %s is NaN or infinite", ppo->spec.sim.spec->name, ppo->update,
                         infinite);
    }
    report->explained_variance = ppo_explained_variance(all);
    report->episodes = all.episodes;
    report->episode_steps = all.episode_steps;
    report->episode_return = all.episode_return;
    return STATUS_OK;
}

Status cpu_ppo_update(KernPpo *base, const KernPpoStep *step, KernPpoReport *report) {
    CpuPpo *ppo = (CpuPpo *)base;
    memset(report, 0, sizeof *report);
    TRY(roll_out(ppo, step));
    TRY(cpu_ppo_learn(ppo, step, report));
    TRY(take_statistics(ppo, report));
    return cpu_ppo_gather_envs(ppo);
}
