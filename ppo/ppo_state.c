// The training state as a checkpoint file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/run_state.h"
#include "host/trace.h"
#include "ppo/ppo.h"

enum { STATE_TENSORS = 10, MORE_TENSORS_MAX = 4, POLICY_LINE_MAX = POLICY_TEXT_MAX + 64 };

// "cartpole 4-64-64-2 tanh, separate critic": what a checkpoint must agree on with the run that loads it.
static HostRunState run_state(const Ppo *ppo, char line[POLICY_LINE_MAX]) {
    char policy[POLICY_TEXT_MAX];
    snprintf(line, POLICY_LINE_MAX, "%s, %s critic", policy_text(&ppo->spec.policy.actor, ppo->spec.sim.spec, policy),
             ppo->spec.policy.is_shared ? "shared" : "separate");
    return (HostRunState){
        .algorithm = "ppo",
        .policy = line,
        .params_hash = ppo_params_hash(ppo),
        .table = ppo_config_table(),
        .values = &ppo->config,
    };
}

static size_t env_words(const Ppo *ppo) { return (size_t)ppo->spec.envs * (size_t)ppo_env_words(&ppo->spec); }

// The state's scalars, as they stand in the file.
typedef struct PpoScalars {
    int64_t progress[3]; // update, env_steps, Adam's steps
    double train_s;
    double returns[3]; // count, mean, square
} PpoScalars;

// The tensors of a checkpoint, in terms of where their data is; `ppo` and `scalars` are only pointed at.
static void list_tensors(const Ppo *ppo, const PpoScalars *scalars, HostTensor tensors[STATE_TENSORS]) {
    int64_t params = ppo->spec.policy.params, obs = ppo->spec.sim.spec->obs;
    const KernPpoState *s = &ppo->state;
    const HostTensor list[STATE_TENSORS] = {
        {"params", HOST_DTYPE_F32, 1, {params}, s->params},
        {"adam_first", HOST_DTYPE_F32, 1, {params}, s->first},
        {"adam_second", HOST_DTYPE_F32, 1, {params}, s->second},
        {"obs_count", HOST_DTYPE_F64, 1, {1}, &s->obs_count},
        {"obs_mean", HOST_DTYPE_F64, 1, {obs}, s->obs_mean},
        {"obs_square", HOST_DTYPE_F64, 1, {obs}, s->obs_square},
        {"returns", HOST_DTYPE_F64, 1, {3}, scalars->returns},
        {"envs", HOST_DTYPE_U32, 2, {ppo->spec.envs, ppo_env_words(&ppo->spec)}, s->envs},
        {"progress", HOST_DTYPE_I64, 1, {3}, scalars->progress},
        {"train_s", HOST_DTYPE_F64, 1, {1}, &scalars->train_s},
    };
    memcpy(tensors, list, sizeof list);
}

static PpoScalars scalars_of(const Ppo *ppo) {
    const KernPpoState *s = &ppo->state;
    return (PpoScalars){{ppo->update, ppo->env_steps, s->adam_steps},
                        ppo->train_s,
                        {s->return_count, s->return_mean, s->return_square}};
}

Status ppo_save(const Ppo *ppo, const char *path) {
    HOST_TRACE_SCOPE(IO, "checkpoint");
    PpoScalars scalars = scalars_of(ppo);
    HostTensor tensors[STATE_TENSORS];
    list_tensors(ppo, &scalars, tensors);
    char line[POLICY_LINE_MAX];
    HostRunState state = run_state(ppo, line);
    return host_run_state_write(path, &state, tensors, STATE_TENSORS);
}

Status ppo_pack(const Ppo *ppo, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) {
    PpoScalars scalars = scalars_of(ppo);
    HostTensor tensors[STATE_TENSORS + MORE_TENSORS_MAX];
    list_tensors(ppo, &scalars, tensors);
    memcpy(tensors + STATE_TENSORS, more, (size_t)more_count * sizeof *more);
    char line[POLICY_LINE_MAX];
    HostRunState state = run_state(ppo, line);
    return host_run_state_pack(&state, tensors, STATE_TENSORS + more_count, bytes, size_bytes);
}

uint64_t ppo_state_hash(const Ppo *ppo) {
    HostHash hash = host_hash_start();
    PpoScalars scalars = scalars_of(ppo);
    scalars.train_s = 0.0; // each trainer's own
    HostTensor tensors[STATE_TENSORS];
    list_tensors(ppo, &scalars, tensors);
    for (int i = 0; i < STATE_TENSORS; i++) {
        size_t bytes = host_dtype_bytes(tensors[i].dtype);
        for (int k = 0; k < tensors[i].rank; k++)
            bytes *= (size_t)tensors[i].shape[k];
        host_hash_add(&hash, tensors[i].data, bytes);
    }
    return hash.state;
}

// Reads every tensor into `loaded`, whose arrays have memory of their own.
static Status read_tensors(Ppo *loaded, PpoScalars *scalars, const HostCheckpoint *file, const char *path) {
    HostTensor tensors[STATE_TENSORS];
    KernPpoState *s = &loaded->state;
    void *const data[STATE_TENSORS] = {s->params,         s->first,         s->second,        &s->obs_count,
                                       s->obs_mean,       s->obs_square,    scalars->returns, s->envs,
                                       scalars->progress, &scalars->train_s};
    list_tensors(loaded, scalars, tensors); // `data` is in its order
    char line[POLICY_LINE_MAX];
    HostRunState state = run_state(loaded, line);
    TRY(host_run_state_read(file, path, &state, tensors, data, STATE_TENSORS));
    const int64_t *progress = scalars->progress;
    if (progress[0] < 0 || progress[0] >= 1 << 27 || progress[1] < 0 || progress[2] < 0) {
        return host_fail(STATUS_CORRUPT, "%s: update %lld is out of range", path, (long long)progress[0]);
    }
    loaded->update = progress[0];
    loaded->env_steps = progress[1];
    s->adam_steps = progress[2];
    s->return_count = scalars->returns[0];
    s->return_mean = scalars->returns[1];
    s->return_square = scalars->returns[2];
    loaded->train_s = scalars->train_s;
    return STATUS_OK;
}

// Takes over what was loaded, with the arrays' content copied into its own.
static void take_over(Ppo *ppo, const Ppo *loaded) {
    size_t params = (size_t)ppo->spec.policy.params;
    KernPpoState own = ppo->state;
    memcpy(own.params, loaded->state.params, params * sizeof *own.params);
    memcpy(own.first, loaded->state.first, params * sizeof *own.first);
    memcpy(own.second, loaded->state.second, params * sizeof *own.second);
    memcpy(own.envs, loaded->state.envs, env_words(ppo) * sizeof *own.envs);
    *ppo = *loaded;
    ppo->state.params = own.params;
    ppo->state.first = own.first;
    ppo->state.second = own.second;
    ppo->state.envs = own.envs;
}

// vectors: [3 params], envs: [env_words], memory for what the file holds.
static Status load_into(Ppo *ppo, const HostCheckpoint *file, const char *path, float *vectors, uint32_t *envs) {
    int32_t params = ppo->spec.policy.params;
    Ppo loaded = *ppo;
    loaded.state.params = vectors;
    loaded.state.first = vectors + params;
    loaded.state.second = vectors + 2 * params;
    loaded.state.envs = envs;
    PpoScalars scalars = {0};
    // What can fail comes first.
    TRY(read_tensors(&loaded, &scalars, file, path));
    TRY(ppo->backend->ops->ppo_write(ppo->kern, &loaded.state));
    take_over(ppo, &loaded);
    return STATUS_OK;
}

Status ppo_load_from(Ppo *ppo, const HostCheckpoint *file, const char *path) {
    float *vectors = calloc(3 * (size_t)ppo->spec.policy.params, sizeof *vectors);
    uint32_t *envs = calloc(env_words(ppo), sizeof *envs);
    Status status = vectors != NULL && envs != NULL ? load_into(ppo, file, path, vectors, envs)
                                                    : host_fail(STATUS_MEMORY, "no memory for the state in %s", path);
    free(vectors);
    free(envs);
    return status;
}

Status ppo_load(Ppo *ppo, const char *path) {
    HostCheckpoint *file = NULL;
    TRY(host_checkpoint_open(path, &file));
    Status status = ppo_load_from(ppo, file, path);
    host_checkpoint_close(file);
    return status;
}
