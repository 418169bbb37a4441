#include "kernels/cpu/lanes.h"

static const char *infinite_field(const SimSpec *spec, const uint32_t *state, int lanes, int lane) {
    for (int w = 0; w < spec->state_words; w++) {
        uint32_t exponent = state[w * lanes + lane] & 0x7f800000u;
        if (spec->state[w].is_real && exponent == 0x7f800000u) return spec->state[w].name;
    }
    return NULL;
}

void lanes_infinite_record(LanesInfinite *infinite, const SimSpec *spec, const uint32_t *state, int lanes, int lane,
                           int64_t at, int64_t step) {
    while (atomic_flag_test_and_set(&infinite->lock)) {
    }
    if (infinite->at < 0 || at < infinite->at) {
        infinite->at = at;
        infinite->step = step;
        infinite->field = infinite_field(spec, state, lanes, lane);
    }
    atomic_flag_clear(&infinite->lock);
}
