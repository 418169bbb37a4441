// CartPole of which only positions are observed, as in POPGym's PositionOnlyCartPole: a policy has to remember to know
// how fast cart and pole move. Everything else is sim/cartpole.h's.
//
// Source: Morad et al., "POPGym: Benchmarking partially observable reinforcement learning", 2023.
#ifndef SHOAL_SIM_POSITION_ONLY_CARTPOLE_H
#define SHOAL_SIM_POSITION_ONLY_CARTPOLE_H

#include "sim/cartpole.h"

#define POSITION_ONLY_CARTPOLE_GYMNASIUM_ID     "PositionOnlyCartPole"
#define POSITION_ONLY_CARTPOLE_OBS              2 // position of the cart, angle of the pole
#define POSITION_ONLY_CARTPOLE_DISCRETE         CARTPOLE_DISCRETE
#define POSITION_ONLY_CARTPOLE_CONTINUOUS       CARTPOLE_CONTINUOUS
#define POSITION_ONLY_CARTPOLE_ACTION_LOW       CARTPOLE_ACTION_LOW
#define POSITION_ONLY_CARTPOLE_ACTION_HIGH      CARTPOLE_ACTION_HIGH
#define POSITION_ONLY_CARTPOLE_TIME_LIMIT       CARTPOLE_TIME_LIMIT
#define POSITION_ONLY_CARTPOLE_REWARD_THRESHOLD CARTPOLE_REWARD_THRESHOLD
#define POSITION_ONLY_CARTPOLE_PARAMS           CARTPOLE_PARAMS
#define POSITION_ONLY_CARTPOLE_STATE            CARTPOLE_STATE

SIM_DECLARE(PositionOnlyCartpole, POSITION_ONLY_CARTPOLE)

// Its structs are another simulator's with the same fields: whole copies, which a compiler leaves out.
#define POSITION_ONLY_CARTPOLE_COPY_PARAM(name, value, unit, help) to.name = from->name;
#define POSITION_ONLY_CARTPOLE_COPY_FIELD(type, name)              to.name = from->name;

SIM_FN CartpoleParams position_only_cartpole_get_params(const PositionOnlyCartpoleParams *from) {
    CartpoleParams to;
    CARTPOLE_PARAMS(POSITION_ONLY_CARTPOLE_COPY_PARAM)
    return to;
}

SIM_FN CartpoleState position_only_cartpole_get(const PositionOnlyCartpoleState *from) {
    CartpoleState to;
    CARTPOLE_STATE(POSITION_ONLY_CARTPOLE_COPY_FIELD)
    return to;
}

SIM_FN PositionOnlyCartpoleState position_only_cartpole_put(const CartpoleState *from) {
    PositionOnlyCartpoleState to;
    CARTPOLE_STATE(POSITION_ONLY_CARTPOLE_COPY_FIELD)
    return to;
}

SIM_FN void position_only_cartpole_reset(PositionOnlyCartpoleState *s, const PositionOnlyCartpoleParams *p,
                                         SimRng *rng) {
    CartpoleParams params = position_only_cartpole_get_params(p);
    CartpoleState whole;
    cartpole_reset(&whole, &params, rng);
    *s = position_only_cartpole_put(&whole);
}

SIM_FN SimStep position_only_cartpole_step(PositionOnlyCartpoleState *s, const PositionOnlyCartpoleParams *p,
                                           const int32_t *discrete, const float *continuous, SimRng *rng) {
    CartpoleParams params = position_only_cartpole_get_params(p);
    CartpoleState whole = position_only_cartpole_get(s);
    SimStep out = cartpole_step(&whole, &params, discrete, continuous, rng);
    *s = position_only_cartpole_put(&whole);
    return out;
}

SIM_FN void position_only_cartpole_observe(const PositionOnlyCartpoleState *s, const PositionOnlyCartpoleParams *p,
                                           float *obs) {
    (void)p;
    obs[0] = (float)s->x_m;
    obs[1] = (float)s->theta_rad;
}

#ifdef SIM_DRAWING
#define POSITION_ONLY_CARTPOLE_DRAW CARTPOLE_DRAW
#endif

#endif
