// BipedalWalkerHardcore-v3 of Gymnasium: sim/bipedal_walker_core.h on ground with stumps, pits and stairs.
#ifndef SHOAL_SIM_BIPEDAL_WALKER_HARDCORE_H
#define SHOAL_SIM_BIPEDAL_WALKER_HARDCORE_H

#include "sim/bipedal_walker_core.h"

#define BIPEDAL_WALKER_HARDCORE_GYMNASIUM_ID "BipedalWalkerHardcore-v3"
#define BIPEDAL_WALKER_HARDCORE_OBS          BIPEDAL_WALKER_OBS
#define BIPEDAL_WALKER_HARDCORE_DISCRETE(D)
#define BIPEDAL_WALKER_HARDCORE_CONTINUOUS       4 // as in sim/bipedal_walker.h
#define BIPEDAL_WALKER_HARDCORE_ACTION_LOW       (-1.0f)
#define BIPEDAL_WALKER_HARDCORE_ACTION_HIGH      1.0f
#define BIPEDAL_WALKER_HARDCORE_TIME_LIMIT       2000
#define BIPEDAL_WALKER_HARDCORE_REWARD_THRESHOLD 300.0
#define BIPEDAL_WALKER_HARDCORE_PARAMS(P)        BIPEDAL_WALKER_PARAMS(P)

SIM_DECLARE(BipedalWalkerHardcore, BIPEDAL_WALKER_HARDCORE)

SIM_FN BipedalWalkerParams bipedal_walker_hardcore_get_params(const BipedalWalkerHardcoreParams *p) {
    BipedalWalkerParams same;
    __builtin_memcpy(&same, p, sizeof same);
    return same;
}

SIM_FN void bipedal_walker_hardcore_reset(BipedalWalkerHardcoreState *s, const BipedalWalkerHardcoreParams *p,
                                          SimRng *rng) {
    BipedalWalkerParams same = bipedal_walker_hardcore_get_params(p);
    bipedal_walker_begin(s, &same, rng, 1);
}

SIM_FN SimStep bipedal_walker_hardcore_step(BipedalWalkerHardcoreState *s, const BipedalWalkerHardcoreParams *p,
                                            const int32_t *discrete, const float *continuous, SimRng *rng) {
    (void)discrete, (void)rng;
    BipedalWalkerParams same = bipedal_walker_hardcore_get_params(p);
    return bipedal_walker_go(s, &same, continuous, 1);
}

#define BIPEDAL_WALKER_HARDCORE_IN_PARTS 1

typedef BipedalWalkerWorld BipedalWalkerHardcoreWorld;

SIM_FN Rigid2dWorld *bipedal_walker_hardcore_step_begin(BipedalWalkerWorld *b, const BipedalWalkerWorld *shapes,
                                                        const BipedalWalkerHardcoreParams *p, const int32_t *discrete,
                                                        const float *continuous, SimRng *rng) {
    (void)discrete, (void)rng;
    BipedalWalkerParams same = bipedal_walker_hardcore_get_params(p);
    bipedal_walker_start(b, shapes, &same, continuous);
    return &b->world;
}

SIM_FN SimStep bipedal_walker_hardcore_step_end(BipedalWalkerWorld *b, float *obs) {
    return bipedal_walker_finish(b, obs);
}

SIM_FN void bipedal_walker_hardcore_observe(const BipedalWalkerHardcoreState *s, const BipedalWalkerHardcoreParams *p,
                                            float *obs) {
    (void)p;
    bipedal_walker_show(s, obs, 1);
}

#ifdef SIM_DRAWING
#define BIPEDAL_WALKER_HARDCORE_DRAW SIM_DRAW(bipedal_walker_hardcore_draw)

SIM_FN void bipedal_walker_hardcore_draw(const void *state, const void *params, const int32_t *discrete,
                                         const float *continuous, SimFrame *f) {
    (void)params, (void)discrete, (void)continuous;
    bipedal_walker_draw_world(state, f, 1);
}
#endif

#endif
