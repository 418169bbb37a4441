// Vectors, rotations and transforms of the plane, by value, and the constants of Box2D 2.3.0 (metres, kilograms,
// seconds). The order of operations is the original's, so that the float build rounds as it does.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_MATH_H
#define SHOAL_SIM_RIGID2D_RIGID2D_MATH_H

#include "sim/sim.h"
#include "sim/sim_math.h"

#define RIGID2D_EPSILON      R(1.1920928955078125e-07)
#define RIGID2D_HUGE         R(3.4028234663852886e+38)
#define RIGID2D_LINEAR_SLOP  R(0.005)                // m, allowed penetration and joint error
#define RIGID2D_ANGULAR_SLOP R(0.034906585039888889) // rad, 2 degrees
#define RIGID2D_RADIUS       R(0.01)                 // m, skin of polygons and edges

// RIGID2D_LOOP_FN is for a function that is one loop over arrays with x and y apart, which gcc is to vectorise where it
// is kept from that otherwise (kernels/CMakeLists.txt). RIGID2D_PADDED(count, max) is how often that loop goes round:
// on a CPU always `max` times, since gcc vectorises no other.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define RIGID2D_LOOP_FN            SIM_FN
#define RIGID2D_PADDED(count, max) (count)
#else
#define RIGID2D_PADDED(count, max) ((void)(count), (max))
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#define RIGID2D_LOOP_FN static __attribute__((noinline, unused, optimize("tree-loop-vectorize")))
#else
#define RIGID2D_LOOP_FN SIM_BIG_FN
#endif
#endif

typedef struct Rigid2dVec {
    real x, y;
} Rigid2dVec;

typedef struct Rigid2dRot {
    real s, c;
} Rigid2dRot;

typedef struct Rigid2dTransform {
    Rigid2dVec p;
    Rigid2dRot q;
} Rigid2dTransform;

SIM_FN Rigid2dVec rigid2d_vec(real x, real y) {
    Rigid2dVec v = {x, y};
    return v;
}

SIM_FN Rigid2dVec rigid2d_add(Rigid2dVec a, Rigid2dVec b) { return rigid2d_vec(a.x + b.x, a.y + b.y); }
// The analyser cannot know that of a contact's points no more than there are is read.
// NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
SIM_FN Rigid2dVec rigid2d_sub(Rigid2dVec a, Rigid2dVec b) { return rigid2d_vec(a.x - b.x, a.y - b.y); }
SIM_FN Rigid2dVec rigid2d_neg(Rigid2dVec a) { return rigid2d_vec(-a.x, -a.y); }
SIM_FN Rigid2dVec rigid2d_scale(real s, Rigid2dVec a) { return rigid2d_vec(s * a.x, s * a.y); }
SIM_FN real rigid2d_dot(Rigid2dVec a, Rigid2dVec b) { return a.x * b.x + a.y * b.y; }
SIM_FN real rigid2d_cross(Rigid2dVec a, Rigid2dVec b) { return a.x * b.y - a.y * b.x; }
SIM_FN real rigid2d_length(Rigid2dVec a) { return sim_sqrt(a.x * a.x + a.y * a.y); }

// a turned by a right angle, clockwise; and the velocity at offset r of something that spins at w.
SIM_FN Rigid2dVec rigid2d_turn(Rigid2dVec a) { return rigid2d_vec(a.y, -a.x); }
SIM_FN Rigid2dVec rigid2d_spin(real w, Rigid2dVec r) { return rigid2d_vec(-w * r.y, w * r.x); }

// Comparisons, not fminf: a NaN in `b` stays.
SIM_FN real rigid2d_min(real a, real b) { return a < b ? a : b; }
SIM_FN real rigid2d_max(real a, real b) { return a > b ? a : b; }

// The unit vector along a; a itself where it is too short to have a direction.
SIM_FN Rigid2dVec rigid2d_unit(Rigid2dVec a) {
    real length = rigid2d_length(a);
    return length < RIGID2D_EPSILON ? a : rigid2d_scale(R(1.0) / length, a);
}

SIM_FN Rigid2dRot rigid2d_rot(real angle) {
    SimSinCos t = sim_sincos(angle);
    Rigid2dRot q = {t.sin, t.cos};
    return q;
}

SIM_FN Rigid2dVec rigid2d_rotate(Rigid2dRot q, Rigid2dVec v) {
    return rigid2d_vec(q.c * v.x - q.s * v.y, q.s * v.x + q.c * v.y);
}

SIM_FN Rigid2dVec rigid2d_unrotate(Rigid2dRot q, Rigid2dVec v) {
    return rigid2d_vec(q.c * v.x + q.s * v.y, -q.s * v.x + q.c * v.y);
}

SIM_FN Rigid2dVec rigid2d_apply(Rigid2dTransform t, Rigid2dVec v) {
    return rigid2d_vec((t.q.c * v.x - t.q.s * v.y) + t.p.x, (t.q.s * v.x + t.q.c * v.y) + t.p.y);
}

SIM_FN Rigid2dVec rigid2d_unapply(Rigid2dTransform t, Rigid2dVec v) {
    return rigid2d_unrotate(t.q, rigid2d_sub(v, t.p));
}

// The transform of a body whose centre of mass, at `center` in its own frame, is at c, turned by `angle`.
SIM_FN Rigid2dTransform rigid2d_transform(Rigid2dVec c, real angle, Rigid2dVec center) {
    Rigid2dTransform t;
    t.q = rigid2d_rot(angle);
    t.p = rigid2d_sub(c, rigid2d_rotate(t.q, center));
    return t;
}

// (1 - t) a + t b
SIM_FN Rigid2dVec rigid2d_mix(Rigid2dVec a, Rigid2dVec b, real t) {
    return rigid2d_add(rigid2d_scale(R(1.0) - t, a), rigid2d_scale(t, b));
}

#endif
