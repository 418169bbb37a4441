// Evaluation and update of an ES population on the CPU: memory, and the spread of the work over the pool.
#include <stdlib.h>
#include <string.h>

#include "host/signals.h"
#include "host/trace.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dense.h"
#include "kernels/cpu/objective_call.h"
#include "kernels/es_math.h"

// Bytes of one thread's scratch, in the order that carve_scratch takes them; each part is a multiple of 64.
typedef struct ScratchSizes {
    size_t lanes, state, params, vector, packed, hidden, recurrent;
} ScratchSizes;

static ScratchSizes scratch_sizes(const CpuEs *es) {
    if (es->sim == NULL) return (ScratchSizes){.vector = (size_t)es->params_pad * 4};
    size_t lanes = (size_t)es->sim->lanes * 4;
    ScratchSizes s = {
        .lanes = sizeof(KernLanes),
        .state = es->sim->state_words * lanes,
        .params = es->sim->param_words * lanes,
        .vector = (size_t)es->params_pad * 4,
        .packed = (size_t)es->packed * 4,
        .hidden = (size_t)es->width_pad * DENSE_SAMPLES_MAX * 4,
        .recurrent = CPU_GANGS * LANES_MAX * (size_t)es->state_pad * 4,
    };
    s.state = (s.state + 63) / 64 * 64;
    s.params = (s.params + 63) / 64 * 64;
    return s;
}

static size_t scratch_bytes(const CpuEs *es) {
    ScratchSizes s = scratch_sizes(es);
    return CPU_GANGS * (s.lanes + s.state + s.params + (size_t)es->slots_max * s.packed) + 2 * s.vector + 3 * s.hidden +
           2 * s.recurrent;
}

static void *take(unsigned char **at, size_t bytes) {
    void *part = *at;
    *at += bytes;
    return part;
}

static void carve_scratch(const CpuEs *es, unsigned char *at, CpuScratch *scratch) {
    ScratchSizes s = scratch_sizes(es);
    for (int g = 0; es->sim != NULL && g < CPU_GANGS; g++) {
        KernLanes *lanes = scratch->lanes[g] = take(&at, s.lanes);
        lanes->state = take(&at, s.state);
        lanes->params = take(&at, s.params);
        lanes->sim = &es->spec.sim;
        lanes->seed_low = (uint32_t)es->spec.seed;
        lanes->seed_high = (uint32_t)(es->spec.seed >> 32);
    }
    scratch->noise = take(&at, s.vector);
    scratch->flat = take(&at, s.vector);
    scratch->packed = take(&at, CPU_GANGS * (size_t)es->slots_max * s.packed);
    for (int i = 0; i < 3; i++)
        scratch->hidden[i] = take(&at, s.hidden);
    scratch->state = take(&at, s.recurrent);
    scratch->kept = take(&at, s.recurrent);
}

static void describe_policy(CpuEs *es, const CpuBackend *cpu) {
    const PolicyShape *policy = &es->spec.policy;
    es->sim = cpu_sim_ops(cpu, es->spec.sim.spec);
    es->sims = cpu_sim_tables(cpu, es->spec.sim.spec);
    es->packed = 0;
    es->width_pad = 16;
    es->state_pad = cpu_round_up(policy->recurrent, 16);
    es->layers = policy_layers(policy, es->layer);
    for (int layer = 0; layer < es->layers; layer++) {
        int32_t in = es->layer[layer].in, out = es->layer[layer].out;
        es->packed += out >= POLICY_NARROW ? (in + 1) * cpu_round_up(out, 16) : out * cpu_round_up(in, 16) + 16;
        if (cpu_round_up(in, 16) > es->width_pad) es->width_pad = cpu_round_up(in, 16);
        if (cpu_round_up(out, 16) > es->width_pad) es->width_pad = cpu_round_up(out, 16);
    }
    // As many as keep the weights of all gangs in the first-level cache.
    es->slots_max = 1;
    size_t bytes = CPU_GANGS * (size_t)es->packed * sizeof(float);
    while (es->slots_max < es->sim->lanes && 2 * (size_t)es->slots_max * bytes <= CPU_L1_BUDGET_BYTES) {
        es->slots_max *= 2;
    }
}

// Fills in what follows from the spec, without memory.
static void describe_es(CpuEs *es, CpuBackend *cpu, const KernEsSpec *spec) {
    es->base.backend = &cpu->base;
    es->spec = *spec;
    es->isa = cpu->isa;
    es->pool = cpu->pool;
    es->params_pad = cpu_round_up(spec->policy.params, CPU_UPDATE_TILE);
    if (spec->objective.kind == KERN_OBJECTIVE_NONE) describe_policy(es, cpu);
}

enum EsItem { ES_PARAMS, ES_FIRST, ES_SECOND, ES_SCRATCH, ES_TABLE, ES_RANKED, ES_TEXT };

static Status plan_es(const CpuEs *es, HostPlan *plan) {
    size_t params = (size_t)es->params_pad, threads = (size_t)host_pool_threads(es->pool);
    TRY(host_plan_add(plan, "parameters", params, 4, NULL));
    TRY(host_plan_add(plan, "Adam first moments", params, 4, NULL));
    TRY(host_plan_add(plan, "Adam second moments", params, 4, NULL));
    TRY(host_plan_add(plan, "evaluation scratch of the threads", threads, scratch_bytes(es), NULL));
    TRY(host_plan_add(plan, "thread tables", threads, sizeof(CpuScratch), NULL));
    TRY(host_plan_add(plan, "ranking of the members", (size_t)es->spec.members, sizeof(CpuRanked), NULL));
    return host_plan_add(plan, "text for the objective's commands", threads, cpu_objective_text_bytes(&es->spec), NULL);
}

Status cpu_es_plan(KernBackend *backend, const KernEsSpec *spec, HostPlan *plan) {
    CpuEs es;
    memset(&es, 0, sizeof es);
    describe_es(&es, (CpuBackend *)backend, spec);
    TRY(plan_es(&es, plan));
    // Not in this process's own block.
    return spec->table > 0 ? host_plan_add(plan, "noise table, one for the host", (size_t)spec->table, 4, NULL)
                           : STATUS_OK;
}

Status cpu_es_open(KernBackend *backend, const KernEsSpec *spec, KernEs **out) {
    CpuEs *es = calloc(1, sizeof *es);
    if (es == NULL) return host_fail(STATUS_MEMORY, "no memory for an ES");
    describe_es(es, (CpuBackend *)backend, spec);
    host_plan_init(&es->plan);
    HostMemory memory = host_memory_cpu();
    Status status = plan_es(es, &es->plan);
    if (status == STATUS_OK) status = host_plan_alloc(&es->plan, &memory, &es->block);
    if (status == STATUS_OK) status = cpu_noise_open(es);
    if (status == STATUS_OK && es->sim == NULL) {
        char *text = host_block_at(&es->block, &es->plan, ES_TEXT);
        status = cpu_objective_open(&es->spec, host_pool_threads(es->pool), text, &es->objective);
    }
    if (status != STATUS_OK) {
        cpu_es_close(&es->base);
        return status;
    }
    es->params = host_block_at(&es->block, &es->plan, ES_PARAMS);
    es->first = host_block_at(&es->block, &es->plan, ES_FIRST);
    es->second = host_block_at(&es->block, &es->plan, ES_SECOND);
    es->scratch = host_block_at(&es->block, &es->plan, ES_TABLE);
    es->ranked = host_block_at(&es->block, &es->plan, ES_RANKED);
    unsigned char *scratch = host_block_at(&es->block, &es->plan, ES_SCRATCH);
    for (int i = 0; i < host_pool_threads(es->pool); i++) {
        carve_scratch(es, scratch + (size_t)i * scratch_bytes(es), &es->scratch[i]);
    }
    *out = &es->base;
    return STATUS_OK;
}

void cpu_es_close(KernEs *base) {
    if (base == NULL) return;
    CpuEs *es = (CpuEs *)base;
    cpu_objective_close(es->objective);
    cpu_noise_close(es);
    host_block_free(&es->block);
    free(es);
}

static void copy_vector(float *to, const float *from, int32_t count) { memcpy(to, from, (size_t)count * sizeof *to); }

Status cpu_es_write(KernEs *base, const float *params, const float *first, const float *second) {
    CpuEs *es = (CpuEs *)base;
    int32_t count = es->spec.policy.params;
    copy_vector(es->params, params, count);
    copy_vector(es->first, first, count);
    copy_vector(es->second, second, count);
    return STATUS_OK;
}

Status cpu_es_read(KernEs *base, float *params, float *first, float *second) {
    HOST_TRACE_SCOPE(HOST, "es read");
    CpuEs *es = (CpuEs *)base;
    int32_t count = es->spec.policy.params;
    copy_vector(params, es->params, count);
    copy_vector(first, es->first, count);
    copy_vector(second, es->second, count);
    return STATUS_OK;
}

enum { STRETCH_STEPS = 128 }; // of gangs, between two decisions whether to record them

static void evaluate_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)begin;
    (void)end;
    CpuEvaluation *evaluation = context;
    CpuProbe *probe = &evaluation->es->scratch[worker].probe;
    cpu_probe_open(probe, STRETCH_STEPS);
    evaluation->es->isa->ops->evaluate(evaluation, worker);
    cpu_probe_close(probe);
}

Status cpu_es_evaluate(KernEs *base, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                       float *sums) {
    HOST_TRACE_SCOPE(SIMULATION, "es evaluate");
    CpuEs *es = (CpuEs *)base;
    if (es->objective != NULL) return cpu_objective_evaluate(es, job, episodes);
    int threads = host_pool_threads(es->pool);
    CpuEvaluation evaluation = {
        .es = es, .job = job, .normalizer = normalizer, .episodes = episodes, .infinite = {.at = -1}};
    evaluation.sums = sums;
    atomic_flag_clear(&evaluation.infinite.lock);
    // With fewer members than slots, a member's episodes are spread over several tasks.
    int32_t ranges = (4 * threads + job->count - 1) / job->count;
    evaluation.ranges = ranges < job->episodes ? ranges : job->episodes;
    evaluation.chunk = job->sigma != 0.0f ? 2 * evaluation.ranges : 1;
    host_pool_for(es->pool, threads, 1, evaluate_piece, &evaluation);
    if (atomic_load(&evaluation.stopped)) return host_fail(STATUS_STOPPED, "stopped during an evaluation");
    const LanesInfinite *infinite = &evaluation.infinite;
    if (infinite->at < 0) return STATUS_OK;
    return host_fail(STATUS_NUMERIC,
                     "%s: generation %u, env %lld (member %lld, episode %lld), step %lld: %s is NaN or "
                     "infinite",
                     es->spec.sim.spec->name, job->generation, (long long)infinite->at,
                     (long long)(job->first + infinite->at / job->episodes), (long long)(infinite->at % job->episodes),
                     (long long)infinite->step, infinite->field != NULL ? infinite->field : "the reward");
}

Status cpu_es_member(KernEs *base, const KernEsJob *job, int32_t member, float *params) {
    CpuEs *es = (CpuEs *)base;
    CpuPair pair = {.number = -1};
    copy_vector(params, es->isa->ops->member(es, job, member, &es->scratch[0], &pair), es->spec.policy.params);
    return STATUS_OK;
}

static int compare_fitness(const void *a, const void *b) {
    float x = ((const CpuRanked *)a)->fitness, y = ((const CpuRanked *)b)->fitness;
    return (x > y) - (x < y);
}

Status cpu_es_shape(KernEs *base, const float *fitness, float *shaped) {
    HOST_TRACE_SCOPE(LEARNING, "es shape");
    CpuEs *es = (CpuEs *)base;
    int32_t n = es->spec.members;
    CpuRanked *ranked = es->ranked;
    for (int32_t i = 0; i < n; i++)
        ranked[i] = (CpuRanked){fitness[i], i};
    qsort(ranked, (size_t)n, sizeof *ranked, compare_fitness);
    for (int32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && ranked[end].fitness == ranked[first].fitness; end++) {
        }
        for (int32_t i = first; i < end; i++)
            shaped[ranked[i].member] = es_centred_rank(first, end - 1 - first, n);
    }
    return STATUS_OK;
}

typedef struct UpdateWork {
    CpuEs *es;
    const KernEsStep *step;
    const float *shaped;
    int32_t first, end; // parameters
} UpdateWork;

static void update_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    UpdateWork *work = context;
    for (int64_t tile = begin; tile < end; tile++) {
        int first = work->first + (int)tile * CPU_UPDATE_TILE, left = work->end - first;
        host_stop_requested(); // a look at it shows that this thread moves; an update is not broken off
        work->es->isa->ops->update(work->es, work->step, work->shaped, first,
                                   left < CPU_UPDATE_TILE ? left : CPU_UPDATE_TILE);
    }
}

Status cpu_es_update(KernEs *base, const KernEsStep *step, const float *shaped, int32_t first, int32_t count) {
    HOST_TRACE_SCOPE(LEARNING, "es update");
    CpuEs *es = (CpuEs *)base;
    UpdateWork work = {es, step, shaped, first, first + count};
    if (count > 0) host_pool_for(es->pool, (count + CPU_UPDATE_TILE - 1) / CPU_UPDATE_TILE, 1, update_piece, &work);
    return STATUS_OK;
}
