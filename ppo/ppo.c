#include "ppo/ppo.h"

#include <math.h>
#include <string.h>

#include "host/clock.h"
#include "host/trace.h"

enum PpoItem { PPO_PARAMS, PPO_FIRST, PPO_SECOND, PPO_ENVS, PPO_EPISODES };

static Status plan_host(const PpoConfig *config, const KernPpoSpec *spec, HostPlan *plan) {
    size_t params = (size_t)spec->policy.params;
    TRY(host_plan_add(plan, "parameters (host copy)", params, sizeof(float), NULL));
    TRY(host_plan_add(plan, "Adam first moments (host copy)", params, sizeof(float), NULL));
    TRY(host_plan_add(plan, "Adam second moments (host copy)", params, sizeof(float), NULL));
    TRY(host_plan_add(plan, "envs (host copy)", (size_t)spec->envs, (size_t)ppo_env_words(spec) * 4, NULL));
    TRY(host_plan_add(plan, "episode results of a test", (size_t)config->test_episodes, sizeof(KernEpisode), NULL));
    return STATUS_OK;
}

// The actor as a population of which only the unperturbed policy is evaluated.
static KernEsSpec tester_spec(const KernPpoSpec *spec) {
    return (KernEsSpec){
        .sim = spec->sim, .policy = spec->policy.actor, .seed = spec->seed, .members = 2, .episodes = 1};
}

Status ppo_plan(KernBackend *backend, const PpoConfig *config, HostPlan *plan) {
    KernPpoSpec spec;
    TRY(ppo_config_spec(config, &spec));
    TRY(plan_host(config, &spec, plan));
    TRY(backend->ops->ppo_plan(backend, &spec, plan));
    KernEsSpec tester = tester_spec(&spec);
    return backend->ops->es_plan(backend, &tester, plan);
}

static Status open_parts(Ppo *ppo) {
    TRY(ppo_config_spec(&ppo->config, &ppo->spec));
    HostPlan plan;
    host_plan_init(&plan);
    TRY(plan_host(&ppo->config, &ppo->spec, &plan));
    HostMemory memory = host_memory_cpu();
    TRY(host_plan_alloc(&plan, &memory, &ppo->block));
    ppo->state.params = host_block_at(&ppo->block, &plan, PPO_PARAMS);
    ppo->state.first = host_block_at(&ppo->block, &plan, PPO_FIRST);
    ppo->state.second = host_block_at(&ppo->block, &plan, PPO_SECOND);
    ppo->state.envs = host_block_at(&ppo->block, &plan, PPO_ENVS);
    ppo->episodes = host_block_at(&ppo->block, &plan, PPO_EPISODES);
    const KernOps *ops = ppo->backend->ops;
    TRY(ops->ppo_open(ppo->backend, &ppo->spec, &ppo->kern));
    KernEsSpec tester = tester_spec(&ppo->spec);
    TRY(ops->es_open(ppo->backend, &tester, &ppo->tester));
    TRY(ops->ppo_read(ppo->kern, &ppo->state)); // the envs' first episodes
    ppo_init(&ppo->spec.policy, ppo->spec.seed, (float)ppo->config.log_std, ppo->state.params);
    return ops->ppo_write(ppo->kern, &ppo->state);
}

Status ppo_open(KernBackend *backend, const PpoConfig *config, Ppo *ppo) {
    memset(ppo, 0, sizeof *ppo);
    ppo->config = *config;
    ppo->backend = backend;
    Status status = open_parts(ppo);
    if (status != STATUS_OK) ppo_close(ppo);
    return status;
}

void ppo_close(Ppo *ppo) {
    if (ppo->tester != NULL) ppo->backend->ops->es_close(ppo->tester);
    if (ppo->kern != NULL) ppo->backend->ops->ppo_close(ppo->kern);
    host_block_free(&ppo->block);
    memset(ppo, 0, sizeof *ppo);
}

// A sum of finite rewards may still overflow: as kern_check_returns(), for the episodes that ended in a rollout.
static Status check_returns(const Ppo *ppo, const KernPpoReport *report) {
    if (isfinite(report->episode_return)) return STATUS_OK;
    return host_fail(STATUS_NUMERIC, "%s: update %lld: the return is infinite in at least one of %lld episodes",
                     ppo->config.env, (long long)ppo->update, (long long)report->episodes);
}

Status ppo_update(Ppo *ppo, PpoReport *report) {
    HOST_TRACE_SCOPE(HOST, "ppo update");
    double start_s = host_now_s();
    memset(report, 0, sizeof *report);
    KernPpoStep step;
    ppo_config_step(&ppo->config, ppo->update, &step);
    TRY(ppo->backend->ops->ppo_update(ppo->kern, &step, &report->kern));
    TRY(check_returns(ppo, &report->kern));
    TRY(ppo->backend->ops->ppo_read(ppo->kern, &ppo->state));
    report->env_steps = ppo_config_update_steps(&ppo->config);
    ppo->update++;
    ppo->env_steps += report->env_steps;
    double episodes = (double)report->kern.episodes;
    report->update = ppo->update;
    report->return_mean = episodes > 0.0 ? report->kern.episode_return / episodes : (double)NAN;
    report->length_mean = episodes > 0.0 ? (double)report->kern.episode_steps / episodes : (double)NAN;
    report->learning_rate = (double)step.learning_rate;
    report->wall_s = host_now_s() - start_s;
    ppo->train_s += report->wall_s;
    report->env_steps_total = ppo->env_steps;
    report->train_s = ppo->train_s;
    return STATUS_OK;
}

Status ppo_test(Ppo *ppo, uint32_t round, int32_t episodes, KernTest *test) {
    HOST_TRACE_SCOPE(HOST, "ppo test");
    double start_s = host_now_s();
    const KernPpoState *state = &ppo->state;
    KernNormalizer normalizer;
    ppo_normalizer(&ppo->spec, state, &normalizer);
    // The actor's parameters come first; its moments are not used.
    TRY(ppo->backend->ops->es_write(ppo->tester, state->params, state->first, state->second));
    TRY(kern_test(ppo->tester, &normalizer, ppo->config.env, round, episodes, ppo->episodes, test));
    ppo->train_s += host_now_s() - start_s;
    return STATUS_OK;
}

// The actor's parameters come first.
void ppo_frozen(const Ppo *ppo, KernFrozen *out) {
    *out = (KernFrozen){.sim = &ppo->spec.sim,
                        .policy = &ppo->spec.policy.actor,
                        .params = ppo->state.params,
                        .seed = ppo->spec.seed,
                        .episodes = ppo->episodes};
    ppo_normalizer(&ppo->spec, &ppo->state, &out->normalizer);
}

HostHash ppo_params_hash(const Ppo *ppo) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, ppo->state.params, (size_t)ppo->spec.policy.params * sizeof *ppo->state.params);
    return hash;
}
