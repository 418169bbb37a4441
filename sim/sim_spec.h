// What the host knows of each simulator: names, sizes, bounds, parameters and state fields, as constant tables made
// from the simulators' X-macro lists. Host only; thread-safe, nothing to free.
#ifndef SHOAL_SIM_SIM_SPEC_H
#define SHOAL_SIM_SIM_SPEC_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SimParamInfo {
    const char *name;
    double value; // the default
    const char *unit;
    const char *help;
} SimParamInfo;

typedef struct SimFieldInfo {
    const char *name;
    int is_real; // 1: a real, 0: an int32_t
} SimFieldInfo;

typedef struct SimSpec {
    const char *name;              // "cartpole"
    const char *gymnasium_id;      // "CartPole-v1"
    int obs;                       // floats in an observation
    int discrete;                  // number of discrete actions, 0: none
    int continuous;                // floats in a continuous action, 0: none
    float action_low, action_high; // bounds of each continuous action
    int time_limit;                // steps after which an episode is truncated
    double reward_threshold;       // mean return that counts as solved
    int param_count;
    int state_words;
    const SimParamInfo *params; // [param_count], in the order of <Name>Params
    const SimFieldInfo *state;  // [state_words], in the order of <Name>State
} SimSpec;

// The number of built-in simulators, and the one at `index` in the order of SIM_LIST.
int sim_spec_count(void);
const SimSpec *sim_spec_at(int index);

// The simulator of that name or Gymnasium id; NULL if there is none.
const SimSpec *sim_spec_find(const char *name);

// The index of a parameter in spec->params; -1 if there is none of that name.
int sim_spec_param(const SimSpec *spec, const char *name);

#ifdef __cplusplus
}
#endif

#endif
