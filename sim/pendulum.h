// Pendulum-v1 with the dynamics of Gymnasium's classic_control/pendulum.py: swing a rod up and hold it there, by a
// torque too weak to lift it directly. Semi-implicit Euler. The angle is 0 upright and is never wrapped; the reward is
// that of the state before the step. An episode has no end but its time limit.
#ifndef SHOAL_SIM_PENDULUM_H
#define SHOAL_SIM_PENDULUM_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define PENDULUM_GYMNASIUM_ID "Pendulum-v1"
#define PENDULUM_OBS          3
#define PENDULUM_DISCRETE(D)
#define PENDULUM_CONTINUOUS       1 // torque in N m
#define PENDULUM_ACTION_LOW       (-2.0f)
#define PENDULUM_ACTION_HIGH      2.0f
#define PENDULUM_TIME_LIMIT       200
#define PENDULUM_REWARD_THRESHOLD (-200.0) // Gymnasium has none; this is a pendulum that is swung up at once and held

// P(name, default, unit, help)
#define PENDULUM_PARAMS(P)                                                       \
    P(gravity_mps2, 10.0, "m/s^2", "gravity")                                    \
    P(mass_kg, 1.0, "kg", "mass of the rod")                                     \
    P(length_m, 1.0, "m", "length of the rod")                                   \
    P(dt_s, 0.05, "s", "time step")                                              \
    P(max_speed_radps, 8.0, "rad/s", "the speed is clipped to this, either way") \
    P(max_torque_nm, 2.0, "N m", "the torque is clipped to this, either way")

// F(type, name)
#define PENDULUM_STATE(F) F(real, theta_rad) F(real, theta_dot_radps)

SIM_DECLARE(Pendulum, PENDULUM)

SIM_FN void pendulum_reset(PendulumState *s, const PendulumParams *p, SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->theta_rad = sim_lerp(u.x0, -SIM_PI, SIM_PI);
    s->theta_dot_radps = sim_lerp(u.x1, R(-1.0), R(1.0));
}

SIM_FN SimStep pendulum_step(PendulumState *s, const PendulumParams *p, const int32_t *discrete,
                             const float *continuous, SimRng *rng) {
    (void)discrete;
    (void)rng;
    real upright = sim_wrap_pi(s->theta_rad);
    real state_cost = upright * upright + R(0.1) * s->theta_dot_radps * s->theta_dot_radps;
    real fall = R(3.0) * p->gravity_mps2 / (R(2.0) * p->length_m) * sim_sin(s->theta_rad);
    real per_inertia = R(3.0) / (p->mass_kg * p->length_m * p->length_m);

    real torque = sim_clamp((real)*continuous, -p->max_torque_nm, p->max_torque_nm);
    real theta_dot = s->theta_dot_radps + (fall + per_inertia * torque) * p->dt_s;
    s->theta_dot_radps = sim_clamp(theta_dot, -p->max_speed_radps, p->max_speed_radps);
    s->theta_rad = s->theta_rad + s->theta_dot_radps * p->dt_s;

    SimStep out;
    out.reward = -(state_cost + R(0.001) * torque * torque);
    out.terminated = 0;
    return out;
}

SIM_FN void pendulum_observe(const PendulumState *s, const PendulumParams *p, float *obs) {
    (void)p;
    SimSinCos a = sim_sincos(s->theta_rad);
    obs[0] = (float)a.cos;
    obs[1] = (float)a.sin;
    obs[2] = (float)s->theta_dot_radps;
}

#ifdef SIM_DRAWING
#include "sim/sim_draw.h"

#define PENDULUM_DRAW SIM_DRAW(pendulum_draw)

// Angles grow counter-clockwise.
SIM_FN void pendulum_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                          SimFrame *f) {
    (void)discrete;
    const PendulumState *s = state;
    const PendulumParams *p = params;
    SimSinCos a = sim_sincos(s->theta_rad);
    real length = p->length_m, edge = R(1.3) * length;
    sim_frame_view(f, -edge, -edge, edge, edge);
    f->step_s = (float)p->dt_s;
    sim_frame_line(f, SIM_GOAL, R(0.02) * length, R(0.0), R(1.08) * length, R(0.0), R(1.24) * length);
    sim_frame_line(f, SIM_BODY, R(0.16) * length, R(0.0), R(0.0), -length * a.sin, length * a.cos);
    sim_frame_circle(f, SIM_JOINT, R(0.045) * length, R(0.0), R(0.0));
    if (continuous != NULL) {
        real torque = sim_clamp((real)*continuous, -p->max_torque_nm, p->max_torque_nm);
        sim_frame_turn(f, R(0.0), R(0.0), R(0.3) * length, torque, R(0.03) * length);
    }
}
#endif

#endif
