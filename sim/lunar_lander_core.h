// The physics of LunarLander-v3, which sim/lunar_lander.h and sim/lunar_lander_continuous.h share: those of Gymnasium's
// box2d/lunar_lander.py. A lander with two legs on springs comes down on uneven ground; it is to stand still on it. On
// sim/rigid2d, whose semantics are Box2D's.
//
// Source: Klimov, 2016, in OpenAI Gym, now Gymnasium. Its oddities are kept: the side engines act at 17/30 m in x but
// 14/30 m in y, a leg counts as in the air when any of its contacts ends, terrain wraps round at its left end, a reset
// makes one step, and success is that the bodies fall asleep. Particles, which it only draws, are left out.
#ifndef SHOAL_SIM_LUNAR_LANDER_CORE_H
#define SHOAL_SIM_LUNAR_LANDER_CORE_H

#include "sim/rigid2d/rigid2d.h"
#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define LUNAR_LANDER_OBS 8

// P(name, default, unit, help)
#define LUNAR_LANDER_PARAMS(P)                                                                  \
    P(gravity_mps2, 10.0, "m/s^2", "gravity")                                                   \
    P(main_engine_power, 13.0, "N s/m", "impulse of the main engine, per offset of its nozzle") \
    P(side_engine_power, 0.6, "N s/m", "impulse of a side engine, per offset of its nozzle")    \
    P(initial_force_n, 1000.0, "N", "largest force, in x and y, on the lander at the start")    \
    P(leg_torque_nm, 40.0, "N m", "torque of the springs that hold the legs")                   \
    P(wind, 0.0, "1", "1: wind and turbulence, 0: none")                                        \
    P(wind_power_n, 15.0, "N", "largest force of the wind")                                     \
    P(turbulence_power_nm, 1.5, "N m", "largest torque of the wind")

#define LUNAR_LANDER_BODIES   3 // the lander, then its legs
#define LUNAR_LANDER_JOINTS   2
#define LUNAR_LANDER_CONTACTS 16 // at most 7 in 600 episodes of Gymnasium's heuristic
#define LUNAR_LANDER_CHUNKS   11 // heights of the terrain

#define LUNAR_LANDER_CONTACTS_4(F, p) \
    RIGID2D_CONTACT(F, p##0_) RIGID2D_CONTACT(F, p##1_) RIGID2D_CONTACT(F, p##2_) RIGID2D_CONTACT(F, p##3_)

// F(type, name). contact_overflow: 0, or NaN, which ends the run, when a contact had no room. wind and turbulence: what
// their course depends on, a number of steps.
// clang-format off
#define LUNAR_LANDER_STATE(F)                                                                           \
    RIGID2D_BODY(F, lander_)                                                                            \
    RIGID2D_BODY(F, leg0_)                                                                              \
    RIGID2D_BODY(F, leg1_)                                                                              \
    RIGID2D_JOINT(F, joint0_)                                                                           \
    RIGID2D_JOINT(F, joint1_)                                                                           \
    LUNAR_LANDER_CONTACTS_4(F, contact0)                                                                \
    LUNAR_LANDER_CONTACTS_4(F, contact1)                                                                \
    LUNAR_LANDER_CONTACTS_4(F, contact2)                                                                \
    LUNAR_LANDER_CONTACTS_4(F, contact3)                                                                \
    F(real, terrain0_m) F(real, terrain1_m) F(real, terrain2_m) F(real, terrain3_m) F(real, terrain4_m) \
    F(real, terrain5_m) F(real, terrain6_m) F(real, terrain7_m) F(real, terrain8_m) F(real, terrain9_m) \
    F(real, terrain10_m)                                                                                \
    F(int32_t, contacts) F(int32_t, wind_step) F(int32_t, turbulence_step)                              \
    F(real, shaping) F(real, contact_overflow)
// clang-format on

SIM_DECLARE(LunarLander, LUNAR_LANDER)

// The same words as arrays.
typedef struct LunarLanderWords {
    Rigid2dBody body[LUNAR_LANDER_BODIES];
    Rigid2dJoint joint[LUNAR_LANDER_JOINTS];
    Rigid2dContact contact[LUNAR_LANDER_CONTACTS];
    real terrain_m[LUNAR_LANDER_CHUNKS];
    int32_t contacts, wind_step, turbulence_step;
    real shaping, contact_overflow;
} LunarLanderWords;

// What the engines do in a step: shares of their power, and -1 or 1 for the side that pushes. Where they push is spread
// by two draws from [-1, 1).
typedef struct LunarLanderThrust {
    real main, side, direction;
    real spread0, spread1;
} LunarLanderThrust;

// A state as a world, for the length of a step.
typedef struct LunarLanderWorld {
    LunarLanderWords words;
    Rigid2dWorld world;
    Rigid2dPolygon shape[LUNAR_LANDER_BODIES];
    Rigid2dMass mass[LUNAR_LANDER_BODIES];
    Rigid2dHinge hinge[LUNAR_LANDER_JOINTS];
    Rigid2dEdge edge[LUNAR_LANDER_CHUNKS];
    Rigid2dMotion motion[LUNAR_LANDER_BODIES];
    Rigid2dVelocity velocity[LUNAR_LANDER_BODIES];
    Rigid2dTouch touch[LUNAR_LANDER_CONTACTS];
    Rigid2dContactRow contact_row[LUNAR_LANDER_CONTACTS];
    Rigid2dJointRow joint_row[LUNAR_LANDER_JOINTS];
    real ground_alpha0[1];
    LunarLanderThrust thrust; // the step's
} LunarLanderWorld;

// The viewport in metres; lengths in the original are pixels, 30 a metre.
#define LUNAR_LANDER_WIDTH_M   R(20.0)
#define LUNAR_LANDER_HEIGHT_M  R(13.333333333333334)
#define LUNAR_LANDER_HELIPAD_M R(3.3333333333333335)
#define LUNAR_LANDER_PX(n)     (R(n) / R(30.0))
#define LUNAR_LANDER_FPS       R(50.0)

SIM_FN void lunar_lander_hull(Rigid2dPolygon *p, Rigid2dMass *mass) {
    const Rigid2dVec hull[6] = {{LUNAR_LANDER_PX(-14.0), LUNAR_LANDER_PX(17.0)},
                                {LUNAR_LANDER_PX(-17.0), R(0.0)},
                                {LUNAR_LANDER_PX(-17.0), LUNAR_LANDER_PX(-10.0)},
                                {LUNAR_LANDER_PX(17.0), LUNAR_LANDER_PX(-10.0)},
                                {LUNAR_LANDER_PX(17.0), R(0.0)},
                                {LUNAR_LANDER_PX(14.0), LUNAR_LANDER_PX(17.0)}};
    rigid2d_polygon_set(p, hull, 6);
    p->friction = R(0.1);
    *mass = rigid2d_polygon_mass(p, R(5.0));
}

SIM_BIG_FN void lunar_lander_shapes(LunarLanderWorld *l) {
    lunar_lander_hull(&l->shape[0], &l->mass[0]);
    for (int32_t i = 1; i < LUNAR_LANDER_BODIES; i++) {
        rigid2d_polygon_set_box(&l->shape[i], LUNAR_LANDER_PX(2.0), LUNAR_LANDER_PX(8.0));
        l->shape[i].friction = R(0.2);
        l->mass[i] = rigid2d_polygon_mass(&l->shape[i], R(1.0));
    }
}

SIM_FN void lunar_lander_hinges(LunarLanderWorld *l, const LunarLanderParams *p) {
    for (int32_t i = 0; i < LUNAR_LANDER_JOINTS; i++) {
        real side = i == 0 ? R(-1.0) : R(1.0);
        Rigid2dHinge *h = &l->hinge[i];
        h->a = 0, h->b = i + 1;
        h->anchor_a = rigid2d_vec(R(0.0), R(0.0));
        h->anchor_b = rigid2d_vec(side * LUNAR_LANDER_PX(20.0), LUNAR_LANDER_PX(18.0));
        h->reference_rad = side * R(0.05); // as they are created
        h->lower_rad = i == 0 ? R(0.4) : R(-0.9), h->upper_rad = i == 0 ? R(0.9) : R(-0.4);
        h->motor_radps = side * R(0.3), h->max_torque_nm = p->leg_torque_nm;
    }
}

// The bottom of the viewport, then the terrain from left to right.
SIM_FN void lunar_lander_ground(LunarLanderWorld *l) {
    const Rigid2dEdge bottom = {{R(0.0), R(0.0)}, {LUNAR_LANDER_WIDTH_M, R(0.0)}, R(0.2)};
    l->edge[0] = bottom;
    for (int32_t i = 1; i < LUNAR_LANDER_CHUNKS; i++) {
        l->edge[i].a = rigid2d_vec(R(2.0) * (real)(i - 1), l->words.terrain_m[i - 1]);
        l->edge[i].b = rigid2d_vec(R(2.0) * (real)i, l->words.terrain_m[i]);
        l->edge[i].friction = R(0.1);
    }
}

// Everything of the world that does not depend on where things are. shapes: whose shapes and masses are there.
SIM_BIG_FN void lunar_lander_world(LunarLanderWorld *l, const LunarLanderWorld *shapes, const LunarLanderParams *p) {
    Rigid2dWorld *w = &l->world;
    lunar_lander_hinges(l, p);
    lunar_lander_ground(l);
    w->body = l->words.body, w->joint = l->words.joint, w->contact = l->words.contact;
    w->bodies = LUNAR_LANDER_BODIES, w->joints = LUNAR_LANDER_JOINTS;
    w->contacts = l->words.contacts, w->contacts_max = LUNAR_LANDER_CONTACTS, w->overflow = 0;
    w->shape = shapes->shape, w->mass = shapes->mass, w->hinge = l->hinge;
    w->block = 0, w->blocks = 0;
    w->edge = l->edge, w->edges = LUNAR_LANDER_CHUNKS, w->one_ground = 1;
    w->gravity_mps2 = rigid2d_vec(R(0.0), -p->gravity_mps2);
    w->dt_s = R(1.0) / LUNAR_LANDER_FPS;
    w->velocity_iterations = 180, w->position_iterations = 60;
    w->motion = l->motion, w->velocity = l->velocity, w->touch = l->touch;
    w->contact_row = l->contact_row, w->joint_row = l->joint_row;
    w->contact_rows = w->joint_rows = 0;
    w->ground_alpha0 = l->ground_alpha0;
}

// Between -1 and 1, never periodic.
SIM_FN real lunar_lander_wind(int32_t step) {
    return sim_tanh(sim_sin(R(0.02) * (real)step) + sim_sin(SIM_PI * R(0.01) * (real)step));
}

SIM_FN void lunar_lander_blow(LunarLanderWorld *l, const LunarLanderParams *p) {
    const Rigid2dBody *body = l->words.body;
    if (p->wind == R(0.0) || ((body[1].touch | body[2].touch) & RIGID2D_IN_CONTACT)) return;
    real force = lunar_lander_wind(l->words.wind_step++) * p->wind_power_n;
    real torque = lunar_lander_wind(l->words.turbulence_step++) * p->turbulence_power_nm;
    rigid2d_body_pull(&l->world, 0, rigid2d_vec(force, R(0.0)), torque);
}

SIM_FN void lunar_lander_fire(LunarLanderWorld *l, const LunarLanderParams *p, const LunarLanderThrust *thrust) {
    Rigid2dVec position = l->motion[0].t.p;
    SimSinCos tip = sim_sincos(l->words.body[0].angle_rad);
    real spread0 = thrust->spread0 / R(30.0), spread1 = thrust->spread1 / R(30.0);
    if (thrust->main != R(0.0)) {
        real away = LUNAR_LANDER_PX(4.0) + R(2.0) * spread0, power = p->main_engine_power * thrust->main;
        Rigid2dVec o = rigid2d_vec(tip.sin * away - tip.cos * spread1, -tip.cos * away - tip.sin * spread1);
        rigid2d_body_push(&l->world, 0, rigid2d_scale(-power, o), rigid2d_add(position, o));
    }
    if (thrust->side != R(0.0)) {
        real away = R(3.0) * spread1 + thrust->direction * LUNAR_LANDER_PX(12.0);
        real power = p->side_engine_power * thrust->side;
        Rigid2dVec o = rigid2d_vec(tip.sin * spread0 - tip.cos * away, -tip.cos * spread0 - tip.sin * away);
        Rigid2dVec at = rigid2d_vec(position.x + o.x - tip.sin * LUNAR_LANDER_PX(17.0),
                                    position.y + o.y + tip.cos * LUNAR_LANDER_PX(14.0));
        rigid2d_body_push(&l->world, 0, rigid2d_scale(-power, o), at);
    }
}

// The eight observations, which the reward is made of, too.
SIM_FN void lunar_lander_look(const LunarLanderWords *words, Rigid2dVec center, real o[LUNAR_LANDER_OBS]) {
    const Rigid2dBody *b = &words->body[0];
    Rigid2dVec at = rigid2d_transform(rigid2d_body_position(b), b->angle_rad, center).p;
    const real half_width = R(0.5) * LUNAR_LANDER_WIDTH_M, half_height = R(0.5) * LUNAR_LANDER_HEIGHT_M;
    o[0] = (at.x - half_width) / half_width;
    o[1] = (at.y - (LUNAR_LANDER_HELIPAD_M + LUNAR_LANDER_PX(18.0))) / half_height;
    o[2] = b->vx_mps * half_width / LUNAR_LANDER_FPS;
    o[3] = b->vy_mps * half_height / LUNAR_LANDER_FPS;
    o[4] = b->angle_rad;
    o[5] = R(20.0) * b->spin_radps / LUNAR_LANDER_FPS;
    o[6] = words->body[1].touch & RIGID2D_IN_CONTACT ? R(1.0) : R(0.0);
    o[7] = words->body[2].touch & RIGID2D_IN_CONTACT ? R(1.0) : R(0.0);
}

SIM_FN SimStep lunar_lander_judge(LunarLanderWorld *l) {
    real o[LUNAR_LANDER_OBS];
    lunar_lander_look(&l->words, l->world.mass[0].center, o);
    real shaping = R(-100.0) * sim_sqrt(o[0] * o[0] + o[1] * o[1]) - R(100.0) * sim_sqrt(o[2] * o[2] + o[3] * o[3]) -
                   R(100.0) * sim_fabs(o[4]) + R(10.0) * o[6] + R(10.0) * o[7];
    SimStep out;
    out.reward = shaping - l->words.shaping - R(0.3) * l->thrust.main - R(0.03) * l->thrust.side;
    out.terminated = 0;
    l->words.shaping = shaping;
    if (l->words.body[0].touch != 0 || sim_fabs(o[0]) >= R(1.0)) out.reward = R(-100.0), out.terminated = 1;
    if (!l->words.body[0].awake) out.reward = R(100.0), out.terminated = 1;
    return out;
}

// A step of a world that lunar_lander_world() has prepared, up to the solver's iterations. start: a force on the
// lander.
SIM_FN void lunar_lander_set_off(LunarLanderWorld *l, const LunarLanderParams *p, const LunarLanderThrust *thrust,
                                 Rigid2dVec start) {
    l->thrust = *thrust;
    rigid2d_begin(&l->world);
    l->motion[0].force_n = start;
    lunar_lander_blow(l, p);
    lunar_lander_fire(l, p, thrust);
    rigid2d_step_begin(&l->world);
}

// What follows them.
SIM_FN SimStep lunar_lander_arrive(LunarLanderWorld *l) {
    rigid2d_step_end(&l->world);
    l->words.contacts = l->world.contacts;
    if (l->world.overflow) l->words.contact_overflow = (real)SIM_NANF;
    return lunar_lander_judge(l);
}

SIM_BIG_FN SimStep lunar_lander_advance(LunarLanderWorld *l, const LunarLanderParams *p,
                                        const LunarLanderThrust *thrust, Rigid2dVec start) {
    lunar_lander_set_off(l, p, thrust, start);
    rigid2d_island_iterate(&l->world);
    return lunar_lander_arrive(l);
}

SIM_FN LunarLanderThrust lunar_lander_thrust(real main, real side, real direction, SimRng *rng) {
    SimUniform4 u = sim_rng_uniform4(rng);
    LunarLanderThrust t = {main, side, direction, sim_lerp(u.x0, R(-1.0), R(1.0)), sim_lerp(u.x1, R(-1.0), R(1.0))};
    return t;
}

// The terrain from draws of [0, 1): the mean of each three neighbours, all but flat about the helipad.
SIM_FN void lunar_lander_smooth(LunarLanderWords *words, real height[LUNAR_LANDER_CHUNKS + 1]) {
    for (int32_t i = 0; i < LUNAR_LANDER_CHUNKS + 1; i++)
        height[i] = i >= 3 && i <= 7 ? LUNAR_LANDER_HELIPAD_M : height[i] * R(0.5) * LUNAR_LANDER_HEIGHT_M;
    for (int32_t i = 0; i < LUNAR_LANDER_CHUNKS; i++)
        words->terrain_m[i] = R(0.33) * (height[i > 0 ? i - 1 : LUNAR_LANDER_CHUNKS] + height[i] + height[i + 1]);
}

SIM_FN void lunar_lander_terrain(LunarLanderWords *words, SimRng *rng) {
    real height[LUNAR_LANDER_CHUNKS + 1];
    for (int32_t i = 0; i < LUNAR_LANDER_CHUNKS + 1; i += 4) {
        SimUniform4 u = sim_rng_uniform4(rng);
        height[i] = u.x0, height[i + 1] = u.x1, height[i + 2] = u.x2, height[i + 3] = u.x3;
    }
    lunar_lander_smooth(words, height);
}

// Bodies in the sky, at rest, and nothing remembered. The terrain has to be there.
SIM_FN void lunar_lander_place(LunarLanderWorld *l, const LunarLanderParams *p) {
    l->words.contacts = 0;
    lunar_lander_shapes(l);
    lunar_lander_world(l, l, p);
    const real x = R(0.5) * LUNAR_LANDER_WIDTH_M, y = LUNAR_LANDER_HEIGHT_M;
    rigid2d_body_create(&l->world, 0, rigid2d_vec(x, y), R(0.0));
    rigid2d_body_create(&l->world, 1, rigid2d_vec(x + LUNAR_LANDER_PX(20.0), y), R(-0.05));
    rigid2d_body_create(&l->world, 2, rigid2d_vec(x - LUNAR_LANDER_PX(20.0), y), R(0.05));
    rigid2d_find_contacts(&l->world);
}

// The functions below take the state of either simulator, whose fields are the same.

SIM_BIG_FN void lunar_lander_begin(void *state, const LunarLanderParams *p, SimRng *rng) {
    LunarLanderWorld l;
    __builtin_memset(&l.words, 0, sizeof l.words);
    lunar_lander_terrain(&l.words, rng);
    lunar_lander_place(&l, p);
    SimUniform4 u = sim_rng_uniform4(rng);
    Rigid2dVec force = rigid2d_vec(sim_lerp(u.x0, R(-1.0), R(1.0)), sim_lerp(u.x1, R(-1.0), R(1.0)));
    l.words.wind_step = (int32_t)sim_floor(sim_lerp(u.x2, R(-9999.0), R(9999.0)));
    l.words.turbulence_step = (int32_t)sim_floor(sim_lerp(u.x3, R(-9999.0), R(9999.0)));
    const LunarLanderThrust none = {R(0.0), R(0.0), R(0.0), R(0.0), R(0.0)};
    (void)lunar_lander_advance(&l, p, &none, rigid2d_scale(p->initial_force_n, force));
    __builtin_memcpy(state, &l.words, sizeof l.words);
}

// States come from files as well: contacts that cannot be are dropped, which is an error as an overflow is. Those that
// do not exist become 0, whatever was there.
SIM_FN void lunar_lander_check(LunarLanderWords *words) {
    int32_t good = words->contacts >= 0 && words->contacts <= LUNAR_LANDER_CONTACTS;
    for (int32_t i = 0; good && i < words->contacts; i++)
        good = words->contact[i].pair >= 0 && words->contact[i].pair < LUNAR_LANDER_CHUNKS * LUNAR_LANDER_BODIES;
    if (!good) words->contacts = 0, words->contact_overflow = (real)SIM_NANF;
    rigid2d_contacts_clear(words->contact, words->contacts, LUNAR_LANDER_CONTACTS);
}

// A step of the state in l->words, up to the solver's iterations. shapes: a world that has begun a step, whose shapes
// are used; NULL: there is none.
SIM_BIG_FN void lunar_lander_start(LunarLanderWorld *l, const LunarLanderWorld *shapes, const LunarLanderParams *p,
                                   const LunarLanderThrust *thrust) {
    lunar_lander_check(&l->words);
    if (!shapes) lunar_lander_shapes(l);
    lunar_lander_world(l, shapes ? shapes : l, p);
    lunar_lander_set_off(l, p, thrust, rigid2d_vec(R(0.0), R(0.0)));
}

SIM_BIG_FN SimStep lunar_lander_go(void *state, const LunarLanderParams *p, const LunarLanderThrust *thrust) {
    LunarLanderWorld l;
    __builtin_memcpy(&l.words, state, sizeof l.words);
    lunar_lander_start(&l, 0, p, thrust);
    rigid2d_island_iterate(&l.world);
    SimStep out = lunar_lander_arrive(&l);
    __builtin_memcpy(state, &l.words, sizeof l.words);
    return out;
}

// center: the lander's centre of mass, in its frame.
SIM_FN void lunar_lander_see(const LunarLanderWords *words, Rigid2dVec center, float *obs) {
    real o[LUNAR_LANDER_OBS];
    lunar_lander_look(words, center, o);
    for (int32_t i = 0; i < LUNAR_LANDER_OBS; i++)
        obs[i] = (float)o[i];
}

// The end of a step that lunar_lander_start() began, and what is seen then.
SIM_BIG_FN SimStep lunar_lander_finish(LunarLanderWorld *l, float *obs) {
    SimStep out = lunar_lander_arrive(l);
    lunar_lander_see(&l->words, l->world.mass[0].center, obs);
    return out;
}

SIM_BIG_FN void lunar_lander_show(const void *state, float *obs) {
    LunarLanderWords words;
    Rigid2dPolygon shape;
    Rigid2dMass mass;
    __builtin_memcpy(&words, state, sizeof words);
    lunar_lander_hull(&shape, &mass);
    lunar_lander_see(&words, mass.center, obs);
}

#ifdef SIM_DRAWING
#include "sim/rigid2d/rigid2d_draw.h"

// A flame at a nozzle of the lander: both in its frame.
SIM_FN void lunar_lander_draw_flame(SimFrame *f, Rigid2dTransform t, Rigid2dVec nozzle, Rigid2dVec ahead) {
    Rigid2dVec across = rigid2d_scale(R(0.15), rigid2d_turn(rigid2d_unit(ahead)));
    Rigid2dVec a = rigid2d_apply(t, rigid2d_add(nozzle, across)), b = rigid2d_apply(t, rigid2d_sub(nozzle, across));
    Rigid2dVec tip = rigid2d_apply(t, rigid2d_add(nozzle, ahead));
    sim_frame_triangle(f, SIM_FORCE, a.x, a.y, b.x, b.y, tip.x, tip.y);
}

SIM_BIG_FN void lunar_lander_draw_world(const void *state, const LunarLanderThrust *thrust, SimFrame *f) {
    LunarLanderWorld l;
    __builtin_memcpy(&l.words, state, sizeof l.words);
    lunar_lander_shapes(&l);
    lunar_lander_ground(&l);
    sim_frame_view(f, R(0.0), R(0.0), LUNAR_LANDER_WIDTH_M, LUNAR_LANDER_HEIGHT_M);
    f->step_s = (float)(R(1.0) / LUNAR_LANDER_FPS);
    rigid2d_draw_ground(f, SIM_GROUND, l.edge + 1, LUNAR_LANDER_CHUNKS - 1, R(0.0));
    for (int32_t side = -1; side <= 1; side += 2) {
        const real x = R(0.5) * LUNAR_LANDER_WIDTH_M + R(2.0) * (real)side, y = LUNAR_LANDER_HELIPAD_M;
        sim_frame_line(f, SIM_TRACK, R(0.06), x, y, x, y + LUNAR_LANDER_PX(50.0));
        sim_frame_triangle(f, SIM_GOAL, x, y + LUNAR_LANDER_PX(50.0), x, y + LUNAR_LANDER_PX(40.0),
                           x + LUNAR_LANDER_PX(25.0), y + LUNAR_LANDER_PX(45.0));
    }
    Rigid2dTransform t = rigid2d_draw_transform(&l.words.body[0], &l.mass[0]);
    if (thrust->main != R(0.0)) {
        lunar_lander_draw_flame(f, t, rigid2d_vec(R(0.0), LUNAR_LANDER_PX(-10.0)),
                                rigid2d_vec(R(0.0), R(-1.2) * thrust->main));
    }
    if (thrust->side != R(0.0)) {
        lunar_lander_draw_flame(f, t, rigid2d_vec(-thrust->direction * LUNAR_LANDER_PX(15.0), LUNAR_LANDER_PX(12.0)),
                                rigid2d_vec(R(-0.7) * thrust->direction * thrust->side, R(0.0)));
    }
    for (int32_t i = LUNAR_LANDER_BODIES - 1; i >= 0; i--)
        rigid2d_draw_body(f, i == 0 ? SIM_BODY : SIM_PART, &l.words.body[i], &l.shape[i], &l.mass[i]);
}
#endif

#endif
