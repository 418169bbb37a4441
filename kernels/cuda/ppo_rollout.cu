// PPO's rollout on the GPU: policy, simulator and resets of every env, for many steps in one launch. A block has some
// envs; they need nothing of others.
#include "kernels/cuda/ppo_net.cuh"
#include "kernels/cuda/probe.cuh"
#include "kernels/ppo_random.h"

// Row r's place among the samples.
DEVICE_FN int64_t ppo_place(const CudaPpoArgs &a, int64_t env, int32_t step) { return (int64_t)step * a.envs + env; }

// The observations of the block's envs, from `from` in lanes, to the policy's input; and as they are to `keep`.
DEVICE_FN void ppo_look(const CudaPpoArgs &a, const PpoBlock &b, const float *from, int64_t first_env, float *keep) {
    int obs = a.network.layer[0].in;
    float *input = b.memory + b.scratch.input;
    for (int e = (int)threadIdx.x; e < b.rows * obs; e += (int)blockDim.x) {
        int row = e / obs, k = e % obs;
        int64_t env = first_env + row;
        float x = from[(env / CUDA_LANES * obs + k) * CUDA_LANES + env % CUDA_LANES];
        if (keep != NULL) keep[e] = x;
        input[k * b.scratch.pitch + row] =
            policy_input(x, a.step->normalizer.mean[k], a.step->normalizer.scale[k], a.actor.precision);
    }
}

// What a step yields. Until the advantages are there, their place holds the discounted returns. Returns PPO_TERMINATED,
// PPO_TRUNCATED or 0.
DEVICE_FN int32_t ppo_take_reward(const CudaPpoArgs &a, int64_t env, int64_t place) {
    const KernBatchView &view = a.batch.view;
    float reward = view.reward[env], discounted = sim_fmaf(a.gamma, a.discounted[env], reward);
    int32_t ended = view.terminated[env] ? PPO_TERMINATED : view.truncated[env] ? PPO_TRUNCATED : 0;
    a.reward[place] =
        a.normalize_reward ? sim_clamp(reward * a.step->reward_scale, -PPO_REWARD_CLIP, PPO_REWARD_CLIP) : reward;
    a.advantage[place] = discounted;
    a.ended[place] = ended;
    a.discounted[env] = ended ? 0.0f : discounted;
    if (ended) {
        PpoOutcome &outcome = a.outcomes[env];
        outcome.episodes++;
        outcome.episode_steps += view.final_length[env];
        outcome.episode_return = outcome.episode_return + (double)view.final_return[env];
    }
    return ended;
}

// Recurrent states of the block's envs: before the rollout's first step, after a step, and at the start of an episode.
DEVICE_FN void ppo_keep_first_states(const CudaPpoArgs &a, const PpoBlock &b, int64_t first_env) {
    for (int e = (int)threadIdx.x; e < a.states * b.rows; e += (int)blockDim.x) {
        int64_t at = (int64_t)(e / b.rows) * a.envs + first_env + e % b.rows;
        a.first_state[at] = a.state[at];
    }
}

DEVICE_FN void ppo_take_states(const CudaPpoArgs &a, const PpoBlock &b, int64_t first_env) {
    int units = a.actor.recurrent;
    for (int e = (int)threadIdx.x; e < a.states * b.rows; e += (int)blockDim.x) {
        int k = e / b.rows, row = e % b.rows, place = b.scratch.output[a.network.state[k / units]];
        a.state[(int64_t)k * a.envs + first_env + row] = b.memory[place + k % units * b.scratch.pitch + row];
    }
}

DEVICE_FN void ppo_clear_states(const CudaPpoArgs &a, int64_t env) {
    for (int64_t k = 0; k < a.states; k++)
        a.state[k * a.envs + env] = 0.0f;
}

DEVICE_FN void ppo_clear_outcome(const CudaPpoArgs &a, int64_t env) {
    PpoOutcome none = {};
    a.outcomes[env] = none;
}

// ---- actions -------------------------------------------------------------------------------------------------------

// A row whose actions are drawn, one after the other.
typedef struct PpoActing {
    int64_t env;
    int32_t step;
    const float *y; // the outputs of the next one, `pitch` apart
    int pitch;
    uint32_t *words; // of the sample
    int chosen;      // discrete actions that are drawn,
    float log_prob;  // and the sum of theirs
    SimWords4 noise; // of four of them
} PpoActing;

DEVICE_FN SimWords4 ppo_noise_of(const CudaPpoArgs &a, const PpoActing &p, int block) {
    return ppo_noise(a.seed, a.step->step.update, (uint32_t)p.env, (uint32_t)p.step, (uint32_t)block);
}

// Draws the next discrete action. choices: a constant where this is inlined, as p.chosen is.
DEVICE_FN void ppo_choose(const CudaPpoArgs &a, PpoActing &p, const int choices) {
    float prob[POLICY_OUTPUTS_MAX] = {}, log_prob[POLICY_OUTPUTS_MAX] = {};
    (void)ppo_categorical(p.y, p.pitch, choices, prob, log_prob);
    int k = p.chosen % 4;
    if (k == 0) p.noise = ppo_noise_of(a, p, p.chosen / 4);
    uint32_t word = k == 0 ? p.noise.x0 : k == 1 ? p.noise.x1 : k == 2 ? p.noise.x2 : p.noise.x3;
    int32_t action = ppo_categorical_draw(prob, choices, sim_uniform_from(word));
    float chosen = log_prob[0];
#pragma unroll
    for (int i = 1; i < choices; i++)
        chosen = action == i ? log_prob[i] : chosen;
    p.log_prob = p.log_prob + chosen;
    p.words[p.chosen] = (uint32_t)action;
    int64_t block = p.env / CUDA_LANES * a.actor.discrete + p.chosen;
    a.batch.view.discrete[block * CUDA_LANES + p.env % CUDA_LANES] = action;
    p.y += choices * p.pitch;
    p.chosen++;
}

// A function for each simulator, since how many choices an action has is in its list alone: parking_ppo_choose() draws
// all of parking's discrete actions.
#define PPO_CHOOSE_ONE(choices) ppo_choose(a, p, choices);
#define PPO_CHOOSE(name, Name, NAME)                                       \
    DEVICE_FN void name##_ppo_choose(const CudaPpoArgs &a, PpoActing &p) { \
        (void)a, (void)p;                                                  \
        NAME##_DISCRETE(PPO_CHOOSE_ONE)                                    \
    }
SIM_LIST(PPO_CHOOSE)

// ---- kernels -------------------------------------------------------------------------------------------------------

#define CUDA_BODY "kernels/cuda/ppo_rollout_body.cuh"
#include "kernels/cuda_sims.inc"

typedef void PpoResetKernel(const CudaPpoArgs args);
typedef void PpoRolloutKernel(const CudaPpoArgs args, int32_t begin, int32_t end);

#define PPO_RESET_ROW(name, Name, NAME)   name##_ppo_reset,
#define PPO_ROLLOUT_ROW(name, Name, NAME) name##_ppo_rollout,
static PpoResetKernel *const reset_kernels[] = {SIM_LIST(PPO_RESET_ROW)};
static PpoRolloutKernel *const rollout_kernels[] = {SIM_LIST(PPO_ROLLOUT_ROW)};

int cuda_ppo_rollout_occupancy(int sim, const CudaPpoScratch *scratch, size_t shared_limit_bytes, int *blocks) {
    return ppo_occupancy((const void *)rollout_kernels[sim], scratch, shared_limit_bytes, blocks);
}

int cuda_launch_ppo_reset(int sim, const CudaPpoArgs *args, cudaStream_t stream) {
    int threads = CUDA_PPO_ROLLOUT_THREADS;
    reset_kernels[sim]<<<(unsigned)((args->envs + threads - 1) / threads), threads, 0, stream>>>(*args);
    return cudaGetLastError();
}

int cuda_launch_ppo_rollout(int sim, const CudaPpoArgs *args, int32_t begin, int32_t end, int blocks,
                            cudaStream_t stream) {
    const CudaPpoScratch *scratch = &args->rollout;
    rollout_kernels[sim]<<<(unsigned)blocks, (unsigned)scratch->threads, ppo_shared_bytes(scratch), stream>>>(
        *args, begin, end);
    return cudaGetLastError();
}
