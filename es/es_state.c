// The training state as a checkpoint file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "es/es.h"
#include "host/run_state.h"
#include "host/trace.h"

// The state's scalars, as they stand in the file.
typedef struct EsScalars {
    int64_t progress[2]; // generation, env_steps
    double train_s;
} EsScalars;

static bool has_best(const Es *es) { return es->best.params != NULL; }

enum { STATE_TENSORS = 8, STATE_TENSORS_MAX = 16 };

// The tensors of a checkpoint, in terms of where their data is; `es` and `scalars` are only pointed at.
static void list_tensors(const Es *es, const EsScalars *scalars, HostTensor tensors[STATE_TENSORS]) {
    int64_t params = es->spec.policy.params, obs = es->spec.policy.size[0];
    const HostTensor list[STATE_TENSORS] = {
        {"params", HOST_DTYPE_F32, 1, {params}, es->params},
        {"adam_first", HOST_DTYPE_F32, 1, {params}, es->first},
        {"adam_second", HOST_DTYPE_F32, 1, {params}, es->second},
        {"normalizer_count", HOST_DTYPE_F64, 1, {1}, &es->normalizer.count},
        {"normalizer_sum", HOST_DTYPE_F64, 1, {obs}, es->normalizer.sum},
        {"normalizer_square", HOST_DTYPE_F64, 1, {obs}, es->normalizer.square},
        {"progress", HOST_DTYPE_I64, 1, {2}, scalars->progress},
        {"train_s", HOST_DTYPE_F64, 1, {1}, &scalars->train_s},
    };
    memcpy(tensors, list, sizeof list);
}

// "objective-rastrigin of 100": a command's or a library's name is a setting, and may change its place.
static const char *kind_text(const Es *es, char text[POLICY_TEXT_MAX]) {
    char label[KERN_OBJECTIVE_LABEL_MAX];
    if (!has_best(es)) return policy_text(&es->spec.policy, es->spec.sim.spec, text);
    snprintf(text, POLICY_TEXT_MAX, "%s of %d", kern_objective_label(es->spec.objective.kind, label),
             es->spec.policy.params);
    return text;
}

static HostRunState run_state(const Es *es, char policy[POLICY_TEXT_MAX]) {
    return (HostRunState){
        .algorithm = "es",
        .policy = kind_text(es, policy),
        .params_hash = es_params_hash(es),
        .table = es_config_table(),
        .values = &es->config,
    };
}

// All tensors; returns how many.
static int list_all(const Es *es, const EsScalars *scalars, HostTensor tensors[STATE_TENSORS_MAX]) {
    list_tensors(es, scalars, tensors);
    int count = STATE_TENSORS;
    if (es->lost_count > 0) tensors[count++] = (HostTensor){"lost", HOST_DTYPE_I64, 2, {es->lost_count, 2}, es->lost};
    if (!has_best(es)) return count;
    const EsBest *best = &es->best;
    tensors[count++] = (HostTensor){"best", HOST_DTYPE_F32, 1, {es->spec.policy.params}, best->params};
    tensors[count++] = (HostTensor){"best_fitness", HOST_DTYPE_F32, 1, {1}, &best->fitness};
    tensors[count++] = (HostTensor){"best_at", HOST_DTYPE_I64, 1, {2}, best->at};
    return count;
}

Status es_save(const Es *es, const char *path) {
    HOST_TRACE_SCOPE(IO, "checkpoint");
    EsScalars scalars = {{es->generation, es->env_steps}, es->train_s};
    HostTensor tensors[STATE_TENSORS_MAX];
    char policy[POLICY_TEXT_MAX];
    HostRunState state = run_state(es, policy);
    return host_run_state_write(path, &state, tensors, list_all(es, &scalars, tensors));
}

Status es_pack(const Es *es, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) {
    EsScalars scalars = {{es->generation, es->env_steps}, es->train_s};
    HostTensor tensors[STATE_TENSORS_MAX];
    char policy[POLICY_TEXT_MAX];
    HostRunState state = run_state(es, policy);
    int count = list_all(es, &scalars, tensors);
    for (int i = 0; i < more_count; i++)
        tensors[count++] = more[i];
    return host_run_state_pack(&state, tensors, count, bytes, size_bytes);
}

// Reads every tensor into `loaded`, whose vectors have memory of their own.
static Status read_tensors(Es *loaded, EsScalars *scalars, const HostCheckpoint *file, const char *path) {
    HostTensor tensors[STATE_TENSORS];
    EsNormalizer *n = &loaded->normalizer;
    void *const data[STATE_TENSORS] = {loaded->params, loaded->first, loaded->second,    &n->count,
                                       n->sum,         n->square,     scalars->progress, &scalars->train_s};
    list_tensors(loaded, scalars, tensors); // `data` is in its order
    char policy[POLICY_TEXT_MAX];
    HostRunState state = run_state(loaded, policy);
    TRY(host_run_state_read(file, path, &state, tensors, data, STATE_TENSORS));
    if (scalars->progress[0] < 0 || scalars->progress[0] >= 1 << 28 || scalars->progress[1] < 0) {
        return host_fail(STATUS_CORRUPT, "%s: generation %lld is out of range", path, (long long)scalars->progress[0]);
    }
    return STATUS_OK;
}

// Lost members (generation, member), where there are any.
static Status read_lost(Es *es, const HostCheckpoint *file) {
    const HostTensor *tensor = host_checkpoint_find(file, "lost");
    es->lost_count = 0;
    if (tensor == NULL) return STATUS_OK;
    int64_t count = tensor->shape[0];
    TRY(es_reserve_lost(es, count));
    TRY(host_checkpoint_read(file, "lost", HOST_DTYPE_I64, 2, (const int64_t[]){count, 2}, es->lost));
    es->lost_count = count;
    return STATUS_OK;
}

static Status read_best(Es *es, const HostCheckpoint *file) {
    EsBest *best = &es->best;
    if (!has_best(es)) return STATUS_OK;
    TRY(host_checkpoint_read(file, "best", HOST_DTYPE_F32, 1, (const int64_t[]){es->spec.policy.params}, best->params));
    TRY(host_checkpoint_read(file, "best_fitness", HOST_DTYPE_F32, 1, (const int64_t[]){1}, &best->fitness));
    return host_checkpoint_read(file, "best_at", HOST_DTYPE_I64, 1, (const int64_t[]){2}, best->at);
}

static void take_best(Es *es, const EsBest *loaded) {
    EsBest *best = &es->best;
    if (!has_best(es)) return;
    best->fitness = loaded->fitness;
    memcpy(best->at, loaded->at, sizeof best->at);
    memcpy(best->params, loaded->params, (size_t)es->spec.policy.params * sizeof *best->params);
}

Status es_load_from(Es *es, const HostCheckpoint *file, const char *path) {
    size_t params = (size_t)es->spec.policy.params;
    float *vectors = calloc(4 * params, sizeof *vectors);
    if (vectors == NULL) return host_fail(STATUS_MEMORY, "no memory for %zu parameters", params);
    Es loaded = *es;
    loaded.params = vectors;
    loaded.first = vectors + params;
    loaded.second = vectors + 2 * params;
    if (has_best(es)) loaded.best.params = vectors + 3 * params;
    EsScalars scalars = {0};
    loaded.lost = NULL;
    loaded.lost_room = 0;
    Status status = read_tensors(&loaded, &scalars, file, path);
    if (status == STATUS_OK) status = read_lost(&loaded, file);
    if (status == STATUS_OK) status = read_best(&loaded, file);
    // What can fail comes first.
    if (status == STATUS_OK) {
        status = es->backend->ops->es_write(es->kern, loaded.params, loaded.first, loaded.second);
    }
    if (status == STATUS_OK) {
        memcpy(es->params, loaded.params, params * sizeof *vectors);
        memcpy(es->first, loaded.first, params * sizeof *vectors);
        memcpy(es->second, loaded.second, params * sizeof *vectors);
        take_best(es, &loaded.best);
        es->normalizer = loaded.normalizer;
        free(es->lost);
        es->lost = loaded.lost;
        es->lost_count = loaded.lost_count;
        es->lost_room = loaded.lost_room;
        es->generation = scalars.progress[0];
        es->env_steps = scalars.progress[1];
        es->train_s = scalars.train_s;
        es_derive_schedule(es);
    } else {
        free(loaded.lost);
    }
    free(vectors);
    return status;
}

Status es_load(Es *es, const char *path) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open(path, &file));
    Status status = es_load_from(es, file, path);
    host_checkpoint_close(file);
    return status;
}
