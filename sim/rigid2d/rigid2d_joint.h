// Hinges in the solver: motor, limit and point constraint, by sequential impulses.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_JOINT_H
#define SHOAL_SIM_RIGID2D_RIGID2D_JOINT_H

#include "sim/rigid2d/rigid2d_world.h"

#define RIGID2D_MAX_CORRECTION_RAD R(0.13962634015955556) // 8 degrees

SIM_FN real rigid2d_joint_angle(const Rigid2dWorld *w, const Rigid2dHinge *h) {
    return w->body[h->b].angle_rad - w->body[h->a].angle_rad - h->reference_rad;
}

// 1 over a determinant; 0 where the matrix is singular.
SIM_FN real rigid2d_inverse(real det) { return det != R(0.0) ? R(1.0) / det : R(0.0); }

// At which of its limits the joint is. An impulse of the step before counts only while it stays there.
SIM_FN void rigid2d_joint_find_limit(const Rigid2dWorld *w, const Rigid2dHinge *h, Rigid2dJointRow *row) {
    real angle = rigid2d_joint_angle(w, h);
    row->free = 0;
    row->side = R(0.0);
    if (sim_fabs(h->upper_rad - h->lower_rad) < R(2.0) * RIGID2D_ANGULAR_SLOP) {
        row->motor_mass = R(0.0); // the limits hold it, and no motor is needed
        return;
    }
    if (angle <= h->lower_rad) {
        row->side = R(1.0);
    } else if (angle >= h->upper_rad) {
        row->side = R(-1.0);
    } else {
        row->free = 1;
    }
    if (!(row->side * row->limit > R(0.0))) row->limit = R(0.0);
}

// Adds an impulse p at the joint and an angular one to b, and their opposites to a.
SIM_FN void rigid2d_joint_apply(const Rigid2dJointRow *row, Rigid2dVelocity *a, Rigid2dVelocity *b, Rigid2dVec p,
                                real angular) {
    a->x -= row->ma * p.x, a->y -= row->ma * p.y;
    a->w -= row->ia * (row->ax * p.y - row->ay * p.x + angular);
    b->x += row->mb * p.x, b->y += row->mb * p.y;
    b->w += row->ib * (row->bx * p.y - row->by * p.x + angular);
}

// Inverses of the joint's matrices, from masses and arms.
SIM_FN void rigid2d_joint_invert(Rigid2dJointRow *row) {
    real k11 = row->ma + row->mb + row->ay * row->ay * row->ia + row->by * row->by * row->ib;
    real k12 = -row->ay * row->ax * row->ia - row->by * row->bx * row->ib;
    real k22 = row->ma + row->mb + row->ax * row->ax * row->ia + row->bx * row->bx * row->ib;
    real k13 = -row->ay * row->ia - row->by * row->ib, k23 = row->ax * row->ia + row->bx * row->ib;
    real k33 = row->ia + row->ib;
    row->k13 = k13, row->k23 = k23;
    real c1 = k22 * k33 - k23 * k23, c2 = k23 * k13 - k12 * k33, c3 = k12 * k23 - k22 * k13;
    real det = rigid2d_inverse(k11 * c1 + k12 * c2 + k13 * c3);
    row->i11 = det * c1, row->i12 = det * c2, row->i13 = det * c3;
    row->i22 = det * (k11 * k33 - k13 * k13), row->i23 = det * (k13 * k12 - k11 * k23);
    row->i33 = det * (k11 * k22 - k12 * k12);
    det = rigid2d_inverse(k11 * k22 - k12 * k12);
    row->j11 = det * k22, row->j12 = -det * k12, row->j22 = det * k11;
    row->motor_mass = k33 > R(0.0) ? R(1.0) / k33 : R(0.0);
}

// Everything that stays the same over the iterations, and the impulses of the step before, which are applied.
SIM_BIG_FN void rigid2d_joint_begin(Rigid2dWorld *w, Rigid2dJointRow *row, int32_t joint) {
    const Rigid2dHinge *h = &w->hinge[joint];
    const Rigid2dJoint *j = &w->joint[joint];
    const Rigid2dMass *a = &w->mass[h->a], *b = &w->mass[h->b];
    Rigid2dVec ra = rigid2d_rotate(w->motion[h->a].t.q, rigid2d_sub(h->anchor_a, a->center));
    Rigid2dVec rb = rigid2d_rotate(w->motion[h->b].t.q, rigid2d_sub(h->anchor_b, b->center));
    row->joint = joint, row->a = h->a, row->b = h->b;
    row->ma = a->inverse_mass, row->mb = b->inverse_mass, row->ia = a->inverse_inertia, row->ib = b->inverse_inertia;
    row->ax = ra.x, row->ay = ra.y, row->bx = rb.x, row->by = rb.y;
    rigid2d_joint_invert(row);
    row->motor_radps = h->motor_radps, row->motor_most = w->dt_s * h->max_torque_nm;
    row->x = j->x_ns, row->y = j->y_ns, row->limit = j->limit_nms, row->motor = j->motor_nms;
    if (row->motor_mass > R(0.0)) {
        rigid2d_joint_find_limit(w, h, row);
    } else { // nothing turns
        row->free = 1, row->side = row->motor = row->limit = R(0.0);
    }
    rigid2d_joint_apply(row, &w->velocity[h->a], &w->velocity[h->b], rigid2d_vec(row->x, row->y),
                        row->motor + row->limit);
}

// One iteration, without a branch. The limit pushes only away from itself: where its sum of impulses would change its
// sign, it is let go, and the point is held alone.
SIM_FN void rigid2d_joint_solve_velocity(Rigid2dJointRow *row, Rigid2dVelocity *a, Rigid2dVelocity *b) {
    real motor =
        sim_clamp(row->motor - row->motor_mass * (b->w - a->w - row->motor_radps), -row->motor_most, row->motor_most);
    real turn = motor - row->motor;
    row->motor = motor;
    a->w -= row->ia * turn;
    b->w += row->ib * turn;

    real vx = b->x - b->w * row->by - a->x + a->w * row->ay; // of b's side of the joint relative to a's
    real vy = b->y + b->w * row->bx - a->y - a->w * row->ax;
    real vw = b->w - a->w;
    real px = -(row->i11 * vx + row->i12 * vy + row->i13 * vw);
    real py = -(row->i12 * vx + row->i22 * vy + row->i23 * vw);
    real pw = -(row->i13 * vx + row->i23 * vy + row->i33 * vw);
    real limit = row->limit + pw;
    int32_t alone = row->free | (row->side * limit < R(0.0));
    real rx = row->limit * row->k13 - vx, ry = row->limit * row->k23 - vy;
    px = sim_select(alone, row->j11 * rx + row->j12 * ry, px);
    py = sim_select(alone, row->j12 * rx + row->j22 * ry, py);
    pw = sim_select(alone, -row->limit, pw);
    row->limit = sim_select(alone, R(0.0), limit);
    row->x += px, row->y += py;
    rigid2d_joint_apply(row, a, b, rigid2d_vec(px, py), pw);
}

SIM_FN void rigid2d_joint_store(Rigid2dWorld *w, const Rigid2dJointRow *row) {
    Rigid2dJoint *j = &w->joint[row->joint];
    j->x_ns = row->x, j->y_ns = row->y, j->limit_nms = row->limit, j->motor_nms = row->motor;
}

// Turns what is beyond the limit back, but for some slop. Returns how far it was beyond.
SIM_FN real rigid2d_joint_solve_angle(Rigid2dWorld *w, const Rigid2dJointRow *row) {
    const Rigid2dHinge *h = &w->hinge[row->joint];
    if (row->free) return R(0.0);
    real angle = rigid2d_joint_angle(w, h), most = RIGID2D_MAX_CORRECTION_RAD, error, c;
    if (row->side > R(0.0)) {
        error = h->lower_rad - angle;
        c = sim_clamp(angle - h->lower_rad + RIGID2D_ANGULAR_SLOP, -most, R(0.0));
    } else if (row->side < R(0.0)) {
        error = angle - h->upper_rad;
        c = sim_clamp(error - RIGID2D_ANGULAR_SLOP, R(0.0), most);
    } else {
        c = sim_clamp(angle - h->lower_rad, -most, most);
        error = sim_fabs(c);
    }
    real impulse = -c / (row->ia + row->ib);
    w->body[h->a].angle_rad -= row->ia * impulse;
    w->body[h->b].angle_rad += row->ib * impulse;
    return error;
}

// Moves the bodies so that the joint holds. Returns 1 if it was good enough before.
SIM_BIG_FN int32_t rigid2d_joint_solve_position(Rigid2dWorld *w, const Rigid2dJointRow *row) {
    const Rigid2dHinge *h = &w->hinge[row->joint];
    Rigid2dBody *a = &w->body[h->a], *b = &w->body[h->b];
    real angle_error = rigid2d_joint_solve_angle(w, row);
    Rigid2dVec ra = rigid2d_rotate(rigid2d_rot(a->angle_rad), rigid2d_sub(h->anchor_a, w->mass[h->a].center));
    Rigid2dVec rb = rigid2d_rotate(rigid2d_rot(b->angle_rad), rigid2d_sub(h->anchor_b, w->mass[h->b].center));
    Rigid2dVec ca = rigid2d_body_position(a), cb = rigid2d_body_position(b);
    Rigid2dVec c = rigid2d_sub(rigid2d_sub(rigid2d_add(cb, rb), ca), ra);
    Rigid2dJointRow now = *row;
    now.ax = ra.x, now.ay = ra.y, now.bx = rb.x, now.by = rb.y;
    rigid2d_joint_invert(&now);
    Rigid2dVec p = rigid2d_vec(-(now.j11 * c.x + now.j12 * c.y), -(now.j12 * c.x + now.j22 * c.y));
    rigid2d_body_place(a, rigid2d_sub(ca, rigid2d_scale(row->ma, p)), a->angle_rad - row->ia * rigid2d_cross(ra, p));
    rigid2d_body_place(b, rigid2d_add(cb, rigid2d_scale(row->mb, p)), b->angle_rad + row->ib * rigid2d_cross(rb, p));
    return (rigid2d_length(c) <= RIGID2D_LINEAR_SLOP) & (angle_error <= RIGID2D_ANGULAR_SLOP);
}

#endif
