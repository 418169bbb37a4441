#include "sim/sim_spec.h"

#include <stddef.h>
#include <string.h>

#define SIM_DRAWING
#include "sim/sim_list.h"
#include "sim/sim_play.h"

#define PARAM_INFO(name, value, unit, help) {#name, value, unit, help},
#define IS_REAL_real                        1
#define IS_REAL_int32_t                     0
#define FIELD_INFO(type, name)              {#name, IS_REAL_##type},
#define COUNT_OF(array)                     ((int)(sizeof(array) / sizeof(array)[0]))

#define SIM_TABLES(name, Name, NAME)                                         \
    static const SimParamInfo name##_params[] = {NAME##_PARAMS(PARAM_INFO)}; \
    static const SimFieldInfo name##_state[] = {NAME##_STATE(FIELD_INFO)};
SIM_LIST(SIM_TABLES)

// What follows SIM_DRAW in <NAME>_DRAW; NULL where a simulator defines no such thing, and it stays a name.
#define SIM_SECOND(first, second, ...) second
#define SIM_DRAW_OR_NULL(...)          SIM_SECOND(__VA_ARGS__, NULL, 0)

#define SIM_PLAY(name, Name, NAME)                                                                                     \
    static void name##_play_reset(void *state, const void *params, SimRng *rng) { name##_reset(state, params, rng); }  \
    static SimStep name##_play_step(void *state, const void *params, const int32_t *discrete, const float *continuous, \
                                    SimRng *rng) {                                                                     \
        return name##_step(state, params, discrete, continuous, rng);                                                  \
    }                                                                                                                  \
    static void name##_play_observe(const void *state, const void *params, float *obs) {                               \
        name##_observe(state, params, obs);                                                                            \
    }                                                                                                                  \
    static const SimPlay name##_play = {name##_play_reset, name##_play_step, name##_play_observe,                      \
                                        SIM_DRAW_OR_NULL(NAME##_DRAW)};
SIM_LIST(SIM_PLAY)

#define SIM_SPEC(sim_name, Name, NAME)                     \
    {                                                      \
        .name = #sim_name,                                 \
        .gymnasium_id = NAME##_GYMNASIUM_ID,               \
        .obs = NAME##_OBS,                                 \
        .discrete = SIM_DISCRETE_SUM(NAME##_DISCRETE),     \
        .choices = {NAME##_DISCRETE(SIM_DISCRETE_ITEM) 0}, \
        .continuous = NAME##_CONTINUOUS,                   \
        .action_low = NAME##_ACTION_LOW,                   \
        .action_high = NAME##_ACTION_HIGH,                 \
        .time_limit = NAME##_TIME_LIMIT,                   \
        .reward_threshold = NAME##_REWARD_THRESHOLD,       \
        .param_count = COUNT_OF(sim_name##_params),        \
        .params = sim_name##_params,                       \
        .state_words = COUNT_OF(sim_name##_state),         \
        .state = sim_name##_state,                         \
        .play = &sim_name##_play,                          \
    },
static const SimSpec specs[] = {SIM_LIST(SIM_SPEC)};

int sim_spec_count(void) { return COUNT_OF(specs); }

const SimSpec *sim_spec_at(int index) { return &specs[index]; }

const SimSpec *sim_spec_find(const char *name) {
    for (int i = 0; i < COUNT_OF(specs); i++) {
        if (strcmp(specs[i].name, name) == 0 || strcmp(specs[i].gymnasium_id, name) == 0) return &specs[i];
    }
    return NULL;
}

int sim_spec_param(const SimSpec *spec, const char *name) {
    for (int i = 0; i < spec->param_count; i++) {
        if (strcmp(spec->params[i].name, name) == 0) return i;
    }
    return -1;
}
