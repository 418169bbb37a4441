#include "es/es.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "es/es_best.h"
#include "es/es_remote.h"
#include "es/es_trainers.h"
#include "host/clock.h"
#include "host/trace.h"
#include "sim/sim_rng.h"

enum EsItem { ES_EPISODES, ES_SUMS, ES_FITNESS, ES_SHAPED, ES_PARAMS, ES_FIRST, ES_SECOND, ES_BEST };

static bool has_best(const KernEsSpec *spec) { return spec->objective.kind != KERN_OBJECTIVE_NONE; }

static Status plan_host(const EsConfig *config, const KernEsSpec *spec, HostPlan *plan) {
    size_t members = (size_t)spec->members, episodes = members * (size_t)spec->episodes;
    size_t tested = (size_t)config->test_episodes, params = (size_t)spec->policy.params;
    TRY(host_plan_add(plan, "episode results", episodes > tested ? episodes : tested, sizeof(KernEpisode), NULL));
    TRY(host_plan_add(plan, "normaliser sums of the episodes", config->normalize ? episodes : 0,
                      2 * (size_t)spec->policy.size[0] * sizeof(float), NULL));
    TRY(host_plan_add(plan, "fitness", members, sizeof(float), NULL));
    TRY(host_plan_add(plan, "shaped fitness", members, sizeof(float), NULL));
    TRY(host_plan_add(plan, "parameters (host copy)", params, sizeof(float), NULL));
    TRY(host_plan_add(plan, "Adam first moments (host copy)", params, sizeof(float), NULL));
    TRY(host_plan_add(plan, "Adam second moments (host copy)", params, sizeof(float), NULL));
    return host_plan_add(plan, "best parameters", has_best(spec) ? 2 : 0, params * sizeof(float), NULL);
}

Status es_plan(KernBackend *backend, const EsConfig *config, HostPlan *plan) {
    KernEsSpec spec;
    TRY(es_config_spec(config, &spec));
    TRY(plan_host(config, &spec, plan));
    return backend->ops->es_plan(backend, &spec, plan);
}

static Status open_kernels(Es *es) {
    char bytes[16];
    Status status = es->backend->ops->es_open(es->backend, &es->spec, &es->kern);
    if (status != STATUS_MEMORY || es->spec.table == 0) return status;
    return host_fail(status,
                     "%s; --noise table takes %s of it: a smaller --noise-table, or --noise counter, takes less",
                     host_message(), host_bytes_text((size_t)es->spec.table * sizeof(float), bytes));
}

static Status open_parts(Es *es) {
    TRY(es_config_spec(&es->config, &es->spec));
    HostPlan plan;
    host_plan_init(&plan);
    TRY(plan_host(&es->config, &es->spec, &plan));
    HostMemory memory = host_memory_cpu();
    TRY(host_plan_alloc(&plan, &memory, &es->block));
    es->episodes = host_block_at(&es->block, &plan, ES_EPISODES);
    es->sums = es->config.normalize ? host_block_at(&es->block, &plan, ES_SUMS) : NULL;
    es->fitness = host_block_at(&es->block, &plan, ES_FITNESS);
    es->shaped = host_block_at(&es->block, &plan, ES_SHAPED);
    es->params = host_block_at(&es->block, &plan, ES_PARAMS);
    es->first = host_block_at(&es->block, &plan, ES_FIRST);
    es->second = host_block_at(&es->block, &plan, ES_SECOND);
    TRY(open_kernels(es));
    if (has_best(&es->spec)) {
        es->best = (EsBest){.fitness = -INFINITY, .at = {-1, -1}, .next_member = -1};
        es->best.params = host_block_at(&es->block, &plan, ES_BEST);
        es->best.next = es->best.params + es->spec.policy.params;
        kern_objective_start(&es->spec.objective, es->spec.seed, es->spec.policy.params, es->params);
    } else {
        policy_init(&es->spec.policy, es->spec.seed, es->params);
    }
    es_derive_schedule(es);
    return es->backend->ops->es_write(es->kern, es->params, es->first, es->second);
}

Status es_open(KernBackend *backend, const EsConfig *config, Es *es) {
    memset(es, 0, sizeof *es);
    es->config = *config;
    es->backend = backend;
    Status status = open_parts(es);
    if (status != STATUS_OK) es_close(es);
    return status;
}

void es_close(Es *es) {
    if (es->kern != NULL) es->backend->ops->es_close(es->kern);
    es_remote_close(es->remote);
    es_trainers_close(es->trainers);
    free(es->lost);
    host_block_free(&es->block);
    memset(es, 0, sizeof *es);
}

static void advance_schedule(Es *es) {
    const EsConfig *c = &es->config;
    es->sigma =
        es->sigma * c->sigma_decay < c->sigma_min && c->sigma_decay < 1.0 ? c->sigma_min : es->sigma * c->sigma_decay;
    es->lr = es->lr * c->lr_decay < c->lr_min && c->lr_decay < 1.0 ? c->lr_min : es->lr * c->lr_decay;
    es->beta1_power *= c->beta1;
    es->beta2_power *= c->beta2;
}

void es_derive_schedule(Es *es) {
    es->sigma = es->config.sigma;
    es->lr = es->config.lr;
    es->beta1_power = es->config.beta1;
    es->beta2_power = es->config.beta2;
    for (int64_t i = 0; i < es->generation; i++)
        advance_schedule(es);
}

static void normalizer_of(const Es *es, KernNormalizer *out) {
    const EsNormalizer *n = &es->normalizer;
    for (int k = 0; k < es->spec.policy.size[0]; k++) {
        out->mean[k] = 0.0f;
        out->scale[k] = 1.0f;
        if (n->count == 0.0) continue;
        double mean = n->sum[k] / n->count, variance = n->square[k] / n->count - mean * mean;
        out->mean[k] = (float)mean;
        out->scale[k] = (float)(1.0 / sqrt(variance > 1e-6 ? variance : 1e-6));
    }
}

// Takes in a generation's observations, by (member, episode).
static Status fold_observations(const Es *es, EsNormalizer *n) {
    HOST_TRACE_SCOPE(LEARNING, "es observations");
    *n = es->normalizer;
    if (es->sums == NULL) return STATUS_OK;
    int obs = es->spec.policy.size[0];
    int64_t episodes = (int64_t)es->spec.members * es->spec.episodes;
    for (int64_t i = 0; i < episodes * 2 * obs; i++) {
        if (isfinite(es->sums[i])) continue;
        return host_fail(STATUS_NUMERIC,
                         "%s: member %lld, episode %lld: observation %lld is too large to be normalised",
                         es->config.env, (long long)(i / (2 * obs) / es->spec.episodes),
                         (long long)(i / (2 * obs) % es->spec.episodes), (long long)(i % obs));
    }
    for (int64_t i = 0; i < episodes; i++) {
        const float *sums = es->sums + i * 2 * obs;
        n->count += (double)es->episodes[i].length;
        for (int k = 0; k < obs; k++) {
            n->sum[k] += (double)sums[k];
            n->square[k] += (double)sums[obs + k];
        }
    }
    return STATUS_OK;
}

Status es_reserve_lost(Es *es, int64_t count) {
    if (count <= es->lost_room) return STATUS_OK;
    EsLost *lost = realloc(es->lost, (size_t)(2 * count) * sizeof *lost);
    if (lost == NULL) return host_fail(STATUS_MEMORY, "no memory for %lld lost members", (long long)count);
    es->lost = lost;
    es->lost_room = 2 * count;
    return STATUS_OK;
}

// lost: [lost_count] members, ascending.
static void fold_fitness(Es *es, const int32_t *lost, int32_t lost_count, EsReport *report) {
    HOST_TRACE_SCOPE(LEARNING, "es fitness");
    double sum = 0.0, low = (double)INFINITY, high = -low;
    int64_t steps = 0;
    int32_t at = 0;
    for (int32_t m = 0; m < es->spec.members; m++) {
        if (at < lost_count && lost[at] == m) {
            es->fitness[m] = -INFINITY;
            at++;
            continue;
        }
        double total = 0.0;
        for (int32_t e = 0; e < es->spec.episodes; e++) {
            const KernEpisode *episode = &es->episodes[(int64_t)m * es->spec.episodes + e];
            total += (double)episode->episode_return;
            steps += episode->length;
        }
        double mean = total / (double)es->spec.episodes;
        es->fitness[m] = (float)mean;
        sum += mean;
        low = mean < low ? mean : low;
        high = mean > high ? mean : high;
    }
    double members = (double)es->spec.members - (double)lost_count;
    report->lost = lost_count;
    report->return_mean = sum / members;
    report->return_min = low;
    report->return_max = high;
    report->length_mean = (double)steps / (members * (double)es->spec.episodes);
    report->env_steps = steps;
}

void es_job(const Es *es, KernEsJob *job, KernNormalizer *normalizer) {
    normalizer_of(es, normalizer);
    *job = (KernEsJob){
        .purpose = SIM_RNG_EPISODE,
        .generation = (uint32_t)es->generation,
        .sigma = (float)es->sigma,
        .first = 0,
        .count = es->spec.members,
        .episodes = es->spec.episodes,
    };
}

// Evaluates the generation's members, here and elsewhere.
static Status evaluate(Es *es, EsOutcome *outcome) {
    KernEsJob job;
    KernNormalizer normalizer;
    EsReport *report = &outcome->report;
    const int32_t *lost = NULL;
    int32_t lost_count = 0;
    es_job(es, &job, &normalizer);
    if (es->remote == NULL) {
        TRY(es->backend->ops->es_evaluate(es->kern, &job, &normalizer, es->episodes, es->sums));
    } else {
        TRY(es_remote_evaluate(es, &job, &normalizer, &lost, &lost_count));
    }
    TRY(kern_check_returns(es->config.env, es->episodes, job.count, job.episodes));
    memset(report, 0, sizeof *report);
    fold_fitness(es, lost, lost_count, report);
    report->generation = es->generation + 1;
    report->sigma = es->sigma;
    report->lr = es->lr;
    report->env_steps_total = es->env_steps + report->env_steps;
    return fold_observations(es, &outcome->normalizer);
}

void es_clock(const Es *es, EsOutcome *outcome) {
    outcome->report.wall_s = host_now_s() - outcome->start_s;
    outcome->report.train_s = es->train_s + outcome->report.wall_s;
}

Status es_update(Es *es, int32_t first, int32_t count) {
    const KernOps *ops = es->backend->ops;
    KernEsStep step = {
        .generation = (uint32_t)es->generation,
        .gradient_scale = (float)(1.0 / ((double)es->spec.members * es->sigma)),
        .learning_rate = (float)(es->lr / (1.0 - es->beta1_power)),
        .beta1 = (float)es->config.beta1,
        .beta2 = (float)es->config.beta2,
        .second_scale = (float)(1.0 / (1.0 - es->beta2_power)),
        .epsilon = 1e-8f,
        .weight_decay = (float)es->config.weight_decay,
    };
    TRY(es_best_find(es));
    TRY(ops->es_shape(es->kern, es->fitness, es->shaped));
    return ops->es_update(es->kern, &step, es->shaped, first, count);
}

void es_commit(Es *es, const EsOutcome *outcome) {
    for (int32_t m = 0; outcome->report.lost > 0 && m < es->spec.members; m++)
        if (es->fitness[m] == -INFINITY) es->lost[es->lost_count++] = (EsLost){es->generation, m};
    es_best_commit(es);
    es->normalizer = outcome->normalizer;
    es->generation = outcome->report.generation;
    es->env_steps = outcome->report.env_steps_total;
    es->train_s = outcome->report.train_s;
    advance_schedule(es);
}

static Status update_alone(Es *es, EsOutcome *outcome) {
    TRY(es_reserve_lost(es, es->lost_count + outcome->report.lost));
    TRY(es_update(es, 0, es->spec.policy.params));
    TRY(es->backend->ops->es_read(es->kern, es->params, es->first, es->second));
    es_clock(es, outcome);
    es_commit(es, outcome);
    return STATUS_OK;
}

Status es_generation(Es *es, EsReport *report) {
    HOST_TRACE_SCOPE(HOST, "es generation");
    EsOutcome outcome = {.start_s = host_now_s()};
    TRY(evaluate(es, &outcome));
    TRY(es->trainers != NULL ? es_trainers_update(es, &outcome) : update_alone(es, &outcome));
    *report = outcome.report;
    return STATUS_OK;
}

Status es_test(Es *es, uint32_t round, int32_t episodes, KernTest *test) {
    HOST_TRACE_SCOPE(HOST, "es test");
    double start_s = host_now_s();
    KernNormalizer normalizer;
    normalizer_of(es, &normalizer);
    TRY(kern_test(es->kern, &normalizer, es->config.env, round, episodes, es->episodes, test));
    es->train_s += host_now_s() - start_s;
    return STATUS_OK;
}

void es_frozen(const Es *es, KernFrozen *out) {
    *out = (KernFrozen){.sim = &es->spec.sim,
                        .policy = &es->spec.policy,
                        .params = es->params,
                        .seed = es->spec.seed,
                        .episodes = es->episodes};
    normalizer_of(es, &out->normalizer);
}

HostHash es_params_hash(const Es *es) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, es->params, (size_t)es->spec.policy.params * sizeof *es->params);
    return hash;
}
