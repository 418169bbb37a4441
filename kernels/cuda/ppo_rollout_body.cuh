// The rollout of one simulator's envs. A block takes them in groups of as many as it has rows; in a step all its
// threads work on the policy, and thread r on row r's action and simulator. Included by kernels/cuda/ppo_rollout.cu for
// each simulator. The semantics are those of kernels/cpu/ppo_rollout.c.

#include "kernels/cuda/env_body.cuh"

static __global__ void BODY(ppo_reset)(const __grid_constant__ CudaPpoArgs a) {
    int64_t env = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (env < a.envs) BODY(begin_episode)(a.batch, env);
}

// The row's actions, behind the discrete ones those that are continuous: draws them, and gives them to the simulator.
DEVICE_FN void BODY(ppo_act)(const CudaPpoArgs &a, PpoActing p, int64_t place) {
    BODY(ppo_choose)(a, p);
    const float *log_std = a.params + a.log_std;
    float *actions = a.batch.view.continuous + p.env / CUDA_LANES * (ACTIONS * CUDA_LANES) + p.env % CUDA_LANES;
    PpoLikelihood likelihood = {p.log_prob, 0.0f};
    SimNormal4 normal = {};
#pragma unroll
    for (int k = 0; k < ACTIONS; k++) {
        if (k % 4 == 0) normal = sim_normal4_from(ppo_noise_of(a, p, (DISCRETE + 3) / 4 + k / 4));
        float drawn = k % 4 == 0 ? normal.x0 : k % 4 == 1 ? normal.x1 : k % 4 == 2 ? normal.x2 : normal.x3;
        float mean = p.y[k * p.pitch], action = ppo_gaussian_draw(mean, log_std[k], drawn);
        likelihood = ppo_gaussian_add(likelihood, mean, log_std[k], action);
        p.words[DISCRETE + k] = __float_as_uint(action);
        actions[k * CUDA_LANES] = policy_clamped(action, a.actor.action_low, a.actor.action_high);
    }
    a.log_prob[place] = likelihood.log_prob;
}

// One row's action and step. Returns PPO_TERMINATED, PPO_TRUNCATED or 0.
DEVICE_FN int32_t BODY(ppo_step)(const CudaPpoArgs &a, const PpoBlock &b, CudaProbe &probe, int row, int64_t env,
                                 int32_t step) {
    int64_t place = ppo_place(a, env, step);
    PpoActing acting = {env, step, ppo_head(b, a.network.actor_head, row), b.scratch.pitch,
                        a.action + place * (DISCRETE + ACTIONS)};
    a.value[place] = ppo_value(a, b, row);
    BODY(ppo_act)(a, acting, place);
    cuda_probe_lap(probe, HOST_TRACE_POLICY);
    bool begins = BODY(step_env)(a.batch, env, step);
    cuda_probe_lap(probe, HOST_TRACE_SIMULATION);
    int32_t ended = ppo_take_reward(a, env, place);
    cuda_probe_lap(probe, HOST_TRACE_LEARNING);
    if (begins) BODY(begin_episode)(a.batch, env);
    return ended;
}

DEVICE_FN void BODY(ppo_group)(const CudaPpoArgs &a, PpoBlock &b, CudaProbe &probe, int64_t first_env, int32_t begin,
                               int32_t end) {
    int row = (int)threadIdx.x;
    int64_t env = first_env + row;
    if (begin == 0 && row < b.rows) ppo_clear_outcome(a, env);
    if (begin == 0) ppo_keep_first_states(a, b, first_env);
    b.state = a.state + first_env;
    for (int32_t step = begin; step < end; step++) {
        ppo_look(a, b, a.batch.view.obs, first_env, a.obs + ppo_place(a, first_env, step) * OBS);
        ppo_forward(a, b);
        ppo_take_states(a, b, first_env);
        int32_t ended = row < b.rows ? BODY(ppo_step)(a, b, probe, row, env, step) : 0;
        bool is_cut = ended == PPO_TRUNCATED;
        int any_cut = __syncthreads_or(is_cut);
        cuda_probe_lap(probe, HOST_TRACE_SIMULATION); // of other rows; where their time is, most of it
        if (any_cut) {
            ppo_look(a, b, a.batch.view.final_obs, first_env, NULL);
            ppo_forward(a, b);
            if (is_cut) a.final_value[ppo_place(a, env, step)] = ppo_value(a, b, row);
            __syncthreads();
            cuda_probe_lap(probe, HOST_TRACE_LEARNING);
        }
        if (ended) ppo_clear_states(a, env);
    }
    if (end < a.steps) return;
    ppo_look(a, b, a.batch.view.obs, first_env, NULL);
    ppo_forward(a, b);
    if (row < b.rows) a.last_value[env] = ppo_value(a, b, row);
    cuda_probe_lap(probe, HOST_TRACE_LEARNING);
}

static __global__ void __launch_bounds__(CUDA_PPO_ROLLOUT_THREADS, 4)
    BODY(ppo_rollout)(const __grid_constant__ CudaPpoArgs a, int32_t begin, int32_t end) {
    __shared__ GemmShared gemm_shared;
    PpoBlock b = {a.rollout, gemm_shared, ppo_scratch(a, a.rollout), 0, NULL, NULL};
    CudaProbe probe = cuda_probe(a.step->is_probed ? &a.report->ticks : NULL);
    for (int64_t first = a.first_env + (int64_t)blockIdx.x * a.rollout.rows; first < a.end_env;
         first += (int64_t)gridDim.x * a.rollout.rows) {
        b.rows = a.end_env - first < a.rollout.rows ? (int)(a.end_env - first) : a.rollout.rows;
        BODY(ppo_group)(a, b, probe, first, begin, end);
        __syncthreads();
    }
}
