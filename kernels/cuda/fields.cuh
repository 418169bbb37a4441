// One simulator's states and parameters as words in memory. Included by the other bodies, once for each simulator.

DEVICE_FN STATE BODY(load)(const uint32_t *at, int stride) {
    STATE s;
    int word = 0;
    STATE_FIELDS(FIELD_LOAD)
    return s;
}

DEVICE_FN void BODY(store)(uint32_t *at, int stride, STATE s) {
    int word = 0;
    STATE_FIELDS(FIELD_STORE)
}

DEVICE_FN PARAMS BODY(load_params)(const uint32_t *at, int stride) {
    PARAMS p;
    int word = 0;
    PARAM_FIELDS(PARAM_LOAD)
    return p;
}

DEVICE_FN PARAMS BODY(fixed_params)(const KernSim &sim) {
    PARAMS p;
    int word = 0;
    PARAM_FIELDS(PARAM_FIXED)
    return p;
}

// Whether a real field of the state, or the reward, is NaN or infinite.
DEVICE_FN bool BODY(is_infinite)(STATE s, float reward) {
    float finite = reward * 0.0f;
    STATE_FIELDS(FINITE)
    return !(finite == 0.0f);
}

// Which one, the first in the order of the fields.
DEVICE_FN int BODY(infinite_field)(STATE s) {
    int word = 0, field = -1;
    STATE_FIELDS(INFINITE)
    return field < 0 ? CUDA_FIELD_REWARD : field;
}
