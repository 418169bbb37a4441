// MountainCarContinuous-v0 with the dynamics of Gymnasium's classic_control/continuous_mountain_car.py: the mountain
// car with an engine of continuous force, which is charged for. Lengths and times have no units, as in the original.
//
// Kept from the original: the action is clipped for the dynamics, but charged as it came; the state is rounded to float
// after each step (which only the double build notices).
#ifndef SHOAL_SIM_MOUNTAIN_CAR_CONTINUOUS_H
#define SHOAL_SIM_MOUNTAIN_CAR_CONTINUOUS_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define MOUNTAIN_CAR_CONTINUOUS_GYMNASIUM_ID "MountainCarContinuous-v0"
#define MOUNTAIN_CAR_CONTINUOUS_OBS          2
#define MOUNTAIN_CAR_CONTINUOUS_DISCRETE(D)
#define MOUNTAIN_CAR_CONTINUOUS_CONTINUOUS       1
#define MOUNTAIN_CAR_CONTINUOUS_ACTION_LOW       (-1.0f)
#define MOUNTAIN_CAR_CONTINUOUS_ACTION_HIGH      1.0f
#define MOUNTAIN_CAR_CONTINUOUS_TIME_LIMIT       999
#define MOUNTAIN_CAR_CONTINUOUS_REWARD_THRESHOLD 90.0

// P(name, default, unit, help)
#define MOUNTAIN_CAR_CONTINUOUS_PARAMS(P)                                              \
    P(power, 0.0015, "1", "change of speed per step by the engine at full action")     \
    P(gravity, 0.0025, "1", "change of speed per step by the steepest slope")          \
    P(min_position, -1.2, "1", "left wall: the car stops there")                       \
    P(max_position, 0.6, "1", "right end: the position is clipped, the speed is kept") \
    P(max_speed, 0.07, "1", "the speed is clipped to this, either way")                \
    P(goal_position, 0.45, "1", "the episode ends from this position on")              \
    P(goal_velocity, 0.0, "1", "the velocity the car must have there at least")        \
    P(goal_reward, 100.0, "1", "reward for reaching the goal")                         \
    P(action_cost, 0.1, "1", "price of the action's square")

// F(type, name)
#define MOUNTAIN_CAR_CONTINUOUS_STATE(F) F(real, position) F(real, velocity)

SIM_DECLARE(MountainCarContinuous, MOUNTAIN_CAR_CONTINUOUS)

SIM_FN void mountain_car_continuous_reset(MountainCarContinuousState *s, const MountainCarContinuousParams *p,
                                          SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->position = sim_lerp(u.x0, R(-0.6), R(-0.4));
    s->velocity = R(0.0);
}

SIM_FN SimStep mountain_car_continuous_step(MountainCarContinuousState *s, const MountainCarContinuousParams *p,
                                            const int32_t *discrete, const float *continuous, SimRng *rng) {
    (void)discrete;
    (void)rng;
    real slope = sim_cos(R(3.0) * s->position) * p->gravity;

    real action = (real)*continuous;
    real velocity = s->velocity + (sim_clamp(action, R(-1.0), R(1.0)) * p->power - slope);
    velocity = sim_clamp(velocity, -p->max_speed, p->max_speed);
    real position = sim_clamp(s->position + velocity, p->min_position, p->max_position);
    int32_t hit_wall = (position == p->min_position) & (velocity < R(0.0));
    velocity = sim_select(hit_wall, R(0.0), velocity);

    SimStep out;
    out.terminated = (position >= p->goal_position) & (velocity >= p->goal_velocity);
    out.reward = sim_select(out.terminated, p->goal_reward, R(0.0)) - action * action * p->action_cost;
    s->position = (real)(float)position;
    s->velocity = (real)(float)velocity;
    return out;
}

SIM_FN void mountain_car_continuous_observe(const MountainCarContinuousState *s, const MountainCarContinuousParams *p,
                                            float *obs) {
    (void)p;
    obs[0] = (float)s->position;
    obs[1] = (float)s->velocity;
}

#ifdef SIM_DRAWING
#include "sim/mountain_car.h"

#define MOUNTAIN_CAR_CONTINUOUS_DRAW SIM_DRAW(mountain_car_continuous_draw)

SIM_FN void mountain_car_continuous_draw(const void *state, const void *params, const int32_t *discrete,
                                         const float *continuous, SimFrame *f) {
    (void)discrete;
    const MountainCarContinuousState *s = state;
    const MountainCarContinuousParams *p = params;
    real push = continuous != NULL ? sim_clamp((real)*continuous, R(-1.0), R(1.0)) : R(0.0);
    mountain_car_scene(f, s->position, p->min_position, p->max_position, p->goal_position, push);
}
#endif

#endif
