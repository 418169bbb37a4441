// PPO's networks as the host sees them: sizes, initial parameters, names of tensors; and what a spec has to fulfil.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/ppo_kern.h"
#include "sim/sim_rng.h"

Status ppo_shape(PpoShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count, int32_t recurrent,
                 PolicyActivation activation, bool is_shared) {
    memset(shape, 0, sizeof *shape);
    TRY(policy_shape(&shape->actor, sim, hidden, hidden_count, activation));
    PolicyShape *actor = &shape->actor;
    TRY(policy_set_recurrent(actor, recurrent));
    actor->squash = POLICY_SQUASH_CLAMP;
    shape->is_shared = is_shared;
    shape->actor_params = actor->params;
    PpoNetwork network;
    ppo_network(shape, &network);
    const PpoNode *last = &network.layer[network.critic_head];
    shape->critic_params = last->params + (last->in + 1) * last->out - actor->params;
    shape->log_std_params = actor->continuous;
    shape->params = shape->actor_params + shape->critic_params + shape->log_std_params;
    return STATUS_OK;
}

static int32_t add_layer(PpoNetwork *network, PpoNode node) {
    network->layer[network->layers] = node;
    return network->layers++;
}

// The actor's layers, or the critic's; of a shared critic the head alone.
static void add_layers(const PpoShape *shape, bool is_critic, PpoNetwork *network) {
    PolicyLayer layers[POLICY_DENSE_MAX];
    int count = policy_layers(&shape->actor, layers);
    bool is_shared = is_critic && shape->is_shared;
    int32_t params = is_critic ? shape->actor.params : 0;
    int32_t last = is_shared ? network->layer[network->actor_head].from : -1; // that others can stand behind
    for (int i = is_shared ? count - 1 : 0; i < count; i++) {
        const PolicyLayer *of = &layers[i];
        PpoNode node = {.kind = of->kind, .in = of->in, .out = of->out, .from = last, .params = params};
        node.is_critic = is_critic;
        node.adds_delta = is_shared || of->kind == POLICY_GATE;
        if (is_critic && of->kind == POLICY_HEAD) node.out = 1;
        params += (node.in + 1) * node.out;
        int32_t at = add_layer(network, node);
        if (of->kind == POLICY_HIDDEN) last = at;
        if (of->kind == POLICY_HEAD) *(is_critic ? &network->critic_head : &network->actor_head) = at;
        if (of->kind != POLICY_CANDIDATE) continue;
        last = add_layer(network, (PpoNode){POLICY_STATE, of->out, of->out, .from = at, .is_critic = is_critic});
        network->state[network->states++] = last;
    }
}

void ppo_network(const PpoShape *shape, PpoNetwork *network) {
    memset(network, 0, sizeof *network);
    add_layers(shape, false, network);
    add_layers(shape, true, network);
    int count = 0;
    network->backward[count++] = network->actor_head;
    network->backward[count++] = network->critic_head;
    for (int32_t layer = network->layers - 1; layer >= 0; layer--) {
        if (network->layer[layer].kind != POLICY_HEAD) network->backward[count++] = layer;
    }
}

int32_t ppo_recurrent_state(const PpoShape *shape) { return shape->actor.recurrent * (shape->is_shared ? 1 : 2); }

// `number`: of a hidden layer.
static void name_tensor(PpoTensor *tensor, const PpoNode *node, int number, const char *part) {
    char place[24] = "head";
    if (node->kind == POLICY_HIDDEN) snprintf(place, sizeof place, "layer %d", number);
    if (node->kind == POLICY_GATE) snprintf(place, sizeof place, "recurrent gate");
    if (node->kind == POLICY_CANDIDATE) snprintf(place, sizeof place, "recurrent candidate");
    snprintf(tensor->name, sizeof tensor->name, "%s %s %s", node->is_critic ? "critic" : "actor", place, part);
}

// Weights and biases take turns; `index` counts both.
int ppo_tensor(const PpoShape *shape, int index, PpoTensor *tensor) {
    PpoNetwork network;
    ppo_network(shape, &network);
    int dense = 0, number = 0; // of hidden layers, in each network
    for (int32_t i = 0; i < network.layers; i++) {
        const PpoNode *node = &network.layer[i];
        number = node->kind == POLICY_HEAD ? 0 : number + 1;
        if (node->kind == POLICY_STATE || dense++ != index / 2) continue;
        int32_t in = node->in, out = node->out, offset = node->params;
        bool is_bias = index % 2 != 0;
        *tensor = is_bias ? (PpoTensor){.offset = offset + in * out, .count = out, .out = out}
                          : (PpoTensor){.offset = offset, .count = in * out, .in = in, .out = out};
        tensor->kind = node->kind;
        tensor->is_critic = node->is_critic;
        name_tensor(tensor, node, number, is_bias ? "biases" : "weights");
        return 1;
    }
    if (index > 2 * dense || shape->log_std_params == 0) return 0;
    *tensor = (PpoTensor){.name = "log_std",
                          .offset = shape->actor_params + shape->critic_params,
                          .count = shape->log_std_params,
                          .out = shape->log_std_params};
    return 1;
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

static double initial_gain(const PpoTensor *tensor) {
    if (tensor->kind == POLICY_HIDDEN) return sqrt(2.0);
    return tensor->kind == POLICY_HEAD && !tensor->is_critic ? 0.01 : 1.0;
}

void ppo_init(const PpoShape *shape, uint64_t seed, float log_std, float *params) {
    PpoTensor tensor;
    for (int index = 0; ppo_tensor(shape, index, &tensor); index++) {
        float *at = params + tensor.offset;
        bool is_log_std = tensor.offset == shape->actor_params + shape->critic_params;
        for (int32_t i = 0; i < tensor.count; i++) {
            uint32_t c0 = (uint32_t)(tensor.offset + i);
            SimWords4 w = sim_philox(c0, 0, 0, SIM_RNG_INIT, (uint32_t)seed, (uint32_t)(seed >> 32));
            at[i] = tensor.in > 0                ? sim_normal4_from(w).x0
                    : is_log_std                 ? log_std
                    : tensor.kind == POLICY_GATE ? policy_gate_bias(i, tensor.count)
                                                 : 0.0f;
        }
        if (tensor.in > 0) orthogonalize(at, tensor.in, tensor.out, initial_gain(&tensor));
    }
}

int32_t ppo_env_words(const KernPpoSpec *spec) {
    const SimSpec *sim = spec->sim.spec;
    return sim->state_words + sim->param_count + 4 + sim->obs + ppo_recurrent_state(&spec->policy);
}

void ppo_normalizer(const KernPpoSpec *spec, const KernPpoState *state, KernNormalizer *normalizer) {
    for (int k = 0; k < spec->sim.spec->obs; k++) {
        bool is_known = spec->normalize_obs && state->obs_count > 0.0;
        double variance = is_known ? state->obs_square[k] / state->obs_count : 1.0;
        normalizer->mean[k] = is_known ? (float)state->obs_mean[k] : 0.0f;
        normalizer->scale[k] = (float)(1.0 / sqrt(variance > 1e-6 ? variance : 1e-6));
    }
}

static Status check_sequences(const KernPpoSpec *spec) {
    int32_t envs = spec->envs / spec->shards;
    if (spec->rollout > PPO_SEQUENCE_MAX) {
        return host_fail(STATUS_USAGE, "a rollout of %d steps: at most %d with a recurrent layer", spec->rollout,
                         PPO_SEQUENCE_MAX);
    }
    if (spec->minibatches < 1 || envs % spec->minibatches != 0) {
        return host_fail(STATUS_USAGE, "%d minibatches: with a recurrent layer they divide a shard's %d envs",
                         spec->minibatches, envs);
    }
    return STATUS_OK;
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
    if (spec->policy.actor.recurrent > 0) return check_sequences(spec);
    if (spec->minibatches < 1 || samples % spec->minibatches != 0) {
        return host_fail(STATUS_USAGE, "%d minibatches: they divide a shard's %lld samples (%d envs x %d steps)",
                         spec->minibatches, (long long)samples, spec->envs / spec->shards, spec->rollout);
    }
    return STATUS_OK;
}
