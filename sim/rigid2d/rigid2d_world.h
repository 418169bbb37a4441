// What a world of rigid bodies in the plane is made of: bodies of one polygon each, joints between them, and ground
// that they collide with. Bodies do not collide with each other, and nothing bounces.
//
// A simulator keeps bodies, joints and contacts in its state, as fields that RIGID2D_BODY(F, prefix) and its like list,
// and hands arrays of them to a Rigid2dWorld for the length of a step. Capacities are the simulator's.
//
// Semantics and constants: Box2D 2.3.0 (Catto, 2006 to 2013) as in box2d-py, which are those of Gymnasium's box2d
// environments. The order of contacts and joints, from which the sequential solver's results follow, is the original's
// as well: contacts by the age of the overlap of fattened bounding boxes.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_WORLD_H
#define SHOAL_SIM_RIGID2D_RIGID2D_WORLD_H

#include "sim/rigid2d/rigid2d_collide.h"
#include "sim/rigid2d/rigid2d_toi.h"

// RIGID2D_BODY(F, hull_): the fields hull_x_m, ... of one body. Position is that of the centre of mass; low and high
// are the fattened bounding box; touch is a sum of RIGID2D_IN_CONTACT, from when a contact begins to when one ends, and
// RIGID2D_HAS_TOUCHED, from the first contact on.
// clang-format off
#define RIGID2D_BODY(F, p)                                                            \
    F(real, p##x_m) F(real, p##y_m) F(real, p##angle_rad)                             \
    F(real, p##vx_mps) F(real, p##vy_mps) F(real, p##spin_radps)                      \
    F(real, p##still_s)                                                               \
    F(real, p##low_x_m) F(real, p##low_y_m) F(real, p##high_x_m) F(real, p##high_y_m) \
    F(int32_t, p##awake) F(int32_t, p##touch)
// clang-format on

enum { RIGID2D_IN_CONTACT = 1, RIGID2D_HAS_TOUCHED = 2 };

// Impulses of the step before, from which the solver starts. That of the limit is positive at the lower one.
#define RIGID2D_JOINT(F, p) F(real, p##x_ns) F(real, p##y_ns) F(real, p##limit_nms) F(real, p##motor_nms)

// A pair of the ground's shape and a body, numbered shape * bodies + body, whose boxes overlap; touching points have
// keys and impulses.
// clang-format off
#define RIGID2D_CONTACT(F, p)                                                                     \
    F(int32_t, p##pair) F(int32_t, p##points) F(int32_t, p##key0) F(int32_t, p##key1)             \
    F(real, p##normal0_ns) F(real, p##tangent0_ns) F(real, p##normal1_ns) F(real, p##tangent1_ns)
// clang-format on

typedef struct Rigid2dBody {
    RIGID2D_BODY(SIM_STATE_FIELD, )
} Rigid2dBody;

typedef struct Rigid2dJoint {
    RIGID2D_JOINT(SIM_STATE_FIELD, )
} Rigid2dJoint;

typedef struct Rigid2dContact {
    RIGID2D_CONTACT(SIM_STATE_FIELD, )
} Rigid2dContact;

// A hinge between bodies a and b with a motor and limits of its angle, which is b's minus a's and minus the reference.
typedef struct Rigid2dHinge {
    int32_t a, b;
    Rigid2dVec anchor_a, anchor_b; // in the bodies' frames
    real reference_rad, lower_rad, upper_rad;
    real motor_radps, max_torque_nm;
} Rigid2dHinge;

// A body within a step.
typedef struct Rigid2dMotion {
    Rigid2dTransform t;  // at the body's position
    Rigid2dTransform t0; // at position c0 and angle a0, which are those at fraction alpha0 of the step
    Rigid2dVec c0;
    real a0, alpha0;
    Rigid2dBox swept; // what the body can meet on its way from there
    Rigid2dVec force_n;
    real torque_nm;
    int32_t in_island;
} Rigid2dMotion;

// A contact within a step.
typedef struct Rigid2dTouch {
    int32_t shape, body; // its pair
    Rigid2dManifold manifold;
    real toi;
    int32_t toi_known, toi_count;
    int32_t enabled;
} Rigid2dTouch;

// What the solver changes of a body.
typedef struct Rigid2dVelocity {
    real x, y, w;
} Rigid2dVelocity;

// A contact in the solver: what stays the same over the iterations, and the sums of impulses. Of two points, the second
// may be absent: then what belongs to it is 0.
//   x, y         the normal, from the ground to the body
//   rx, ry       from the body's centre of mass to each point
//   nm, tm       inverses of what a unit impulse does to the point's normal and tangential velocity
//   k, m         what unit impulses at both points do to their normal velocities, and the inverse
//   n, t         normal and tangential impulses
// clang-format off
#define RIGID2D_CONTACT_ROW(F)                                                    \
    F(int32_t, contact) F(int32_t, body) F(int32_t, points)                       \
    F(real, mass) F(real, inertia) F(real, friction) F(real, x) F(real, y)        \
    F(real, rx0) F(real, ry0) F(real, rx1) F(real, ry1)                           \
    F(real, nm0) F(real, nm1) F(real, tm0) F(real, tm1)                           \
    F(real, k11) F(real, k12) F(real, k22) F(real, m11) F(real, m12) F(real, m22) \
    F(real, n0) F(real, n1) F(real, t0) F(real, t1)
// clang-format on

// A joint in the solver.
//   free         1: at no limit
//   side         of the limit: 1 lower, -1 upper, 0 both at once
//   k13, k23     what a unit angular impulse does to the velocity of the joint's point
//   i            the inverse of what unit impulses and a unit angular impulse do to the point's velocity and the spin
//   j            the inverse without the spin
//   motor_mass   0: no motor
// clang-format off
#define RIGID2D_JOINT_ROW(F)                                                                        \
    F(int32_t, joint) F(int32_t, a) F(int32_t, b) F(int32_t, free) F(real, side)                    \
    F(real, ma) F(real, mb) F(real, ia) F(real, ib) F(real, ax) F(real, ay) F(real, bx) F(real, by) \
    F(real, k13) F(real, k23)                                                                       \
    F(real, i11) F(real, i12) F(real, i13) F(real, i22) F(real, i23) F(real, i33)                   \
    F(real, j11) F(real, j12) F(real, j22)                                                          \
    F(real, motor_mass) F(real, motor_radps) F(real, motor_most)                                    \
    F(real, x) F(real, y) F(real, limit) F(real, motor)
// clang-format on

typedef struct Rigid2dContactRow {
    RIGID2D_CONTACT_ROW(SIM_STATE_FIELD)
} Rigid2dContactRow;

typedef struct Rigid2dJointRow {
    RIGID2D_JOINT_ROW(SIM_STATE_FIELD)
} Rigid2dJointRow;

typedef struct Rigid2dWorld {
    // The simulator's state.
    Rigid2dBody *body;       // [bodies] in the order of creation
    Rigid2dJoint *joint;     // [joints]
    Rigid2dContact *contact; // [contacts_max] the first `contacts` exist, oldest first; the others are 0
    int32_t bodies, joints, contacts, contacts_max;
    int32_t overflow; // set to 1 when a contact had no room
    // Constants.
    const Rigid2dPolygon *shape; // [bodies]
    const Rigid2dMass *mass;     // [bodies]
    const Rigid2dHinge *hinge;   // [joints]
    // The ground: first upright boxes, then edges, each in the order of creation. Edges are listed one by one, or they
    // are a chain over evenly spaced points from x = 0 on, chain_points of them in chain_m metres; `edge` is NULL then.
    const Rigid2dBox *block; // [blocks]
    const Rigid2dEdge *edge; // [edges]
    const real *chain_y_m;   // [edges + 1]
    real chain_m, chain_points;
    real friction; // of the boxes and of the chain
    int32_t blocks, edges;
    int32_t one_ground; // 1: all of the ground is one body; 0: each of its shapes is one
    Rigid2dVec gravity_mps2;
    real dt_s;
    int32_t velocity_iterations, position_iterations;
    // Scratch.
    Rigid2dMotion *motion;          // [bodies]
    Rigid2dVelocity *velocity;      // [bodies] while the solver works
    Rigid2dTouch *touch;            // [contacts_max]
    Rigid2dContactRow *contact_row; // [contacts_max] of the island that is solved
    Rigid2dJointRow *joint_row;     // [joints]
    real *ground_alpha0;            // [blocks + edges], [1] where one_ground
    int32_t contact_rows, joint_rows;
    int32_t has_island; // whose rows these are
} Rigid2dWorld;

SIM_FN Rigid2dVec rigid2d_body_position(const Rigid2dBody *b) { return rigid2d_vec(b->x_m, b->y_m); }

SIM_FN Rigid2dVec rigid2d_body_velocity(const Rigid2dBody *b) { return rigid2d_vec(b->vx_mps, b->vy_mps); }

SIM_FN void rigid2d_body_place(Rigid2dBody *b, Rigid2dVec c, real angle) {
    b->x_m = c.x, b->y_m = c.y, b->angle_rad = angle;
}

SIM_FN void rigid2d_body_wake(Rigid2dBody *b) {
    if (!b->awake) b->awake = 1, b->still_s = R(0.0);
}

// Makes contacts [begin, end) those that do not exist.
SIM_FN void rigid2d_contacts_clear(Rigid2dContact *contact, int32_t begin, int32_t end) {
    __builtin_memset(&contact[begin], 0, (uint32_t)(end - begin) * sizeof *contact);
}

SIM_FN int32_t rigid2d_contact_body(const Rigid2dWorld *w, int32_t contact) { return w->touch[contact].body; }

SIM_FN int32_t rigid2d_contact_shape(const Rigid2dWorld *w, int32_t contact) { return w->touch[contact].shape; }

// The transform belongs to position and angle; this follows them.
SIM_FN void rigid2d_body_follow(Rigid2dWorld *w, int32_t i) {
    w->motion[i].t = rigid2d_transform(rigid2d_body_position(&w->body[i]), w->body[i].angle_rad, w->mass[i].center);
}

// The body's way begins where it is. The transform has to follow already.
SIM_FN void rigid2d_body_depart(Rigid2dWorld *w, int32_t i) {
    Rigid2dMotion *motion = &w->motion[i];
    motion->c0 = rigid2d_body_position(&w->body[i]), motion->a0 = w->body[i].angle_rad, motion->t0 = motion->t;
}

// Adds an impulse (N s) at a point of the world; wakes the body.
SIM_FN void rigid2d_body_push(Rigid2dWorld *w, int32_t i, Rigid2dVec impulse, Rigid2dVec at) {
    Rigid2dBody *b = &w->body[i];
    rigid2d_body_wake(b);
    b->vx_mps += w->mass[i].inverse_mass * impulse.x;
    b->vy_mps += w->mass[i].inverse_mass * impulse.y;
    Rigid2dVec arm = rigid2d_sub(at, rigid2d_body_position(b));
    b->spin_radps += w->mass[i].inverse_inertia * rigid2d_cross(arm, impulse);
}

// Adds a force (N) at the centre of mass and a torque (N m) for the coming step; wakes the body.
SIM_FN void rigid2d_body_pull(Rigid2dWorld *w, int32_t i, Rigid2dVec force, real torque) {
    rigid2d_body_wake(&w->body[i]);
    w->motion[i].force_n = rigid2d_add(w->motion[i].force_n, force);
    w->motion[i].torque_nm += torque;
}

// A body that is at rest, with its frame's origin at `origin`.
SIM_FN void rigid2d_body_create(Rigid2dWorld *w, int32_t i, Rigid2dVec origin, real angle) {
    Rigid2dBody *b = &w->body[i];
    Rigid2dTransform t = {origin, rigid2d_rot(angle)};
    rigid2d_body_place(b, rigid2d_apply(t, w->mass[i].center), angle);
    b->vx_mps = b->vy_mps = b->spin_radps = b->still_s = R(0.0);
    b->awake = 1, b->touch = 0;
    Rigid2dBox box = rigid2d_box_grow(rigid2d_polygon_box(&w->shape[i], t), R(0.1));
    b->low_x_m = box.low.x, b->low_y_m = box.low.y, b->high_x_m = box.high.x, b->high_y_m = box.high.y;
}

#endif
