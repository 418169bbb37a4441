// One simulator over blocks of LANES lanes. Included by kernels/cpu/instance.c, once for each number of lanes, with
// LANES defined; the macros it is written in are there.
//
// Every loop over lanes must vectorise; tests/kernels/vectorise_test checks the compiler's report. So: no branch,
// 32-bit flags, constant trip counts, restrict pointers.

typedef struct BODY(Block) {
    SIM_CAT(SIM_CONST, _STATE)(BLOCK_FIELD)
} BODY(Block);

typedef struct BODY(ParamBlock) {
    SIM_CAT(SIM_CONST, _PARAMS)(BLOCK_PARAM)
} BODY(ParamBlock);

SIM_FN STATE BODY(load)(const BODY(Block) * block, int l) {
    STATE s;
    SIM_CAT(SIM_CONST, _STATE)(BLOCK_LOAD) return s;
}

SIM_FN void BODY(store)(BODY(Block) * block, int l, STATE s){SIM_CAT(SIM_CONST, _STATE)(BLOCK_STORE)}

SIM_FN PARAMS BODY(load_params)(const BODY(ParamBlock) * block, int l) {
    PARAMS p;
    SIM_CAT(SIM_CONST, _PARAMS)(PARAM_LOAD) return p;
}

// block: [param][lane]
SIM_FN void BODY(store_params)(uint32_t *block, int l, const PARAMS *p) {
    for (int k = 0; k < PARAM_WORDS; k++)
        memcpy(block + k * LANES + l, (const char *)p + 4 * k, 4);
}

// 1 if a real field of the state, or the reward, is NaN or infinite.
SIM_FN int32_t BODY(is_infinite)(STATE s, float reward) {
    float finite = reward * 0.0f;
    SIM_CAT(SIM_CONST, _STATE)(FINITE) return !(finite == 0.0f);
}

// The parameters as set, or drawn for this episode from the PARAMS counters next to the episode's own.
SIM_FN PARAMS BODY(draw_params)(const KernSim *sim, SimRng rng) {
    float value[KERN_SIM_PARAMS_MAX];
    for (int k = 0; k < PARAM_WORDS; k++)
        value[k] = sim->value[k];
    if (sim->any_random) {
        for (int k = 0; k < PARAM_WORDS; k++) {
            if (sim->random[k]) value[k] = sim_lerp(sim_rng_param(rng, (uint32_t)k), sim->low[k], sim->high[k]);
        }
    }
    PARAMS p;
    memcpy(&p, value, sizeof p);
    return p;
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

static void BODY(start)(KernLanes *lanes, int l) {
    SimRng rng = {lanes->seed_low, lanes->seed_high, 0, lanes->counter1[l], lanes->counter2[l], lanes->counter3};
    PARAMS p = BODY(draw_params)(lanes->sim, rng);
    if (lanes->sim->any_random) BODY(store_params)(lanes->params, l, &p);
    STATE s;
    memset(&s, 0, sizeof s);
    SIM_CAT(SIM_NAME, _reset)(&s, &p, &rng);
    BODY(store)((BODY(Block) *)lanes->state, l, s);
    float obs[OBS];
    SIM_CAT(SIM_NAME, _observe)(&s, &p, obs);
    for (int k = 0; k < OBS; k++) {
        lanes->obs[k][l] = obs[k];
        lanes->sum[k][l] = 0.0f;
        lanes->square[k][l] = 0.0f;
    }
    lanes->episode_return[l] = 0.0f;
    lanes->length[l] = 0;
    lanes->done[l] = 0;
    lanes->infinite[l] = BODY(is_infinite)(s, 0.0f);
}

SIM_FN void BODY(step_lanes)(KernLanes *restrict lanes, BODY(Block) *restrict block,
                             const BODY(ParamBlock) *restrict param_block, PARAMS shared, int any_random) {
    int32_t time_limit = lanes->sim->time_limit;
    uint32_t seed_low = lanes->seed_low, seed_high = lanes->seed_high, c3 = lanes->counter3;
    for (int l = 0; l < LANES; l++) {
        for (int k = 0; k < OBS; k++) {
            float x = lanes->obs[k][l];
            lanes->sum[k][l] = lanes->sum[k][l] + x;
            lanes->square[k][l] = sim_fmaf(x, x, lanes->square[k][l]);
        }
        PARAMS p = any_random ? BODY(load_params)(param_block, l) : shared;
        STATE s = BODY(load)(block, l);
        SimRng rng = {seed_low,           seed_high,          (uint32_t)(lanes->length[l] + 1) << 8,
                      lanes->counter1[l], lanes->counter2[l], c3};
        float action[ACTIONS_SIZE];
        for (int k = 0; k < ACTIONS_SIZE; k++)
            action[k] = lanes->continuous[k][l];
        SimStep out = SIM_CAT(SIM_NAME, _step)(&s, &p, &lanes->discrete[l], action, &rng);
        float obs[OBS];
        SIM_CAT(SIM_NAME, _observe)(&s, &p, obs);
        for (int k = 0; k < OBS; k++)
            lanes->obs[k][l] = obs[k];
        BODY(store)(block, l, s);
        int32_t length = lanes->length[l] + 1;
        int32_t infinite = BODY(is_infinite)(s, out.reward);
        lanes->length[l] = length;
        lanes->episode_return[l] = lanes->episode_return[l] + out.reward;
        lanes->infinite[l] = infinite;
        lanes->done[l] = out.terminated | (length >= time_limit) | infinite;
    }
}

static void BODY(step)(KernLanes *lanes) {
    PARAMS shared;
    memcpy(&shared, lanes->sim->value, sizeof shared);
    BODY(Block) *block = (BODY(Block) *)lanes->state;
    const BODY(ParamBlock) *params = (const BODY(ParamBlock) *)lanes->params;
    if (lanes->sim->any_random) {
        BODY(step_lanes)(lanes, block, params, shared, 1);
    } else {
        BODY(step_lanes)(lanes, block, params, shared, 0);
    }
}

// ---- batches -------------------------------------------------------------------------------------------------------

// New episodes, drawn together in lanes before they are put where they belong.
typedef struct BODY(Fresh) {
    BODY(Block) state;
    BODY(ParamBlock) params;
    float obs[OBS][LANES];
} BODY(Fresh);

static void BODY(draw_episodes)(const LanesBatch *restrict batch, const uint32_t *restrict c1,
                                const uint32_t *restrict c2, BODY(Fresh) *restrict fresh) {
    uint32_t seed_low = batch->seed_low, seed_high = batch->seed_high;
    int any_random = batch->sim.any_random;
    for (int l = 0; any_random && l < LANES; l++) {
        SimRng rng = {seed_low, seed_high, 0, c1[l], c2[l], SIM_RNG_BATCH};
        PARAMS p = BODY(draw_params)(&batch->sim, rng);
        BODY(store_params)((uint32_t *)&fresh->params, l, &p);
    }
    PARAMS shared;
    memcpy(&shared, batch->sim.value, sizeof shared);
    for (int l = 0; l < LANES; l++) {
        SimRng rng = {seed_low, seed_high, 0, c1[l], c2[l], SIM_RNG_BATCH};
        PARAMS p = any_random ? BODY(load_params)(&fresh->params, l) : shared;
        STATE s;
        SIM_CAT(SIM_NAME, _reset)(&s, &p, &rng);
        BODY(store)(&fresh->state, l, s);
        float obs[OBS];
        SIM_CAT(SIM_NAME, _observe)(&s, &p, obs);
        for (int k = 0; k < OBS; k++)
            fresh->obs[k][l] = obs[k];
    }
}

// Begins the next episode of envs[0..count), count <= LANES.
static void BODY(begin_episodes)(LanesBatch *batch, const int64_t *envs, int count) {
    const KernBatchView *view = &batch->view;
    uint32_t c1[LANES] = {0}, c2[LANES] = {0};
    for (int i = 0; i < count; i++) {
        c1[i] = batch->episode[envs[i]]++;
        c2[i] = (uint32_t)envs[i];
    }
    BODY(Fresh) fresh = {0};
    BODY(draw_episodes)(batch, c1, c2, &fresh);
    for (int i = 0; i < count; i++) {
        int64_t block = envs[i] / LANES, lane = envs[i] % LANES;
        uint32_t *state = view->state + block * (STATE_WORDS * LANES) + lane;
        for (int w = 0; w < STATE_WORDS; w++) {
            memcpy(state + w * LANES, (const char *)&fresh.state + 4 * (w * LANES + i), 4);
        }
        if (batch->sim.any_random) {
            uint32_t *params = batch->params + block * (PARAM_WORDS * LANES) + lane;
            for (int k = 0; k < PARAM_WORDS; k++) {
                memcpy(params + k * LANES, (const char *)&fresh.params + 4 * (k * LANES + i), 4);
            }
        }
        for (int k = 0; k < OBS; k++)
            view->obs[(block * OBS + k) * LANES + lane] = fresh.obs[k][i];
        view->length[envs[i]] = 0;
        view->episode_return[envs[i]] = 0.0f;
    }
}

// Steps one block; returns the lanes that need the caller's care as a bit mask: episodes that ended, or (NEXT_STEP)
// envs whose turn it is to be reset.
SIM_FN uint32_t BODY(batch_step_block)(LanesBatch *batch, int64_t b, PARAMS shared, int any_random, int next_step) {
    const KernBatchView *view = &batch->view;
    BODY(Block) *restrict block = (BODY(Block) *)view->state + b;
    const BODY(ParamBlock) *restrict params = (const BODY(ParamBlock) *)batch->params + (any_random ? b : 0);
    float *restrict obs = view->obs + b * OBS * LANES;
    const int32_t *restrict discrete = view->discrete + b * LANES;
    const float *restrict continuous = view->continuous + b * ACTIONS * LANES;
    float *restrict reward = view->reward + b * LANES;
    int32_t *restrict terminated = view->terminated + b * LANES;
    int32_t *restrict truncated = view->truncated + b * LANES;
    int32_t *restrict length = view->length + b * LANES;
    float *restrict episode_return = view->episode_return + b * LANES;
    const uint32_t *restrict episode = batch->episode + b * LANES;
    uint32_t seed_low = batch->seed_low, seed_high = batch->seed_high;
    int32_t time_limit = batch->sim.time_limit;
    uint32_t first_env = (uint32_t)(b * LANES);
    uint32_t care[LANES], infinite[LANES];
#pragma GCC ivdep
    for (int l = 0; l < LANES; l++) {
        PARAMS p = any_random ? BODY(load_params)(params, l) : shared;
        STATE s = BODY(load)(block, l);
        int32_t n = length[l] + 1;
        SimRng rng = {seed_low, seed_high, (uint32_t)n << 8, episode[l] - 1, first_env + (uint32_t)l, SIM_RNG_BATCH};
        float action[ACTIONS_SIZE] = {0};
        for (int k = 0; k < ACTIONS; k++)
            action[k] = continuous[k * LANES + l];
        SimStep out = SIM_CAT(SIM_NAME, _step)(&s, &p, &discrete[l], action, &rng);
        int32_t resets = next_step ? (terminated[l] | truncated[l]) : 0;
        float o[OBS];
        SIM_CAT(SIM_NAME, _observe)(&s, &p, o);
        for (int k = 0; k < OBS; k++)
            obs[k * LANES + l] = o[k];
        BODY(store)(block, l, s);
        int32_t ended = out.terminated & ~resets, cut = (n >= time_limit) & ~resets;
        float earned = resets ? 0.0f : out.reward;
        infinite[l] = (uint32_t)(BODY(is_infinite)(s, earned) & ~resets);
        reward[l] = earned;
        terminated[l] = ended;
        truncated[l] = cut;
        length[l] = n;
        episode_return[l] = episode_return[l] + earned;
        care[l] = (uint32_t)(ended | cut | resets);
    }
    uint32_t care_mask = 0, infinite_mask = 0;
    for (int l = 0; l < LANES; l++) {
        care_mask |= care[l] << l;
        infinite_mask |= infinite[l] << l;
    }
    int64_t envs = view->envs - b * LANES;
    if (envs < LANES) infinite_mask &= (1u << envs) - 1; // nobody resets the padding after the last env
    if (infinite_mask) {
        int lane = __builtin_ctz(infinite_mask);
        lanes_infinite_record(&batch->infinite, batch->sim.spec, (const uint32_t *)block, LANES, lane, b * LANES + lane,
                              batch->step);
    }
    return care_mask;
}

// What the end of an episode leaves behind in the view; `env` is in block `b`.
SIM_FN void BODY(keep_final)(const KernBatchView *view, int64_t b, int64_t env, int autoreset) {
    view->final_length[env] = view->length[env];
    view->final_return[env] = view->episode_return[env];
    if (autoreset != KERN_AUTORESET_SAME_STEP) return;
    for (int k = 0; k < OBS; k++) {
        int64_t at = (b * OBS + k) * LANES + env % LANES;
        view->final_obs[at] = view->obs[at];
    }
}

// Blocks [begin, end); the resets of up to GROUP blocks are drawn together.
SIM_FN void BODY(batch_step_range)(LanesBatch *batch, int64_t begin, int64_t end, int any_random, int autoreset) {
    enum { GROUP = 256 / LANES };
    const KernBatchView *view = &batch->view;
    PARAMS shared;
    memcpy(&shared, batch->sim.value, sizeof shared);
    int64_t envs[2 * LANES];
    int count = 0;
    for (int64_t b = begin; b < end; b++) {
        uint32_t care = BODY(batch_step_block)(batch, b, shared, any_random, autoreset == KERN_AUTORESET_NEXT_STEP);
        for (; care != 0; care &= care - 1) {
            int64_t env = b * LANES + __builtin_ctz(care);
            int ended = view->terminated[env] | view->truncated[env];
            if (ended) BODY(keep_final)(view, b, env, autoreset);
            if (autoreset == KERN_AUTORESET_SAME_STEP || (autoreset == KERN_AUTORESET_NEXT_STEP && !ended)) {
                envs[count++] = env;
            }
        }
        int flush = b + 1 == end || (b + 1) % GROUP == 0;
        while (count >= LANES || (flush && count > 0)) {
            int now = count < LANES ? count : LANES;
            count -= now;
            BODY(begin_episodes)(batch, envs + count, now);
        }
    }
}

static void BODY(batch_step)(LanesBatch *batch, int64_t begin, int64_t end) {
    int any_random = batch->sim.any_random;
    switch (batch->autoreset) {
    case KERN_AUTORESET_NEXT_STEP:
        if (any_random) {
            BODY(batch_step_range)(batch, begin, end, 1, KERN_AUTORESET_NEXT_STEP);
        } else {
            BODY(batch_step_range)(batch, begin, end, 0, KERN_AUTORESET_NEXT_STEP);
        }
        break;
    case KERN_AUTORESET_SAME_STEP:
        if (any_random) {
            BODY(batch_step_range)(batch, begin, end, 1, KERN_AUTORESET_SAME_STEP);
        } else {
            BODY(batch_step_range)(batch, begin, end, 0, KERN_AUTORESET_SAME_STEP);
        }
        break;
    case KERN_AUTORESET_DISABLED:
        if (any_random) {
            BODY(batch_step_range)(batch, begin, end, 1, KERN_AUTORESET_DISABLED);
        } else {
            BODY(batch_step_range)(batch, begin, end, 0, KERN_AUTORESET_DISABLED);
        }
        break;
    }
}

static void BODY(batch_reset)(LanesBatch *batch, const uint8_t *mask, int64_t begin, int64_t end) {
    const KernBatchView *view = &batch->view;
    int64_t envs[LANES];
    int count = 0;
    for (int64_t env = begin * LANES; env < end * LANES; env++) {
        if (mask == NULL || (env < view->envs && mask[env])) {
            view->reward[env] = 0.0f;
            view->terminated[env] = view->truncated[env] = 0;
            envs[count++] = env;
        }
        if (count == LANES || (count > 0 && env + 1 == end * LANES)) {
            BODY(begin_episodes)(batch, envs, count);
            count = 0;
        }
    }
}

const LanesOps BODY(ops) = {
    .lanes = LANES,
    .state_words = STATE_WORDS,
    .param_words = PARAM_WORDS,
    .start = BODY(start),
    .step = BODY(step),
    .batch_step = BODY(batch_step),
    .batch_reset = BODY(batch_reset),
};

#undef LANES
