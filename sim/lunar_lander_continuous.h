// LunarLanderContinuous-v3 of Gymnasium: sim/lunar_lander_core.h with throttles for engines. The main one gives 50 to
// 100% of its power where its action is above 0, a side engine where the action's size is above one half.
#ifndef SHOAL_SIM_LUNAR_LANDER_CONTINUOUS_H
#define SHOAL_SIM_LUNAR_LANDER_CONTINUOUS_H

#include "sim/lunar_lander_core.h"

#define LUNAR_LANDER_CONTINUOUS_GYMNASIUM_ID "LunarLanderContinuous-v3"
#define LUNAR_LANDER_CONTINUOUS_OBS          LUNAR_LANDER_OBS
#define LUNAR_LANDER_CONTINUOUS_DISCRETE(D)
#define LUNAR_LANDER_CONTINUOUS_CONTINUOUS       2 // main engine; side engines, left below 0
#define LUNAR_LANDER_CONTINUOUS_ACTION_LOW       (-1.0f)
#define LUNAR_LANDER_CONTINUOUS_ACTION_HIGH      1.0f
#define LUNAR_LANDER_CONTINUOUS_TIME_LIMIT       1000
#define LUNAR_LANDER_CONTINUOUS_REWARD_THRESHOLD 200.0
#define LUNAR_LANDER_CONTINUOUS_PARAMS(P)        LUNAR_LANDER_PARAMS(P)
#define LUNAR_LANDER_CONTINUOUS_STATE(F)         LUNAR_LANDER_STATE(F)

SIM_DECLARE(LunarLanderContinuous, LUNAR_LANDER_CONTINUOUS)

SIM_FN LunarLanderParams lunar_lander_continuous_get_params(const LunarLanderContinuousParams *p) {
    LunarLanderParams same;
    __builtin_memcpy(&same, p, sizeof same);
    return same;
}

// A NaN goes through, so that it is found.
SIM_FN LunarLanderThrust lunar_lander_continuous_choose(const float *action, SimRng *rng) {
    real main = sim_clamp((real)action[0], R(-1.0), R(1.0)), side = sim_clamp((real)action[1], R(-1.0), R(1.0));
    real size = sim_fabs(side);
    return lunar_lander_thrust(sim_select(main <= R(0.0), R(0.0), R(0.5) * (main + R(1.0))),
                               sim_select(size <= R(0.5), R(0.0), size), sim_select(side < R(0.0), R(-1.0), R(1.0)),
                               rng);
}

SIM_FN void lunar_lander_continuous_reset(LunarLanderContinuousState *s, const LunarLanderContinuousParams *p,
                                          SimRng *rng) {
    LunarLanderParams same = lunar_lander_continuous_get_params(p);
    lunar_lander_begin(s, &same, rng);
}

SIM_FN SimStep lunar_lander_continuous_step(LunarLanderContinuousState *s, const LunarLanderContinuousParams *p,
                                            const int32_t *discrete, const float *continuous, SimRng *rng) {
    (void)discrete;
    LunarLanderParams same = lunar_lander_continuous_get_params(p);
    LunarLanderThrust thrust = lunar_lander_continuous_choose(continuous, rng);
    return lunar_lander_go(s, &same, &thrust);
}

#define LUNAR_LANDER_CONTINUOUS_IN_PARTS 1

typedef LunarLanderWorld LunarLanderContinuousWorld;

SIM_FN Rigid2dWorld *lunar_lander_continuous_step_begin(LunarLanderWorld *l, const LunarLanderWorld *shapes,
                                                        const LunarLanderContinuousParams *p, const int32_t *discrete,
                                                        const float *continuous, SimRng *rng) {
    (void)discrete;
    LunarLanderParams same = lunar_lander_continuous_get_params(p);
    LunarLanderThrust thrust = lunar_lander_continuous_choose(continuous, rng);
    lunar_lander_start(l, shapes, &same, &thrust);
    return &l->world;
}

SIM_FN SimStep lunar_lander_continuous_step_end(LunarLanderWorld *l, float *obs) { return lunar_lander_finish(l, obs); }

SIM_FN void lunar_lander_continuous_observe(const LunarLanderContinuousState *s, const LunarLanderContinuousParams *p,
                                            float *obs) {
    (void)p;
    lunar_lander_show(s, obs);
}

#ifdef SIM_DRAWING
#define LUNAR_LANDER_CONTINUOUS_DRAW SIM_DRAW(lunar_lander_continuous_draw)

SIM_FN void lunar_lander_continuous_draw(const void *state, const void *params, const int32_t *discrete,
                                         const float *continuous, SimFrame *f) {
    (void)params;
    (void)discrete;
    const float rest[LUNAR_LANDER_CONTINUOUS_CONTINUOUS] = {0.0f};
    SimRng none = {0, 0, 0, 0, 0, 0}; // where flames are spread to is not shown
    LunarLanderThrust thrust = lunar_lander_continuous_choose(continuous != NULL ? continuous : rest, &none);
    lunar_lander_draw_world(state, &thrust, f);
}
#endif

#endif
