// Whole episodes of one simulator: a block works on one (member, episode) at a time, all its threads on the policy and
// thread 0 on the simulator, and takes the next when it is done. A launch makes `steps` steps in each block; what is
// under way is kept in the block's slot, and the weights, which a launch loses with its shared memory, are made anew.
// Included by kernels/cuda/evaluate.cu for each simulator. The semantics are those of kernels/cpu/lanes_body.inc.

#include "kernels/cuda/fields.cuh"

#define SLOT_PARAMS    (CUDA_SLOT_STATE + STATE_WORDS)
#define SLOT_SUMS      (SLOT_PARAMS + PARAM_WORDS)
#define SLOT_RECURRENT (SLOT_SUMS + 2 * OBS)

// One episode on its way. State, length and return are thread 0's; the rest is the same in every thread.
typedef struct BODY(Episode) {
    STATE s;
    int32_t length;
    float episode_return;
    int32_t pair;            // in the wave; -1: none
    int32_t end;             // pairs [pair + 1, end) come next
    int32_t member, episode; // member: -1 where no weights are there yet
} BODY(Episode);

// The episode's parameters. They are fetched for each step: registers are scarce.
DEVICE_FN PARAMS BODY(params)(const CudaEvaluateArgs &a, const uint32_t *slot) {
    return a.sim.any_random ? BODY(load_params)(slot + SLOT_PARAMS, 1) : BODY(fixed_params)(a.sim);
}

DEVICE_FN void BODY(show)(const BODY(Episode) & e, const PARAMS &p, const EvaluateShared &m) {
    float obs[OBS];
    SIM_CAT(SIM_NAME, _observe)(&e.s, &p, obs);
#pragma unroll
    for (int k = 0; k < OBS; k++)
        m.obs[k] = obs[k];
}

DEVICE_FN SimRng BODY(rng)(const CudaEvaluateArgs &a, const BODY(Episode) & e, uint32_t c0) {
    SimRng rng = {(uint32_t)a.seed,    (uint32_t)(a.seed >> 32),          c0,
                  (uint32_t)e.episode, a.common ? 0 : (uint32_t)e.member, a.purpose | a.generation};
    return rng;
}

// Whose episode pair e.pair is, and that member's weights.
DEVICE_FN void BODY(identify)(const CudaEvaluateArgs &a, BODY(Episode) & e, const EvaluateShared &m, float *weights) {
    int64_t at = a.wave_first + e.pair;
    int32_t member = a.first_member + (int32_t)(at / a.episodes_per_member);
    bool is_built = member == e.member || (a.sigma == 0.0f && e.member >= 0);
    e.member = member;
    e.episode = (int32_t)(at % a.episodes_per_member);
    if (is_built) return;
    if (weights == NULL) {
        build_weights(a, e.member, m.weights);
    } else {
        build_weights(a, e.member, weights);
    }
}

// Moves on to the next pair of those taken, or takes more; e.pair is -1 when none is left. All threads.
DEVICE_FN void BODY(next)(const CudaEvaluateArgs &a, BODY(Episode) & e, const EvaluateShared &m) {
    e.pair++;
    if (e.pair < e.end) return;
    if (threadIdx.x == 0) {
        // Looked at first: blocks that ask again in every launch must not count it around.
        uint32_t next = *(volatile uint32_t *)&a.counters->next;
        *m.taken = next < (uint32_t)a.pairs ? atomicAdd(&a.counters->next, (unsigned)a.unit) : next;
    }
    block_sync();
    uint32_t taken = *m.taken;
    if (taken >= (uint32_t)a.pairs) {
        e.pair = -1;
        return;
    }
    e.pair = (int32_t)taken;
    e.end = a.pairs - e.pair < a.unit ? a.pairs : e.pair + a.unit;
}

DEVICE_FN void BODY(begin)(const CudaEvaluateArgs &a, BODY(Episode) & e, const EvaluateShared &m, uint32_t *slot,
                           float *weights) {
    BODY(identify)(a, e, m, weights);
    for (int k = (int)threadIdx.x; k < 2 * OBS; k += (int)blockDim.x)
        m.sums[k] = 0.0f;
    for (int k = (int)threadIdx.x; k < a.policy.recurrent; k += (int)blockDim.x)
        m.recurrent[k] = 0.0f;
    if (threadIdx.x != 0) return;
    SimRng rng = BODY(rng)(a, e, 0);
    if (a.sim.any_random) draw_params(a.sim, PARAM_WORDS, rng, slot + SLOT_PARAMS, 1);
    PARAMS p = BODY(params)(a, slot);
    SIM_CAT(SIM_NAME, _reset)(&e.s, &p, &rng);
    e.length = 0;
    e.episode_return = 0.0f;
    BODY(show)(e, p, m);
}

// Puts an episode back that the launch before had under way.
DEVICE_FN void BODY(resume)(const CudaEvaluateArgs &a, BODY(Episode) & e, const EvaluateShared &m, uint32_t *slot,
                            float *weights) {
    e.pair = (int32_t)slot[CUDA_SLOT_PAIR] - 1;
    e.end = (int32_t)slot[CUDA_SLOT_END];
    e.member = -1;
    if (e.pair < 0) return;
    BODY(identify)(a, e, m, weights);
    for (int k = (int)threadIdx.x; k < 2 * OBS; k += (int)blockDim.x) {
        m.sums[k] = __uint_as_float(slot[SLOT_SUMS + k]);
    }
    for (int k = (int)threadIdx.x; k < a.policy.recurrent; k += (int)blockDim.x) {
        m.recurrent[k] = __uint_as_float(slot[SLOT_RECURRENT + k]);
    }
    if (threadIdx.x != 0) return;
    e.s = BODY(load)(slot + CUDA_SLOT_STATE, 1);
    e.length = (int32_t)slot[CUDA_SLOT_LENGTH];
    e.episode_return = __uint_as_float(slot[CUDA_SLOT_RETURN]);
    BODY(show)(e, BODY(params)(a, slot), m);
}

DEVICE_FN void BODY(suspend)(const CudaEvaluateArgs &a, const BODY(Episode) & e, const EvaluateShared &m,
                             uint32_t *slot) {
    if (threadIdx.x == 0) {
        slot[CUDA_SLOT_PAIR] = (uint32_t)(e.pair + 1);
        slot[CUDA_SLOT_END] = (uint32_t)e.end;
    }
    if (e.pair < 0) return;
    for (int k = (int)threadIdx.x; k < 2 * OBS; k += (int)blockDim.x) {
        slot[SLOT_SUMS + k] = __float_as_uint(m.sums[k]);
    }
    for (int k = (int)threadIdx.x; k < a.policy.recurrent; k += (int)blockDim.x) {
        slot[SLOT_RECURRENT + k] = __float_as_uint(m.recurrent[k]);
    }
    if (threadIdx.x != 0) return;
    slot[CUDA_SLOT_LENGTH] = (uint32_t)e.length;
    slot[CUDA_SLOT_RETURN] = __float_as_uint(e.episode_return);
    BODY(store)(slot + CUDA_SLOT_STATE, 1, e.s);
}

// Thread 0: the actions from the policy's outputs, and one step. Whether the episode is over goes to m.done.
DEVICE_FN void BODY(advance)(const CudaEvaluateArgs &a, BODY(Episode) & e, const EvaluateShared &m,
                             const uint32_t *slot, const float *y) {
    PARAMS p = BODY(params)(a, slot);
    int32_t choice[DISCRETE_SIZE] = {};
    float action[ACTIONS_SIZE] = {};
    policy_act(&a.policy, y, CHOICES, DISCRETE, ACTIONS, choice, action);
    SimRng rng = BODY(rng)(a, e, (uint32_t)(e.length + 1) << 8);
    SimStep out = SIM_CAT(SIM_NAME, _step)(&e.s, &p, choice, action, &rng);
    e.length++;
    e.episode_return = e.episode_return + out.reward;
    BODY(show)(e, p, m);
    bool infinite = BODY(is_infinite)(e.s, out.reward);
    if (infinite) {
        atomicMin((unsigned long long *)&a.counters->infinite, (unsigned long long)e.pair << (23 + CUDA_FIELD_BITS) |
                                                                   (unsigned long long)e.length << CUDA_FIELD_BITS |
                                                                   (unsigned)BODY(infinite_field)(e.s));
    }
    *m.done = out.terminated | (e.length >= a.sim.time_limit) | infinite;
}

DEVICE_FN void BODY(record)(const CudaEvaluateArgs &a, const BODY(Episode) & e, const EvaluateShared &m) {
    if (a.sums != NULL) {
        float *sums = a.sums + (int64_t)e.pair * (2 * OBS);
        for (int k = (int)threadIdx.x; k < 2 * OBS; k += (int)blockDim.x)
            sums[k] = m.sums[k];
    }
    if (threadIdx.x != 0) return;
    a.episodes[e.pair].episode_return = e.episode_return;
    a.episodes[e.pair].length = e.length;
    atomicAdd(&a.counters->finished, 1u);
}

static __global__ void __launch_bounds__(CUDA_THREADS_MAX, 3)
    BODY(evaluate)(const __grid_constant__ CudaEvaluateArgs a) {
    EvaluateShared m = evaluate_shared(a, OBS);
    uint32_t *slot = a.slots + (int64_t)blockIdx.x * a.slot_words;
    float *weights = a.weights == NULL ? NULL : a.weights + (int64_t)blockIdx.x * a.params_pad;
    CudaProbe probe = cuda_probe(a.is_probed ? &a.counters->ticks : NULL);
    BODY(Episode) e = {};
    BODY(resume)(a, e, m, slot, weights);
    if (e.pair < 0) {
        e.end = 0;
        BODY(next)(a, e, m);
        if (e.pair >= 0) BODY(begin)(a, e, m, slot, weights);
    }
    block_sync();
    cuda_probe_lap(probe, HOST_TRACE_LEARNING);
    for (int32_t step = 0; step < a.steps && e.pair >= 0; step++) {
        for (int k = (int)threadIdx.x; k < OBS; k += (int)blockDim.x) {
            float x = m.obs[k];
            m.sums[k] = m.sums[k] + x;
            m.sums[OBS + k] = sim_fmaf(x, x, m.sums[OBS + k]);
            m.activations[k] = policy_input(x, a.mean[k], a.scale[k], a.policy.precision);
        }
        block_sync();
        const float *y = policy_outputs(a, m.weights, weights, m.activations, m.recurrent);
        cuda_probe_lap(probe, HOST_TRACE_POLICY);
        if (threadIdx.x == 0) BODY(advance)(a, e, m, slot, y);
        block_sync();
        cuda_probe_lap(probe, HOST_TRACE_SIMULATION);
        if (*m.done == 0) continue;
        BODY(record)(a, e, m);
        block_sync();
        BODY(next)(a, e, m);
        if (e.pair >= 0) BODY(begin)(a, e, m, slot, weights);
        block_sync();
        cuda_probe_lap(probe, HOST_TRACE_LEARNING);
    }
    BODY(suspend)(a, e, m, slot);
}

#undef SLOT_PARAMS
#undef SLOT_SUMS
#undef SLOT_RECURRENT
