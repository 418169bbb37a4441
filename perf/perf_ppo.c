// PPO's update on the CPU: 64 envs x 128 steps, 4 epochs, on one thread and on two. Against the core's fp32 FMA peak,
// which perf_es measures too, and against what two cores give it. Rollouts are timed apart: updates without epochs.
#include "perf/peak.h"
#include "perf/ppo_timing.h"

enum { ENVS = 64, STEPS = 128, SHARDS = 16, REPEATS = 15 };

// The peak on two threads at once.
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

static PerfCase update_case(const char *name, PpoUpdate *update) {
    return (PerfCase){
        .name = name, .unit = "step/s", .work = update->env_steps, .run = ppo_update_run, .context = update};
}

int main(void) {
    HostPool *pool[2];
    KernBackend *one = open_backend(1, &pool[0]), *two = open_backend(2, &pool[1]);
    Peaks peaks = {choose_peak(), pool[1], {0.5f, 0.5f}};
    PpoUpdate whole, rollout, on_two;
    ppo_update_open(&whole, one, ENVS, SHARDS, STEPS, 0, PPO_UPDATE_EPOCHS);
    ppo_update_open(&rollout, one, ENVS, SHARDS, STEPS, 0, 0);
    ppo_update_open(&on_two, two, ENVS, SHARDS, STEPS, 0, PPO_UPDATE_EPOCHS);
    double peak = PEAK_FLOPS * 1e-9;
    PerfCase cases[] = {
        {.name = "fp32 FMA peak", .unit = "GFLOP/s", .work = peak, .run = peaks.peak, .context = &peaks.value[0]},
        {.name = "fp32 FMA peak, 2 threads",
         .unit = "GFLOP/s",
         .work = 2 * peak,
         .run = peak_of_two,
         .context = &peaks},
        update_case("ppo update, 4 epochs", &whole),
        update_case("ppo rollout alone", &rollout),
        update_case("ppo update, 4 epochs, 2 threads", &on_two),
    };
    perf_run(cases, 5, REPEATS);
    double rate[REPEATS], share[REPEATS];
    ppo_update_learning(&cases[2], &cases[3], REPEATS, rate);
    for (int r = 0; r < REPEATS; r++) {
        rate[r] *= 1e-9;
        share[r] = rate[r] / cases[0].rate[r];
    }
    perf_print("ppo learning, useful flops", rate, REPEATS, "GFLOP/s");
    perf_print("ppo learning / FMA peak", share, REPEATS, "x");
    perf_ratio("ppo update, 2 threads / 1", &cases[4], &cases[2], REPEATS);
    perf_ratio("fp32 FMA peak, 2 threads / 1", &cases[1], &cases[0], REPEATS);
    ppo_update_close(&whole);
    ppo_update_close(&rollout);
    ppo_update_close(&on_two);
    one->ops->close(one);
    two->ops->close(two);
    host_pool_free(pool[0]);
    host_pool_free(pool[1]);
    return 0;
}
