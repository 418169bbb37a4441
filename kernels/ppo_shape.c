// PPO's networks as the host sees them: sizes, initial parameters, names of tensors; and what a spec has to fulfil.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ppo_kern.h"
#include "sim/sim_rng.h"

Status ppo_shape(PpoShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count,
                 PolicyActivation activation, bool is_shared) {
    memset(shape, 0, sizeof *shape);
    TRY(policy_shape(&shape->actor, sim, hidden, hidden_count, activation));
    PolicyShape *actor = &shape->actor;
    actor->squash = POLICY_SQUASH_CLAMP;
    shape->is_shared = is_shared;
    shape->actor_params = actor->params;
    for (int layer = is_shared ? actor->layers - 1 : 0; layer < actor->layers; layer++) {
        int32_t out = layer + 1 == actor->layers ? 1 : actor->size[layer + 1];
        shape->critic_params += (actor->size[layer] + 1) * out;
    }
    shape->log_std_params = actor->discrete ? 0 : actor->size[actor->layers];
    shape->params = shape->actor_params + shape->critic_params + shape->log_std_params;
    return STATUS_OK;
}

// Weights and biases take turns; `index` counts both.
int ppo_tensor(const PpoShape *shape, int index, PpoTensor *tensor) {
    const PolicyShape *actor = &shape->actor;
    int32_t offset = 0;
    for (int network = 0; network < 2; network++) {
        const char *who = network == 0 ? "actor" : "critic";
        for (int layer = network == 1 && shape->is_shared ? actor->layers - 1 : 0; layer < actor->layers; layer++) {
            bool is_head = layer + 1 == actor->layers;
            int32_t in = actor->size[layer], out = network == 1 && is_head ? 1 : actor->size[layer + 1];
            char place[24] = "head";
            if (!is_head) snprintf(place, sizeof place, "layer %d", layer + 1);
            if (index < 2) {
                *tensor = index == 0 ? (PpoTensor){.offset = offset, .count = in * out, .in = in, .out = out}
                                     : (PpoTensor){.offset = offset + in * out, .count = out, .out = out};
                snprintf(tensor->name, sizeof tensor->name, "%s %s %s", who, place, index == 0 ? "weights" : "biases");
                return 1;
            }
            index -= 2;
            offset += (in + 1) * out;
        }
    }
    if (index > 0 || shape->log_std_params == 0) return 0;
    *tensor =
        (PpoTensor){.name = "log_std", .offset = offset, .count = shape->log_std_params, .out = shape->log_std_params};
    return 1;
}

static int32_t add_layer(PpoNetwork *network, int32_t in, int32_t out, int32_t from, bool is_head) {
    int32_t before = network->layers - 1;
    const PpoDense *last = &network->layer[before < 0 ? 0 : before];
    int32_t params = before < 0 ? 0 : last->params + (last->in + 1) * last->out;
    network->layer[network->layers] =
        (PpoDense){.in = in, .out = out, .from = from, .params = params, .is_head = is_head};
    return network->layers++;
}

void ppo_network(const PpoShape *shape, PpoNetwork *network) {
    const PolicyShape *actor = &shape->actor;
    memset(network, 0, sizeof *network);
    int32_t last = -1; // hidden layer
    for (int layer = 0; layer + 1 < actor->layers; layer++)
        last = add_layer(network, actor->size[layer], actor->size[layer + 1], last, false);
    int32_t in = actor->size[actor->layers - 1];
    network->actor_head = add_layer(network, in, actor->size[actor->layers], last, true);
    if (!shape->is_shared) {
        last = -1;
        for (int layer = 0; layer + 1 < actor->layers; layer++)
            last = add_layer(network, actor->size[layer], actor->size[layer + 1], last, false);
    }
    network->critic_head = add_layer(network, in, 1, last, true);
    network->layer[network->critic_head].adds_delta = shape->is_shared;
    int count = 0;
    network->backward[count++] = network->actor_head;
    network->backward[count++] = network->critic_head;
    for (int32_t layer = network->layers - 1; layer >= 0; layer--) {
        if (!network->layer[layer].is_head) network->backward[count++] = layer;
    }
}

// Orthonormal rows or columns of `a`, [in][out], whichever are fewer, by modified Gram-Schmidt, twice, with sums in
// double. It is the Q of a QR decomposition whose R has a positive diagonal, without a second matrix.
static void orthogonalize(float *a, int32_t in, int32_t out, double gain) {
    bool by_rows = in <= out;
    int32_t count = by_rows ? in : out, length = by_rows ? out : in;
    int32_t step = by_rows ? 1 : out, next = by_rows ? out : 1;
    for (int32_t i = 0; i < count; i++) {
        float *x = a + i * next;
        for (int32_t j = 0; j < 2 * i; j++) {
            const float *y = a + j % i * next;
            double dot = 0.0;
            for (int32_t k = 0; k < length; k++)
                dot += (double)x[k * step] * (double)y[k * step];
            for (int32_t k = 0; k < length; k++)
                x[k * step] = (float)((double)x[k * step] - dot * (double)y[k * step]);
        }
        double square = 0.0;
        for (int32_t k = 0; k < length; k++)
            square += (double)x[k * step] * (double)x[k * step];
        if (square == 0.0) square = x[0] = 1.0f; // one weight whose normal was 0
        for (int32_t k = 0; k < length; k++)
            x[k * step] = (float)((double)x[k * step] / sqrt(square));
    }
    for (int32_t i = 0; i < in * out; i++)
        a[i] = (float)((double)a[i] * gain);
}

void ppo_init(const PpoShape *shape, uint64_t seed, float log_std, float *params) {
    PpoTensor tensor;
    for (int index = 0; ppo_tensor(shape, index, &tensor); index++) {
        float *at = params + tensor.offset;
        bool is_log_std = tensor.offset == shape->actor_params + shape->critic_params;
        for (int32_t i = 0; i < tensor.count; i++) {
            uint32_t c0 = (uint32_t)(tensor.offset + i);
            SimWords4 w = sim_philox(c0, 0, 0, SIM_RNG_INIT, (uint32_t)seed, (uint32_t)(seed >> 32));
            at[i] = tensor.in > 0 ? sim_normal4_from(w).x0 : is_log_std ? log_std : 0.0f;
        }
        if (tensor.in == 0) continue;
        bool is_actor = tensor.offset < shape->actor_params;
        bool is_head = tensor.offset + tensor.count + tensor.out ==
                       (is_actor ? shape->actor_params : shape->actor_params + shape->critic_params);
        orthogonalize(at, tensor.in, tensor.out, !is_head ? sqrt(2.0) : is_actor ? 0.01 : 1.0);
    }
}

int32_t ppo_env_words(const KernPpoSpec *spec) {
    const SimSpec *sim = spec->sim.spec;
    return sim->state_words + sim->param_count + 4 + sim->obs;
}

void ppo_normalizer(const KernPpoSpec *spec, const KernPpoState *state, KernNormalizer *normalizer) {
    for (int k = 0; k < spec->sim.spec->obs; k++) {
        bool is_known = spec->normalize_obs && state->obs_count > 0.0;
        double variance = is_known ? state->obs_square[k] / state->obs_count : 1.0;
        normalizer->mean[k] = is_known ? (float)state->obs_mean[k] : 0.0f;
        normalizer->scale[k] = (float)(1.0 / sqrt(variance > 1e-6 ? variance : 1e-6));
    }
}

Status ppo_check(const KernPpoSpec *spec) {
    if (spec->shards < 1 || (spec->shards & (spec->shards - 1)) != 0) {
        return host_fail(STATUS_USAGE, "%d shards: a power of two", spec->shards);
    }
    if (spec->envs < 1 || spec->envs % spec->shards != 0) {
        return host_fail(STATUS_USAGE, "%d envs: a multiple of the %d shards", spec->envs, spec->shards);
    }
    if (spec->rollout < 1 || spec->rollout >= 1 << 23) {
        return host_fail(STATUS_USAGE, "a rollout of %d steps: 1 to %d", spec->rollout, (1 << 23) - 1);
    }
    int64_t samples = (int64_t)spec->envs / spec->shards * spec->rollout;
    if (samples * spec->shards > INT32_MAX) {
        return host_fail(STATUS_USAGE, "%d envs x %d steps: at most %d samples", spec->envs, spec->rollout, INT32_MAX);
    }
    if (spec->minibatches < 1 || samples % spec->minibatches != 0) {
        return host_fail(STATUS_USAGE, "%d minibatches: they divide a shard's %lld samples (%d envs x %d steps)",
                         spec->minibatches, (long long)samples, spec->envs / spec->shards, spec->rollout);
    }
    return STATUS_OK;
}
