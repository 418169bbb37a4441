// PPO's update: CartPole, 64-64 tanh, actor and critic apart, 64 envs x 128 steps, 4 epochs of 4 minibatches. Useful
// flops are 2 x weights forwards and, but for the first layers' input gradients, 4 x weights backwards. Against the
// core's fp32 FMA peak, which perf_es measures too. Rollouts are timed apart: updates without epochs.
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

// The peak on two threads at once, which is all that two cores can give.
typedef struct Peaks {
    void (*peak)(void *);
    HostPool *pool;
    float value[2];
} Peaks;

static void peak_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)end, (void)worker;
    Peaks *peaks = context;
    peaks->peak(&peaks->value[begin]);
}

static void peak_of_two(void *context) {
    Peaks *peaks = context;
    host_pool_for(peaks->pool, 2, 1, peak_piece, peaks);
}

static KernBackend *open_backend(int threads, HostPool **pool) {
    KernBackend *backend;
    perf_check(host_pool_create(threads, HOST_BIND_NONE, pool));
    KernCpuOptions options = {*pool, "auto", 0};
    perf_check(kern_cpu_open(&options, &backend));
    return backend;
}

// Forwards, weight gradients, and input gradients of all layers but the first; without the rollout's time.
static void print_share_of_peak(const PerfCase *peak, const PerfCase *whole, const PerfCase *rollout) {
    double first = 2 * 4 * 64, others = 2 * 64 * 64 + 64 * 2 + 64, flops = 2 * (2 * first + 3 * others);
    double rate[REPEATS], share[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double learning_s = whole->work / whole->rate[r] - rollout->work / rollout->rate[r];
        rate[r] = EPOCHS * whole->work * flops / learning_s * 1e-9;
        share[r] = rate[r] / peak->rate[r];
    }
    perf_print("ppo learning, useful flops", rate, REPEATS, "GFLOP/s");
    perf_print("ppo learning / FMA peak", share, REPEATS, "x");
}

int main(void) {
    static float peak_value = 0.5f;
    Update whole, rollout, on_two;
    HostPool *pool[2];
    KernBackend *one = open_backend(1, &pool[0]), *two = open_backend(2, &pool[1]);
    Peaks peaks = {choose_peak(), pool[1], {0.5f, 0.5f}};
    open_update(&whole, one, EPOCHS);
    open_update(&rollout, one, 0);
    open_update(&on_two, two, EPOCHS);
    double samples = (double)ENVS * STEPS, peak = PEAK_FLOPS * 1e-9;
    PerfCase cases[] = {
        {.name = "fp32 FMA peak", .unit = "GFLOP/s", .work = peak, .run = peaks.peak, .context = &peak_value},
        {.name = "fp32 FMA peak, 2 threads",
         .unit = "GFLOP/s",
         .work = 2 * peak,
         .run = peak_of_two,
         .context = &peaks},
        {.name = "ppo update, 4 epochs", .unit = "step/s", .work = samples, .run = update, .context = &whole},
        {.name = "ppo rollout alone", .unit = "step/s", .work = samples, .run = update, .context = &rollout},
        {.name = "ppo update, 2 threads", .unit = "step/s", .work = samples, .run = update, .context = &on_two},
    };
    perf_run(cases, 5, REPEATS);
    print_share_of_peak(&cases[0], &cases[2], &cases[3]);
    perf_ratio("ppo update, 2 threads / 1", &cases[4], &cases[2], REPEATS);
    perf_ratio("fp32 FMA peak, 2 threads / 1", &cases[1], &cases[0], REPEATS);
    whole.ppo->backend->ops->ppo_close(whole.ppo);
    rollout.ppo->backend->ops->ppo_close(rollout.ppo);
    on_two.ppo->backend->ops->ppo_close(on_two.ppo);
    one->ops->close(one);
    two->ops->close(two);
    host_pool_free(pool[0]);
    host_pool_free(pool[1]);
    return 0;
}
