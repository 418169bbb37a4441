// PPO's update on the CPU: 64 envs x 128 steps, 4 epochs, one thread. Against the core's fp32 FMA peak, which perf_es
// measures too. Rollouts are timed apart: updates without epochs.
#include "perf/peak.h"
#include "perf/ppo_timing.h"

enum { ENVS = 64, STEPS = 128, SHARDS = 16, REPEATS = 15 };

int main(void) {
    static float peak_value = 0.5f;
    PpoUpdate whole, rollout;
    HostPool *pool = NULL;
    KernBackend *backend;
    perf_check(host_pool_create(1, HOST_BIND_NONE, &pool));
    KernCpuOptions options = {pool, "auto", 0};
    perf_check(kern_cpu_open(&options, &backend));
    ppo_update_open(&whole, backend, ENVS, SHARDS, STEPS, 0, PPO_UPDATE_EPOCHS);
    ppo_update_open(&rollout, backend, ENVS, SHARDS, STEPS, 0, 0);
    PerfCase cases[] = {
        {.name = "fp32 FMA peak",
         .unit = "GFLOP/s",
         .work = PEAK_FLOPS * 1e-9,
         .run = choose_peak(),
         .context = &peak_value},
        {.name = "ppo update, 4 epochs",
         .unit = "step/s",
         .work = whole.env_steps,
         .run = ppo_update_run,
         .context = &whole},
        {.name = "ppo rollout alone",
         .unit = "step/s",
         .work = rollout.env_steps,
         .run = ppo_update_run,
         .context = &rollout},
    };
    perf_run(cases, 3, REPEATS);
    double rate[REPEATS], share[REPEATS];
    ppo_update_learning(&cases[1], &cases[2], REPEATS, rate);
    for (int r = 0; r < REPEATS; r++) {
        rate[r] *= 1e-9;
        share[r] = rate[r] / cases[0].rate[r];
    }
    perf_print("ppo learning, useful flops", rate, REPEATS, "GFLOP/s");
    perf_print("ppo learning / FMA peak", share, REPEATS, "x");
    ppo_update_close(&whole);
    ppo_update_close(&rollout);
    backend->ops->close(backend);
    host_pool_free(pool);
    return 0;
}
