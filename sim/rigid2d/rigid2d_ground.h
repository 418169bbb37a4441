// The ground's shapes by number: boxes, then edges, which are listed or made from a chain of heights; which of them are
// about a place; and rays that meet them.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_GROUND_H
#define SHOAL_SIM_RIGID2D_RIGID2D_GROUND_H

#include "sim/rigid2d/rigid2d_world.h"

// Edges begin to end - 1.
typedef struct Rigid2dSpan {
    int32_t begin, end;
} Rigid2dSpan;

SIM_FN real rigid2d_chain_x(const Rigid2dWorld *w, int32_t point) { return (real)point * w->chain_m / w->chain_points; }

// Edge 0 to edges - 1.
SIM_FN Rigid2dEdge rigid2d_ground_edge(const Rigid2dWorld *w, int32_t i) {
    if (w->edge) return w->edge[i];
    Rigid2dEdge e = {rigid2d_vec(rigid2d_chain_x(w, i), w->chain_y_m[i]),
                     rigid2d_vec(rigid2d_chain_x(w, i + 1), w->chain_y_m[i + 1]), w->friction};
    return e;
}

// Box 0 to blocks - 1 as a polygon; one without an area has no vertices.
SIM_BIG_FN void rigid2d_ground_polygon(const Rigid2dWorld *w, int32_t i, Rigid2dPolygon *p) {
    Rigid2dVec low = w->block[i].low, high = w->block[i].high;
    const Rigid2dVec corner[4] = {low, {high.x, low.y}, high, {low.x, high.y}};
    rigid2d_polygon_set(p, corner, 4);
    p->friction = w->friction;
}

SIM_FN real rigid2d_ground_friction(const Rigid2dWorld *w, int32_t shape) {
    return shape < w->blocks || !w->edge ? w->friction : w->edge[shape - w->blocks].friction;
}

// The edges whose boxes can meet something between low_x and high_x, and at most two more on either side: of a chain
// those that are near, else all. All for NaNs.
SIM_FN Rigid2dSpan rigid2d_ground_span(const Rigid2dWorld *w, real low_x, real high_x) {
    Rigid2dSpan span = {0, w->edges};
    if (w->edge) return span;
    real begin = low_x * w->chain_points / w->chain_m - R(2.0), end = high_x * w->chain_points / w->chain_m + R(2.0);
    if (begin > R(0.0)) span.begin = begin < (real)w->edges ? (int32_t)begin : w->edges;
    if (end < (real)w->edges) span.end = end > R(0.0) ? (int32_t)end : 0;
    return span;
}

#define RIGID2D_RAYS_MAX 16

// Rays from one point, field by field, so that loops over them vectorise. Those that are not there have no length.
typedef struct Rigid2dRays {
    __attribute__((aligned(64))) real dx[RIGID2D_RAYS_MAX], low_x[RIGID2D_RAYS_MAX], high_x[RIGID2D_RAYS_MAX];
    real fraction[RIGID2D_RAYS_MAX];
    real dy[RIGID2D_RAYS_MAX], low_y[RIGID2D_RAYS_MAX], high_y[RIGID2D_RAYS_MAX];
    Rigid2dVec from;
    Rigid2dBox all; // about all of them
    int32_t count;  // of rays; loops go over RIGID2D_PADDED(count, RIGID2D_RAYS_MAX)
} Rigid2dRays;

SIM_FN void rigid2d_rays_set(Rigid2dRays *rays, Rigid2dVec from, const Rigid2dVec *to, int32_t count) {
    rays->from = from, rays->count = count;
    rays->all.low = rays->all.high = from;
    for (int32_t i = 0; i < RIGID2D_PADDED(count, RIGID2D_RAYS_MAX); i++) {
        Rigid2dVec end = i < count ? to[i] : from, d = rigid2d_sub(end, from);
        Rigid2dBox a = {from, from}, b = {end, end}, box = rigid2d_box_join(b, a);
        rays->all = rigid2d_box_join(b, rays->all);
        rays->dx[i] = d.x, rays->dy[i] = d.y;
        rays->low_x[i] = box.low.x, rays->low_y[i] = box.low.y;
        rays->high_x[i] = box.high.x, rays->high_y[i] = box.high.y;
        rays->fraction[i] = R(1.0);
    }
}

RIGID2D_LOOP_FN void rigid2d_rays_meet_edge(Rigid2dRays *rays, const Rigid2dEdgeView *edge, Rigid2dBox about) {
    const Rigid2dEdgeView view = *edge;
    const Rigid2dVec from = rays->from;
    for (int32_t i = 0; i < RIGID2D_PADDED(rays->count, RIGID2D_RAYS_MAX); i++) {
        real limit = rays->fraction[i];
        real t = rigid2d_edge_view_ray(&view, from, rigid2d_vec(rays->dx[i], rays->dy[i]), limit);
        t = sim_select(rays->low_x[i] - about.high.x > R(0.0), limit, t);
        t = sim_select(rays->low_y[i] - about.high.y > R(0.0), limit, t);
        t = sim_select(about.low.x - rays->high_x[i] > R(0.0), limit, t);
        rays->fraction[i] = sim_select(about.low.y - rays->high_y[i] > R(0.0), limit, t);
    }
}

// Rays from one point to several ends, at most RIGID2D_RAYS_MAX: fraction[i] is that of the way at which ray i first
// meets the ground, 1 if it does not. Of a box it begins inside, a ray sees nothing.
SIM_BIG_FN void rigid2d_ground_rays(const Rigid2dWorld *w, Rigid2dVec from, const Rigid2dVec *to, int32_t count,
                                    real *fraction) {
    Rigid2dRays rays;
    rigid2d_rays_set(&rays, from, to, count);
    for (int32_t k = 0; k < w->blocks; k++) {
        if (!rigid2d_box_overlaps(w->block[k], rays.all)) continue;
        Rigid2dPolygon p;
        rigid2d_ground_polygon(w, k, &p);
        for (int32_t i = 0; i < count; i++)
            rays.fraction[i] = rigid2d_polygon_ray(&p, from, to[i], rays.fraction[i]);
    }
    Rigid2dSpan span = rigid2d_ground_span(w, rays.all.low.x, rays.all.high.x);
    for (int32_t k = span.begin; k < span.end; k++) {
        Rigid2dEdge e = rigid2d_ground_edge(w, k);
        Rigid2dBox about = rigid2d_edge_box(&e);
        if (!rigid2d_box_overlaps(about, rays.all)) continue;
        Rigid2dEdgeView view = rigid2d_edge_view(&e, from);
        rigid2d_rays_meet_edge(&rays, &view, about);
    }
    for (int32_t i = 0; i < count; i++)
        fraction[i] = rays.fraction[i];
}

#endif
