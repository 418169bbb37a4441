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

#ifdef SIM_DRAWING
#include "sim/sim_draw.h"

#define MOUNTAIN_CAR_DRAW SIM_DRAW(mountain_car_draw)

SIM_FN real mountain_car_height(real position) { return R(0.45) * sim_sin(R(3.0) * position) + R(0.55); }

// Hills from `low` to `high` with a flag at the goal, and the car; push: its engine, -1 to 1.
SIM_FN void mountain_car_scene(SimFrame *f, real position, real low, real high, real goal, real push) {
    enum { HILL_POINTS = 64 };
    sim_frame_view(f, low, R(-0.05), high, R(1.25));
    sim_frame_begin(f, SIM_POLYGON, SIM_GROUND, R(0.0));
    sim_frame_point(f, low, R(-0.05));
    for (int32_t i = 0; i <= HILL_POINTS; i++) {
        real x = sim_lerp((real)i / (real)HILL_POINTS, low, high);
        sim_frame_point(f, x, mountain_car_height(x));
    }
    sim_frame_point(f, high, R(-0.05));
    real foot = mountain_car_height(goal), slope = R(1.35) * sim_cos(R(3.0) * position);
    sim_frame_line(f, SIM_TRACK, R(0.01), goal, foot, goal, foot + R(0.2));
    sim_frame_triangle(f, SIM_GOAL, goal, foot + R(0.2), goal, foot + R(0.12), goal + R(0.1), foot + R(0.16));
    real per_length = R(1.0) / sim_sqrt(R(1.0) + slope * slope), y = mountain_car_height(position);
    SimSinCos a = {slope * per_length, per_length};
    sim_frame_box(f, SIM_BODY, position - R(0.065) * a.sin, y + R(0.065) * a.cos, R(0.075), R(0.03), a);
    for (int32_t side = -1; side <= 1; side += 2) {
        real along = R(0.045) * (real)side;
        sim_frame_circle(f, SIM_JOINT, R(0.025), position + along * a.cos - R(0.03) * a.sin,
                         y + along * a.sin + R(0.03) * a.cos);
    }
    sim_frame_push(f, position, y + R(0.16), R(0.08) * push, R(0.014));
}

SIM_FN void mountain_car_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                              SimFrame *f) {
    (void)continuous;
    const MountainCarState *s = state;
    const MountainCarParams *p = params;
    real push = discrete != NULL ? (real)(*discrete - 1) : R(0.0);
    mountain_car_scene(f, s->position, p->min_position, p->max_position, p->goal_position, push);
}
#endif

#endif
