// The physics of BipedalWalker-v3, which sim/bipedal_walker.h and sim/bipedal_walker_hardcore.h share: those of
// Gymnasium's box2d/bipedal_walker.py. A hull on two legs, each with a motor at hip and knee, is to walk to the right
// end of the ground without falling on its hull. On sim/rigid2d, whose semantics are Box2D's.
//
// Source: Klimov, 2016, in OpenAI Gym, now Gymnasium. Its oddities are kept: an action sets the largest torque of a
// motor whose speed is full one way or the other, a leg counts as in the air when any of its contacts ends, a reset
// makes one step, lidar does not turn with the hull, and at rest bodies stop but wake at the next step. Clouds, which
// it only draws, are left out.
#ifndef SHOAL_SIM_BIPEDAL_WALKER_CORE_H
#define SHOAL_SIM_BIPEDAL_WALKER_CORE_H

#include "sim/bipedal_walker_terrain.h"
#include "sim/rigid2d/rigid2d.h"
#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define BIPEDAL_WALKER_OBS  24
#define BIPEDAL_WALKER_RAYS 10

// P(name, default, unit, help)
#define BIPEDAL_WALKER_PARAMS(P)                                                  \
    P(gravity_mps2, 10.0, "m/s^2", "gravity")                                     \
    P(ground_friction, 2.5, "1", "coefficient of friction of the ground")         \
    P(motor_torque_nm, 80.0, "N m", "largest torque of the motors")               \
    P(hip_speed_radps, 4.0, "rad/s", "speed that the hips' motors go for")        \
    P(knee_speed_radps, 6.0, "rad/s", "speed that the knees' motors go for")      \
    P(roughness, 1.0, "1", "of the ground, as a share of the original's")         \
    P(initial_force_n, 5.0, "N", "largest force, in x, on the hull at the start") \
    P(torque_cost_per_nm, 0.00035, "1/(N m)", "cost of a motor's torque in a step")

#define BIPEDAL_WALKER_BODIES   5 // the hull, then of each leg the upper and the lower part
#define BIPEDAL_WALKER_JOINTS   4 // hip and knee of each leg
#define BIPEDAL_WALKER_CONTACTS 48

#define BIPEDAL_WALKER_CONTACTS_8(F, p) \
    RIGID2D_CONTACT(F, p##0_)           \
    RIGID2D_CONTACT(F, p##1_)           \
    RIGID2D_CONTACT(F, p##2_)           \
    RIGID2D_CONTACT(F, p##3_)           \
    RIGID2D_CONTACT(F, p##4_) RIGID2D_CONTACT(F, p##5_) RIGID2D_CONTACT(F, p##6_) RIGID2D_CONTACT(F, p##7_)
// clang-format off
#define BIPEDAL_WALKER_TERRAIN_10(F, p)                                             \
    F(real, p##0_m) F(real, p##1_m) F(real, p##2_m) F(real, p##3_m) F(real, p##4_m) \
    F(real, p##5_m) F(real, p##6_m) F(real, p##7_m) F(real, p##8_m) F(real, p##9_m)
#define BIPEDAL_WALKER_TERRAIN_50(F, a, b, c, d, e)                         \
    BIPEDAL_WALKER_TERRAIN_10(F, a) BIPEDAL_WALKER_TERRAIN_10(F, b)         \
    BIPEDAL_WALKER_TERRAIN_10(F, c) BIPEDAL_WALKER_TERRAIN_10(F, d)         \
    BIPEDAL_WALKER_TERRAIN_10(F, e)
#define BIPEDAL_WALKER_BLOCKS_10(F, p)                                                                                  \
    BIPEDAL_WALKER_BLOCK(F, p##0_) BIPEDAL_WALKER_BLOCK(F, p##1_) BIPEDAL_WALKER_BLOCK(F, p##2_)                        \
    BIPEDAL_WALKER_BLOCK(F, p##3_) BIPEDAL_WALKER_BLOCK(F, p##4_) BIPEDAL_WALKER_BLOCK(F, p##5_)                        \
    BIPEDAL_WALKER_BLOCK(F, p##6_) BIPEDAL_WALKER_BLOCK(F, p##7_) BIPEDAL_WALKER_BLOCK(F, p##8_)                        \
    BIPEDAL_WALKER_BLOCK(F, p##9_)

// F(type, name). contact_overflow: 0, or NaN, which ends the run, when a contact had no room.
#define BIPEDAL_WALKER_STATE(F)                                                                    \
    RIGID2D_BODY(F, hull_)                                                                         \
    RIGID2D_BODY(F, upper0_) RIGID2D_BODY(F, lower0_)                                              \
    RIGID2D_BODY(F, upper1_) RIGID2D_BODY(F, lower1_)                                              \
    RIGID2D_JOINT(F, hip0_) RIGID2D_JOINT(F, knee0_)                                               \
    RIGID2D_JOINT(F, hip1_) RIGID2D_JOINT(F, knee1_)                                               \
    BIPEDAL_WALKER_CONTACTS_8(F, contact0) BIPEDAL_WALKER_CONTACTS_8(F, contact1)                  \
    BIPEDAL_WALKER_CONTACTS_8(F, contact2) BIPEDAL_WALKER_CONTACTS_8(F, contact3)                  \
    BIPEDAL_WALKER_CONTACTS_8(F, contact4) BIPEDAL_WALKER_CONTACTS_8(F, contact5)                  \
    BIPEDAL_WALKER_TERRAIN_50(F, terrain0, terrain1, terrain2, terrain3, terrain4)                 \
    BIPEDAL_WALKER_TERRAIN_50(F, terrain5, terrain6, terrain7, terrain8, terrain9)                 \
    BIPEDAL_WALKER_TERRAIN_50(F, terrain10, terrain11, terrain12, terrain13, terrain14)            \
    BIPEDAL_WALKER_TERRAIN_50(F, terrain15, terrain16, terrain17, terrain18, terrain19)            \
    F(int32_t, contacts)                                                                           \
    F(real, contact_overflow)

// Those of the hardcore simulator begin with the same.
#define BIPEDAL_WALKER_HARDCORE_STATE(F)                                            \
    BIPEDAL_WALKER_STATE(F)                                                         \
    BIPEDAL_WALKER_BLOCKS_10(F, block0) BIPEDAL_WALKER_BLOCKS_10(F, block1)         \
    BIPEDAL_WALKER_BLOCKS_10(F, block2) BIPEDAL_WALKER_BLOCKS_10(F, block3)         \
    F(int32_t, blocks)
// clang-format on

SIM_DECLARE(BipedalWalker, BIPEDAL_WALKER)

// The same words as arrays; block and blocks are the hardcore simulator's alone.
typedef struct BipedalWalkerWords {
    Rigid2dBody body[BIPEDAL_WALKER_BODIES];
    Rigid2dJoint joint[BIPEDAL_WALKER_JOINTS];
    Rigid2dContact contact[BIPEDAL_WALKER_CONTACTS];
    real terrain_m[BIPEDAL_WALKER_POINTS];
    int32_t contacts;
    real contact_overflow;
    BipedalWalkerBlock block[BIPEDAL_WALKER_BLOCKS];
    int32_t blocks;
} BipedalWalkerWords;

// A state as a world, for the length of a step.
typedef struct BipedalWalkerWorld {
    BipedalWalkerWords words;
    Rigid2dWorld world;
    Rigid2dPolygon shape[BIPEDAL_WALKER_BODIES];
    Rigid2dMass mass[BIPEDAL_WALKER_BODIES];
    Rigid2dHinge hinge[BIPEDAL_WALKER_JOINTS];
    Rigid2dBox block[BIPEDAL_WALKER_BLOCKS];
    Rigid2dMotion motion[BIPEDAL_WALKER_BODIES];
    Rigid2dVelocity velocity[BIPEDAL_WALKER_BODIES];
    Rigid2dTouch touch[BIPEDAL_WALKER_CONTACTS];
    Rigid2dContactRow contact_row[BIPEDAL_WALKER_CONTACTS];
    Rigid2dJointRow joint_row[BIPEDAL_WALKER_JOINTS];
    real ground_alpha0[BIPEDAL_WALKER_BLOCKS + BIPEDAL_WALKER_POINTS - 1];
    // What the reward is made of: the hull before the step, and what each motor costs.
    real before_m, lean_rad, cost[BIPEDAL_WALKER_JOINTS];
} BipedalWalkerWorld;

// Lengths in the original are pixels, 30 a metre.
#define BIPEDAL_WALKER_PX(n)      (R(n) / R(30.0))
#define BIPEDAL_WALKER_FPS        R(50.0)
#define BIPEDAL_WALKER_LEG_M      BIPEDAL_WALKER_PX(34.0)
#define BIPEDAL_WALKER_LIDAR_M    BIPEDAL_WALKER_PX(160.0)
#define BIPEDAL_WALKER_START_X_M  R(4.666666666666667)
#define BIPEDAL_WALKER_FINISH_X_M R(88.66666666666667)
#define BIPEDAL_WALKER_HIP_RADPS  R(4.0) // what observed speeds are shares of
#define BIPEDAL_WALKER_KNEE_RADPS R(6.0)

SIM_FN void bipedal_walker_hull(Rigid2dPolygon *p, Rigid2dMass *mass) {
    const Rigid2dVec hull[5] = {{BIPEDAL_WALKER_PX(-30.0), BIPEDAL_WALKER_PX(9.0)},
                                {BIPEDAL_WALKER_PX(6.0), BIPEDAL_WALKER_PX(9.0)},
                                {BIPEDAL_WALKER_PX(34.0), BIPEDAL_WALKER_PX(1.0)},
                                {BIPEDAL_WALKER_PX(34.0), BIPEDAL_WALKER_PX(-8.0)},
                                {BIPEDAL_WALKER_PX(-30.0), BIPEDAL_WALKER_PX(-8.0)}};
    rigid2d_polygon_set(p, hull, 5);
    p->friction = R(0.1);
    *mass = rigid2d_polygon_mass(p, R(5.0));
}

SIM_BIG_FN void bipedal_walker_shapes(BipedalWalkerWorld *b) {
    bipedal_walker_hull(&b->shape[0], &b->mass[0]);
    for (int32_t i = 1; i < BIPEDAL_WALKER_BODIES; i++) {
        rigid2d_polygon_set_box(&b->shape[i], i & 1 ? BIPEDAL_WALKER_PX(4.0) : BIPEDAL_WALKER_PX(3.2),
                                BIPEDAL_WALKER_PX(17.0));
        b->shape[i].friction = R(0.2);
        b->mass[i] = rigid2d_polygon_mass(&b->shape[i], R(1.0));
    }
}

// -1, 0 or 1; a NaN goes through, so that it is found.
SIM_FN real bipedal_walker_sign(real x) { return x > R(0.0) ? R(1.0) : x < R(0.0) ? R(-1.0) : x; }

SIM_FN void bipedal_walker_hinges(BipedalWalkerWorld *b, const BipedalWalkerParams *p, const real *action) {
    for (int32_t i = 0; i < BIPEDAL_WALKER_JOINTS; i++) {
        Rigid2dHinge *h = &b->hinge[i];
        int32_t is_hip = (i & 1) == 0;
        h->a = is_hip ? 0 : i, h->b = i + 1;
        h->anchor_a = rigid2d_vec(R(0.0), is_hip ? BIPEDAL_WALKER_PX(-8.0) : BIPEDAL_WALKER_PX(-17.0));
        h->anchor_b = rigid2d_vec(R(0.0), BIPEDAL_WALKER_PX(17.0));
        h->reference_rad = !is_hip ? R(0.0) : i == 0 ? R(-0.05) : R(0.05); // as they are created
        h->lower_rad = is_hip ? R(-0.8) : R(-1.6), h->upper_rad = is_hip ? R(1.1) : R(-0.1);
        h->motor_radps = (is_hip ? p->hip_speed_radps : p->knee_speed_radps) * bipedal_walker_sign(action[i]);
        h->max_torque_nm = p->motor_torque_nm * sim_clamp(sim_fabs(action[i]), R(0.0), R(1.0));
        b->cost[i] = p->torque_cost_per_nm * p->motor_torque_nm * sim_clamp(sim_fabs(action[i]), R(0.0), R(1.0));
    }
}

// What of the world the lidar sees.
SIM_FN void bipedal_walker_ground(const BipedalWalkerWords *words, Rigid2dWorld *w, Rigid2dBox *block) {
    for (int32_t i = 0; i < words->blocks; i++) {
        const int32_t place = words->block[i].place;
        const int32_t point = place & 255, width = place >> 8 & 255, height = place >> 16 & 255;
        block[i].low = rigid2d_vec((real)(14 * point) / R(30.0), words->block[i].low_m);
        block[i].high = rigid2d_vec((real)(14 * (point + width)) / R(30.0),
                                    words->block[i].low_m + (real)height * BIPEDAL_WALKER_STEP_M);
    }
    w->block = block, w->blocks = words->blocks;
    w->edge = 0, w->edges = BIPEDAL_WALKER_POINTS - 1;
    w->chain_y_m = words->terrain_m, w->chain_m = R(14.0), w->chain_points = R(30.0);
    w->one_ground = 0;
}

// Everything of the world that does not depend on where things are. shapes: whose shapes and masses are there.
SIM_BIG_FN void bipedal_walker_world(BipedalWalkerWorld *b, const BipedalWalkerWorld *shapes,
                                     const BipedalWalkerParams *p, const real *action) {
    Rigid2dWorld *w = &b->world;
    bipedal_walker_hinges(b, p, action);
    bipedal_walker_ground(&b->words, w, b->block);
    w->friction = p->ground_friction;
    w->body = b->words.body, w->joint = b->words.joint, w->contact = b->words.contact;
    w->bodies = BIPEDAL_WALKER_BODIES, w->joints = BIPEDAL_WALKER_JOINTS;
    w->contacts = b->words.contacts, w->contacts_max = BIPEDAL_WALKER_CONTACTS, w->overflow = 0;
    w->shape = shapes->shape, w->mass = shapes->mass, w->hinge = b->hinge;
    w->gravity_mps2 = rigid2d_vec(R(0.0), -p->gravity_mps2);
    w->dt_s = R(1.0) / BIPEDAL_WALKER_FPS;
    w->velocity_iterations = 180, w->position_iterations = 60;
    w->motion = b->motion, w->velocity = b->velocity, w->touch = b->touch;
    w->contact_row = b->contact_row, w->joint_row = b->joint_row;
    w->contact_rows = w->joint_rows = 0;
    w->ground_alpha0 = b->ground_alpha0;
}

// A step of a world that bipedal_walker_world() has prepared, up to the solver's iterations. start: a force on the
// hull.
SIM_FN void bipedal_walker_set_off(BipedalWalkerWorld *b, Rigid2dVec start) {
    rigid2d_begin(&b->world);
    b->motion[0].force_n = start;
    for (int32_t i = 0; i < BIPEDAL_WALKER_BODIES; i++)
        rigid2d_body_wake(&b->words.body[i]); // a motor's setting does that
    b->before_m = b->motion[0].t.p.x, b->lean_rad = sim_fabs(b->words.body[0].angle_rad);
    rigid2d_step_begin(&b->world);
}

// What follows them. The reward is for the way forwards and costs lean and torque; the original remembers its
// potential, which is a function of the state.
SIM_FN SimStep bipedal_walker_arrive(BipedalWalkerWorld *b) {
    const Rigid2dBody *hull = &b->words.body[0];
    rigid2d_step_end(&b->world);
    b->words.contacts = b->world.contacts;
    if (b->world.overflow) b->words.contact_overflow = (real)SIM_NANF;

    const real x_m = b->motion[0].t.p.x;
    SimStep out;
    out.reward = R(130.0) / R(30.0) * (x_m - b->before_m) - R(5.0) * (sim_fabs(hull->angle_rad) - b->lean_rad);
    for (int32_t i = 0; i < BIPEDAL_WALKER_JOINTS; i++)
        out.reward -= b->cost[i];
    int32_t fallen = (hull->touch != 0) | (x_m < R(0.0));
    out.terminated = fallen | (x_m > BIPEDAL_WALKER_FINISH_X_M);
    // A NaN stays.
    if (fallen && out.reward == out.reward) out.reward = R(-100.0);
    return out;
}

SIM_BIG_FN SimStep bipedal_walker_advance(BipedalWalkerWorld *b, Rigid2dVec start) {
    bipedal_walker_set_off(b, start);
    rigid2d_island_iterate(&b->world);
    return bipedal_walker_arrive(b);
}

// Bodies above the ground, at rest, and nothing remembered. The terrain has to be there.
SIM_FN void bipedal_walker_place(BipedalWalkerWorld *b, const BipedalWalkerParams *p, const real *action) {
    b->words.contacts = 0;
    bipedal_walker_shapes(b);
    bipedal_walker_world(b, b, p, action);
    const real x = BIPEDAL_WALKER_START_X_M, y = BIPEDAL_WALKER_HEIGHT_M + R(2.0) * BIPEDAL_WALKER_LEG_M;
    rigid2d_body_create(&b->world, 0, rigid2d_vec(x, y), R(0.0));
    for (int32_t i = 1; i < BIPEDAL_WALKER_BODIES; i++) {
        real down = (i & 1 ? R(0.5) : R(1.5)) * BIPEDAL_WALKER_LEG_M - BIPEDAL_WALKER_PX(8.0);
        rigid2d_body_create(&b->world, i, rigid2d_vec(x, y - down), i < 3 ? R(-0.05) : R(0.05));
    }
    rigid2d_find_contacts(&b->world);
}

// The functions below take the state of either simulator.

SIM_FN void bipedal_walker_load(BipedalWalkerWords *words, const void *state, int32_t is_hardcore) {
    words->blocks = 0;
    if (is_hardcore) {
        __builtin_memcpy(words, state, sizeof *words);
    } else {
        __builtin_memcpy(words, state, sizeof(BipedalWalkerState));
    }
}

SIM_FN void bipedal_walker_store(const BipedalWalkerWords *words, void *state, int32_t is_hardcore) {
    if (is_hardcore) {
        __builtin_memcpy(state, words, sizeof *words);
    } else {
        __builtin_memcpy(state, words, sizeof(BipedalWalkerState));
    }
}

SIM_BIG_FN void bipedal_walker_begin(void *state, const BipedalWalkerParams *p, SimRng *rng, int32_t is_hardcore) {
    BipedalWalkerWorld b;
    const real still[BIPEDAL_WALKER_JOINTS] = {R(0.0), R(0.0), R(0.0), R(0.0)};
    __builtin_memset(&b.words, 0, sizeof b.words);
    BipedalWalkerGround ground = {b.words.terrain_m, b.words.block, 0};
    bipedal_walker_build(&ground, rng, p->roughness, is_hardcore);
    b.words.blocks = ground.blocks;
    bipedal_walker_place(&b, p, still);
    real force = p->initial_force_n * sim_lerp(sim_rng_uniform4(rng).x0, R(-1.0), R(1.0));
    (void)bipedal_walker_advance(&b, rigid2d_vec(force, R(0.0)));
    bipedal_walker_store(&b.words, state, is_hardcore);
}

// States come from files as well: contacts and blocks that cannot be are dropped, which is an error as an overflow is.
// Contacts that do not exist become 0, whatever was there.
SIM_FN void bipedal_walker_check(BipedalWalkerWords *words) {
    int32_t blocks = words->blocks >= 0 && words->blocks <= BIPEDAL_WALKER_BLOCKS;
    int32_t shapes = BIPEDAL_WALKER_POINTS - 1 + (blocks ? words->blocks : 0);
    int32_t good = blocks && words->contacts >= 0 && words->contacts <= BIPEDAL_WALKER_CONTACTS;
    for (int32_t i = 0; good && i < words->contacts; i++)
        good = words->contact[i].pair >= 0 && words->contact[i].pair < shapes * BIPEDAL_WALKER_BODIES;
    if (!good) words->contacts = 0, words->contact_overflow = (real)SIM_NANF;
    if (!blocks) words->blocks = 0;
    rigid2d_contacts_clear(words->contact, words->contacts, BIPEDAL_WALKER_CONTACTS);
}

// A step of the state in b->words, up to the solver's iterations. shapes: a world that has begun a step, whose shapes
// are used; NULL: there is none.
SIM_BIG_FN void bipedal_walker_start(BipedalWalkerWorld *b, const BipedalWalkerWorld *shapes,
                                     const BipedalWalkerParams *p, const float *continuous) {
    real action[BIPEDAL_WALKER_JOINTS];
    for (int32_t i = 0; i < BIPEDAL_WALKER_JOINTS; i++)
        action[i] = (real)continuous[i];
    bipedal_walker_check(&b->words);
    if (!shapes) bipedal_walker_shapes(b);
    bipedal_walker_world(b, shapes ? shapes : b, p, action);
    bipedal_walker_set_off(b, rigid2d_vec(R(0.0), R(0.0)));
}

SIM_BIG_FN SimStep bipedal_walker_go(void *state, const BipedalWalkerParams *p, const float *continuous,
                                     int32_t is_hardcore) {
    BipedalWalkerWorld b;
    bipedal_walker_load(&b.words, state, is_hardcore);
    bipedal_walker_start(&b, 0, p, continuous);
    rigid2d_island_iterate(&b.world);
    SimStep out = bipedal_walker_arrive(&b);
    bipedal_walker_store(&b.words, state, is_hardcore);
    return out;
}

// The end of lidar's ray `i`, whose direction the compiler works out where `i` is a constant.
SIM_FN Rigid2dVec bipedal_walker_ray(Rigid2dVec from, int32_t i) {
    SimSinCos t = sim_sincos(R(0.15) * (real)i);
    return rigid2d_vec(from.x + t.sin * BIPEDAL_WALKER_LIDAR_M, from.y - t.cos * BIPEDAL_WALKER_LIDAR_M);
}

// Ten rays from the hull, from straight down to almost ahead: the share of their length that is free.
SIM_FN void bipedal_walker_lidar(const Rigid2dWorld *ground, Rigid2dVec from, real *fraction) {
    const Rigid2dVec to[BIPEDAL_WALKER_RAYS] = {bipedal_walker_ray(from, 0), bipedal_walker_ray(from, 1),
                                                bipedal_walker_ray(from, 2), bipedal_walker_ray(from, 3),
                                                bipedal_walker_ray(from, 4), bipedal_walker_ray(from, 5),
                                                bipedal_walker_ray(from, 6), bipedal_walker_ray(from, 7),
                                                bipedal_walker_ray(from, 8), bipedal_walker_ray(from, 9)};
    rigid2d_ground_rays(ground, from, to, BIPEDAL_WALKER_RAYS, fraction);
}

// at: where the hull's frame has its origin.
SIM_BIG_FN void bipedal_walker_look(const BipedalWalkerWords *words, const Rigid2dWorld *ground, Rigid2dVec at,
                                    float *obs) {
    const Rigid2dBody *hull = &words->body[0];
    real o[BIPEDAL_WALKER_OBS];
    o[0] = hull->angle_rad;
    o[1] = R(2.0) * hull->spin_radps / BIPEDAL_WALKER_FPS;
    o[2] = R(0.3) * hull->vx_mps * R(20.0) / BIPEDAL_WALKER_FPS;
    o[3] = R(0.3) * hull->vy_mps * R(13.333333333333334) / BIPEDAL_WALKER_FPS;
    for (int32_t leg = 0; leg < 2; leg++) {
        const Rigid2dBody *upper = &words->body[1 + 2 * leg], *lower = &words->body[2 + 2 * leg];
        real *of = &o[4 + 5 * leg];
        of[0] = upper->angle_rad - hull->angle_rad - (leg == 0 ? R(-0.05) : R(0.05));
        of[1] = (upper->spin_radps - hull->spin_radps) / BIPEDAL_WALKER_HIP_RADPS;
        of[2] = lower->angle_rad - upper->angle_rad + R(1.0);
        of[3] = (lower->spin_radps - upper->spin_radps) / BIPEDAL_WALKER_KNEE_RADPS;
        of[4] = lower->touch & RIGID2D_IN_CONTACT ? R(1.0) : R(0.0);
    }
    bipedal_walker_lidar(ground, at, &o[14]);
    for (int32_t i = 0; i < BIPEDAL_WALKER_OBS; i++)
        obs[i] = (float)o[i];
}

// The end of a step that bipedal_walker_start() began, and what is seen then.
SIM_BIG_FN SimStep bipedal_walker_finish(BipedalWalkerWorld *b, float *obs) {
    SimStep out = bipedal_walker_arrive(b);
    bipedal_walker_look(&b->words, &b->world, b->motion[0].t.p, obs);
    return out;
}

SIM_BIG_FN void bipedal_walker_show(const void *state, float *obs, int32_t is_hardcore) {
    BipedalWalkerWords words;
    Rigid2dWorld ground;
    Rigid2dBox block[BIPEDAL_WALKER_BLOCKS];
    Rigid2dPolygon shape;
    Rigid2dMass mass;
    bipedal_walker_load(&words, state, is_hardcore);
    bipedal_walker_check(&words);
    bipedal_walker_ground(&words, &ground, block);
    ground.friction = R(0.0); // rays slide on nothing
    bipedal_walker_hull(&shape, &mass);
    const Rigid2dBody *b = &words.body[0];
    Rigid2dVec at = rigid2d_transform(rigid2d_body_position(b), b->angle_rad, mass.center).p;
    bipedal_walker_look(&words, &ground, at, obs);
}

#ifdef SIM_DRAWING
#include "sim/rigid2d/rigid2d_draw.h"

#define BIPEDAL_WALKER_VIEW_WIDTH_M  BIPEDAL_WALKER_PX(600.0)
#define BIPEDAL_WALKER_VIEW_HEIGHT_M BIPEDAL_WALKER_PX(400.0)

// The view goes along with the hull, which is at a fifth of its width.
SIM_BIG_FN void bipedal_walker_draw_world(const void *state, SimFrame *f, int32_t is_hardcore) {
    BipedalWalkerWorld b;
    bipedal_walker_load(&b.words, state, is_hardcore);
    bipedal_walker_check(&b.words);
    bipedal_walker_shapes(&b);
    bipedal_walker_ground(&b.words, &b.world, b.block);
    const real left = b.words.body[0].x_m - BIPEDAL_WALKER_VIEW_WIDTH_M / R(5.0);
    sim_frame_view(f, left, R(0.0), left + BIPEDAL_WALKER_VIEW_WIDTH_M, BIPEDAL_WALKER_VIEW_HEIGHT_M);
    f->step_s = (float)(R(1.0) / BIPEDAL_WALKER_FPS);
    rigid2d_draw_chain(f, SIM_GROUND, &b.world, R(0.0));
    for (int32_t i = 0; i < b.world.blocks; i++)
        rigid2d_draw_box(f, SIM_GROUND, b.block[i]);
    const real x = BIPEDAL_WALKER_FINISH_X_M, y = BIPEDAL_WALKER_HEIGHT_M;
    sim_frame_line(f, SIM_GOAL, R(0.06), x, y, x, y + BIPEDAL_WALKER_PX(50.0));
    for (int32_t i = BIPEDAL_WALKER_BODIES - 1; i >= 0; i--)
        rigid2d_draw_body(f, i == 0 ? SIM_BODY : SIM_PART, &b.words.body[i], &b.shape[i], &b.mass[i]);
}
#endif

#endif
