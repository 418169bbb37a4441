// PPO's update: CartPole, 64-64 tanh, actor and critic apart, 64 envs x 128 steps, 4 epochs of 4 minibatches, one
// thread. Useful flops are 2 x weights forwards and, but for the first layers' input gradients, 4 x weights backwards.
// Against the core's fp32 FMA peak, which perf_es measures too. Rollouts are timed apart: updates without epochs.
#include "kernels/ppo_kern.h"
#include "perf/peak.h"
#include "perf/perf.h"

enum { ENVS = 64, STEPS = 128, EPOCHS = 4, MINIBATCHES = 4, SHARDS = 16, REPEATS = 15 };

typedef struct Update {
    KernPpo *ppo;
    KernPpoStep step;
} Update;

static void update(void *context) {
    Update *u = context;
    KernPpoReport report;
    perf_check(u->ppo->backend->ops->ppo_update(u->ppo, &u->step, &report));
    u->step.update++;
}

static void open_update(Update *u, KernBackend *backend, int epochs) {
    const int32_t hidden[] = {64, 64};
    KernPpoSpec spec = {.seed = 1, .envs = ENVS, .shards = SHARDS, .rollout = STEPS, .minibatches = MINIBATCHES};
    spec.gamma = 0.99f, spec.lambda = 0.95f;
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    perf_check(ppo_shape(&spec.policy, spec.sim.spec, hidden, 2, 0, POLICY_TANH, false));
    size_t params = (size_t)spec.policy.params;
    float *vectors = calloc(3 * params, sizeof *vectors);
    KernPpoState state = {.params = vectors, .first = vectors + params, .second = vectors + 2 * params};
    ppo_init(&spec.policy, 1, 0.0f, state.params);
    perf_check(backend->ops->ppo_open(backend, &spec, &u->ppo));
    perf_check(backend->ops->ppo_write(u->ppo, &state));
    free(vectors);
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

int main(void) {
    static float peak_value = 0.5f;
    Update whole, rollout;
    HostPool *pool = NULL;
    KernBackend *backend;
    perf_check(host_pool_create(1, HOST_BIND_NONE, &pool));
    KernCpuOptions options = {pool, "auto", 0};
    perf_check(kern_cpu_open(&options, &backend));
    open_update(&whole, backend, EPOCHS);
    open_update(&rollout, backend, 0);
    double samples = (double)ENVS * STEPS;
    PerfCase cases[] = {
        {.name = "fp32 FMA peak",
         .unit = "GFLOP/s",
         .work = PEAK_FLOPS * 1e-9,
         .run = choose_peak(),
         .context = &peak_value},
        {.name = "ppo update, 4 epochs", .unit = "step/s", .work = samples, .run = update, .context = &whole},
        {.name = "ppo rollout alone", .unit = "step/s", .work = samples, .run = update, .context = &rollout},
    };
    perf_run(cases, 3, REPEATS);
    // Forwards, weight gradients, and input gradients of all layers but the first.
    double first = 2 * 4 * 64, others = 2 * 64 * 64 + 64 * 2 + 64, flops = 2 * (2 * first + 3 * others);
    double rate[REPEATS], share[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double learning_s = samples / cases[1].rate[r] - samples / cases[2].rate[r];
        rate[r] = EPOCHS * samples * flops / learning_s * 1e-9;
        share[r] = rate[r] / cases[0].rate[r];
    }
    perf_print("ppo learning, useful flops", rate, REPEATS, "GFLOP/s");
    perf_print("ppo learning / FMA peak", share, REPEATS, "x");
    backend->ops->ppo_close(whole.ppo);
    backend->ops->ppo_close(rollout.ppo);
    backend->ops->close(backend);
    host_pool_free(pool);
    return 0;
}
