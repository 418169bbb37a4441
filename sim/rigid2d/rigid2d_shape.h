// Convex polygons and edges: hull, mass, bounding box, rays.
//
// Degenerate input has a defined result: a polygon without an area has no vertices and collides with nothing, an edge
// without a length is met by no ray.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_SHAPE_H
#define SHOAL_SIM_RIGID2D_RIGID2D_SHAPE_H

#include "sim/rigid2d/rigid2d_math.h"

#define RIGID2D_VERTICES_MAX 8

// Counter-clockwise, in the body's frame. normal[i] is that of the side from vertex i to the next one.
typedef struct Rigid2dPolygon {
    int32_t count; // 3 to RIGID2D_VERTICES_MAX; 0: nothing
    Rigid2dVec vertex[RIGID2D_VERTICES_MAX], normal[RIGID2D_VERTICES_MAX];
    Rigid2dVec centroid;
    real friction;
} Rigid2dPolygon;

// A piece of the ground, in the world's frame. It has two sides and stops what comes from either.
typedef struct Rigid2dEdge {
    Rigid2dVec a, b;
    real friction;
} Rigid2dEdge;

// A body's mass and inertia about its centre of mass, inverted; 0 is infinite.
typedef struct Rigid2dMass {
    real inverse_mass, inverse_inertia;
    Rigid2dVec center; // of mass, in the body's frame
} Rigid2dMass;

typedef struct Rigid2dBox {
    Rigid2dVec low, high;
} Rigid2dBox;

// The centroid of the polygon, and its area in *area: triangles about the origin.
SIM_FN Rigid2dVec rigid2d_polygon_centroid(const Rigid2dPolygon *p, real *area) {
    Rigid2dVec c = rigid2d_vec(R(0.0), R(0.0));
    *area = R(0.0);
    for (int32_t i = 0; i < p->count; i++) {
        Rigid2dVec e1 = p->vertex[i], e2 = p->vertex[i + 1 < p->count ? i + 1 : 0];
        real triangle = R(0.5) * rigid2d_cross(e1, e2);
        *area += triangle;
        c = rigid2d_add(c, rigid2d_scale(triangle * R(0.3333333333333333), rigid2d_add(e1, e2)));
    }
    return rigid2d_scale(R(1.0) / *area, c);
}

// The vertex of the hull after `at`: everything else is to the left of the line through both, and of points on one
// line the furthest wins.
SIM_FN int32_t rigid2d_hull_next(const Rigid2dVec *v, int32_t count, int32_t at) {
    int32_t next = 0;
    for (int32_t j = 1; j < count; j++) {
        Rigid2dVec r = rigid2d_sub(v[next], v[at]), u = rigid2d_sub(v[j], v[at]);
        real c = rigid2d_cross(r, u);
        if (next == at || c < R(0.0) || (c == R(0.0) && rigid2d_dot(u, u) > rigid2d_dot(r, r))) next = j;
    }
    return next;
}

// The convex hull of v[0..count), count > 0, from its rightmost vertex (the lower of two) on; normals and centroid.
SIM_BIG_FN void rigid2d_polygon_set(Rigid2dPolygon *p, const Rigid2dVec *v, int32_t count) {
    int32_t first = 0;
    for (int32_t i = 1; i < count; i++) {
        if (v[i].x > v[first].x || (v[i].x == v[first].x && v[i].y < v[first].y)) first = i;
    }
    p->count = 0;
    int32_t at = first;
    for (int32_t i = 0; i < count && i < RIGID2D_VERTICES_MAX; i++) {
        p->vertex[p->count++] = v[at];
        at = rigid2d_hull_next(v, count, at);
        if (at == first) break;
    }
    real area;
    p->centroid = rigid2d_polygon_centroid(p, &area);
    if (at != first || p->count < 3 || !(area > RIGID2D_EPSILON)) p->count = 0;
    for (int32_t i = 0; i < p->count; i++) {
        Rigid2dVec side = rigid2d_sub(p->vertex[i + 1 < p->count ? i + 1 : 0], p->vertex[i]);
        p->normal[i] = rigid2d_unit(rigid2d_turn(side));
    }
}

// A box of these half extents about the origin.
SIM_FN void rigid2d_polygon_set_box(Rigid2dPolygon *p, real half_x, real half_y) {
    p->count = 4;
    p->vertex[0] = rigid2d_vec(-half_x, -half_y), p->normal[0] = rigid2d_vec(R(0.0), R(-1.0));
    p->vertex[1] = rigid2d_vec(half_x, -half_y), p->normal[1] = rigid2d_vec(R(1.0), R(0.0));
    p->vertex[2] = rigid2d_vec(half_x, half_y), p->normal[2] = rigid2d_vec(R(0.0), R(1.0));
    p->vertex[3] = rigid2d_vec(-half_x, half_y), p->normal[3] = rigid2d_vec(R(-1.0), R(0.0));
    p->centroid = rigid2d_vec(R(0.0), R(0.0));
}

// Of a polygon of this density (kg/m^2). One that has no mass gets 1 kg and does not turn.
SIM_BIG_FN Rigid2dMass rigid2d_polygon_mass(const Rigid2dPolygon *p, real density) {
    Rigid2dMass m = {R(1.0), R(0.0), {R(0.0), R(0.0)}};
    if (p->count < 3) return m;
    Rigid2dVec s = rigid2d_vec(R(0.0), R(0.0)), center = s;
    for (int32_t i = 0; i < p->count; i++)
        s = rigid2d_add(s, p->vertex[i]);
    s = rigid2d_scale(R(1.0) / (real)p->count, s);
    real area = R(0.0), inertia = R(0.0);
    const real third = R(0.3333333333333333);
    for (int32_t i = 0; i < p->count; i++) { // triangles about the mean vertex
        Rigid2dVec e1 = rigid2d_sub(p->vertex[i], s);
        Rigid2dVec e2 = rigid2d_sub(p->vertex[i + 1 < p->count ? i + 1 : 0], s);
        real d = rigid2d_cross(e1, e2);
        area += R(0.5) * d;
        center = rigid2d_add(center, rigid2d_scale(R(0.5) * d * third, rigid2d_add(e1, e2)));
        real x2 = e1.x * e1.x + e2.x * e1.x + e2.x * e2.x, y2 = e1.y * e1.y + e2.y * e1.y + e2.y * e2.y;
        inertia += (R(0.25) * third * d) * (x2 + y2);
    }
    real mass = density * area;
    center = rigid2d_scale(R(1.0) / area, center);
    m.center = rigid2d_add(center, s);
    // About the origin, then about the centre of mass.
    inertia = density * inertia + mass * (rigid2d_dot(m.center, m.center) - rigid2d_dot(center, center));
    inertia -= mass * rigid2d_dot(m.center, m.center);
    if (mass > R(0.0)) m.inverse_mass = R(1.0) / mass;
    if (inertia > R(0.0)) m.inverse_inertia = R(1.0) / inertia;
    return m;
}

SIM_FN Rigid2dBox rigid2d_box_join(Rigid2dBox a, Rigid2dBox b) {
    Rigid2dBox box = {{rigid2d_min(a.low.x, b.low.x), rigid2d_min(a.low.y, b.low.y)},
                      {rigid2d_max(a.high.x, b.high.x), rigid2d_max(a.high.y, b.high.y)}};
    return box;
}

SIM_FN int32_t rigid2d_box_contains(Rigid2dBox a, Rigid2dBox b) {
    return (a.low.x <= b.low.x) & (a.low.y <= b.low.y) & (b.high.x <= a.high.x) & (b.high.y <= a.high.y);
}

SIM_FN int32_t rigid2d_box_overlaps(Rigid2dBox a, Rigid2dBox b) {
    return !((b.low.x - a.high.x > R(0.0)) | (b.low.y - a.high.y > R(0.0)) | (a.low.x - b.high.x > R(0.0)) |
             (a.low.y - b.high.y > R(0.0)));
}

SIM_FN Rigid2dBox rigid2d_box_grow(Rigid2dBox a, real by) {
    Rigid2dBox box = {{a.low.x - by, a.low.y - by}, {a.high.x + by, a.high.y + by}};
    return box;
}

// With the skin.
SIM_BIG_FN Rigid2dBox rigid2d_polygon_box(const Rigid2dPolygon *p, Rigid2dTransform t) {
    Rigid2dVec first = rigid2d_apply(t, p->vertex[0]);
    Rigid2dBox box = {first, first};
    for (int32_t i = 1; i < p->count; i++) {
        Rigid2dVec v = rigid2d_apply(t, p->vertex[i]);
        Rigid2dBox point = {v, v};
        box = rigid2d_box_join(box, point);
    }
    return rigid2d_box_grow(box, RIGID2D_RADIUS);
}

SIM_FN Rigid2dBox rigid2d_edge_box(const Rigid2dEdge *e) {
    Rigid2dBox a = {e->a, e->a}, b = {e->b, e->b};
    return rigid2d_box_grow(rigid2d_box_join(a, b), RIGID2D_RADIUS);
}

// An edge as rays from one point see it.
typedef struct Rigid2dEdgeView {
    Rigid2dVec a, along, normal;
    real numerator, square; // how far along the normal the edge is, and its length squared
} Rigid2dEdgeView;

SIM_FN Rigid2dEdgeView rigid2d_edge_view(const Rigid2dEdge *e, Rigid2dVec from) {
    Rigid2dEdgeView view;
    view.a = e->a, view.along = rigid2d_sub(e->b, e->a);
    view.normal = rigid2d_unit(rigid2d_turn(view.along));
    view.numerator = rigid2d_dot(view.normal, rigid2d_sub(e->a, from));
    view.square = rigid2d_dot(view.along, view.along);
    return view;
}

// A ray from `from` along d, in the shape's frame: the fraction of the way at which it meets the edge, or `limit` if it
// does not before that. Without a branch.
SIM_FN real rigid2d_edge_view_ray(const Rigid2dEdgeView *view, Rigid2dVec from, Rigid2dVec d, real limit) {
    real denominator = rigid2d_dot(view->normal, d), t = view->numerator / denominator;
    Rigid2dVec q = rigid2d_add(from, rigid2d_scale(t, d));
    real s = rigid2d_dot(rigid2d_sub(q, view->a), view->along); // how far along it, times its length
    real hit = sim_select(denominator == R(0.0), limit, t);
    hit = sim_select(view->square == R(0.0), limit, hit);
    hit = sim_select(t >= R(0.0), hit, limit);
    hit = sim_select(t <= limit, hit, limit);
    hit = sim_select(s >= R(0.0), hit, limit);
    return sim_select(s <= view->square, hit, limit);
}

// The same of a ray from p1 to p2.
SIM_FN real rigid2d_edge_ray(const Rigid2dEdge *e, Rigid2dVec p1, Rigid2dVec p2, real limit) {
    Rigid2dEdgeView view = rigid2d_edge_view(e, p1);
    return rigid2d_edge_view_ray(&view, p1, rigid2d_sub(p2, p1), limit);
}

// From outside; a ray that begins inside meets nothing.
SIM_FN real rigid2d_polygon_ray(const Rigid2dPolygon *p, Rigid2dVec p1, Rigid2dVec p2, real limit) {
    Rigid2dVec d = rigid2d_sub(p2, p1);
    real lower = R(0.0), upper = limit;
    int32_t enters = 0;
    for (int32_t i = 0; i < p->count; i++) {
        real numerator = rigid2d_dot(p->normal[i], rigid2d_sub(p->vertex[i], p1));
        real denominator = rigid2d_dot(p->normal[i], d);
        if (denominator == R(0.0)) {
            if (numerator < R(0.0)) return limit;
        } else if (denominator < R(0.0) && numerator < lower * denominator) {
            lower = numerator / denominator;
            enters = 1;
        } else if (denominator > R(0.0) && numerator < upper * denominator) {
            upper = numerator / denominator;
        }
        if (upper < lower) return limit;
    }
    return enters ? lower : limit;
}

#endif
