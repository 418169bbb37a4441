// The CUDA backend against what its GPU could do at most: CartPole batches streamed from memory, fused ES evaluation,
// the ES update and the ranking, and PPO's updates.
//
// Usage: perf_gpu [--small] [--memory-tbps X] [--peak-tflops X]. The limits default to an H200's; --small is for the
// virtual GPU, where only whether it runs means something. The lines named "limit" are computed, not measured:
//   memory     bytes a step by what the kernel reads and writes (see step_bytes)
//   fp32       2 x weights useful flops a step of a member
//   issue      instructions: the fp32 peak is two flops an instruction
#include <string.h>

#include "host/config.h"
#include "kernels/kern.h"
#include "perf/perf.h"
#include "perf/ppo_timing.h"
#include "sim/sim_rng.h"

enum {
    BATCHES = 3,       // sizes of streamed batches
    CALL_ENVS = 32,    // a warp: what is left is the cost of a call
    EVALUATIONS = 4,   // {64-64 tanh, no hidden layer} x {few, many} members
    PPO_UPDATES = 3,   // {few, many} envs, and those many with a recurrent layer
    NOISE_INSTR = 277, // PTX of update_partial's loop: the noise of four parameters of one pair, added up
    RANK_INSTR_X4 = 33 // PTX of shape_ranks' inner loop: four comparisons
};

typedef struct Sizes {
    int repeats;
    int64_t envs[BATCHES];
    int calls, steps[BATCHES]; // of one run
    int few_members, many_members;
    int episode_steps;
    int learn_members;
    int updates; // of one run
    int ppo_envs[PPO_UPDATES], ppo_shards, ppo_steps, ppo_recurrent[PPO_UPDATES];
} Sizes;

static const Sizes FULL = {.repeats = 11,
                           .envs = {1 << 16, 1 << 20, 1 << 24},
                           .calls = 500,
                           .steps = {500, 200, 50},
                           .few_members = 256,
                           .many_members = 1 << 16,
                           .episode_steps = 500,
                           .learn_members = 1 << 18,
                           .updates = 5,
                           .ppo_envs = {64, 1 << 14, 1 << 14},
                           .ppo_shards = 16,
                           .ppo_steps = 128,
                           .ppo_recurrent = {0, 0, 32}};
static const Sizes SMALL = {.repeats = 2,
                            .envs = {100, 1000, 4000},
                            .calls = 2,
                            .steps = {2, 2, 2},
                            .few_members = 2,
                            .many_members = 16,
                            .episode_steps = 4,
                            .learn_members = 600,
                            .updates = 1,
                            .ppo_envs = {8, 16, 8},
                            .ppo_shards = 1,
                            .ppo_steps = 2,
                            .ppo_recurrent = {0, 0, 4}};

typedef struct Limits {
    double memory_tbps, peak_tflops;
} Limits;

// Zeroed memory; ends the program where there is none.
static void *allocate(size_t count, size_t size_bytes) {
    void *memory = calloc(count, size_bytes);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu x %zu bytes\n", count, size_bytes);
        exit(1);
    }
    return memory;
}

static void print_share(const PerfCase *found, double limit, const char *limit_name, int repeats) {
    double share[PERF_REPEATS_MAX] = {0};
    char name[128];
    for (int r = 0; r < repeats; r++)
        share[r] = found->rate[r] / limit;
    snprintf(name, sizeof name, "%s / %s", found->name, limit_name);
    perf_print(name, share, repeats, "x");
}

// ---- batches -------------------------------------------------------------------------------------------------------

typedef struct Batch {
    KernBatch *batch;
    int64_t envs;
    int steps;
    char name[64];
} Batch;

// What a step of an env whose episode goes on has to move: it reads the state, the episode's length, number and return
// and the action, and writes the state, the observation, reward, both flags, length and return. Four bytes each.
static double step_bytes(const SimSpec *sim) {
    int read = sim->state_words + 3 + 1, written = sim->state_words + sim->obs + 5;
    return 4.0 * (read + written);
}

static void step_batch(void *context) {
    Batch *b = context;
    for (int step = 0; step < b->steps; step++)
        perf_check(b->batch->backend->ops->batch_step(b->batch));
}

// Random actions, a new one for each env but the same in every step: new ones would have to come through PCIe.
static void write_actions(const Batch *b) {
    const KernOps *ops = b->batch->backend->ops;
    KernBatchView view = ops->batch_view(b->batch);
    size_t count = (size_t)(view.blocks * view.lanes);
    int32_t *actions = allocate(count, sizeof *actions);
    uint32_t x = 12345;
    for (size_t i = 0; i < count; i++) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        actions[i] = (int32_t)(x >> 16 & 1);
    }
    perf_check(ops->batch_write(b->batch, view.discrete, actions, count * sizeof *actions));
    free(actions);
}

// No pole ever falls, unless `falls`: with the same push in every step an episode then has about ten.
static void open_batch(Batch *b, KernBackend *backend, int64_t envs, int steps, bool falls) {
    KernBatchSpec spec = {.envs = envs, .seed = 1, .autoreset = KERN_AUTORESET_SAME_STEP};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    if (!falls) {
        perf_check(kern_sim_set(&spec.sim, "max_x_m=1e9"));
        perf_check(kern_sim_set(&spec.sim, "max_theta_rad=1e9"));
    }
    perf_check(backend->ops->batch_open(backend, &spec, &b->batch));
    b->envs = envs;
    b->steps = steps;
    snprintf(b->name, sizeof b->name, "cartpole batch, %lld envs%s", (long long)envs, falls ? ", short episodes" : "");
    write_actions(b);
}

static PerfCase batch_case(Batch *b) {
    return (PerfCase){
        .name = b->name, .unit = "Mstep/s", .work = (double)b->envs * b->steps * 1e-6, .run = step_batch, .context = b};
}

static void run_batches(KernBackend *backend, const Sizes *sizes, const Limits *limits) {
    Batch call = {0}, streamed[BATCHES] = {0}, falling = {0};
    int last = BATCHES - 1;
    open_batch(&call, backend, CALL_ENVS, sizes->calls, false);
    open_batch(&falling, backend, sizes->envs[last], sizes->steps[last], true);
    PerfCase cases[BATCHES + 2];
    for (int i = 0; i < BATCHES; i++) {
        open_batch(&streamed[i], backend, sizes->envs[i], sizes->steps[i], false);
        cases[i] = batch_case(&streamed[i]);
    }
    cases[BATCHES] = batch_case(&falling);
    cases[BATCHES + 1] = (PerfCase){.name = "cartpole batch, calls of a step, 32 envs",
                                    .unit = "call/s",
                                    .work = sizes->calls,
                                    .run = step_batch,
                                    .context = &call};
    perf_run(cases, BATCHES + 2, sizes->repeats);

    double bytes = step_bytes(sim_spec_find("cartpole"));
    double limit = limits->memory_tbps * 1e12 / bytes * 1e-6;
    perf_print("cartpole batch, moved by a step", &bytes, 1, "byte");
    perf_print("cartpole batch, limit by memory", &limit, 1, "Mstep/s");
    for (int i = 0; i < BATCHES; i++)
        print_share(&cases[i], limit, "limit by memory", sizes->repeats);
    Batch *all[] = {&call, &falling, &streamed[0], &streamed[1], &streamed[2]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        backend->ops->batch_close(all[i]->batch);
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

typedef struct Evaluation {
    KernEs *es;
    KernEsJob job;
    KernEpisode *episodes; // [members]
    float *sums;           // [members][2][obs]
    int steps;
    double weights; // useful multiply-adds of a step
    char name[64];
} Evaluation;

static void evaluate(void *context) {
    Evaluation *e = context;
    KernNormalizer normalizer = {{0}, {1.0f, 1.0f, 1.0f, 1.0f}};
    perf_check(e->es->backend->ops->es_evaluate(e->es, &e->job, &normalizer, e->episodes, e->sums));
    // The rates below count on it.
    for (int i = 0; i < e->job.count; i++) {
        if (e->episodes[i].length != e->steps) {
            perf_check(host_fail(STATUS_DEVICE, "%s: member %d made %d steps instead of %d", e->name, i,
                                 e->episodes[i].length, e->steps));
        }
    }
}

static KernEsSpec es_spec(const int32_t *hidden, int layers, int members, int steps) {
    KernEsSpec spec = {.seed = 1, .members = members, .episodes = 1, .common = true};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    spec.sim.time_limit = steps;
    perf_check(kern_sim_set(&spec.sim, "max_x_m=1e9"));
    perf_check(kern_sim_set(&spec.sim, "max_theta_rad=1e9"));
    perf_check(policy_shape(&spec.policy, spec.sim.spec, hidden, layers, POLICY_TANH));
    return spec;
}

static void open_es(KernEs **es, KernBackend *backend, const KernEsSpec *spec) {
    size_t params = (size_t)spec->policy.params;
    float *zero = allocate(params, sizeof *zero), *start = allocate(params, sizeof *start);
    policy_init(&spec->policy, 1, start);
    perf_check(backend->ops->es_open(backend, spec, es));
    perf_check(backend->ops->es_write(*es, start, zero, zero));
    free(zero);
    free(start);
}

static void open_evaluation(Evaluation *e, KernBackend *backend, bool hidden, int members, int steps) {
    const int32_t layers[] = {64, 64};
    KernEsSpec spec = es_spec(layers, hidden ? 2 : 0, members, steps);
    open_es(&e->es, backend, &spec);
    e->job = (KernEsJob){.purpose = SIM_RNG_EPISODE, .sigma = 0.02f, .count = members, .episodes = 1};
    e->episodes = allocate((size_t)members, sizeof *e->episodes);
    e->sums = allocate((size_t)members * 2 * (size_t)spec.sim.spec->obs, sizeof *e->sums);
    e->steps = steps;
    for (int layer = 0; layer < spec.policy.layers; layer++)
        e->weights += (double)spec.policy.size[layer] * spec.policy.size[layer + 1];
    snprintf(e->name, sizeof e->name, "es evaluation, %s, %d members, %d step%s", hidden ? "64-64 tanh" : "linear",
             members, steps, steps == 1 ? "" : "s");
}

static void close_evaluation(Evaluation *e) {
    e->es->backend->ops->es_close(e->es);
    free(e->episodes);
    free(e->sums);
}

// The steps' own speed: episodes of one step cost the noise, the weights and one step, and are subtracted.
static void print_steps(const PerfCase *whole, const PerfCase *single, int repeats, double peak_tflops) {
    const Evaluation *e = whole->context;
    double steps[PERF_REPEATS_MAX] = {0}, flops[PERF_REPEATS_MAX] = {0}, share[PERF_REPEATS_MAX] = {0};
    char name[128];
    for (int r = 0; r < repeats; r++) {
        double step_s = (1.0 / whole->rate[r] - 1.0 / single->rate[r]) / (e->steps - 1);
        steps[r] = 1e-6 / step_s;
        flops[r] = 2.0 * e->weights / step_s * 1e-12;
        share[r] = flops[r] / peak_tflops;
    }
    snprintf(name, sizeof name, "%s, without noise", whole->name);
    perf_print(name, steps, repeats, "M member-step/s");
    snprintf(name, sizeof name, "%s, useful flops without noise", whole->name);
    perf_print(name, flops, repeats, "TFLOP/s");
    snprintf(name, sizeof name, "%s / fp32 peak", whole->name);
    perf_print(name, share, repeats, "x");
}

static void run_evaluations(KernBackend *backend, const Sizes *sizes, const Limits *limits) {
    Evaluation evaluations[2 * EVALUATIONS] = {0}; // whole episodes, then single steps
    PerfCase cases[2 * EVALUATIONS];
    for (int i = 0; i < 2 * EVALUATIONS; i++) {
        Evaluation *e = &evaluations[i];
        open_evaluation(e, backend, i % EVALUATIONS < 2, i % 2 == 0 ? sizes->few_members : sizes->many_members,
                        i < EVALUATIONS ? sizes->episode_steps + 1 : 1);
        cases[i] = (PerfCase){
            .name = e->name, .unit = "member/s", .work = (double)e->job.count, .run = evaluate, .context = e};
    }
    perf_run(cases, 2 * EVALUATIONS, sizes->repeats);
    for (int i = 0; i < EVALUATIONS; i++)
        print_steps(&cases[i], &cases[i + EVALUATIONS], sizes->repeats, limits->peak_tflops);
    for (int i = 0; i < 2 * EVALUATIONS; i++)
        close_evaluation(&evaluations[i]);
}

// ---- update and ranks ----------------------------------------------------------------------------------------------

typedef struct Learning {
    KernEs *es;
    float *fitness, *shaped; // [members]
    int32_t params;
    int updates;
} Learning;

static void update(void *context) {
    Learning *l = context;
    KernEsStep step = {.gradient_scale = 1e-3f,
                       .learning_rate = 0.01f,
                       .beta1 = 0.9f,
                       .beta2 = 0.999f,
                       .second_scale = 1.0f,
                       .epsilon = 1e-8f};
    for (int i = 0; i < l->updates; i++) {
        step.generation = (uint32_t)i;
        perf_check(l->es->backend->ops->es_update(l->es, &step, l->shaped, 0, l->params));
    }
}

static void rank(void *context) {
    Learning *l = context;
    perf_check(l->es->backend->ops->es_shape(l->es, l->fitness, l->shaped));
}

static void run_learning(KernBackend *backend, const Sizes *sizes, const Limits *limits) {
    const int32_t hidden[] = {64, 64};
    int members = sizes->learn_members;
    KernEsSpec spec = es_spec(hidden, 2, members, 1);
    Learning l = {.params = spec.policy.params, .updates = sizes->updates};
    open_es(&l.es, backend, &spec);
    l.fitness = allocate(2 * (size_t)members, sizeof *l.fitness);
    l.shaped = l.fitness + members;
    for (int i = 0; i < members; i++)
        l.fitness[i] = (float)(i * 7919 % 501); // returns of CartPole: many ties
    rank(&l);                                   // what the updates go by

    char update_name[64], rank_name[64];
    snprintf(update_name, sizeof update_name, "es update, 64-64 tanh, %d members", members);
    snprintf(rank_name, sizeof rank_name, "centred ranks, %d members", members);
    double noise = (double)spec.policy.params * members / 2.0 * sizes->updates;
    PerfCase cases[] = {
        {.name = update_name, .unit = "G parameter-pair/s", .work = noise * 1e-9, .run = update, .context = &l},
        {.name = rank_name,
         .unit = "G comparison/s",
         .work = (double)members * members * 1e-9,
         .run = rank,
         .context = &l},
    };
    perf_run(cases, 2, sizes->repeats);
    double issue = limits->peak_tflops / 2 * 1e3; // G instructions of a thread a second
    double limit[] = {issue * 4 / NOISE_INSTR, issue * 4 / RANK_INSTR_X4};
    perf_print("es update, limit by issue", &limit[0], 1, "G parameter-pair/s");
    perf_print("centred ranks, limit by issue", &limit[1], 1, "G comparison/s");
    for (int i = 0; i < 2; i++)
        print_share(&cases[i], limit[i], "limit by issue", sizes->repeats);
    backend->ops->es_close(l.es);
    free(l.fitness);
}

// ---- PPO -----------------------------------------------------------------------------------------------------------

static void run_ppo(KernBackend *backend, const Sizes *sizes, const Limits *limits) {
    PpoUpdate updates[2 * PPO_UPDATES]; // whole ones, then rollouts alone
    PerfCase cases[2 * PPO_UPDATES];
    char name[128];
    for (int i = 0; i < 2 * PPO_UPDATES; i++) {
        int which = i % PPO_UPDATES, recurrent = sizes->ppo_recurrent[which];
        int epochs = i < PPO_UPDATES ? PPO_UPDATE_EPOCHS : 0;
        ppo_update_open(&updates[i], backend, sizes->ppo_envs[which], sizes->ppo_shards, sizes->ppo_steps, recurrent,
                        epochs);
        snprintf(updates[i].name, sizeof updates[i].name, "ppo %s, %d envs x %d%s",
                 epochs > 0 ? "update, 4 epochs" : "rollout alone", sizes->ppo_envs[which], sizes->ppo_steps,
                 recurrent > 0 ? ", recurrent" : "");
        cases[i] = (PerfCase){.name = updates[i].name,
                              .unit = "Mstep/s",
                              .work = updates[i].env_steps * 1e-6,
                              .run = ppo_update_run,
                              .context = &updates[i]};
    }
    perf_run(cases, 2 * PPO_UPDATES, sizes->repeats);
    for (int i = 0; i < PPO_UPDATES; i++) {
        double flops[PERF_REPEATS_MAX], share[PERF_REPEATS_MAX];
        ppo_update_learning(&cases[i], &cases[i + PPO_UPDATES], sizes->repeats, flops);
        for (int r = 0; r < sizes->repeats; r++) {
            flops[r] *= 1e-12;
            share[r] = flops[r] / limits->peak_tflops;
        }
        snprintf(name, sizeof name, "%s, useful flops of learning", updates[i].name);
        perf_print(name, flops, sizes->repeats, "TFLOP/s");
        snprintf(name, sizeof name, "%s, learning / fp32 peak", updates[i].name);
        perf_print(name, share, sizes->repeats, "x");
    }
    for (int i = 0; i < 2 * PPO_UPDATES; i++)
        ppo_update_close(&updates[i]);
}

// ---- the program ---------------------------------------------------------------------------------------------------

static Status parse_args(int argc, char **argv, const Sizes **sizes, Limits *limits) {
    for (int i = 1; i < argc; i++) {
        double *limit = strcmp(argv[i], "--memory-tbps") == 0   ? &limits->memory_tbps
                        : strcmp(argv[i], "--peak-tflops") == 0 ? &limits->peak_tflops
                                                                : NULL;
        if (strcmp(argv[i], "--small") == 0) {
            *sizes = &SMALL;
        } else if (limit == NULL || i + 1 == argc) {
            return host_fail(STATUS_USAGE, "usage: perf_gpu [--small] [--memory-tbps X] [--peak-tflops X]");
        } else {
            TRY(host_parse_real(argv[i], argv[i + 1], 1e-3, 1e6, "", limit));
            i++;
        }
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    const Sizes *sizes = &FULL;
    Limits limits = {.memory_tbps = 4.3, .peak_tflops = 67.0};
    KernBackend *backend = NULL;
    char device[256];
    perf_check(parse_args(argc, argv, &sizes, &limits));
    perf_check(kern_cuda_open(0, &backend));
    backend->ops->describe(backend, device, (int)sizeof device);
    fprintf(stderr, "%s; limits: %g TB/s, %g TFLOP/s\n", device, limits.memory_tbps, limits.peak_tflops);
    run_batches(backend, sizes, &limits);
    run_evaluations(backend, sizes, &limits);
    run_learning(backend, sizes, &limits);
    run_ppo(backend, sizes, &limits);
    backend->ops->close(backend);
    return 0;
}
