#include "host/run_state.h"

#include <stdlib.h>
#include <string.h>

// A view of settings that only reads them.
static HostConfig view_of(const ConfigTable *table, const void *values) {
    HostConfig view = {.table = table};
    memcpy(&view.values, &values, sizeof values); // HostConfig also serves to set values and has no const
    return view;
}

// Into the file, or into `bytes` where that is not NULL.
static Status write_state(const char *path, const HostRunState *state, const HostTensor *tensors, int tensor_count,
                          void **bytes, size_t *size_bytes) {
    char hash[17], *config = NULL;
    HostConfig view = view_of(state->table, state->values);
    TRY(host_config_to_json(&view, &config));
    const HostMeta meta[] = {
        {"algorithm", state->algorithm},
        {"policy", state->policy},
        {"params_hash", host_hash_text(state->params_hash, hash)},
        {"config", config},
    };
    int meta_count = sizeof meta / sizeof meta[0];
    Status status = bytes != NULL ? host_checkpoint_pack(tensors, tensor_count, meta, meta_count, bytes, size_bytes)
                                  : host_checkpoint_write(path, tensors, tensor_count, meta, meta_count);
    free(config);
    return status;
}

Status host_run_state_write(const char *path, const HostRunState *state, const HostTensor *tensors, int tensor_count) {
    return write_state(path, state, tensors, tensor_count, NULL, NULL);
}

Status host_run_state_pack(const HostRunState *state, const HostTensor *tensors, int tensor_count, void **bytes,
                           size_t *size_bytes) {
    return write_state("", state, tensors, tensor_count, bytes, size_bytes);
}

Status host_run_state_read(const HostCheckpoint *file, const char *path, const HostRunState *state,
                           const HostTensor *tensors, void *const *data, int tensor_count) {
    const char *algorithm = host_checkpoint_meta(file, "algorithm"), *policy = host_checkpoint_meta(file, "policy");
    if (algorithm == NULL || strcmp(algorithm, state->algorithm) != 0) {
        return host_fail(STATUS_CORRUPT, "%s: not a checkpoint of %s", path, state->table->tool);
    }
    if (policy == NULL || strcmp(policy, state->policy) != 0) {
        return host_fail(STATUS_CORRUPT, "%s: holds a policy '%s', this run has '%s'", path,
                         policy != NULL ? policy : "?", state->policy);
    }
    for (int i = 0; i < tensor_count; i++) {
        const HostTensor *t = &tensors[i];
        TRY(host_checkpoint_read(file, t->name, t->dtype, t->rank, t->shape, data[i]));
    }
    return STATUS_OK;
}

typedef struct Comparison {
    const char *path;
    const HostConfig *now;
    bool (*may_change)(const void *context, const char *name);
    const void *context;
    Status (*agree)(const void *now, const void *then);
} Comparison;

static Status compare_settings(const Comparison *c, const HostConfig *then) {
    const ConfigTable *table = then->table;
    char text_now[HOST_LIST_MAX * HOST_LIST_TEXT_MAX], text_then[sizeof text_now];
    for (int i = 0; i < table->count; i++) {
        const char *name = table->options[i].name;
        if (table->options[i].command || c->may_change(c->context, name)) continue;
        host_config_text(c->now, name, text_now, sizeof text_now);
        host_config_text(then, name, text_then, sizeof text_then);
        if (strcmp(text_now, text_then) == 0) continue;
        return host_fail(STATUS_USAGE, "config.json has %s = %s, but %s was made with %s: it would be another run",
                         name, text_now, c->path, text_then);
    }
    return c->agree != NULL ? c->agree(c->now->values, then->values) : STATUS_OK;
}

// `values` is memory for the settings that the checkpoint was made with.
static Status read_and_compare(const Comparison *c, const HostCheckpoint *file, void *values) {
    const char *json = host_checkpoint_meta(file, "config");
    if (json == NULL) return host_fail(STATUS_CORRUPT, "%s: has no settings in it", c->path);
    HostConfig then;
    host_config_init(&then, c->now->table, values);
    TRY(host_config_from_json(&then, CONFIG_FILE, c->path, json, strlen(json)));
    return compare_settings(c, &then);
}

Status host_run_state_check_settings(const char *path, const HostConfig *now,
                                     bool (*may_change)(const void *context, const char *name), const void *context,
                                     Status (*agree)(const void *now, const void *then)) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open(path, &file));
    const Comparison comparison = {path, now, may_change, context, agree};
    void *values = malloc(now->table->size_bytes);
    Status status = values != NULL ? read_and_compare(&comparison, file, values)
                                   : host_fail(STATUS_MEMORY, "no memory for the settings of %s", path);
    free(values);
    host_checkpoint_close(file);
    return status;
}
