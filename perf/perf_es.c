// Fused ES evaluation: CartPole, 64-64 tanh policy, fixed 500 steps, one episode a member. Useful flops are 2 x weights
// a step. Against the core's fp32 FMA peak, measured here. Noise generation is timed apart: episodes of one step cost
// the noise, the weights and one step, and are subtracted from those of 501.
#include <string.h>

#include "kernels/kern.h"
#include "perf/peak.h"
#include "perf/perf.h"
#include "sim/sim_rng.h"

enum { MEMBERS = 128, STEPS = 500, REPEATS = 15 };

typedef struct Evaluation {
    KernEs *es;
    KernEsJob job;
    KernEpisode episodes[MEMBERS];
    float sums[MEMBERS * 2 * 4];
} Evaluation;

static void evaluate(void *context) {
    Evaluation *e = context;
    KernNormalizer normalizer = {{0}, {1.0f, 1.0f, 1.0f, 1.0f}};
    perf_check(e->es->backend->ops->es_evaluate(e->es, &e->job, &normalizer, e->episodes, e->sums));
}

static void open_evaluation(Evaluation *e, KernBackend *backend, int steps) {
    const int32_t hidden[] = {64, 64};
    KernEsSpec spec = {.seed = 1, .members = MEMBERS, .episodes = 1, .common = true};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    spec.sim.time_limit = steps;
    perf_check(kern_sim_set(&spec.sim, "max_x_m=1e9"));
    perf_check(kern_sim_set(&spec.sim, "max_theta_rad=1e9"));
    perf_check(policy_shape(&spec.policy, spec.sim.spec, hidden, 2, POLICY_TANH));
    float *params = calloc(3 * (size_t)spec.policy.params, sizeof *params);
    policy_init(&spec.policy, 1, params);
    perf_check(backend->ops->es_open(backend, &spec, &e->es));
    perf_check(backend->ops->es_write(e->es, params, params + spec.policy.params, params + 2 * spec.policy.params));
    free(params);
    e->job = (KernEsJob){.purpose = SIM_RNG_EPISODE, .sigma = 0.02f, .count = MEMBERS, .episodes = 1};
}

int main(void) {
    static Evaluation one[2], two[2]; // [long, short] on one thread and on two
    static float peak_value = 0.5f;
    HostPool *pool[2] = {NULL, NULL};
    KernBackend *backend[2];
    for (int i = 0; i < 2; i++) {
        perf_check(host_pool_create(i + 1, HOST_BIND_NONE, &pool[i])); // a bound pool would leave the next one a core
        KernCpuOptions options = {pool[i], "auto", 0};
        perf_check(kern_cpu_open(&options, &backend[i]));
        Evaluation *e = i == 0 ? one : two;
        open_evaluation(&e[0], backend[i], STEPS + 1);
        open_evaluation(&e[1], backend[i], 1);
    }
    double weights = 4 * 64 + 64 * 64 + 64 * 2;
    PerfCase cases[] = {
        {.name = "fp32 FMA peak",
         .unit = "GFLOP/s",
         .work = PEAK_FLOPS * 1e-9,
         .run = choose_peak(),
         .context = &peak_value},
        {.name = "es evaluation, 501 steps", .unit = "member/s", .work = MEMBERS, .run = evaluate, .context = &one[0]},
        {.name = "es evaluation, 1 step (noise, weights)",
         .unit = "member/s",
         .work = MEMBERS,
         .run = evaluate,
         .context = &one[1]},
        {.name = "es evaluation, 501 steps, 2 threads",
         .unit = "member/s",
         .work = MEMBERS,
         .run = evaluate,
         .context = &two[0]},
    };
    perf_run(cases, 4, REPEATS);
    double rate[REPEATS], share[REPEATS], scaling[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        double step_s = (1.0 / cases[1].rate[r] - 1.0 / cases[2].rate[r]) / STEPS;
        rate[r] = 2.0 * weights / step_s * 1e-9;
        share[r] = rate[r] / cases[0].rate[r];
        scaling[r] = cases[3].rate[r] / cases[1].rate[r];
    }
    perf_print("es evaluation, useful flops without noise", rate, REPEATS, "GFLOP/s");
    perf_print("es evaluation / FMA peak", share, REPEATS, "x");
    perf_print("es evaluation, 2 threads / 1", scaling, REPEATS, "x");
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++)
            backend[i]->ops->es_close((i == 0 ? one : two)[k].es);
        backend[i]->ops->close(backend[i]);
        host_pool_free(pool[i]);
    }
    return 0;
}
