// Continuous collision: when a moving polygon first comes close to the ground within a step.
//
// Conservative advancement along local separating axes (Catto, "Continuous collision", GDC 2013), with a root finder
// that mixes the secant rule and bisection. Every loop is bounded.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_TOI_H
#define SHOAL_SIM_RIGID2D_RIGID2D_TOI_H

#include "sim/rigid2d/rigid2d_distance.h"

#define RIGID2D_TOI_AXES   20 // axes tried
#define RIGID2D_TOI_POINTS 16 // deepest points resolved on one axis
#define RIGID2D_TOI_ROOTS  50 // iterations of the root finder
// How close counts as an impact, and how well it is met.
#define RIGID2D_TOI_TARGET    RIGID2D_LINEAR_SLOP
#define RIGID2D_TOI_TOLERANCE (R(0.25) * RIGID2D_LINEAR_SLOP)
// What is this far apart all the way has no impact, whatever rounds within 1 km of the origin.
#define RIGID2D_TOI_CLEAR (RIGID2D_TOI_TARGET + RIGID2D_TOI_TOLERANCE + R(0.001))

// The motion of a body over the rest of a step: its centre of mass and angle from (c0, a0) to (c, a), which stand for
// the fractions alpha0 and 1 of the step.
typedef struct Rigid2dSweep {
    Rigid2dVec c0, c, center; // center: of mass, in the body's frame
    real a0, a, alpha0;
} Rigid2dSweep;

// The transform at fraction t of the sweep.
SIM_FN Rigid2dTransform rigid2d_sweep_at(const Rigid2dSweep *s, real t) {
    return rigid2d_transform(rigid2d_mix(s->c0, s->c, t), (R(1.0) - t) * s->a0 + t * s->a, s->center);
}

// Moves the sweep's beginning to fraction `alpha` of the step.
SIM_FN void rigid2d_sweep_advance(Rigid2dSweep *s, real alpha) {
    real t = (alpha - s->alpha0) / (R(1.0) - s->alpha0);
    s->c0 = rigid2d_mix(s->c0, s->c, t);
    s->a0 = (R(1.0) - t) * s->a0 + t * s->a;
    s->alpha0 = alpha;
}

// How far the polygon stays away from the edge's line on its way from `begin` to `end`, at least: positive on either
// side. On the way its vertices leave the lines between their ends by up to `bow`.
SIM_FN real rigid2d_sweep_clearance(Rigid2dTransform begin, Rigid2dTransform end, real bow, const Rigid2dPolygon *p,
                                    const Rigid2dEdge *e) {
    const Rigid2dVec normal = rigid2d_unit(rigid2d_turn(rigid2d_sub(e->b, e->a)));
    const Rigid2dVec n0 = rigid2d_unrotate(begin.q, normal), n1 = rigid2d_unrotate(end.q, normal);
    real low0 = RIGID2D_HUGE, high0 = -RIGID2D_HUGE, low1 = low0, high1 = high0;
    for (int32_t i = 0; i < p->count; i++) {
        real d0 = rigid2d_dot(n0, p->vertex[i]), d1 = rigid2d_dot(n1, p->vertex[i]);
        low0 = rigid2d_min(low0, d0), high0 = rigid2d_max(high0, d0);
        low1 = rigid2d_min(low1, d1), high1 = rigid2d_max(high1, d1);
    }
    real at0 = rigid2d_dot(normal, rigid2d_sub(begin.p, e->a)), at1 = rigid2d_dot(normal, rigid2d_sub(end.p, e->a));
    real low = rigid2d_min(at0 + low0, at1 + low1), high = rigid2d_max(at0 + high0, at1 + high1);
    return rigid2d_max(low, -high) - bow;
}

// Along what shapes are apart: the line between two vertices, or the normal of a side of A or of B.
typedef enum Rigid2dAxisKind { RIGID2D_AXIS_POINTS, RIGID2D_AXIS_FACE_A, RIGID2D_AXIS_FACE_B } Rigid2dAxisKind;

typedef struct Rigid2dAxis {
    Rigid2dAxisKind kind;
    Rigid2dVec axis;    // in the world's frame, or that of B for a side of B
    Rigid2dVec through; // the middle of the side
} Rigid2dAxis;

SIM_FN Rigid2dAxis rigid2d_axis_of(const Rigid2dCache *cache, Rigid2dProxy a, Rigid2dProxy b, Rigid2dTransform t) {
    Rigid2dAxis out;
    Rigid2dVec on_a = a.vertex[cache->index_a[0]], on_b = rigid2d_apply(t, b.vertex[cache->index_b[0]]);
    out.through = rigid2d_vec(R(0.0), R(0.0));
    if (cache->count == 1) {
        out.kind = RIGID2D_AXIS_POINTS;
        out.axis = rigid2d_unit(rigid2d_sub(on_b, on_a));
        return out;
    }
    int32_t is_b = cache->index_a[0] == cache->index_a[1];
    Rigid2dVec p = is_b ? b.vertex[cache->index_b[0]] : on_a;
    Rigid2dVec q = is_b ? b.vertex[cache->index_b[1]] : a.vertex[cache->index_a[1]];
    out.kind = is_b ? RIGID2D_AXIS_FACE_B : RIGID2D_AXIS_FACE_A;
    out.axis = rigid2d_unit(rigid2d_turn(rigid2d_sub(q, p)));
    out.through = rigid2d_scale(R(0.5), rigid2d_add(p, q));
    real s = is_b ? rigid2d_dot(rigid2d_sub(on_a, rigid2d_apply(t, out.through)), rigid2d_rotate(t.q, out.axis))
                  : rigid2d_dot(rigid2d_sub(on_b, out.through), out.axis);
    if (s < R(0.0)) out.axis = rigid2d_neg(out.axis);
    return out;
}

// The separation of vertices index_a and index_b along the axis.
SIM_BIG_FN real rigid2d_axis_separation(const Rigid2dAxis *x, Rigid2dProxy a, Rigid2dProxy b, Rigid2dTransform t,
                                        int32_t index_a, int32_t index_b) {
    if (x->kind == RIGID2D_AXIS_FACE_B) {
        Rigid2dVec normal = rigid2d_rotate(t.q, x->axis);
        return rigid2d_dot(rigid2d_sub(a.vertex[index_a], rigid2d_apply(t, x->through)), normal);
    }
    Rigid2dVec on_a = x->kind == RIGID2D_AXIS_POINTS ? a.vertex[index_a] : x->through;
    return rigid2d_dot(rigid2d_sub(rigid2d_apply(t, b.vertex[index_b]), on_a), x->axis);
}

// The smallest separation over all vertices, and whose it is.
SIM_BIG_FN real rigid2d_axis_deepest(const Rigid2dAxis *x, Rigid2dProxy a, Rigid2dProxy b, Rigid2dTransform t,
                                     int32_t *index_a, int32_t *index_b) {
    *index_a = *index_b = 0;
    if (x->kind == RIGID2D_AXIS_FACE_B) {
        *index_a = rigid2d_furthest(a, rigid2d_neg(rigid2d_rotate(t.q, x->axis)));
    } else {
        *index_b = rigid2d_furthest(b, rigid2d_unrotate(t.q, rigid2d_neg(x->axis)));
        if (x->kind == RIGID2D_AXIS_POINTS) *index_a = rigid2d_furthest(a, x->axis);
    }
    return rigid2d_axis_separation(x, a, b, t, *index_a, *index_b);
}

// Where between t1 and t2, with separations s1 and s2, two vertices come as close as the target; t2 if that is not
// found.
SIM_FN real rigid2d_toi_root(const Rigid2dAxis *x, Rigid2dProxy a, Rigid2dProxy b, const Rigid2dSweep *sweep,
                             int32_t index_a, int32_t index_b, real t1, real t2, real s1, real s2) {
    real low = t1, high = t2;
    for (int32_t i = 0; i < RIGID2D_TOI_ROOTS; i++) {
        real t = i & 1 ? low + (RIGID2D_TOI_TARGET - s1) * (high - low) / (s2 - s1) : R(0.5) * (low + high);
        real s = rigid2d_axis_separation(x, a, b, rigid2d_sweep_at(sweep, t), index_a, index_b);
        if (sim_fabs(s - RIGID2D_TOI_TARGET) < RIGID2D_TOI_TOLERANCE) return t;
        if (s > RIGID2D_TOI_TARGET) {
            low = t, s1 = s;
        } else {
            high = t, s2 = s;
        }
    }
    return t2;
}

// Advances *t1 along one axis. Returns 1 when that settles the matter, and then *hit says how.
SIM_FN int32_t rigid2d_toi_axis(const Rigid2dAxis *x, Rigid2dProxy a, Rigid2dProxy b, const Rigid2dSweep *sweep,
                                real *t1, int32_t *hit) {
    real t2 = R(1.0);
    for (int32_t i = 0; i < RIGID2D_TOI_POINTS; i++) {
        int32_t index_a, index_b;
        real s2 = rigid2d_axis_deepest(x, a, b, rigid2d_sweep_at(sweep, t2), &index_a, &index_b);
        *hit = 0;
        if (s2 > RIGID2D_TOI_TARGET + RIGID2D_TOI_TOLERANCE) return 1; // apart at the end
        if (s2 > RIGID2D_TOI_TARGET - RIGID2D_TOI_TOLERANCE) {
            *t1 = t2;
            return 0;
        }
        real s1 = rigid2d_axis_separation(x, a, b, rigid2d_sweep_at(sweep, *t1), index_a, index_b);
        if (s1 < RIGID2D_TOI_TARGET - RIGID2D_TOI_TOLERANCE) return 1; // too deep already
        *hit = 1;
        if (s1 <= RIGID2D_TOI_TARGET + RIGID2D_TOI_TOLERANCE) return 1;
        t2 = rigid2d_toi_root(x, a, b, sweep, index_a, index_b, *t1, t2, s1, s2);
    }
    return 0;
}

// The fraction of the sweep at which b comes close to a; 1 if it does not, or if they overlap from the start, where
// there is nothing to be done.
SIM_BIG_FN real rigid2d_toi(Rigid2dProxy a, Rigid2dProxy b, Rigid2dSweep sweep) {
    real turns = SIM_PI * R(2.0) * sim_floor(sweep.a0 / (SIM_PI * R(2.0))); // the root finder needs small angles
    sweep.a0 -= turns, sweep.a -= turns;
    Rigid2dCache cache;
    cache.count = 0;
    real t1 = R(0.0);
    for (int32_t i = 0; i < RIGID2D_TOI_AXES; i++) {
        Rigid2dTransform t = rigid2d_sweep_at(&sweep, t1);
        real distance = rigid2d_distance(&cache, a, b, t);
        if (!(distance > R(0.0))) return R(1.0);
        if (distance < RIGID2D_TOI_TARGET + RIGID2D_TOI_TOLERANCE) return t1;
        if (cache.count > 2) return R(1.0);
        Rigid2dAxis axis = rigid2d_axis_of(&cache, a, b, t);
        int32_t hit;
        if (rigid2d_toi_axis(&axis, a, b, &sweep, &t1, &hit)) return hit ? t1 : R(1.0);
    }
    return R(1.0);
}

#endif
