// Evaluation and update of an ES population on the GPU: memory, waves and slices; the kernels are in evaluate.cu and
// update.cu.
//
// A job's (member, episode) pairs are worked through in waves, as many at a time as there is room for results. In a
// wave, a fixed number of blocks (slots) take pairs from a queue. A wave is cut into slices, launches that make a
// limited number of steps each, so that a stop never waits long; how the work is cut decides no bit of the result.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "host/clock.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/launch.h"
#include "kernels/es_math.h"

enum {
    SLICE_TARGET_MS = 25, // half of what a slice may take: the next one may be slower
    SLICE_STEPS_MAX = 1 << 16,
    WAVE_PAIRS_MIN = 1024, // room for results, for jobs larger than the population's own
    WAVE_PAIRS_MAX = 1 << 16,
    UPDATE_ROUND_FLOATS = 4 << 20, // partial sums of one round of an update
    TABLE_ROUND_FLOATS = 64 << 20, // of the noise table that one launch makes: a few milliseconds
};

typedef struct CudaEs {
    KernEs base;
    CudaBackend *backend;
    KernEsSpec spec;
    int sim;
    int32_t layers;
    PolicyLayer layer[POLICY_DENSE_MAX]; // [layers]
    HostPlan plan;
    HostBlock block;
    int32_t params_pad, width_pad, slot_words;
    int threads, slots;
    size_t shared_bytes;
    bool weights_are_global;                                  // they do not fit a block's shared memory
    int32_t wave_pairs;                                       // room for results
    int32_t round_chunks;                                     // of an update
    int32_t steps;                                            // of the next slice
    float *d_params, *d_first, *d_second, *d_sum, *d_partial; // [params_pad]; partial [round_chunks][params_pad]
    float *d_weights, *d_sums, *d_normalizer, *d_fitness, *d_shaped, *d_table;
    uint32_t *d_slots;
    KernEpisode *d_episodes;
    CudaWaveCounters *d_counters;
    void *d_parts; // what trainers exchange, [size][3][range]; NULL: they never did
    size_t parts_bytes;
} CudaEs;

static int32_t round_up(int32_t x, int32_t to) { return (x + to - 1) / to * to; }

static int64_t at_least(int64_t x, int64_t least) { return x > least ? x : least; }

static int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

// A thread has two outputs of the widest layer: the fewer threads, the cheaper their barriers.
static int choose_threads(const CudaEs *es) {
    int32_t widest = 0;
    for (int i = 0; i < es->layers; i++)
        widest = es->layer[i].out > widest ? es->layer[i].out : widest;
    int threads = round_up((widest + 1) / 2, 32);
    return threads < CUDA_THREADS_MAX ? threads : CUDA_THREADS_MAX;
}

// Blocks that are resident at once: more would only wait.
static Status choose_slots(CudaEs *es) {
    const CudaBackend *backend = es->backend;
    size_t with_weights = cuda_evaluate_shared_bytes(&es->spec.policy, es->width_pad, es->params_pad);
    es->weights_are_global = with_weights > backend->shared_bytes;
    es->shared_bytes =
        es->weights_are_global ? cuda_evaluate_shared_bytes(&es->spec.policy, es->width_pad, 0) : with_weights;
    int blocks = 0;
    CUDA_TRY(backend, cuda_evaluate_occupancy(es->sim, es->threads, es->shared_bytes, backend->shared_bytes, &blocks));
    if (blocks < 1) {
        return cuda_fail(backend, STATUS_DEVICE,
                         "GPU %d: a block of %d threads with %zu bytes of shared memory does not fit", backend->device,
                         es->threads, es->shared_bytes);
    }
    int64_t slots = at_most((int64_t)blocks * backend->processors, es->wave_pairs);
    if (es->weights_are_global) {
        size_t member_bytes = (size_t)es->params_pad * 4;
        slots = at_most(slots, at_least((int64_t)(backend->memory_bytes / 4 / member_bytes), 1));
    }
    es->slots = (int)slots;
    return STATUS_OK;
}

// Fills in what follows from the spec, without memory.
static Status describe_es(CudaEs *es, CudaBackend *backend, const KernEsSpec *spec) {
    const PolicyShape *policy = &spec->policy;
    const SimSpec *sim = spec->sim.spec;
    if (spec->objective.kind != KERN_OBJECTIVE_NONE)
        return cuda_fail(backend, STATUS_DEVICE, "%s: objectives without a simulator run on CPUs",
                         spec->objective.name);
    memset(es, 0, sizeof *es);
    es->base.backend = &backend->base;
    es->backend = backend;
    es->spec = *spec;
    TRY(cuda_enter(backend));
    TRY(cuda_sim_index(backend, sim, &es->sim));
    es->layers = backend->host.policy_layers(policy, es->layer);
    es->params_pad = round_up(policy->params, CUDA_NOISE_GROUP);
    for (int i = 0; i < es->layers; i++) {
        int32_t wider = es->layer[i].in > es->layer[i].out ? es->layer[i].in : es->layer[i].out;
        if (round_up(wider, 4) > es->width_pad) es->width_pad = round_up(wider, 4);
    }
    int32_t words = CUDA_SLOT_STATE + sim->state_words + sim->param_count + 2 * sim->obs + policy->recurrent;
    es->slot_words = round_up(words, 16);
    es->threads = choose_threads(es);
    int64_t pairs = (int64_t)spec->members * spec->episodes;
    es->wave_pairs = (int32_t)at_most(at_least(pairs, WAVE_PAIRS_MIN), WAVE_PAIRS_MAX);
    int32_t chunks = (spec->members / 2 + ES_PAIR_CHUNK - 1) / ES_PAIR_CHUNK;
    es->round_chunks = (int32_t)at_most(at_least(UPDATE_ROUND_FLOATS / es->params_pad, 1), at_least(chunks, 1));
    TRY(choose_slots(es));
    // A first guess, of a few milliseconds; measurements take over.
    int64_t weights = (int64_t)es->slots * es->params_pad;
    es->steps = (int32_t)at_most(at_least(1000000000 / weights, 1), 256);
    if (backend->host.slice_steps > 0) {
        es->steps = backend->host.slice_steps;
        es->round_chunks = 1;
    }
    return STATUS_OK;
}

// In the order of the plan's items: I(member of CudaEs, purpose, count, bytes of each).
#define ES_ITEMS(I)                                                                                                 \
    I(d_params, "parameters", (size_t)es->params_pad, 4)                                                            \
    I(d_first, "Adam first moments", (size_t)es->params_pad, 4)                                                     \
    I(d_second, "Adam second moments", (size_t)es->params_pad, 4)                                                   \
    I(d_sum, "gradient sums", (size_t)es->params_pad, 4)                                                            \
    I(d_partial, "gradient partial sums", (size_t)es->round_chunks, (size_t)es->params_pad * 4)                     \
    I(d_weights, "members' parameters", es->weights_are_global ? (size_t)es->slots : 0, (size_t)es->params_pad * 4) \
    I(d_slots, "episodes under way", (size_t)es->slots, (size_t)es->slot_words * 4)                                 \
    I(d_episodes, "episode results of a wave", (size_t)es->wave_pairs, sizeof(KernEpisode))                         \
    I(d_sums, "normaliser sums of a wave", (size_t)es->wave_pairs, (size_t)es->spec.sim.spec->obs * 8)              \
    I(d_normalizer, "normaliser", 2, (size_t)es->spec.sim.spec->obs * 4)                                            \
    I(d_fitness, "fitness to rank", (size_t)es->spec.members, 4)                                                    \
    I(d_shaped, "ranked fitness", (size_t)es->spec.members, 4)                                                      \
    I(d_counters, "queue", 1, sizeof(CudaWaveCounters))                                                             \
    I(d_table, "noise table", (size_t)es->spec.table, 4)

enum EsItem {
#define ES_ENUM(name, purpose, count, item_bytes) ES_##name,
    ES_ITEMS(ES_ENUM)
#undef ES_ENUM
};

static Status plan_es(const CudaEs *es, HostPlan *plan) {
    const CudaHost *host = &es->backend->host;
#define ES_ADD(name, purpose, count, item_bytes) TRY(host->plan_add(plan, purpose, count, item_bytes, NULL));
    ES_ITEMS(ES_ADD)
#undef ES_ADD
    return STATUS_OK;
}

Status cuda_es_plan(KernBackend *backend, const KernEsSpec *spec, HostPlan *plan) {
    CudaEs es;
    TRY(describe_es(&es, (CudaBackend *)backend, spec));
    return plan_es(&es, plan);
}

static Status make_table(const CudaEs *es) {
    const CudaBackend *backend = es->backend;
    for (int64_t first = 0; first < es->spec.table; first += TABLE_ROUND_FLOATS) {
        if (backend->host.stop_requested())
            return cuda_fail(backend, STATUS_STOPPED, "stopped while the noise table was made");
        int64_t count = at_most(es->spec.table - first, TABLE_ROUND_FLOATS);
        CUDA_TRY(backend, cuda_launch_noise_table(es->spec.seed, first, count, es->d_table, backend->stream));
        CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    }
    return STATUS_OK;
}

static Status open_es(CudaEs *es, CudaBackend *backend, const KernEsSpec *spec) {
    TRY(describe_es(es, backend, spec));
    backend->host.plan_init(&es->plan);
    TRY(plan_es(es, &es->plan));
    HostMemory memory = cuda_memory(&backend->base);
    TRY(backend->host.plan_alloc(&es->plan, &memory, &es->block));
#define ES_PLACE(name, purpose, count, item_bytes) es->name = host_block_at(&es->block, &es->plan, ES_##name);
    ES_ITEMS(ES_PLACE)
#undef ES_PLACE
    return make_table(es);
}

static EsNoise noise_of(const CudaEs *es) { return es_noise(&es->spec, es->spec.table > 0 ? es->d_table : NULL); }

Status cuda_es_open(KernBackend *base, const KernEsSpec *spec, KernEs **out) {
    CudaBackend *backend = (CudaBackend *)base;
    CudaEs *es = calloc(1, sizeof *es);
    if (es == NULL) return cuda_fail(backend, STATUS_MEMORY, "no memory for an ES");
    Status status = open_es(es, backend, spec);
    if (status != STATUS_OK) {
        backend->host.block_free(&es->block);
        free(es);
        return status;
    }
    *out = &es->base;
    return STATUS_OK;
}

static void drop_parts(CudaEs *es) {
    HostMemory memory = cuda_memory(&es->backend->base);
    if (es->d_parts != NULL) memory.release(memory.self, es->d_parts, es->parts_bytes);
    es->d_parts = NULL;
    es->parts_bytes = 0;
}

void cuda_es_close(KernEs *base) {
    if (base == NULL) return;
    CudaEs *es = (CudaEs *)base;
    drop_parts(es);
    es->backend->host.block_free(&es->block);
    free(es);
}

Status cuda_es_write(KernEs *base, const float *params, const float *first, const float *second) {
    CudaEs *es = (CudaEs *)base;
    size_t size_bytes = (size_t)es->spec.policy.params * 4;
    TRY(cuda_enter(es->backend));
    TRY(cuda_upload(es->backend, es->d_params, params, size_bytes));
    TRY(cuda_upload(es->backend, es->d_first, first, size_bytes));
    return cuda_upload(es->backend, es->d_second, second, size_bytes);
}

Status cuda_es_read(KernEs *base, float *params, float *first, float *second) {
    CudaEs *es = (CudaEs *)base;
    size_t size_bytes = (size_t)es->spec.policy.params * 4;
    TRY(cuda_enter(es->backend));
    TRY(cuda_download(es->backend, params, es->d_params, size_bytes));
    TRY(cuda_download(es->backend, first, es->d_first, size_bytes));
    return cuda_download(es->backend, second, es->d_second, size_bytes);
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

static CudaEvaluateArgs evaluate_args(const CudaEs *es, const KernEsJob *job, bool sums) {
    CudaEvaluateArgs args = {
        .sim = es->spec.sim,
        .policy = es->spec.policy,
        .seed = es->spec.seed,
        .noise = noise_of(es),
        .params = es->d_params,
        .mean = es->d_normalizer,
        .scale = es->d_normalizer + es->spec.sim.spec->obs,
        .weights = es->weights_are_global ? es->d_weights : NULL,
        .slots = es->d_slots,
        .episodes = es->d_episodes,
        .sums = sums ? es->d_sums : NULL,
        .counters = es->d_counters,
        .first_member = job->first,
        .episodes_per_member = job->episodes,
        .purpose = job->purpose,
        .generation = job->generation,
        .sigma = job->sigma,
        .common = es->spec.common,
        .slot_words = es->slot_words,
        .params_pad = es->params_pad,
        .width_pad = es->width_pad,
        .layers = es->layers,
        .is_probed = es->backend->host.trace_hooks() != NULL,
    };
    memcpy(args.layer, es->layer, sizeof es->layer);
    return args;
}

// The next slice takes about SLICE_TARGET_MS if its steps take as long as this one's. Growth is slow: in the first
// slices many blocks may have little to do.
static void adapt_steps(CudaEs *es, float slice_ms) {
    if (es->backend->host.slice_steps > 0) return;
    float factor = slice_ms > 0.0f ? (float)SLICE_TARGET_MS / slice_ms : 4.0f;
    if (factor > 4.0f) factor = 4.0f;
    float steps = (float)es->steps * factor;
    es->steps = steps < 1.0f ? 1 : steps > SLICE_STEPS_MAX ? SLICE_STEPS_MAX : (int32_t)steps;
}

static Status run_slice(CudaEs *es, const CudaEvaluateArgs *args, CudaWaveCounters *counters) {
    const CudaBackend *backend = es->backend;
    float slice_ms = 0.0f;
    int slots = args->pairs < es->slots ? args->pairs : es->slots;
    CUDA_TRY(backend, cudaEventRecord(backend->begin, backend->stream));
    CUDA_TRY(backend, cuda_launch_evaluate(es->sim, args, slots, es->threads, es->shared_bytes, backend->stream));
    CUDA_TRY(backend, cudaEventRecord(backend->end, backend->stream));
    TRY(cuda_download(backend, counters, es->d_counters, sizeof *counters));
    CUDA_TRY(backend, cudaEventElapsedTime(&slice_ms, backend->begin, backend->end));
    adapt_steps(es, slice_ms);
    return STATUS_OK;
}

// Runs pairs [wave_first, wave_first + pairs) to their end.
static Status run_wave(CudaEs *es, CudaEvaluateArgs *args, CudaWaveCounters *counters) {
    const CudaBackend *backend = es->backend;
    // A member's episodes stay together where there is work enough for all: its weights are then made once.
    args->unit = (int32_t)at_most(at_least(args->pairs / (4 * es->slots), 1), args->episodes_per_member);
    *counters = (CudaWaveCounters){.infinite = CUDA_INFINITE_NONE};
    TRY(cuda_upload(backend, es->d_counters, counters, sizeof *counters));
    size_t slots_bytes = (size_t)es->slots * (size_t)es->slot_words * 4;
    CUDA_TRY(backend, cudaMemsetAsync(es->d_slots, 0, slots_bytes, backend->stream));
    while (counters->finished < (uint32_t)args->pairs) {
        if (backend->host.stop_requested()) return cuda_fail(backend, STATUS_STOPPED, "stopped during an evaluation");
        args->steps = es->steps;
        TRY(run_slice(es, args, counters));
    }
    backend->host.trace_split(counters->ticks.of);
    return STATUS_OK;
}

static Status report_infinite(const CudaEs *es, const KernEsJob *job, int64_t wave_first, uint64_t infinite) {
    const SimSpec *spec = es->spec.sim.spec;
    int64_t at = wave_first + (int64_t)(infinite >> (23 + CUDA_FIELD_BITS));
    return cuda_fail(es->backend, STATUS_NUMERIC,
                     "%s: generation %u, env %lld (member %lld, episode %lld), step %lld: %s is NaN or infinite",
                     spec->name, job->generation, (long long)at, (long long)(job->first + at / job->episodes),
                     (long long)(at % job->episodes), (long long)(infinite >> CUDA_FIELD_BITS & 0x7fffff),
                     cuda_field_name(spec, (int)(infinite & CUDA_FIELD_REWARD)));
}

Status cuda_es_evaluate(KernEs *base, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                        float *sums) {
    CudaEs *es = (CudaEs *)base;
    const CudaBackend *backend = es->backend;
    CUDA_TRACE_SCOPE(backend, SIMULATION, "es evaluate");
    TRY(cuda_enter(backend));
    int64_t pairs = (int64_t)job->count * job->episodes;
    size_t obs = (size_t)es->spec.sim.spec->obs, sums_bytes = 2 * obs * 4;
    TRY(cuda_upload(backend, es->d_normalizer, normalizer->mean, obs * 4));
    TRY(cuda_upload(backend, es->d_normalizer + obs, normalizer->scale, obs * 4));
    CudaEvaluateArgs args = evaluate_args(es, job, sums != NULL);
    for (int64_t first = 0; first < pairs; first += es->wave_pairs) {
        CudaWaveCounters counters;
        args.wave_first = first;
        args.pairs = (int32_t)at_most(pairs - first, es->wave_pairs);
        TRY(run_wave(es, &args, &counters));
        if (counters.infinite != CUDA_INFINITE_NONE) return report_infinite(es, job, first, counters.infinite);
        size_t count = (size_t)args.pairs;
        TRY(cuda_download(backend, episodes + first, es->d_episodes, count * sizeof *episodes));
        if (sums != NULL) TRY(cuda_download(backend, sums + (size_t)first * 2 * obs, es->d_sums, count * sums_bytes));
    }
    return STATUS_OK;
}

// ---- ranks and update ----------------------------------------------------------------------------------------------

Status cuda_es_shape(KernEs *base, const float *fitness, float *shaped) {
    CudaEs *es = (CudaEs *)base;
    const CudaBackend *backend = es->backend;
    CUDA_TRACE_SCOPE(backend, LEARNING, "es shape");
    size_t size_bytes = (size_t)es->spec.members * 4;
    TRY(cuda_enter(backend));
    TRY(cuda_upload(backend, es->d_fitness, fitness, size_bytes));
    CUDA_TRY(backend, cuda_launch_shape(es->d_fitness, es->spec.members, es->d_shaped, backend->stream));
    return cuda_download(backend, shaped, es->d_shaped, size_bytes);
}

Status cuda_es_update(KernEs *base, const KernEsStep *step, const float *shaped, int32_t first, int32_t count) {
    CudaEs *es = (CudaEs *)base;
    const CudaBackend *backend = es->backend;
    CUDA_TRACE_SCOPE(backend, LEARNING, "es update");
    if (count == 0) return STATUS_OK;
    TRY(cuda_enter(backend));
    TRY(cuda_upload(backend, es->d_shaped, shaped, (size_t)es->spec.members * 4));
    CudaUpdateArgs args = {
        .step = *step,
        .noise = noise_of(es),
        .shaped = es->d_shaped,
        .partial = es->d_partial,
        .sum = es->d_sum,
        .params = es->d_params,
        .first = es->d_first,
        .second = es->d_second,
        .begin = first,
        .end = first + count,
        .params_pad = es->params_pad,
        .pairs = es->spec.members / 2,
    };
    int32_t chunks = (args.pairs + ES_PAIR_CHUNK - 1) / ES_PAIR_CHUNK;
    for (args.chunk = 0; args.chunk < chunks; args.chunk += es->round_chunks) {
        args.chunks = (int32_t)at_most(chunks - args.chunk, es->round_chunks);
        args.is_first = args.chunk == 0;
        args.is_last = args.chunk + args.chunks == chunks;
        CUDA_TRY(backend, cuda_launch_update(&args, backend->stream));
    }
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}

// ---- several trainers ----------------------------------------------------------------------------------------------

static Status make_room(CudaEs *es, size_t bytes) {
    if (bytes <= es->parts_bytes) return STATUS_OK;
    HostMemory memory = cuda_memory(&es->backend->base);
    drop_parts(es);
    TRY(memory.alloc(memory.self, bytes, &es->d_parts));
    es->parts_bytes = bytes;
    return STATUS_OK;
}

// Between the rank's range of the three vectors and its part.
static Status copy_range(const CudaEs *es, int32_t range, int rank, bool into_part) {
    const CudaBackend *backend = es->backend;
    float *const vectors[3] = {es->d_params, es->d_first, es->d_second};
    int64_t left = (int64_t)es->spec.policy.params - (int64_t)rank * range;
    size_t bytes = (size_t)at_most(at_least(left, 0), range) * sizeof(float);
    for (int64_t k = 0; k < 3 && bytes > 0; k++) {
        float *vector = vectors[k] + (int64_t)rank * range;
        float *part = (float *)es->d_parts + ((int64_t)rank * 3 + k) * range;
        CUDA_TRY(backend, cudaMemcpyAsync(into_part ? part : vector, into_part ? vector : part, bytes,
                                          cudaMemcpyDeviceToDevice, backend->stream));
    }
    return STATUS_OK;
}

Status cuda_es_gather(KernEs *base, HostComm *comm, int32_t range) {
    CudaEs *es = (CudaEs *)base;
    const CudaBackend *backend = es->backend;
    size_t part_bytes = 3 * (size_t)range * sizeof(float);
    TRY(cuda_enter(backend));
    TRY(make_room(es, part_bytes * (size_t)comm->size));
    TRY(copy_range(es, range, comm->rank, true));
    TRY(backend->host.comm_all_gather(comm, (char *)es->d_parts + (size_t)comm->rank * part_bytes, es->d_parts,
                                      part_bytes, host_now_s() + HOST_COMM_PATIENCE_S));
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank) TRY(copy_range(es, range, rank, false));
    CUDA_TRY(backend, cudaStreamSynchronize(backend->stream));
    return STATUS_OK;
}
