// LunarLander-v3 of Gymnasium: sim/lunar_lander_core.h with engines that are on or off.
#ifndef SHOAL_SIM_LUNAR_LANDER_H
#define SHOAL_SIM_LUNAR_LANDER_H

#include "sim/lunar_lander_core.h"

#define LUNAR_LANDER_GYMNASIUM_ID     "LunarLander-v3"
#define LUNAR_LANDER_DISCRETE(D)      D(4) // nothing, left engine, main engine, right engine
#define LUNAR_LANDER_CONTINUOUS       0
#define LUNAR_LANDER_ACTION_LOW       0.0f
#define LUNAR_LANDER_ACTION_HIGH      0.0f
#define LUNAR_LANDER_TIME_LIMIT       1000
#define LUNAR_LANDER_REWARD_THRESHOLD 200.0

SIM_FN LunarLanderThrust lunar_lander_choose(int32_t action, SimRng *rng) {
    int32_t side = (action == 1) | (action == 3);
    return lunar_lander_thrust(sim_select(action == 2, R(1.0), R(0.0)), sim_select(side, R(1.0), R(0.0)),
                               sim_select(action == 1, R(-1.0), R(1.0)), rng);
}

SIM_FN void lunar_lander_reset(LunarLanderState *s, const LunarLanderParams *p, SimRng *rng) {
    lunar_lander_begin(s, p, rng);
}

SIM_FN SimStep lunar_lander_step(LunarLanderState *s, const LunarLanderParams *p, const int32_t *discrete,
                                 const float *continuous, SimRng *rng) {
    (void)continuous;
    LunarLanderThrust thrust = lunar_lander_choose(*discrete, rng);
    return lunar_lander_go(s, p, &thrust);
}

#define LUNAR_LANDER_IN_PARTS 1

SIM_FN Rigid2dWorld *lunar_lander_step_begin(LunarLanderWorld *l, const LunarLanderWorld *shapes,
                                             const LunarLanderParams *p, const int32_t *discrete,
                                             const float *continuous, SimRng *rng) {
    (void)continuous;
    LunarLanderThrust thrust = lunar_lander_choose(*discrete, rng);
    lunar_lander_start(l, shapes, p, &thrust);
    return &l->world;
}

SIM_FN SimStep lunar_lander_step_end(LunarLanderWorld *l, float *obs) { return lunar_lander_finish(l, obs); }

SIM_FN void lunar_lander_observe(const LunarLanderState *s, const LunarLanderParams *p, float *obs) {
    (void)p;
    lunar_lander_show(s, obs);
}

#ifdef SIM_DRAWING
#define LUNAR_LANDER_DRAW SIM_DRAW(lunar_lander_draw)

SIM_FN void lunar_lander_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                              SimFrame *f) {
    (void)params;
    (void)continuous;
    SimRng none = {0, 0, 0, 0, 0, 0}; // where flames are spread to is not shown
    LunarLanderThrust thrust = lunar_lander_choose(discrete != NULL ? *discrete : 0, &none);
    lunar_lander_draw_world(state, &thrust, f);
}
#endif

#endif
