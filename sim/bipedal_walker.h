// BipedalWalker-v3 of Gymnasium: sim/bipedal_walker_core.h on ground that is only uneven.
#ifndef SHOAL_SIM_BIPEDAL_WALKER_H
#define SHOAL_SIM_BIPEDAL_WALKER_H

#include "sim/bipedal_walker_core.h"

#define BIPEDAL_WALKER_GYMNASIUM_ID "BipedalWalker-v3"
#define BIPEDAL_WALKER_DISCRETE(D)
#define BIPEDAL_WALKER_CONTINUOUS       4 // torque of hip and knee of one leg, then of the other; the sign is the direction
#define BIPEDAL_WALKER_ACTION_LOW       (-1.0f)
#define BIPEDAL_WALKER_ACTION_HIGH      1.0f
#define BIPEDAL_WALKER_TIME_LIMIT       1600
#define BIPEDAL_WALKER_REWARD_THRESHOLD 300.0

SIM_FN void bipedal_walker_reset(BipedalWalkerState *s, const BipedalWalkerParams *p, SimRng *rng) {
    bipedal_walker_begin(s, p, rng, 0);
}

SIM_FN SimStep bipedal_walker_step(BipedalWalkerState *s, const BipedalWalkerParams *p, const int32_t *discrete,
                                   const float *continuous, SimRng *rng) {
    (void)discrete, (void)rng;
    return bipedal_walker_go(s, p, continuous, 0);
}

#define BIPEDAL_WALKER_IN_PARTS 1

SIM_FN Rigid2dWorld *bipedal_walker_step_begin(BipedalWalkerWorld *b, const BipedalWalkerWorld *shapes,
                                               const BipedalWalkerParams *p, const int32_t *discrete,
                                               const float *continuous, SimRng *rng) {
    (void)discrete, (void)rng;
    b->words.blocks = 0;
    bipedal_walker_start(b, shapes, p, continuous);
    return &b->world;
}

SIM_FN SimStep bipedal_walker_step_end(BipedalWalkerWorld *b, float *obs) { return bipedal_walker_finish(b, obs); }

SIM_FN void bipedal_walker_observe(const BipedalWalkerState *s, const BipedalWalkerParams *p, float *obs) {
    (void)p;
    bipedal_walker_show(s, obs, 0);
}

#ifdef SIM_DRAWING
#define BIPEDAL_WALKER_DRAW SIM_DRAW(bipedal_walker_draw)

SIM_FN void bipedal_walker_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                                SimFrame *f) {
    (void)params, (void)discrete, (void)continuous;
    bipedal_walker_draw_world(state, f, 0);
}
#endif

#endif
