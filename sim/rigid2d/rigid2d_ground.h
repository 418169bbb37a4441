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

// Rays from one point to several ends: fraction[i] is that of the way at which ray i first meets the ground, 1 if it
// does not. Of a box it begins inside, a ray sees nothing.
SIM_BIG_FN void rigid2d_ground_rays(const Rigid2dWorld *w, Rigid2dVec from, const Rigid2dVec *to, int32_t rays,
                                    real *fraction) {
    Rigid2dBox all = {from, from};
    for (int32_t i = 0; i < rays; i++) {
        Rigid2dBox end = {to[i], to[i]};
        all = rigid2d_box_join(end, all);
        fraction[i] = R(1.0);
    }
    for (int32_t k = 0; k < w->blocks; k++) {
        if (!rigid2d_box_overlaps(w->block[k], all)) continue;
        Rigid2dPolygon p;
        rigid2d_ground_polygon(w, k, &p);
        for (int32_t i = 0; i < rays; i++)
            fraction[i] = rigid2d_polygon_ray(&p, from, to[i], fraction[i]);
    }
    Rigid2dSpan span = rigid2d_ground_span(w, all.low.x, all.high.x);
    for (int32_t k = span.begin; k < span.end; k++) {
        Rigid2dEdge e = rigid2d_ground_edge(w, k);
        Rigid2dBox about = rigid2d_edge_box(&e);
        if (!rigid2d_box_overlaps(about, all)) continue;
        for (int32_t i = 0; i < rays; i++) {
            Rigid2dBox start = {from, from}, end = {to[i], to[i]};
            if (!rigid2d_box_overlaps(about, rigid2d_box_join(end, start))) continue;
            fraction[i] = rigid2d_edge_ray(&e, from, to[i], fraction[i]);
        }
    }
}

#endif
