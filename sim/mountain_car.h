// MountainCar-v0 with the dynamics of Gymnasium's classic_control/mountain_car.py: an underpowered car between two
// hills. Lengths and times are the original's, which has no units.
//
// Source: Moore, "Efficient memory-based learning for robot control", 1990, as in Gymnasium.
#ifndef SHOAL_SIM_MOUNTAIN_CAR_H
#define SHOAL_SIM_MOUNTAIN_CAR_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define MOUNTAIN_CAR_GYMNASIUM_ID     "MountainCar-v0"
#define MOUNTAIN_CAR_OBS              2
#define MOUNTAIN_CAR_DISCRETE(D)      D(3) // 0 accelerates to the left, 1 coasts, 2 accelerates to the right
#define MOUNTAIN_CAR_CONTINUOUS       0
#define MOUNTAIN_CAR_ACTION_LOW       0.0f
#define MOUNTAIN_CAR_ACTION_HIGH      0.0f
#define MOUNTAIN_CAR_TIME_LIMIT       200
#define MOUNTAIN_CAR_REWARD_THRESHOLD (-110.0)

// P(name, default, unit, help)
#define MOUNTAIN_CAR_PARAMS(P)                                                         \
    P(force, 0.001, "1", "change of speed per step by the engine")                     \
    P(gravity, 0.0025, "1", "change of speed per step by the steepest slope")          \
    P(min_position, -1.2, "1", "left wall: the car stops there")                       \
    P(max_position, 0.6, "1", "right end: the position is clipped, the speed is kept") \
    P(max_speed, 0.07, "1", "the speed is clipped to this, either way")                \
    P(goal_position, 0.5, "1", "the episode ends from this position on")               \
    P(goal_velocity, 0.0, "1", "the velocity the car must have there at least")

// F(type, name)
#define MOUNTAIN_CAR_STATE(F) F(real, position) F(real, velocity)

SIM_DECLARE(MountainCar, MOUNTAIN_CAR)

SIM_FN void mountain_car_reset(MountainCarState *s, const MountainCarParams *p, SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->position = sim_lerp(u.x0, R(-0.6), R(-0.4));
    s->velocity = R(0.0);
}

SIM_FN SimStep mountain_car_step(MountainCarState *s, const MountainCarParams *p, const int32_t *discrete,
                                 const float *continuous, SimRng *rng) {
    (void)continuous;
    (void)rng;
    real slope = sim_cos(R(3.0) * s->position) * p->gravity;
    real velocity = s->velocity + ((real)(*discrete - 1) * p->force - slope);
    velocity = sim_clamp(velocity, -p->max_speed, p->max_speed);
    s->position = sim_clamp(s->position + velocity, p->min_position, p->max_position);
    int32_t hit_wall = (s->position == p->min_position) & (velocity < R(0.0));
    s->velocity = sim_select(hit_wall, R(0.0), velocity);

    SimStep out;
    out.terminated = (s->position >= p->goal_position) & (s->velocity >= p->goal_velocity);
    out.reward = R(-1.0);
    return out;
}

SIM_FN void mountain_car_observe(const MountainCarState *s, const MountainCarParams *p, float *obs) {
    (void)p;
    obs[0] = (float)s->position;
    obs[1] = (float)s->velocity;
}

#endif
