// Fused ES evaluation: CartPole, 64-64 tanh policy, fixed 500 steps, one episode a member. Useful flops are 2 x weights
// a step. Against the core's fp32 FMA peak, measured here. Noise generation is timed apart: episodes of one step cost
// the noise, the weights and one step, and are subtracted from those of 501.
//
// Then noise by counters and out of a table, side by side, for a small policy and a large one: evaluation and update,
// in members a second, one thread. Each run is a generation of its own, whose slices of the table no cache has.
#include <string.h>

#include "kernels/kern.h"
#include "perf/peak.h"
#include "perf/perf.h"
#include "sim/sim_rng.h"

enum { MEMBERS = 128, STEPS = 500, REPEATS = 15 };

typedef struct Evaluation {
    KernEs *es;
    KernEsJob job;
    int32_t params;
    KernEpisode episodes[MEMBERS];
    float sums[MEMBERS * 2 * 4];
} Evaluation;

static void evaluate(void *context) {
    Evaluation *e = context;
    KernNormalizer normalizer = {{0}, {1.0f, 1.0f, 1.0f, 1.0f}};
    perf_check(e->es->backend->ops->es_evaluate(e->es, &e->job, &normalizer, e->episodes, e->sums));
}

static void open_evaluation(Evaluation *e, KernBackend *backend, int width, int steps, int64_t table) {
    const int32_t hidden[] = {width, width};
    KernEsSpec spec = {.seed = 1, .members = MEMBERS, .episodes = 1, .common = true, .table = table};
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
    e->params = spec.policy.params;
    e->job = (KernEsJob){.purpose = SIM_RNG_EPISODE, .sigma = 0.02f, .count = MEMBERS, .episodes = 1};
}

// ---- counters and a table ------------------------------------------------------------------------------------------

enum { TABLE_FLOATS = 1 << 26, NOISE_CASES = 5, NOISE_REPEATS = 15 };

static void evaluate_next(void *context) {
    ((Evaluation *)context)->job.generation++;
    evaluate(context);
}

static void update_next(void *context) {
    Evaluation *e = context;
    float shaped[MEMBERS];
    for (int i = 0; i < MEMBERS; i++)
        shaped[i] = (float)(i * 37 % MEMBERS) / (float)(MEMBERS - 1) - 0.5f;
    KernEsStep step = {.generation = ++e->job.generation,
                       .gradient_scale = 0.1f,
                       .learning_rate = 1e-6f,
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .second_scale = 1.0f,
                       .epsilon = 1e-8f};
    perf_check(e->es->backend->ops->es_update(e->es, &step, shaped, 0, e->params));
}

// Until all pages of its table have been met: the system maps them one after the other.
static void warm_up(Evaluation *e) {
    double generations = 3.0 * TABLE_FLOATS / ((double)e->params * MEMBERS / 2);
    for (int i = 0; i < (int)generations + 1; i++)
        update_next(e);
}

static void make_table(void *context) {
    KernBackend *backend = context;
    KernEs *es;
    KernEsSpec spec = {.seed = 2, .members = 2, .episodes = 1, .table = TABLE_FLOATS};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    perf_check(policy_shape(&spec.policy, spec.sim.spec, NULL, 0, POLICY_TANH));
    perf_check(backend->ops->es_open(backend, &spec, &es));
    backend->ops->es_close(es);
}

static void compare_noise(KernBackend *backend) {
    static const struct {
        const char *counters, *table, *ratio;
        int width, steps;
        void (*run)(void *context);
    } rows[NOISE_CASES] = {
        {"evaluation, 501 steps, 64-64, counters", "evaluation, 501 steps, 64-64, table",
         "evaluation, 501 steps, 64-64, table / counters", 64, STEPS + 1, evaluate_next},
        {"evaluation, 1 step, 64-64, counters", "evaluation, 1 step, 64-64, table",
         "evaluation, 1 step, 64-64, table / counters", 64, 1, evaluate_next},
        {"update, 64-64, counters", "update, 64-64, table", "update, 64-64, table / counters", 64, 1, update_next},
        {"evaluation, 1 step, 512-512, counters", "evaluation, 1 step, 512-512, table",
         "evaluation, 1 step, 512-512, table / counters", 512, 1, evaluate_next},
        {"update, 512-512, counters", "update, 512-512, table", "update, 512-512, table / counters", 512, 1,
         update_next},
    };
    static Evaluation of[2 * NOISE_CASES];
    PerfCase cases[2 * NOISE_CASES + 1] = {{0}};
    for (int i = 0; i < 2 * NOISE_CASES; i++) {
        open_evaluation(&of[i], backend, rows[i / 2].width, rows[i / 2].steps, i % 2 == 0 ? 0 : TABLE_FLOATS);
        if (i % 2 == 1) warm_up(&of[i]);
        cases[i].name = i % 2 == 0 ? rows[i / 2].counters : rows[i / 2].table;
        cases[i].unit = "member/s";
        cases[i].work = MEMBERS;
        cases[i].run = rows[i / 2].run;
        cases[i].context = &of[i];
    }
    cases[2 * NOISE_CASES] = (PerfCase){.name = "a table of 2^26 made and given back",
                                        .unit = "Mfloat/s",
                                        .work = TABLE_FLOATS * 1e-6,
                                        .run = make_table,
                                        .context = backend};
    perf_run(cases, 2 * NOISE_CASES + 1, NOISE_REPEATS);
    for (int i = 0; i < NOISE_CASES; i++)
        perf_ratio(rows[i].ratio, &cases[2 * i + 1], &cases[2 * i], NOISE_REPEATS);
    for (int i = 0; i < 2 * NOISE_CASES; i++)
        backend->ops->es_close(of[i].es);
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
        open_evaluation(&e[0], backend[i], 64, STEPS + 1, 0);
        open_evaluation(&e[1], backend[i], 64, 1, 0);
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
    compare_noise(backend[0]);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++)
            backend[i]->ops->es_close((i == 0 ? one : two)[k].es);
        backend[i]->ops->close(backend[i]);
        host_pool_free(pool[i]);
    }
    return 0;
}
