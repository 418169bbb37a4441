// Contacts in the solver: friction and non-penetration of one or two points, by sequential impulses, and the correction
// of positions. The ground's mass is infinite and it does not move.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_CONTACT_H
#define SHOAL_SIM_RIGID2D_RIGID2D_CONTACT_H

#include "sim/rigid2d/rigid2d_ground.h"

#define RIGID2D_MAX_CORRECTION_M R(0.2)

// The normal, from the ground to the body, and the points half-way between the two surfaces, with the body at t.
SIM_FN void rigid2d_manifold_place(const Rigid2dManifold *m, Rigid2dTransform t, Rigid2dVec *normal,
                                   Rigid2dVec point[2]) {
    Rigid2dVec n = m->face_b ? rigid2d_rotate(t.q, m->normal) : m->normal;
    Rigid2dVec through = m->face_b ? rigid2d_apply(t, m->through) : m->through;
    for (int32_t i = 0; i < m->count; i++) {
        Rigid2dVec p = m->face_b ? m->point[i].at : rigid2d_apply(t, m->point[i].at);
        real depth = RIGID2D_RADIUS - rigid2d_dot(rigid2d_sub(p, through), n);
        Rigid2dVec on_face = rigid2d_add(p, rigid2d_scale(depth, n));
        Rigid2dVec on_skin = rigid2d_sub(p, rigid2d_scale(RIGID2D_RADIUS, n));
        point[i] = rigid2d_scale(R(0.5), rigid2d_add(on_face, on_skin));
    }
    *normal = m->face_b ? rigid2d_neg(n) : n;
}

// Adds an impulse p at the arm r to a body.
SIM_FN void rigid2d_contact_apply(const Rigid2dContactRow *row, Rigid2dVelocity *v, Rigid2dVec r, Rigid2dVec p) {
    v->x += row->mass * p.x, v->y += row->mass * p.y;
    v->w += row->inertia * rigid2d_cross(r, p);
}

// The matrix of the two points together. Two that are almost one are solved as one.
SIM_FN void rigid2d_contact_pair(Rigid2dContactRow *row, real r0, real r1) {
    real k11 = row->mass + row->inertia * r0 * r0, k22 = row->mass + row->inertia * r1 * r1;
    real k12 = row->mass + row->inertia * r0 * r1, det = k11 * k22 - k12 * k12;
    if (!(k11 * k11 < R(1000.0) * det)) return;
    det = R(1.0) / det;
    row->points = 2;
    row->k11 = k11, row->k12 = k12, row->k22 = k22;
    row->m11 = det * k22, row->m12 = -det * k12, row->m22 = det * k11;
}

#define RIGID2D_ROW_CLEAR(type, name) row->name = (type)0;

// Everything that stays the same over the iterations, with the body where its transform is. With `warm`, from the
// impulses of the step before, which rigid2d_contact_warm() applies.
SIM_BIG_FN void rigid2d_contact_begin(Rigid2dWorld *w, Rigid2dContactRow *row, int32_t contact, int32_t warm) {
    const Rigid2dContact *c = &w->contact[contact];
    const Rigid2dManifold *m = &w->touch[contact].manifold;
    int32_t body = rigid2d_contact_body(w, contact);
    RIGID2D_CONTACT_ROW(RIGID2D_ROW_CLEAR)
    row->contact = contact, row->body = body, row->points = 1;
    row->mass = w->mass[body].inverse_mass, row->inertia = w->mass[body].inverse_inertia;
    row->friction = sim_sqrt(rigid2d_ground_friction(w, rigid2d_contact_shape(w, contact)) * w->shape[body].friction);
    Rigid2dVec at = rigid2d_body_position(&w->body[body]), normal, point[2] = {at, at};
    rigid2d_manifold_place(m, w->motion[body].t, &normal, point);
    row->x = normal.x, row->y = normal.y;
    real rn[2] = {R(0.0), R(0.0)}, nm[2] = {R(0.0), R(0.0)}, tm[2] = {R(0.0), R(0.0)};
    for (int32_t i = 0; i < m->count; i++) {
        point[i] = rigid2d_sub(point[i], at);
        rn[i] = rigid2d_cross(point[i], normal);
        real rt = rigid2d_cross(point[i], rigid2d_turn(normal));
        real kn = row->mass + row->inertia * rn[i] * rn[i], kt = row->mass + row->inertia * rt * rt;
        nm[i] = kn > R(0.0) ? R(1.0) / kn : R(0.0);
        tm[i] = kt > R(0.0) ? R(1.0) / kt : R(0.0);
    }
    row->rx0 = point[0].x, row->ry0 = point[0].y, row->nm0 = nm[0], row->tm0 = tm[0];
    if (warm) row->n0 = c->normal0_ns, row->t0 = c->tangent0_ns;
    if (m->count < 2) return;
    rigid2d_contact_pair(row, rn[0], rn[1]);
    if (row->points < 2) return;
    row->rx1 = point[1].x, row->ry1 = point[1].y, row->nm1 = nm[1], row->tm1 = tm[1];
    if (warm) row->n1 = c->normal1_ns, row->t1 = c->tangent1_ns;
}

SIM_FN void rigid2d_contact_warm(const Rigid2dContactRow *row, Rigid2dVelocity *v) {
    Rigid2dVec normal = rigid2d_vec(row->x, row->y), tangent = rigid2d_turn(normal);
    Rigid2dVec p0 = rigid2d_add(rigid2d_scale(row->n0, normal), rigid2d_scale(row->t0, tangent));
    Rigid2dVec p1 = rigid2d_add(rigid2d_scale(row->n1, normal), rigid2d_scale(row->t1, tangent));
    rigid2d_contact_apply(row, v, rigid2d_vec(row->rx0, row->ry0), p0);
    rigid2d_contact_apply(row, v, rigid2d_vec(row->rx1, row->ry1), p1);
}

// The velocity along `axis` of the body's point at r.
SIM_FN real rigid2d_contact_slip(const Rigid2dVelocity *v, Rigid2dVec r, Rigid2dVec axis) {
    return (v->x - v->w * r.y) * axis.x + (v->y + v->w * r.x) * axis.y;
}

// Friction at a point, whose sum of impulses is *sum and at most `most`.
SIM_FN void rigid2d_contact_rub(const Rigid2dContactRow *row, Rigid2dVelocity *v, Rigid2dVec r, Rigid2dVec tangent,
                                real mass, real most, real *sum) {
    real next = sim_clamp(*sum - mass * rigid2d_contact_slip(v, r, tangent), -most, most);
    rigid2d_contact_apply(row, v, r, rigid2d_scale(next - *sum, tangent));
    *sum = next;
}

// Two points at once: of the four cases in which each either pushes or parts, the first that is consistent (Murty's
// total enumeration); if none is, as before. b: normal velocities without the impulses.
SIM_FN Rigid2dVec rigid2d_contact_both(const Rigid2dContactRow *row, real v0, real v1) {
    real b0 = v0 - (row->k11 * row->n0 + row->k12 * row->n1), b1 = v1 - (row->k12 * row->n0 + row->k22 * row->n1);
    real x0 = -(row->m11 * b0 + row->m12 * b1), x1 = -(row->m12 * b0 + row->m22 * b1);
    real y0 = -row->nm0 * b0, y1 = -row->nm1 * b1;
    int32_t push = (x0 >= R(0.0)) & (x1 >= R(0.0));
    int32_t first = (y0 >= R(0.0)) & (row->k12 * y0 + b1 >= R(0.0));
    int32_t second = (y1 >= R(0.0)) & (row->k12 * y1 + b0 >= R(0.0));
    int32_t part = (b0 >= R(0.0)) & (b1 >= R(0.0));
    real z0 = sim_select(part | second, R(0.0), row->n0), z1 = sim_select(part, R(0.0), row->n1);
    z0 = sim_select(first, y0, z0), z1 = sim_select(second, y1, z1);
    z1 = sim_select(first, R(0.0), z1);
    return rigid2d_vec(sim_select(push, x0, z0), sim_select(push, x1, z1));
}

// The same as rigid2d_contact_solve_velocity() of a row of one point, bit for bit, where no velocity is -0 before.
SIM_FN void rigid2d_contact_solve_point(Rigid2dContactRow *row, Rigid2dVelocity *v) {
    Rigid2dVec normal = rigid2d_vec(row->x, row->y), r = rigid2d_vec(row->rx0, row->ry0);
    rigid2d_contact_rub(row, v, r, rigid2d_turn(normal), row->tm0, row->friction * row->n0, &row->t0);
    real next = row->n0 - row->nm0 * rigid2d_contact_slip(v, r, normal);
    next = sim_select(next < R(0.0), R(0.0), next);
    rigid2d_contact_apply(row, v, r, rigid2d_scale(next - row->n0, normal));
    row->n0 = next;
}

// One iteration, without a branch. Friction first: that nothing is penetrated matters more.
SIM_FN void rigid2d_contact_solve_velocity(Rigid2dContactRow *row, Rigid2dVelocity *v) {
    Rigid2dVec normal = rigid2d_vec(row->x, row->y), tangent = rigid2d_turn(normal);
    Rigid2dVec r0 = rigid2d_vec(row->rx0, row->ry0), r1 = rigid2d_vec(row->rx1, row->ry1);
    rigid2d_contact_rub(row, v, r0, tangent, row->tm0, row->friction * row->n0, &row->t0);
    rigid2d_contact_rub(row, v, r1, tangent, row->tm1, row->friction * row->n1, &row->t1);
    real v0 = rigid2d_contact_slip(v, r0, normal), v1 = rigid2d_contact_slip(v, r1, normal);
    real alone = row->n0 - row->nm0 * v0;
    alone = sim_select(alone < R(0.0), R(0.0), alone);
    Rigid2dVec both = rigid2d_contact_both(row, v0, v1);
    real n0 = sim_select(row->points == 2, both.x, alone), n1 = sim_select(row->points == 2, both.y, R(0.0));
    Rigid2dVec p0 = rigid2d_scale(n0 - row->n0, normal), p1 = rigid2d_scale(n1 - row->n1, normal);
    row->n0 = n0, row->n1 = n1;
    v->x += row->mass * (p0.x + p1.x), v->y += row->mass * (p0.y + p1.y);
    v->w += row->inertia * (rigid2d_cross(r0, p0) + rigid2d_cross(r1, p1));
}

SIM_FN void rigid2d_contact_store(Rigid2dWorld *w, const Rigid2dContactRow *row) {
    Rigid2dContact *c = &w->contact[row->contact];
    c->normal0_ns = row->n0, c->tangent0_ns = row->t0;
    if (row->points < 2) return; // the second point keeps what it had
    c->normal1_ns = row->n1, c->tangent1_ns = row->t1;
}

// Moves the body by this share of each point's depth, but for the slop. Returns the deepest separation before that.
SIM_BIG_FN real rigid2d_contact_solve_position(Rigid2dWorld *w, const Rigid2dContactRow *row, real share) {
    const Rigid2dManifold *m = &w->touch[row->contact].manifold;
    Rigid2dBody *b = &w->body[row->body];
    Rigid2dMass mass = w->mass[row->body];
    real deepest = R(0.0);
    for (int32_t i = 0; i < m->count; i++) {
        Rigid2dVec at = rigid2d_body_position(b);
        Rigid2dTransform t = rigid2d_transform(at, b->angle_rad, mass.center);
        Rigid2dVec normal = m->face_b ? rigid2d_rotate(t.q, m->normal) : m->normal;
        Rigid2dVec through = m->face_b ? rigid2d_apply(t, m->through) : m->through;
        Rigid2dVec point = m->face_b ? m->point[i].at : rigid2d_apply(t, m->point[i].at);
        real separation = rigid2d_dot(rigid2d_sub(point, through), normal) - RIGID2D_RADIUS - RIGID2D_RADIUS;
        if (m->face_b) normal = rigid2d_neg(normal);
        Rigid2dVec arm = rigid2d_sub(point, at);
        deepest = rigid2d_min(deepest, separation);
        real c = sim_clamp(share * (separation + RIGID2D_LINEAR_SLOP), -RIGID2D_MAX_CORRECTION_M, R(0.0));
        real rn = rigid2d_cross(arm, normal), k = mass.inverse_mass + mass.inverse_inertia * rn * rn;
        Rigid2dVec p = rigid2d_scale(k > R(0.0) ? -c / k : R(0.0), normal);
        rigid2d_body_place(b, rigid2d_add(at, rigid2d_scale(mass.inverse_mass, p)),
                           b->angle_rad + mass.inverse_inertia * rigid2d_cross(arm, p));
    }
    return deepest;
}

#endif
