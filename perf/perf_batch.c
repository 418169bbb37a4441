// Streaming CartPole, 16,384 envs on one core: uniform random actions, same-step reset, final observations kept.
// Against a plain scalar loop over structs of the same simulator with the same semantics. perf/peers/gymnasium_batch.py
// does the same with Gymnasium's vectorised CartPole.
#include <string.h>

#include "kernels/kern.h"
#include "perf/perf.h"
#include "sim/cartpole.h"

enum { ENVS = 16384, STEPS = 200, RINGS = 16, REPEATS = 15 };

static int32_t actions[RINGS][ENVS];

typedef struct Batch {
    KernBackend *backend;
    KernBatch *batch;
} Batch;

static void step_batch(void *context) {
    Batch *b = context;
    KernBatchView view = b->backend->ops->batch_view(b->batch);
    for (int step = 0; step < STEPS; step++) {
        perf_check(b->backend->ops->batch_write(b->batch, view.discrete, actions[step % RINGS], sizeof actions[0]));
        perf_check(b->backend->ops->batch_step(b->batch));
    }
}

// One env of the scalar loop.
typedef struct ScalarEnv {
    CartpoleState state;
    float obs[CARTPOLE_OBS], final_obs[CARTPOLE_OBS];
    float reward, episode_return, final_return;
    int32_t terminated, truncated, length, final_length;
    uint32_t episode;
} ScalarEnv;

static ScalarEnv scalar[ENVS];
static CartpoleParams params;

static void begin_episode(ScalarEnv *env, uint32_t index) {
    SimRng rng = {1, 0, 0, env->episode++, index, SIM_RNG_BATCH};
    cartpole_reset(&env->state, &params, &rng);
    cartpole_observe(&env->state, &params, env->obs);
    env->length = 0;
    env->episode_return = 0.0f;
}

// With the processor's fused multiply-add, as the batch has it: without, each one would be a call.
#if defined(__x86_64__)
__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif
static void
step_scalar(void *context) {
    (void)context;
    for (int step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < ENVS; i++) {
            ScalarEnv *env = &scalar[i];
            SimRng rng = {1, 0, (uint32_t)(env->length + 1) << 8, env->episode - 1, i, SIM_RNG_BATCH};
            SimStep out = cartpole_step(&env->state, &params, &actions[step % RINGS][i], NULL, &rng);
            cartpole_observe(&env->state, &params, env->obs);
            env->length++;
            env->reward = out.reward;
            env->episode_return += out.reward;
            env->terminated = out.terminated;
            env->truncated = env->length >= CARTPOLE_TIME_LIMIT;
            if (env->terminated | env->truncated) {
                memcpy(env->final_obs, env->obs, sizeof env->obs);
                env->final_length = env->length;
                env->final_return = env->episode_return;
                begin_episode(env, i);
            }
        }
    }
}

static Batch open_batch(HostPool *pool) {
    Batch b = {0};
    KernCpuOptions options = {pool, "auto", 0};
    KernBatchSpec spec = {.envs = ENVS, .seed = 1, .autoreset = KERN_AUTORESET_SAME_STEP};
    kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
    perf_check(kern_cpu_open(&options, &b.backend));
    perf_check(b.backend->ops->batch_open(b.backend, &spec, &b.batch));
    return b;
}

int main(void) {
    HostPool *pool = NULL;
    perf_check(host_pool_create(1, HOST_BIND_CORE, &pool));
    uint32_t x = 12345;
    for (int r = 0; r < RINGS; r++) {
        for (int i = 0; i < ENVS; i++) {
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            actions[r][i] = (int32_t)(x >> 16 & 1);
        }
    }
    KernSim sim;
    kern_sim_default(&sim, sim_spec_find("cartpole"));
    memcpy(&params, sim.value, sizeof params);
    for (uint32_t i = 0; i < ENVS; i++)
        begin_episode(&scalar[i], i);
    Batch batch = open_batch(pool);
    double steps = (double)ENVS * STEPS * 1e-6;
    PerfCase cases[] = {
        {.name = "cartpole batch", .unit = "Mstep/s", .work = steps, .run = step_batch, .context = &batch},
        {.name = "cartpole scalar structs", .unit = "Mstep/s", .work = steps, .run = step_scalar},
    };
    perf_run(cases, 2, REPEATS);
    perf_ratio("cartpole batch / scalar structs", &cases[0], &cases[1], REPEATS);
    batch.backend->ops->batch_close(batch.batch);
    batch.backend->ops->close(batch.backend);
    host_pool_free(pool);
    return 0;
}
