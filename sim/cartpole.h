// CartPole-v1 with the dynamics of Gymnasium's classic_control/cartpole.py: a pole hinged on a cart, explicit Euler.
//
// Source: Barto, Sutton & Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems",
// 1983; equations corrected by Florian, 2005, as in Gymnasium.
#ifndef SHOAL_SIM_CARTPOLE_H
#define SHOAL_SIM_CARTPOLE_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define CARTPOLE_GYMNASIUM_ID     "CartPole-v1"
#define CARTPOLE_OBS              4
#define CARTPOLE_DISCRETE(D)      D(2) // 0 pushes left, 1 right
#define CARTPOLE_CONTINUOUS       0
#define CARTPOLE_ACTION_LOW       0.0f // bounds of continuous actions
#define CARTPOLE_ACTION_HIGH      0.0f
#define CARTPOLE_TIME_LIMIT       500
#define CARTPOLE_REWARD_THRESHOLD 475.0

// P(name, default, unit, help)
#define CARTPOLE_PARAMS(P)                                        \
    P(gravity_mps2, 9.8, "m/s^2", "gravity")                      \
    P(cart_mass_kg, 1.0, "kg", "mass of the cart")                \
    P(pole_mass_kg, 0.1, "kg", "mass of the pole")                \
    P(half_pole_length_m, 0.5, "m", "half of the pole's length")  \
    P(force_n, 10.0, "N", "force of a push")                      \
    P(dt_s, 0.02, "s", "time step")                               \
    P(max_x_m, 2.4, "m", "the episode ends beyond this position") \
    P(max_theta_rad, 0.20943951023931953, "rad", "the episode ends beyond this angle")

// F(type, name): 4-byte words; `fallen` is 1 from the terminating step on.
#define CARTPOLE_STATE(F) F(real, x_m) F(real, x_dot_mps) F(real, theta_rad) F(real, theta_dot_radps) F(int32_t, fallen)

SIM_DECLARE(Cartpole, CARTPOLE)

SIM_FN void cartpole_reset(CartpoleState *s, const CartpoleParams *p, SimRng *rng) {
    (void)p;
    SimUniform4 u = sim_rng_uniform4(rng);
    s->x_m = sim_lerp(u.x0, R(-0.05), R(0.05));
    s->x_dot_mps = sim_lerp(u.x1, R(-0.05), R(0.05));
    s->theta_rad = sim_lerp(u.x2, R(-0.05), R(0.05));
    s->theta_dot_radps = sim_lerp(u.x3, R(-0.05), R(0.05));
    s->fallen = 0;
}

// Everything that does not need the action comes first: on a CPU it overlaps with the policy that computes the action.
SIM_FN SimStep cartpole_step(CartpoleState *s, const CartpoleParams *p, const int32_t *discrete,
                             const float *continuous, SimRng *rng) {
    (void)continuous;
    (void)rng;
    SimSinCos a = sim_sincos(s->theta_rad);
    real per_mass = R(1.0) / (p->cart_mass_kg + p->pole_mass_kg);
    real pole_moment = p->pole_mass_kg * p->half_pole_length_m;
    real spin = pole_moment * s->theta_dot_radps * s->theta_dot_radps * a.sin;
    real inertia = p->half_pole_length_m * (R(4.0) / R(3.0) - p->pole_mass_kg * a.cos * a.cos * per_mass);

    real force = sim_select(*discrete == 1, p->force_n, -p->force_n);
    real push = (force + spin) * per_mass;
    real theta_acc = (p->gravity_mps2 * a.sin - a.cos * push) / inertia;
    real x_acc = push - pole_moment * theta_acc * a.cos * per_mass;

    s->x_m = s->x_m + p->dt_s * s->x_dot_mps;
    s->x_dot_mps = s->x_dot_mps + p->dt_s * x_acc;
    s->theta_rad = s->theta_rad + p->dt_s * s->theta_dot_radps;
    s->theta_dot_radps = s->theta_dot_radps + p->dt_s * theta_acc;

    SimStep out;
    out.terminated = (s->x_m < -p->max_x_m) | (s->x_m > p->max_x_m) | (s->theta_rad < -p->max_theta_rad) |
                     (s->theta_rad > p->max_theta_rad);
    out.reward = sim_select(out.terminated & s->fallen, R(0.0), R(1.0)); // a fallen pole earns once, then nothing
    s->fallen = s->fallen | out.terminated;
    return out;
}

SIM_FN void cartpole_observe(const CartpoleState *s, const CartpoleParams *p, float *obs) {
    (void)p;
    obs[0] = (float)s->x_m;
    obs[1] = (float)s->x_dot_mps;
    obs[2] = (float)s->theta_rad;
    obs[3] = (float)s->theta_dot_radps;
}

#ifdef SIM_DRAWING
#include "sim/sim_draw.h"

#define CARTPOLE_DRAW SIM_DRAW(cartpole_draw)

SIM_FN void cartpole_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                          SimFrame *f) {
    (void)continuous;
    CartpoleState s;
    CartpoleParams p;
    __builtin_memcpy(&s, state, sizeof s);
    __builtin_memcpy(&p, params, sizeof p);
    const SimSinCos level = {R(0.0), R(1.0)};
    SimSinCos a = sim_sincos(s.theta_rad);
    real length = R(2.0) * p.half_pole_length_m, edge = R(1.2) * p.max_x_m, hinge = R(0.34);
    sim_frame_view(f, -edge, R(-0.5), edge, hinge + length + R(0.4));
    f->step_s = (float)p.dt_s;
    sim_frame_line(f, SIM_TRACK, R(0.03), -edge, R(0.0), edge, R(0.0));
    sim_frame_line(f, SIM_LIMIT, R(0.03), -p.max_x_m, R(-0.15), -p.max_x_m, R(0.15));
    sim_frame_line(f, SIM_LIMIT, R(0.03), p.max_x_m, R(-0.15), p.max_x_m, R(0.15));
    if (discrete != NULL) {
        real side = *discrete == 1 ? R(1.0) : R(-1.0);
        sim_frame_push(f, s.x_m + side * R(0.32), R(0.23), side * R(0.2), R(0.04));
    }
    sim_frame_box(f, SIM_BODY, s.x_m, R(0.23), R(0.27), R(0.11), level);
    sim_frame_circle(f, SIM_JOINT, R(0.08), s.x_m - R(0.16), R(0.08));
    sim_frame_circle(f, SIM_JOINT, R(0.08), s.x_m + R(0.16), R(0.08));
    sim_frame_line(f, SIM_PART, R(0.08), s.x_m, hinge, s.x_m + length * a.sin, hinge + length * a.cos);
    sim_frame_circle(f, SIM_JOINT, R(0.05), s.x_m, hinge);
}
#endif

#endif
