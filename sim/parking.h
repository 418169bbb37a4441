// A car that is to stand still at a mark, on a straight road, by gear, brake and throttle: a small task in which a
// policy has several actions of both kinds at once.
//
// Source: our own. A double integrator with friction; semi-implicit Euler.
#ifndef SHOAL_SIM_PARKING_H
#define SHOAL_SIM_PARKING_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define PARKING_GYMNASIUM_ID     "Parking"
#define PARKING_OBS              2         // position, velocity
#define PARKING_DISCRETE(D)      D(3) D(2) // gear: reverse, neutral, forward; brake: off, on
#define PARKING_CONTINUOUS       1         // throttle
#define PARKING_ACTION_LOW       0.0f
#define PARKING_ACTION_HIGH      1.0f
#define PARKING_TIME_LIMIT       100
#define PARKING_REWARD_THRESHOLD (-1.6)

// P(name, default, unit, help)
#define PARKING_PARAMS(P)                                             \
    P(thrust_mps2, 2.0, "m/s^2", "acceleration at full throttle")     \
    P(brake_per_s, 4.0, "1/s", "what the brake takes of the speed")   \
    P(drag_per_s, 0.1, "1/s", "what the road takes of the speed")     \
    P(effort_weight, 0.05, "1", "cost of full throttle for a second") \
    P(max_x_m, 5.0, "m", "walls at this distance of the mark")        \
    P(dt_s, 0.1, "s", "time step")

// F(type, name)
#define PARKING_STATE(F) F(real, x_m) F(real, v_mps)

SIM_DECLARE(Parking, PARKING)

SIM_FN void parking_reset(ParkingState *s, const ParkingParams *p, SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->x_m = sim_lerp(u.x0, R(-2.0), R(2.0));
    s->v_mps = sim_lerp(u.x1, R(-1.0), R(1.0));
}

SIM_FN SimStep parking_step(ParkingState *s, const ParkingParams *p, const int32_t *discrete, const float *continuous,
                            SimRng *rng) {
    (void)rng;
    real throttle = sim_clamp((real)continuous[0], R(0.0), R(1.0));
    real forward = sim_select(discrete[0] == 2, R(1.0), R(0.0)), reverse = sim_select(discrete[0] == 0, R(1.0), R(0.0));
    real slowing = p->drag_per_s + sim_select(discrete[1] == 1, p->brake_per_s, R(0.0));
    real v = s->v_mps + p->dt_s * ((forward - reverse) * p->thrust_mps2 * throttle - slowing * s->v_mps);
    real x = s->x_m + p->dt_s * v;
    int32_t hits = (x < -p->max_x_m) | (x > p->max_x_m);
    s->x_m = sim_clamp(x, -p->max_x_m, p->max_x_m);
    s->v_mps = sim_select(hits, R(0.0), v);

    SimStep out;
    real off = s->x_m * s->x_m + R(0.1) * s->v_mps * s->v_mps;
    out.reward = -p->dt_s * (off + p->effort_weight * throttle);
    out.terminated = 0;
    return out;
}

SIM_FN void parking_observe(const ParkingState *s, const ParkingParams *p, float *obs) {
    (void)p;
    obs[0] = (float)s->x_m;
    obs[1] = (float)s->v_mps;
}

#ifdef SIM_DRAWING
#include "sim/sim_draw.h"

#define PARKING_DRAW SIM_DRAW(parking_draw)

// The brake's lights are on while it is.
SIM_FN void parking_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                         SimFrame *f) {
    const ParkingState *s = state;
    const ParkingParams *p = params;
    const SimSinCos level = {R(0.0), R(1.0)};
    real edge = p->max_x_m + R(0.7), wall = p->max_x_m + R(0.5);
    sim_frame_view(f, -edge, R(-1.0), edge, R(1.8));
    f->step_s = (float)p->dt_s;
    sim_frame_line(f, SIM_TRACK, R(0.05), -edge, R(0.0), edge, R(0.0));
    sim_frame_line(f, SIM_LIMIT, R(0.08), -wall, R(0.0), -wall, R(0.9));
    sim_frame_line(f, SIM_LIMIT, R(0.08), wall, R(0.0), wall, R(0.9));
    sim_frame_triangle(f, SIM_GOAL, R(0.0), R(-0.08), R(-0.2), R(-0.45), R(0.2), R(-0.45));
    sim_frame_box(f, SIM_BODY, s->x_m, R(0.33), R(0.5), R(0.17), level);
    sim_frame_box(f, SIM_PART, s->x_m - R(0.05), R(0.62), R(0.28), R(0.13), level);
    sim_frame_circle(f, SIM_JOINT, R(0.14), s->x_m - R(0.28), R(0.14));
    sim_frame_circle(f, SIM_JOINT, R(0.14), s->x_m + R(0.28), R(0.14));
    if (discrete == NULL) return;
    if (discrete[1] == 1) sim_frame_circle(f, SIM_LIMIT, R(0.07), s->x_m - R(0.5), R(0.38));
    real throttle = sim_clamp((real)*continuous, R(0.0), R(1.0));
    sim_frame_push(f, s->x_m, R(1.0), (real)(discrete[0] - 1) * throttle, R(0.06));
}
#endif

#endif
