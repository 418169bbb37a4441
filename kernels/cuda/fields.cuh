// One simulator's states and parameters as words in memory. Included by the other bodies, once for each simulator.
// States of many words are in local memory, not in registers, and are moved by loops: a line for each field would be
// most of the kernel.

static_assert(STATE_WORDS <= CUDA_FIELD_REWARD, "raise CUDA_FIELD_BITS");

DEVICE_FN STATE BODY(load)(const uint32_t *at, int stride) {
    STATE s;
    if (STATE_IS_LARGE) {
        load_words((char *)&s, at, stride, STATE_WORDS);
        return s;
    }
    int word = 0;
    STATE_FIELDS(FIELD_LOAD)
    return s;
}

DEVICE_FN void BODY(store)(uint32_t *at, int stride, const STATE &s) {
    if (STATE_IS_LARGE) {
        store_words(at, (const char *)&s, stride, STATE_WORDS);
        return;
    }
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

static __device__ const unsigned char BODY(is_real)[] = {STATE_FIELDS(FIELD_IS_REAL)};

// Whether a real field of the state, or the reward, is NaN or infinite.
DEVICE_FN bool BODY(is_infinite)(const STATE &s, float reward) {
    if (STATE_IS_LARGE) return is_infinite(reward) || infinite_word((const char *)&s, BODY(is_real), STATE_WORDS) >= 0;
    float finite = reward * 0.0f;
    STATE_FIELDS(FINITE)
    return !(finite == 0.0f);
}

// Which one, the first in the order of the fields.
DEVICE_FN int BODY(infinite_field)(const STATE &s) {
    int word = 0, field = -1;
    if (STATE_IS_LARGE) {
        field = infinite_word((const char *)&s, BODY(is_real), STATE_WORDS);
    } else {
        STATE_FIELDS(INFINITE)
    }
    return field < 0 ? CUDA_FIELD_REWARD : field;
}
