// Updates of PPO for the benchmarks, on any backend: CartPole, 64-64 tanh, actor and critic apart, epochs of 4
// minibatches; and the speed of learning, as what an update takes longer than one without epochs.
//
// Ownership: ppo_update_open()/ppo_update_close(). Errors: end the program. Thread safety: none.
#ifndef SHOAL_PERF_PPO_TIMING_H
#define SHOAL_PERF_PPO_TIMING_H

#include "kernels/ppo_kern.h"
#include "perf/perf.h"

enum { PPO_UPDATE_EPOCHS = 4, PPO_UPDATE_MINIBATCHES = 4 };

typedef struct PpoUpdate {
    KernPpo *ppo;
    KernPpoStep step;
    double env_steps;
    double sample_flops; // useful ones of learning from one sample
    char name[64];       // for the caller
} PpoUpdate;

static inline void ppo_update_run(void *context) {
    PpoUpdate *u = context;
    KernPpoReport report;
    perf_check(u->ppo->backend->ops->ppo_update(u->ppo, &u->step, &report));
    u->step.update++;
}

// Forwards, weight gradients, and input gradients of all layers but the first.
static inline double ppo_update_flops(const PpoShape *shape) {
    PpoNetwork network;
    ppo_network(shape, &network);
    double flops = 0.0;
    for (int i = 0; i < network.layers; i++) {
        const PpoNode *node = &network.layer[i];
        if (node->kind != POLICY_STATE) flops += 2.0 * node->in * node->out * (node->from < 0 ? 2 : 3);
    }
    return flops;
}

// epochs: 0 for the rollout alone.
static inline void ppo_update_open(PpoUpdate *u, KernBackend *backend, int envs, int shards, int steps, int recurrent,
                                   int epochs) {
    const int32_t hidden[] = {64, 64};
    KernPpoSpec spec = {
        .seed = 1, .envs = envs, .shards = shards, .rollout = steps, .minibatches = PPO_UPDATE_MINIBATCHES};
    spec.gamma = 0.99f, spec.lambda = 0.95f;
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    perf_check(ppo_shape(&spec.policy, spec.sim.spec, hidden, 2, recurrent, POLICY_TANH, false));
    size_t params = (size_t)spec.policy.params;
    float *vectors = calloc(3 * params, sizeof *vectors);
    if (vectors == NULL) perf_check(host_fail(STATUS_MEMORY, "no memory for %zu parameters", params));
    KernPpoState state = {.params = vectors, .first = vectors + params, .second = vectors + 2 * params};
    ppo_init(&spec.policy, 1, 0.0f, state.params);
    perf_check(backend->ops->ppo_open(backend, &spec, &u->ppo));
    perf_check(backend->ops->ppo_write(u->ppo, &state));
    free(vectors);
    u->env_steps = (double)envs * steps;
    u->sample_flops = ppo_update_flops(&spec.policy);
    u->step = (KernPpoStep){.epochs = epochs,
                            .learning_rate = 3e-4f,
                            .clip = 0.2f,
                            .value_weight = 0.5f,
                            .max_grad_norm = 0.5f,
                            .normalize_advantage = true,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .epsilon = 1e-5f};
}

static inline void ppo_update_close(PpoUpdate *u) { u->ppo->backend->ops->ppo_close(u->ppo); }

// Useful flops a second of learning, round by round, from whole updates and rollouts alone.
static inline void ppo_update_learning(const PerfCase *whole, const PerfCase *rollout, int repeats, double *flops) {
    const PpoUpdate *u = whole->context;
    for (int r = 0; r < repeats; r++) {
        double learning_s = whole->work / whole->rate[r] - rollout->work / rollout->rate[r];
        flops[r] = PPO_UPDATE_EPOCHS * u->env_steps * u->sample_flops / learning_s;
    }
}

#endif
