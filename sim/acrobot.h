// Acrobot-v1 with the dynamics of Gymnasium's classic_control/acrobot.py: two links hanging from a pivot, with a motor
// in the joint between them; swing the tip above the bar. Fourth-order Runge-Kutta, the equations of the book.
//
// Source: Sutton & Barto, "Reinforcement learning", 1998, as in Gymnasium. Its torque noise, off by default, is left
// out.
#ifndef SHOAL_SIM_ACROBOT_H
#define SHOAL_SIM_ACROBOT_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define ACROBOT_GYMNASIUM_ID     "Acrobot-v1"
#define ACROBOT_OBS              6
#define ACROBOT_DISCRETE(D)      D(3) // torque -1, 0, +1 times torque_nm
#define ACROBOT_CONTINUOUS       0
#define ACROBOT_ACTION_LOW       0.0f
#define ACROBOT_ACTION_HIGH      0.0f
#define ACROBOT_TIME_LIMIT       500
#define ACROBOT_REWARD_THRESHOLD (-100.0)

// P(name, default, unit, help)
#define ACROBOT_PARAMS(P)                                                                                        \
    P(gravity_mps2, 9.8, "m/s^2", "gravity")                                                                     \
    P(link1_mass_kg, 1.0, "kg", "mass of the upper link")                                                        \
    P(link2_mass_kg, 1.0, "kg", "mass of the lower link")                                                        \
    P(link1_length_m, 1.0, "m", "length of the upper link, for the dynamics")                                    \
    P(link1_com_m, 0.5, "m", "from the pivot to the upper link's centre of mass")                                \
    P(link2_com_m, 0.5, "m", "from the joint to the lower link's centre of mass")                                \
    P(link_moi_kgm2, 1.0, "kg m^2", "moment of inertia of each link")                                            \
    P(torque_nm, 1.0, "N m", "torque of the motor")                                                              \
    P(dt_s, 0.2, "s", "time step")                                                                               \
    P(max_velocity1_radps, 12.566370614359172, "rad/s", "the upper link's speed is clipped to this, either way") \
    P(max_velocity2_radps, 28.274333882308138, "rad/s", "the joint's speed is clipped to this, either way")      \
    P(goal_height, 1.0, "1", "the episode ends with the tip this high above the pivot, for links of length 1")

// F(type, name): theta1 is 0 when the upper link hangs down; theta2 is relative to it
#define ACROBOT_STATE(F) F(real, theta1_rad) F(real, theta2_rad) F(real, theta1_dot_radps) F(real, theta2_dot_radps)

SIM_DECLARE(Acrobot, ACROBOT)

SIM_FN void acrobot_reset(AcrobotState *s, const AcrobotParams *p, SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->theta1_rad = sim_lerp(u.x0, R(-0.1), R(0.1));
    s->theta2_rad = sim_lerp(u.x1, R(-0.1), R(0.1));
    s->theta1_dot_radps = sim_lerp(u.x2, R(-0.1), R(0.1));
    s->theta2_dot_radps = sim_lerp(u.x3, R(-0.1), R(0.1));
}

// The time derivative of state s under a torque, in the state's own fields. The torque comes last.
SIM_FN AcrobotState acrobot_derivative(AcrobotState s, const AcrobotParams *p, real torque) {
    SimSinCos a1 = sim_sincos(s.theta1_rad);
    SimSinCos a2 = sim_sincos(s.theta2_rad);
    real sin_sum = a1.sin * a2.cos + a1.cos * a2.sin;
    real m1 = p->link1_mass_kg, m2 = p->link2_mass_kg, l1 = p->link1_length_m;
    real lc1 = p->link1_com_m, lc2 = p->link2_com_m, moi = p->link_moi_kgm2;
    real coupling = m2 * l1 * lc2;
    real inertia2 = m2 * lc2 * lc2 + moi;

    real d1 = m1 * lc1 * lc1 + m2 * l1 * l1 + moi + inertia2 + R(2.0) * coupling * a2.cos;
    real d2 = inertia2 + coupling * a2.cos;
    real phi2 = m2 * lc2 * p->gravity_mps2 * sin_sum;
    real phi1 = -coupling * a2.sin * s.theta2_dot_radps * (s.theta2_dot_radps + R(2.0) * s.theta1_dot_radps) +
                (m1 * lc1 + m2 * l1) * p->gravity_mps2 * a1.sin + phi2;
    real per_d1 = R(1.0) / d1;
    real ratio = d2 * per_d1;
    real pull = ratio * phi1 - coupling * s.theta1_dot_radps * s.theta1_dot_radps * a2.sin - phi2;
    real per_rest = R(1.0) / (inertia2 - d2 * ratio);

    AcrobotState dot;
    dot.theta1_rad = s.theta1_dot_radps;
    dot.theta2_rad = s.theta2_dot_radps;
    dot.theta2_dot_radps = (torque + pull) * per_rest;
    dot.theta1_dot_radps = -(d2 * dot.theta2_dot_radps + phi1) * per_d1;
    return dot;
}

// s + h * dot
SIM_FN AcrobotState acrobot_advance(AcrobotState s, AcrobotState dot, real h) {
    s.theta1_rad = sim_fma(h, dot.theta1_rad, s.theta1_rad);
    s.theta2_rad = sim_fma(h, dot.theta2_rad, s.theta2_rad);
    s.theta1_dot_radps = sim_fma(h, dot.theta1_dot_radps, s.theta1_dot_radps);
    s.theta2_dot_radps = sim_fma(h, dot.theta2_dot_radps, s.theta2_dot_radps);
    return s;
}

SIM_FN SimStep acrobot_step(AcrobotState *s, const AcrobotParams *p, const int32_t *discrete, const float *continuous,
                            SimRng *rng) {
    (void)continuous;
    (void)rng;
    real torque = (real)(*discrete - 1) * p->torque_nm;
    real half_dt = p->dt_s * R(0.5);
    AcrobotState k1 = acrobot_derivative(*s, p, torque);
    AcrobotState k2 = acrobot_derivative(acrobot_advance(*s, k1, half_dt), p, torque);
    AcrobotState k3 = acrobot_derivative(acrobot_advance(*s, k2, half_dt), p, torque);
    AcrobotState k4 = acrobot_derivative(acrobot_advance(*s, k3, p->dt_s), p, torque);
    AcrobotState sum = acrobot_advance(acrobot_advance(acrobot_advance(k1, k2, R(2.0)), k3, R(2.0)), k4, R(1.0));
    AcrobotState next = acrobot_advance(*s, sum, p->dt_s / R(6.0));
    s->theta1_rad = sim_wrap_pi(next.theta1_rad);
    s->theta2_rad = sim_wrap_pi(next.theta2_rad);
    s->theta1_dot_radps = sim_clamp(next.theta1_dot_radps, -p->max_velocity1_radps, p->max_velocity1_radps);
    s->theta2_dot_radps = sim_clamp(next.theta2_dot_radps, -p->max_velocity2_radps, p->max_velocity2_radps);

    SimSinCos a1 = sim_sincos(s->theta1_rad);
    SimSinCos a2 = sim_sincos(s->theta2_rad);
    real cos_sum = a1.cos * a2.cos - a1.sin * a2.sin;
    SimStep out;
    out.terminated = -a1.cos - cos_sum > p->goal_height;
    out.reward = sim_select(out.terminated, R(0.0), R(-1.0));
    return out;
}

SIM_FN void acrobot_observe(const AcrobotState *s, const AcrobotParams *p, float *obs) {
    (void)p;
    SimSinCos a1 = sim_sincos(s->theta1_rad);
    SimSinCos a2 = sim_sincos(s->theta2_rad);
    obs[0] = (float)a1.cos;
    obs[1] = (float)a1.sin;
    obs[2] = (float)a2.cos;
    obs[3] = (float)a2.sin;
    obs[4] = (float)s->theta1_dot_radps;
    obs[5] = (float)s->theta2_dot_radps;
}

#ifdef SIM_DRAWING
#include "sim/sim_draw.h"

#define ACROBOT_DRAW SIM_DRAW(acrobot_draw)

// With links of length 1, for which the goal's height is given.
SIM_FN void acrobot_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                         SimFrame *f) {
    (void)continuous;
    const AcrobotState *s = state;
    const AcrobotParams *p = params;
    SimSinCos upper = sim_sincos(s->theta1_rad), lower = sim_sincos(s->theta1_rad + s->theta2_rad);
    real joint_x = upper.sin, joint_y = -upper.cos;
    sim_frame_view(f, R(-2.4), R(-2.3), R(2.4), R(2.3));
    f->step_s = (float)p->dt_s;
    sim_frame_line(f, SIM_GOAL, R(0.03), R(-2.4), p->goal_height, R(2.4), p->goal_height);
    sim_frame_line(f, SIM_BODY, R(0.2), R(0.0), R(0.0), joint_x, joint_y);
    sim_frame_line(f, SIM_PART, R(0.2), joint_x, joint_y, joint_x + lower.sin, joint_y - lower.cos);
    sim_frame_circle(f, SIM_JOINT, R(0.06), R(0.0), R(0.0));
    sim_frame_circle(f, SIM_JOINT, R(0.06), joint_x, joint_y);
    if (discrete != NULL) sim_frame_turn(f, joint_x, joint_y, R(0.28), R(2.0) * (real)(*discrete - 1), R(0.04));
}
#endif

#endif
