// What follows PPO's rollout, env by env: advantages, and statistics, which are folded in their order; and the envs'
// words on their way in and out.
#include "kernels/cuda/names.cuh"
#include "kernels/cuda/ppo_launch.h"

enum { ENVS_THREADS = 128 };

static unsigned blocks_for(int64_t count) { return (unsigned)((count + ENVS_THREADS - 1) / ENVS_THREADS); }

DEVICE_FN int64_t thread_number(void) { return (int64_t)blockIdx.x * ENVS_THREADS + threadIdx.x; }

// One thread an env. Value and target differ by the advantage, whose place holds the discounted returns at first.
static __global__ void __launch_bounds__(ENVS_THREADS) ppo_env_advantages(const __grid_constant__ CudaPpoArgs a) {
    int64_t env = a.first_env + thread_number();
    if (env >= a.end_env) return;
    PpoOutcome *outcome = &a.outcomes[env];
    outcome->discounted = ppo_moments_of(a.advantage + env, a.steps, a.envs);
    ppo_advantages(a.reward + env, a.value + env, a.ended + env, a.final_value + env, a.last_value[env], a.steps,
                   a.envs, a.gamma, a.lambda, a.advantage + env, a.target + env);
    outcome->target = ppo_moments_of(a.target + env, a.steps, a.envs);
    outcome->residual = ppo_moments_of(a.advantage + env, a.steps, a.envs);
}

// One thread a value of an env's observations.
static __global__ void __launch_bounds__(ENVS_THREADS) ppo_env_obs(const __grid_constant__ CudaPpoArgs a) {
    int64_t count = a.network.layer[0].in, at = a.first_env * count + thread_number();
    if (at >= a.end_env * count) return;
    a.obs_moments[at % count * a.envs + at / count] = ppo_moments_of(a.obs + at, a.steps, a.envs * count);
}

// The envs of each of its own shards, in order, to the shard's place behind theirs; one thread a shard and value of the
// observations, and one a shard for the outcome.
static __global__ void __launch_bounds__(ENVS_THREADS) ppo_fold_envs(const __grid_constant__ CudaPpoArgs a) {
    int64_t count = a.network.layer[0].in, envs = a.envs / a.shards, at = thread_number();
    if (at >= a.own_shards * (count + 1)) return;
    int64_t shard = a.first_shard + at % a.own_shards, k = at / a.own_shards;
    if (k < count) {
        const PpoMoments *from = a.obs_moments + k * a.envs + shard * envs;
        PpoMoments sum = {};
        for (int64_t env = 0; env < envs; env++)
            sum = ppo_moments_fold(sum, from[env]);
        a.obs_moments[count * a.envs + shard * count + k] = sum;
    } else {
        PpoOutcome sum = {};
        for (int64_t env = 0; env < envs; env++)
            sum = ppo_outcome_fold(sum, a.outcomes[shard * envs + env]);
        a.outcomes[a.envs + shard] = sum;
    }
}

// The shards, in order, into the report.
static __global__ void __launch_bounds__(ENVS_THREADS) ppo_fold_shards(const __grid_constant__ CudaPpoArgs a) {
    int64_t count = a.network.layer[0].in, k = thread_number();
    if (k < count) {
        const PpoMoments *from = a.obs_moments + count * a.envs + k;
        PpoMoments sum = {};
        for (int32_t shard = 0; shard < a.shards; shard++)
            sum = ppo_moments_fold(sum, from[shard * count]);
        a.report->obs[k] = sum;
    } else if (k == count) {
        PpoOutcome sum = {};
        for (int32_t shard = 0; shard < a.shards; shard++)
            sum = ppo_outcome_fold(sum, a.outcomes[a.envs + shard]);
        a.report->outcome = sum;
        if (a.report->infinite != CUDA_INFINITE_NONE) a.report->end = CUDA_PPO_INFINITE_ROLLOUT;
    }
}

int cuda_launch_ppo_advantages(const CudaPpoArgs *args, cudaStream_t stream) {
    int64_t count = args->network.layer[0].in, envs = args->end_env - args->first_env;
    ppo_env_advantages<<<blocks_for(envs), ENVS_THREADS, 0, stream>>>(*args);
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    ppo_env_obs<<<blocks_for(envs * count), ENVS_THREADS, 0, stream>>>(*args);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    ppo_fold_envs<<<blocks_for(args->own_shards * (count + 1)), ENVS_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

int cuda_launch_ppo_outcome(const CudaPpoArgs *args, cudaStream_t stream) {
    ppo_fold_shards<<<blocks_for(args->network.layer[0].in + 1), ENVS_THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}

// ---- words of an env -----------------------------------------------------------------------------------------------

// Where word `word` of an env is kept, or NULL: a parameter that is the same in every env.
DEVICE_FN uint32_t *word_at(const CudaPpoArgs &a, int64_t env, int word, int state_words, int param_words, int obs) {
    const KernBatchView &view = a.batch.view;
    int64_t block = env / CUDA_LANES, lane = env % CUDA_LANES;
    if (word < state_words) return view.state + (block * state_words + word) * CUDA_LANES + lane;
    word -= state_words;
    if (word < param_words) {
        return a.batch.sim.any_random ? a.batch.params + (block * param_words + word) * CUDA_LANES + lane : NULL;
    }
    word -= param_words;
    if (word == 0) return a.batch.episode + env;
    if (word == 1) return (uint32_t *)view.length + env;
    if (word == 2) return (uint32_t *)view.episode_return + env;
    if (word == 3) return (uint32_t *)a.discounted + env;
    word -= 4;
    if (word < obs) return (uint32_t *)view.obs + (block * obs + word) * CUDA_LANES + lane;
    return (uint32_t *)a.state + (int64_t)(word - obs) * a.envs + env;
}

static __global__ void __launch_bounds__(ENVS_THREADS)
    ppo_move_envs(const __grid_constant__ CudaPpoArgs a, uint32_t *words, int32_t first, int32_t end, int state_words,
                  int param_words, int32_t out) {
    int obs = a.network.layer[0].in;
    int64_t count = state_words + param_words + 4 + obs + a.states, at = first * count + thread_number();
    if (at >= end * count) return;
    int word = (int)(at % count);
    uint32_t *place = word_at(a, at / count, word, state_words, param_words, obs);
    if (!out) {
        if (place != NULL) *place = words[at];
    } else {
        words[at] = place != NULL ? *place : __float_as_uint(a.batch.sim.value[word - state_words]);
    }
}

int cuda_launch_ppo_move_envs(const CudaPpoArgs *args, uint32_t *words, int32_t first, int32_t end, int32_t out,
                              cudaStream_t stream) {
    const SimSpec *sim = args->batch.sim.spec;
    int64_t count = (int64_t)(end - first) * (sim->state_words + sim->param_count + 4 + sim->obs + args->states);
    ppo_move_envs<<<blocks_for(count), ENVS_THREADS, 0, stream>>>(*args, words, first, end, sim->state_words,
                                                                  sim->param_count, out);
    return cudaGetLastError();
}
