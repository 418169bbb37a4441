// Whether the profiler splits a fused loop's time as an ablation does: the same loop with its simulator replaced by a
// replay of what that simulator gave, step by step. What the loop is faster by, the copies of the replay apart (which
// are measured beside the simulator, as they overlap with the rest), is what the simulator took; beside it stands what
// --profile says (one round of 64 measured). Fused evaluation of ES and PPO's
// rollouts, on one thread, by processor time. Printed are shares of the loop's time, in percent, and their difference
// in points.
//
// The replay is put into the opened ES' or PPO's table of simulator functions; the loops are those that ship. Policies
// of two wide layers go through a pipeline of two members, in which the one's simulator overlaps with the other's
// policy: leaving it out there saves another time than it takes alone. So these loops are compared once more with one
// member at a time, whose steps do not overlap.
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/ppo_cpu.h"
#include "perf/perf.h"
#include "profiler/prof_analysis.h"
#include "profiler/prof_record.h"
#include "sim/sim_rng.h"

enum {
    REPEATS = 21,
    EVALUATIONS = 8,
    ROLLOUTS = 8,
    TAPE_BYTES = 1 << 28,
    COPY_BYTES = 1 << 16,
    MEMBERS = 128,
    ENVS = 64,
    STEPS = 64
};

// Beside: the simulator steps, and a replay's copies are made as well, but lead nowhere.
typedef enum Mode { MODE_PLAIN, MODE_RECORD, MODE_BESIDE, MODE_REPLAY, MODES } Mode;

// What the simulator gave, in the order of its calls; replayed in the same order by the same loop.
static struct Tape {
    unsigned char *bytes;
    size_t at;
    Mode mode;
    const LanesOps *ops;
    int obs;
} tape;

static void exchange(void *data, size_t bytes) {
    static unsigned char nowhere[COPY_BYTES];
    if (tape.mode == MODE_PLAIN) return;
    if (tape.at + bytes > TAPE_BYTES || bytes > COPY_BYTES) perf_check(host_fail(STATUS_MEMORY, "the tape is full"));
    unsigned char *place = tape.bytes + tape.at;
    memcpy(tape.mode == MODE_RECORD   ? place
           : tape.mode == MODE_REPLAY ? data
                                      : nowhere,
           tape.mode == MODE_RECORD ? data : place, bytes);
    tape.at += bytes;
}

static void step_lanes(KernLanes *lanes, const LanesOps *ops, size_t count) {
    if (tape.mode != MODE_REPLAY) ops->step(lanes);
    for (int k = 0; k < tape.obs; k++)
        exchange(lanes->obs[k], count * sizeof(float));
    exchange(lanes->done, count * sizeof lanes->done[0]);
    for (size_t l = 0; tape.mode == MODE_REPLAY && l < count; l++)
        lanes->length[l]++;
}

static const LanesOps *const *real_sims; // [1, 8, 16 lanes]
static void step_1(KernLanes *lanes) { step_lanes(lanes, real_sims[0], 1); }
static void step_8(KernLanes *lanes) { step_lanes(lanes, real_sims[1], 8); }
static void step_16(KernLanes *lanes) { step_lanes(lanes, real_sims[2], 16); }

static void step_batch(LanesBatch *batch, int64_t begin, int64_t end) {
    const KernBatchView *v = &batch->view;
    size_t first = (size_t)(begin * v->lanes), count = (size_t)((end - begin) * v->lanes) * 4, obs = (size_t)tape.obs;
    if (tape.mode != MODE_REPLAY) tape.ops->batch_step(batch, begin, end);
    exchange(v->obs + first * obs, count * obs);
    exchange(v->final_obs + first * obs, count * obs);
    exchange(v->reward + first, count);
    exchange(v->terminated + first, count);
    exchange(v->truncated + first, count);
    exchange(v->final_length + first, count);
    exchange(v->final_return + first, count);
}

// ---- loops ---------------------------------------------------------------------------------------------------------

typedef struct Subject {
    const char *scope; // the loop's
    CpuEs *es;
    int32_t at_a_time; // members
    CpuPpo *ppo;
    KernPpoStep step;
    uint32_t generation;
} Subject;

static void run_es(Subject *s) {
    static KernEpisode episodes[MEMBERS];
    static float sums[MEMBERS * 2 * LANES_OBS_MAX];
    KernNormalizer normalizer = {.mean = {0.0f}};
    for (int k = 0; k < s->es->spec.policy.size[0]; k++)
        normalizer.scale[k] = 1.0f;
    KernEsJob job = {.purpose = SIM_RNG_EPISODE, .sigma = 0.05f, .count = s->at_a_time, .episodes = 1};
    for (; job.generation < EVALUATIONS; job.generation++) {
        for (job.first = 0; job.first < MEMBERS; job.first += s->at_a_time)
            perf_check(cpu_es_evaluate(&s->es->base, &job, &normalizer, episodes, sums));
    }
}

// From the envs as they are: a replay leaves them there.
static void run_rollouts(Subject *s) {
    CpuPpo *ppo = s->ppo;
    for (int i = 0; i < ROLLOUTS; i++) {
        ppo->update = (uint32_t)i;
        for (int64_t b = 0; b < ppo->batch.view.blocks; b += ppo->piece_blocks) {
            int64_t e = b + ppo->piece_blocks;
            ppo->isa->ops->ppo_rollout(ppo, b, e < ppo->batch.view.blocks ? e : ppo->batch.view.blocks, 0);
        }
    }
}

static void run(Subject *s) {
    tape.at = 0;
    s->es != NULL ? run_es(s) : run_rollouts(s);
}

static double time_s(Subject *s) {
    int64_t start_ns = host_thread_ns();
    run(s);
    return 1e-9 * (double)(host_thread_ns() - start_ns);
}

// The simulator's share of the loop as a profile has it.
static double profiled_share(Subject *s, const char *path) {
    ProfRecordOptions options = {.path = path};
    ProfRecorder *recorder = NULL;
    unlink(path);
    perf_check(prof_recorder_start(&options, &recorder));
    if (s->es != NULL) run_es(s);
    KernPpoReport report;
    for (int k = 0; s->es == NULL && k < ROLLOUTS; k++, s->step.update++)
        perf_check(cpu_ppo_update(&s->ppo->base, &s->step, &report));
    perf_check(prof_recorder_stop(recorder, NULL));
    prof_recorder_free(recorder);
    ProfAnalysis analysis;
    perf_check(prof_analyse_file(path, &analysis));
    unlink(path);
    double share = -1.0;
    for (int32_t i = 0; i < analysis.node_count; i++) {
        double sum = 0.0;
        if (strcmp(prof_node_name(&analysis, i), s->scope) != 0) continue;
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
            sum += (double)analysis.nodes[i].split[c];
        share = 100.0 * (double)analysis.nodes[i].split[HOST_TRACE_SIMULATION] / sum;
    }
    prof_analysis_free(&analysis);
    return share;
}

static double least(double x, double than) { return x < than ? x : than; }

// The least times of all repeats count: what else the machine does only adds to them.
static void compare(Subject *s, const char *name, const char *path, void (*replace)(Subject *s, bool on)) {
    double real_s = INFINITY, mode_s[MODES], profiled[REPEATS], apart[REPEATS];
    char line[96];
    for (int mode = 0; mode < MODES; mode++)
        mode_s[mode] = INFINITY;
    run(s); // to warm up
    for (int r = 0; r < REPEATS; r++) {
        real_s = least(time_s(s), real_s);
        replace(s, true);
        for (int mode = 0; mode < MODES; mode++) {
            tape.mode = (Mode)mode;
            mode_s[mode] = least(time_s(s), mode_s[mode]);
        }
        replace(s, false);
        profiled[r] = profiled_share(s, path);
    }
    double copies_s = mode_s[MODE_BESIDE] - mode_s[MODE_PLAIN];
    double removed = 100.0 * (real_s - mode_s[MODE_REPLAY] + copies_s) / real_s;
    for (int r = 0; r < REPEATS; r++)
        apart[r] = profiled[r] - removed;
    snprintf(line, sizeof line, "%s: simulator, ablation", name);
    perf_print(line, &removed, 1, "%");
    snprintf(line, sizeof line, "%s: simulator, profile", name);
    perf_print(line, profiled, REPEATS, "%");
    snprintf(line, sizeof line, "%s: profile - ablation", name);
    perf_print(line, apart, REPEATS, "points");
    fflush(stdout);
}

static LanesOps stand_in[3];
static const LanesOps *const stand_ins[3] = {&stand_in[0], &stand_in[1], &stand_in[2]};

static void replace_es(Subject *s, bool on) { s->es->sims = on ? stand_ins : real_sims; }
static void replace_ppo(Subject *s, bool on) { s->ppo->sim = on ? &stand_in[0] : tape.ops; }

static void compare_es(KernBackend *backend, const char *sim, int32_t width, int32_t layers, const char *path) {
    const int32_t hidden[] = {width, width};
    KernEs *es = NULL;
    KernEsSpec spec = {.seed = 1, .members = MEMBERS, .episodes = 1};
    char name[64];
    kern_sim_default(&spec.sim, sim_spec_find(sim));
    perf_check(policy_shape(&spec.policy, spec.sim.spec, hidden, layers, POLICY_TANH));
    float *params = calloc(3 * (size_t)spec.policy.params, sizeof *params);
    if (params == NULL) perf_check(host_fail(STATUS_MEMORY, "no memory"));
    policy_init(&spec.policy, 1, params);
    perf_check(cpu_es_open(backend, &spec, &es));
    perf_check(cpu_es_write(es, params, params + spec.policy.params, params + 2 * spec.policy.params));
    free(params);
    Subject s = {.scope = "es evaluate", .es = (CpuEs *)es, .at_a_time = MEMBERS};
    void (*const steps[])(KernLanes *) = {step_1, step_8, step_16};
    real_sims = s.es->sims;
    tape.obs = spec.sim.spec->obs;
    for (int i = 0; i < 3; i++) {
        stand_in[i] = *real_sims[i];
        stand_in[i].step = steps[i];
        stand_in[i].pipeline = NULL;
    }
    snprintf(name, sizeof name, "es %s %dx%d", sim, layers, width);
    compare(&s, name, path, replace_es);
    if (layers == 2) {
        s.at_a_time = 1;
        snprintf(name, sizeof name, "es %s %dx%d, one member at a time", sim, layers, width);
        compare(&s, name, path, replace_es);
    }
    cpu_es_close(es);
}

static void compare_ppo(KernBackend *backend, const char *sim, int32_t width, const char *path) {
    const int32_t hidden[] = {width, width};
    KernPpo *ppo = NULL;
    KernPpoSpec spec = {.seed = 1, .envs = ENVS, .shards = 16, .rollout = STEPS, .minibatches = 4};
    KernPpoReport report;
    char name[64];
    spec.gamma = 0.99f, spec.lambda = 0.95f;
    kern_sim_default(&spec.sim, sim_spec_find(sim));
    perf_check(ppo_shape(&spec.policy, spec.sim.spec, hidden, 2, 0, POLICY_TANH, false));
    size_t params = (size_t)spec.policy.params;
    float *vectors = calloc(3 * params, sizeof *vectors);
    if (vectors == NULL) perf_check(host_fail(STATUS_MEMORY, "no memory"));
    KernPpoState state = {.params = vectors, .first = vectors + params, .second = vectors + 2 * params};
    ppo_init(&spec.policy, 1, 0.0f, state.params);
    perf_check(cpu_ppo_open(backend, &spec, &ppo));
    perf_check(cpu_ppo_write(ppo, &state));
    free(vectors);
    Subject s = {.scope = "ppo rollout", .ppo = (CpuPpo *)ppo};
    perf_check(cpu_ppo_update(ppo, &s.step, &report)); // makes the normaliser
    tape.obs = spec.sim.spec->obs;
    tape.ops = s.ppo->sim;
    stand_in[0] = *tape.ops;
    stand_in[0].batch_step = step_batch;
    snprintf(name, sizeof name, "ppo %s 2x%d", sim, width);
    compare(&s, name, path, replace_ppo);
    cpu_ppo_close(ppo);
}

int main(void) {
    static const char *const sims[] = {"cartpole", "acrobot", "pendulum"};
    char path[64];
    HostPool *pool = NULL;
    KernBackend *backend = NULL;
    snprintf(path, sizeof path, "/tmp/perf_split-%d.trace", (int)getpid());
    tape.bytes = malloc(TAPE_BYTES);
    if (tape.bytes == NULL) perf_check(host_fail(STATUS_MEMORY, "no memory for a tape"));
    perf_check(host_pool_create(1, HOST_BIND_NONE, &pool));
    KernCpuOptions options = {pool, "auto", 0};
    perf_check(kern_cpu_open(&options, &backend));
    for (int i = 0; i < 3; i++) {
        compare_es(backend, sims[i], 8, 1, path);
        compare_es(backend, sims[i], 32, 2, path);
        compare_es(backend, sims[i], 64, 2, path);
        compare_ppo(backend, sims[i], 8, path);
        compare_ppo(backend, sims[i], 64, path);
    }
    backend->ops->close(backend);
    host_pool_free(pool);
    free(tape.bytes);
    return 0;
}
