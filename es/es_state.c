// The training state as a checkpoint file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "es/es.h"
#include "host/checkpoint.h"
#include "host/trace.h"

// "cartpole 4-16-2 tanh": what a checkpoint must agree on with the run that loads it.
static const char *shape_text(const Es *es, char text[128]) {
    const PolicyShape *policy = &es->spec.policy;
    int at = snprintf(text, 128, "%s ", es->spec.sim.spec->name);
    for (int i = 0; i <= policy->layers; i++) {
        at += snprintf(text + at, (size_t)(128 - at), "%s%d", i > 0 ? "-" : "", policy->size[i]);
    }
    snprintf(text + at, (size_t)(128 - at), " %s", policy->activation == POLICY_TANH ? "tanh" : "relu");
    return text;
}

// The state's scalars, as they stand in the file.
typedef struct EsScalars {
    int64_t progress[2]; // generation, env_steps
    double train_s;
} EsScalars;

enum { STATE_TENSORS = 8 };

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

Status es_save(const Es *es, const char *path) {
    HOST_TRACE_SCOPE(IO, "checkpoint");
    EsScalars scalars = {{es->generation, es->env_steps}, es->train_s};
    HostTensor tensors[STATE_TENSORS];
    list_tensors(es, &scalars, tensors);
    char shape[128], hash[17], *config = NULL;
    EsConfig values = es->config;
    HostConfig view = {.table = es_config_table(), .values = &values};
    TRY(host_config_to_json(&view, &config));
    const HostMeta meta[] = {
        {"algorithm", "es"},
        {"policy", shape_text(es, shape)},
        {"params_hash", host_hash_text(es_params_hash(es), hash)},
        {"config", config},
    };
    Status status = host_checkpoint_write(path, tensors, STATE_TENSORS, meta, sizeof meta / sizeof meta[0]);
    free(config);
    return status;
}

static Status check_meta(const Es *es, const HostCheckpoint *file, const char *path) {
    char shape[128];
    const char *algorithm = host_checkpoint_meta(file, "algorithm"), *policy = host_checkpoint_meta(file, "policy");
    if (algorithm == NULL || strcmp(algorithm, "es") != 0) {
        return host_fail(STATUS_CORRUPT, "%s: not a checkpoint of esrun", path);
    }
    if (policy == NULL || strcmp(policy, shape_text(es, shape)) != 0) {
        return host_fail(STATUS_CORRUPT, "%s: holds a policy '%s', this run has '%s'", path,
                         policy != NULL ? policy : "?", shape);
    }
    return STATUS_OK;
}

// Reads every tensor into `loaded`, whose vectors have memory of their own.
static Status read_tensors(Es *loaded, EsScalars *scalars, const HostCheckpoint *file, const char *path) {
    HostTensor tensors[STATE_TENSORS];
    EsNormalizer *n = &loaded->normalizer;
    void *const data[STATE_TENSORS] = {loaded->params, loaded->first, loaded->second,    &n->count,
                                       n->sum,         n->square,     scalars->progress, &scalars->train_s};
    list_tensors(loaded, scalars, tensors); // `data` is in its order
    for (int i = 0; i < STATE_TENSORS; i++) {
        const HostTensor *t = &tensors[i];
        TRY(host_checkpoint_read(file, t->name, t->dtype, t->rank, t->shape, data[i]));
    }
    if (scalars->progress[0] < 0 || scalars->progress[0] >= 1 << 28 || scalars->progress[1] < 0) {
        return host_fail(STATUS_CORRUPT, "%s: generation %lld is out of range", path, (long long)scalars->progress[0]);
    }
    return STATUS_OK;
}

static Status load_from(Es *es, const HostCheckpoint *file, const char *path) {
    TRY(check_meta(es, file, path));
    size_t params = (size_t)es->spec.policy.params;
    float *vectors = calloc(3 * params, sizeof *vectors);
    if (vectors == NULL) return host_fail(STATUS_MEMORY, "no memory for %zu parameters", params);
    Es loaded = *es;
    loaded.params = vectors;
    loaded.first = vectors + params;
    loaded.second = vectors + 2 * params;
    EsScalars scalars = {0};
    Status status = read_tensors(&loaded, &scalars, file, path);
    // What can fail comes first.
    if (status == STATUS_OK) {
        status = es->backend->ops->es_write(es->kern, loaded.params, loaded.first, loaded.second);
    }
    if (status == STATUS_OK) {
        memcpy(es->params, loaded.params, params * sizeof *vectors);
        memcpy(es->first, loaded.first, params * sizeof *vectors);
        memcpy(es->second, loaded.second, params * sizeof *vectors);
        es->normalizer = loaded.normalizer;
        es->generation = scalars.progress[0];
        es->env_steps = scalars.progress[1];
        es->train_s = scalars.train_s;
        es_derive_schedule(es);
    }
    free(vectors);
    return status;
}

Status es_load(Es *es, const char *path) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open(path, &file));
    Status status = load_from(es, file, path);
    host_checkpoint_close(file);
    return status;
}

static Status compare_settings(const char *path, EsConfig *now, EsConfig *then, bool (*may_change)(const char *name)) {
    const ConfigTable *table = es_config_table();
    HostConfig view_now = {.table = table, .values = now}, view_then = {.table = table, .values = then};
    char text_now[HOST_LIST_MAX * HOST_LIST_TEXT_MAX], text_then[sizeof text_now];
    for (int i = 0; i < table->count; i++) {
        const char *name = table->options[i].name;
        if (table->options[i].command || may_change(name)) continue;
        host_config_text(&view_now, name, text_now, sizeof text_now);
        host_config_text(&view_then, name, text_then, sizeof text_then);
        if (strcmp(text_now, text_then) == 0) continue;
        return host_fail(STATUS_USAGE, "config.json has %s = %s, but %s was made with %s: it would be another run",
                         name, text_now, path, text_then);
    }
    return STATUS_OK;
}

Status es_check_settings(const char *path, EsConfig *now, bool (*may_change)(const char *name)) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open(path, &file));
    const char *json = host_checkpoint_meta(file, "config");
    EsConfig then;
    HostConfig config;
    host_config_init(&config, es_config_table(), &then);
    Status status = json == NULL ? host_fail(STATUS_CORRUPT, "%s: has no settings in it", path)
                                 : host_config_from_json(&config, CONFIG_FILE, path, json, strlen(json));
    if (status == STATUS_OK) status = compare_settings(path, now, &then, may_change);
    host_checkpoint_close(file);
    return status;
}
