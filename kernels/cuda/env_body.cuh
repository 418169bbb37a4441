// One env of a batch: its next episode, and one step. Its state, parameters, observations and flags are in the batch's
// buffers; they are in registers during a step. Included by the bodies that step batches, once for each simulator. The
// semantics are those of kernels/cpu/lanes_body.inc.

#include "kernels/cuda/fields.cuh"

// Where an env's word of a [block][word][lane] buffer is.
#define BATCH_AT(buffer, words) ((buffer) + block * ((words)*CUDA_LANES) + lane)

DEVICE_FN void BODY(put_obs)(float *at, const STATE &s, const PARAMS &p) {
    float obs[OBS];
    SIM_CAT(SIM_NAME, _observe)(&s, &p, obs);
#pragma unroll
    for (int k = 0; k < OBS; k++)
        at[k * CUDA_LANES] = obs[k];
}

// Begins the env's next episode.
DEVICE_FN void BODY(begin_episode)(const CudaBatchArgs &a, int64_t env) {
    int64_t block = env / CUDA_LANES, lane = env % CUDA_LANES;
    uint32_t episode = a.episode[env];
    a.episode[env] = episode + 1;
    SimRng rng = {a.seed_low, a.seed_high, 0, episode, (uint32_t)env, SIM_RNG_BATCH};
    PARAMS p;
    if (a.sim.any_random) {
        uint32_t *at = BATCH_AT(a.params, PARAM_WORDS);
        draw_params(a.sim, PARAM_WORDS, rng, at, CUDA_LANES);
        p = BODY(load_params)(at, CUDA_LANES);
    } else {
        p = BODY(fixed_params)(a.sim);
    }
    STATE s;
    SIM_CAT(SIM_NAME, _reset)(&s, &p, &rng);
    BODY(store)(BATCH_AT(a.view.state, STATE_WORDS), CUDA_LANES, s);
    BODY(put_obs)(BATCH_AT(a.view.obs, OBS), s, p);
    a.view.length[env] = 0;
    a.view.episode_return[env] = 0.0f;
}

// One step of an env whose turn it is, `step` in an infinite-report. True when its episode ended.
DEVICE_FN bool BODY(step_env)(const CudaBatchArgs &a, int64_t env, int32_t step) {
    int64_t block = env / CUDA_LANES, lane = env % CUDA_LANES;
    PARAMS p =
        a.sim.any_random ? BODY(load_params)(BATCH_AT(a.params, PARAM_WORDS), CUDA_LANES) : BODY(fixed_params)(a.sim);
    uint32_t *state = BATCH_AT(a.view.state, STATE_WORDS);
    STATE s = BODY(load)(state, CUDA_LANES);
    int32_t n = a.view.length[env] + 1;
    SimRng rng = {a.seed_low, a.seed_high, (uint32_t)n << 8, a.episode[env] - 1, (uint32_t)env, SIM_RNG_BATCH};
    int32_t choice[DISCRETE_SIZE] = {};
#pragma unroll
    for (int k = 0; k < DISCRETE; k++)
        choice[k] = BATCH_AT(a.view.discrete, DISCRETE)[k * CUDA_LANES];
    float action[ACTIONS_SIZE] = {};
#pragma unroll
    for (int k = 0; k < ACTIONS; k++)
        action[k] = BATCH_AT(a.view.continuous, ACTIONS)[k * CUDA_LANES];

    SimStep out = SIM_CAT(SIM_NAME, _step)(&s, &p, choice, action, &rng);

    BODY(store)(state, CUDA_LANES, s);
    BODY(put_obs)(BATCH_AT(a.view.obs, OBS), s, p);
    int32_t cut = n >= a.sim.time_limit;
    float episode_return = a.view.episode_return[env] + out.reward;
    a.view.reward[env] = out.reward;
    a.view.terminated[env] = out.terminated;
    a.view.truncated[env] = cut;
    a.view.length[env] = n;
    a.view.episode_return[env] = episode_return;
    if (BODY(is_infinite)(s, out.reward)) {
        atomicMin((unsigned long long *)a.infinite, (unsigned long long)step << (32 + CUDA_FIELD_BITS) |
                                                        (unsigned long long)env << CUDA_FIELD_BITS |
                                                        (unsigned)BODY(infinite_field)(s));
    }
    if (!(out.terminated | cut)) return false;
    a.view.final_length[env] = n;
    a.view.final_return[env] = episode_return;
    if (a.autoreset == KERN_AUTORESET_SAME_STEP) BODY(put_obs)(BATCH_AT(a.view.final_obs, OBS), s, p);
    return true;
}

#undef BATCH_AT
