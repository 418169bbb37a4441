// The closest points of two convex shapes: the algorithm of Gilbert, Johnson and Keerthi with barycentric coordinates
// (Ericson, "Real-time collision detection", 2005), on at most RIGID2D_DISTANCE_ITERATIONS supports.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_DISTANCE_H
#define SHOAL_SIM_RIGID2D_RIGID2D_DISTANCE_H

#include "sim/rigid2d/rigid2d_shape.h"

#define RIGID2D_DISTANCE_ITERATIONS 20

// A point of the difference B - A, and which vertices make it.
typedef struct Rigid2dSupport {
    Rigid2dVec a, b, w; // w = b - a
    real weight;        // barycentric, of the point closest to the origin
    int32_t index_a, index_b;
} Rigid2dSupport;

typedef struct Rigid2dSimplex {
    int32_t count; // 1 to 3
    Rigid2dSupport v[3];
} Rigid2dSimplex;

// What one query leaves to the next: the vertices of its simplex, and its size.
typedef struct Rigid2dCache {
    int32_t count; // 0: nothing yet
    real metric;
    int32_t index_a[3], index_b[3];
} Rigid2dCache;

// Vertices of a shape, in its own frame.
typedef struct Rigid2dProxy {
    const Rigid2dVec *vertex;
    int32_t count;
} Rigid2dProxy;

// The vertex that is the furthest along d.
SIM_FN int32_t rigid2d_furthest(Rigid2dProxy p, Rigid2dVec d) {
    int32_t best = 0;
    real most = rigid2d_dot(p.vertex[0], d);
    for (int32_t i = 1; i < p.count; i++) {
        real along = rigid2d_dot(p.vertex[i], d);
        if (along > most) most = along, best = i;
    }
    return best;
}

SIM_FN Rigid2dSupport rigid2d_support(Rigid2dProxy a, Rigid2dProxy b, Rigid2dTransform t, int32_t index_a,
                                      int32_t index_b) {
    Rigid2dSupport s;
    s.index_a = index_a, s.index_b = index_b;
    s.a = a.vertex[index_a];
    s.b = rigid2d_apply(t, b.vertex[index_b]);
    s.w = rigid2d_sub(s.b, s.a);
    s.weight = R(1.0);
    return s;
}

SIM_FN real rigid2d_simplex_metric(const Rigid2dSimplex *s) {
    if (s->count == 2) return rigid2d_length(rigid2d_sub(s->v[0].w, s->v[1].w));
    if (s->count == 3) return rigid2d_cross(rigid2d_sub(s->v[1].w, s->v[0].w), rigid2d_sub(s->v[2].w, s->v[0].w));
    return R(0.0);
}

// The simplex of the query before, where it still is about as large as it was; else one vertex.
SIM_FN void rigid2d_simplex_read(Rigid2dSimplex *s, const Rigid2dCache *cache, Rigid2dProxy a, Rigid2dProxy b,
                                 Rigid2dTransform t) {
    s->count = cache->count;
    for (int32_t i = 0; i < s->count; i++)
        s->v[i] = rigid2d_support(a, b, t, cache->index_a[i], cache->index_b[i]);
    real metric = rigid2d_simplex_metric(s);
    if (s->count > 1 &&
        (metric < R(0.5) * cache->metric || R(2.0) * cache->metric < metric || metric < RIGID2D_EPSILON))
        s->count = 0;
    if (s->count == 0) s->v[0] = rigid2d_support(a, b, t, 0, 0), s->count = 1;
}

SIM_FN void rigid2d_simplex_keep1(Rigid2dSimplex *s, int32_t i) {
    s->v[0] = s->v[i];
    s->v[0].weight = R(1.0);
    s->count = 1;
}

// Keeps v[i] and v[j], in the order of the original, with these parts of the whole.
SIM_FN void rigid2d_simplex_keep2(Rigid2dSimplex *s, int32_t i, int32_t j, real part_i, real part_j) {
    real whole = R(1.0) / (part_i + part_j);
    Rigid2dSupport first = s->v[i], second = s->v[j];
    first.weight = part_i * whole, second.weight = part_j * whole;
    s->v[0] = first, s->v[1] = second;
    s->count = 2;
}

// The point of a segment that is closest to the origin.
SIM_FN void rigid2d_simplex_solve2(Rigid2dSimplex *s) {
    Rigid2dVec w1 = s->v[0].w, w2 = s->v[1].w, e = rigid2d_sub(w2, w1);
    real part2 = -rigid2d_dot(w1, e), part1 = rigid2d_dot(w2, e);
    if (part2 <= R(0.0)) {
        rigid2d_simplex_keep1(s, 0);
    } else if (part1 <= R(0.0)) {
        rigid2d_simplex_keep1(s, 1);
    } else {
        rigid2d_simplex_keep2(s, 0, 1, part1, part2);
    }
}

// That of a triangle: a vertex, a side or the inside.
SIM_FN void rigid2d_simplex_solve3(Rigid2dSimplex *s) {
    Rigid2dVec w1 = s->v[0].w, w2 = s->v[1].w, w3 = s->v[2].w;
    Rigid2dVec e12 = rigid2d_sub(w2, w1), e13 = rigid2d_sub(w3, w1), e23 = rigid2d_sub(w3, w2);
    real d12_1 = rigid2d_dot(w2, e12), d12_2 = -rigid2d_dot(w1, e12);
    real d13_1 = rigid2d_dot(w3, e13), d13_2 = -rigid2d_dot(w1, e13);
    real d23_1 = rigid2d_dot(w3, e23), d23_2 = -rigid2d_dot(w2, e23);
    real area = rigid2d_cross(e12, e13);
    real part1 = area * rigid2d_cross(w2, w3), part2 = area * rigid2d_cross(w3, w1);
    real part3 = area * rigid2d_cross(w1, w2);
    if (d12_2 <= R(0.0) && d13_2 <= R(0.0)) {
        rigid2d_simplex_keep1(s, 0);
    } else if (d12_1 > R(0.0) && d12_2 > R(0.0) && part3 <= R(0.0)) {
        rigid2d_simplex_keep2(s, 0, 1, d12_1, d12_2);
    } else if (d13_1 > R(0.0) && d13_2 > R(0.0) && part2 <= R(0.0)) {
        rigid2d_simplex_keep2(s, 0, 2, d13_1, d13_2);
    } else if (d12_1 <= R(0.0) && d23_2 <= R(0.0)) {
        rigid2d_simplex_keep1(s, 1);
    } else if (d13_1 <= R(0.0) && d23_1 <= R(0.0)) {
        rigid2d_simplex_keep1(s, 2);
    } else if (d23_1 > R(0.0) && d23_2 > R(0.0) && part1 <= R(0.0)) {
        rigid2d_simplex_keep2(s, 2, 1, d23_2, d23_1);
    } else {
        real whole = R(1.0) / (part1 + part2 + part3);
        s->v[0].weight = part1 * whole, s->v[1].weight = part2 * whole, s->v[2].weight = part3 * whole;
    }
}

SIM_FN void rigid2d_simplex_solve(Rigid2dSimplex *s) {
    if (s->count == 2)
        rigid2d_simplex_solve2(s);
    else if (s->count == 3)
        rigid2d_simplex_solve3(s);
}

// The distance of what the simplex says are the closest points.
SIM_FN real rigid2d_simplex_distance(const Rigid2dSimplex *s) {
    if (s->count == 3) return R(0.0);
    Rigid2dVec a = s->v[0].a, b = s->v[0].b;
    if (s->count == 2) {
        a = rigid2d_add(rigid2d_scale(s->v[0].weight, a), rigid2d_scale(s->v[1].weight, s->v[1].a));
        b = rigid2d_add(rigid2d_scale(s->v[0].weight, b), rigid2d_scale(s->v[1].weight, s->v[1].b));
    }
    return rigid2d_length(rigid2d_sub(a, b));
}

// The distance between the ground's shape a, in the world's frame, and b, moved by t; skins do not count. 0 where they
// overlap.
SIM_BIG_FN real rigid2d_distance(Rigid2dCache *cache, Rigid2dProxy a, Rigid2dProxy b, Rigid2dTransform t) {
    Rigid2dSimplex s;
    rigid2d_simplex_read(&s, cache, a, b, t);
    for (int32_t iteration = 0; iteration < RIGID2D_DISTANCE_ITERATIONS; iteration++) {
        int32_t count = s.count, old_a[3], old_b[3];
        for (int32_t i = 0; i < count; i++)
            old_a[i] = s.v[i].index_a, old_b[i] = s.v[i].index_b;
        rigid2d_simplex_solve(&s);
        if (s.count == 3) break;
        // Towards the origin.
        Rigid2dVec d = rigid2d_neg(s.v[0].w);
        if (s.count == 2) {
            Rigid2dVec e = rigid2d_sub(s.v[1].w, s.v[0].w);
            d = rigid2d_cross(e, d) > R(0.0) ? rigid2d_spin(R(1.0), e) : rigid2d_turn(e);
        }
        if (rigid2d_dot(d, d) < RIGID2D_EPSILON * RIGID2D_EPSILON) break;
        int32_t index_a = rigid2d_furthest(a, rigid2d_neg(d));
        int32_t index_b = rigid2d_furthest(b, rigid2d_unrotate(t.q, d));
        int32_t known = 0;
        for (int32_t i = 0; i < count; i++)
            known |= index_a == old_a[i] && index_b == old_b[i];
        if (known) break;
        s.v[s.count++] = rigid2d_support(a, b, t, index_a, index_b);
    }
    cache->metric = rigid2d_simplex_metric(&s);
    cache->count = s.count;
    for (int32_t i = 0; i < s.count; i++)
        cache->index_a[i] = s.v[i].index_a, cache->index_b[i] = s.v[i].index_b;
    return rigid2d_simplex_distance(&s);
}

#endif
