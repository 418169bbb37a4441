// What the host knows of each simulator: names, sizes, bounds, parameters and state fields, as constant tables made
// from the simulators' X-macro lists. Host only; thread-safe, nothing to free.
#ifndef SHOAL_SIM_SIM_SPEC_H
#define SHOAL_SIM_SIM_SPEC_H

#ifdef __cplusplus
extern "C" {
#endif

enum { SIM_DISCRETE_MAX = 8 }; // discrete actions of a simulator

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
    int discrete;                  // choices of all discrete actions together, 0: none
    int continuous;                // continuous actions, 0: none
    float action_low, action_high; // bounds of each continuous action
    int time_limit;                // steps after which an episode is truncated
    double reward_threshold;       // mean return that counts as solved
    int param_count;
    int state_words;
    int choices[SIM_DISCRETE_MAX + 1]; // of each discrete action, then 0
    const SimParamInfo *params;        // [param_count], in the order of <Name>Params
    const SimFieldInfo *state;         // [state_words], in the order of <Name>State
    const struct SimPlay *play;        // sim/sim_play.h
} SimSpec;

// The number of built-in simulators, and the one at `index` in the order of SIM_LIST.
int sim_spec_count(void);
const SimSpec *sim_spec_at(int index);

// The simulator of that name or Gymnasium id; NULL if there is none.
const SimSpec *sim_spec_find(const char *name);

// The index of a parameter in spec->params; -1 if there is none of that name.
int sim_spec_param(const SimSpec *spec, const char *name);

// How many discrete actions there are.
static inline int sim_spec_discrete_actions(const SimSpec *spec) {
    int count = 0;
    while (spec->choices[count] > 0)
        count++;
    return count;
}

// Whether there is more than one discrete action, or discrete and continuous ones.
static inline int sim_spec_has_several_actions(const SimSpec *spec) {
    return spec->choices[0] > 0 && (spec->choices[1] > 0 || spec->continuous > 0);
}

#ifdef __cplusplus
}
#endif

#endif
