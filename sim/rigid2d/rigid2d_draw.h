// Bodies and ground of a world of rigid bodies, for the drawings of simulators. Host only.
//
// Ownership, errors: sim/sim_draw.h's. Thread safety: as plain data.
#ifndef SHOAL_SIM_RIGID2D_RIGID2D_DRAW_H
#define SHOAL_SIM_RIGID2D_RIGID2D_DRAW_H

#include "sim/rigid2d/rigid2d_ground.h"
#include "sim/sim_draw.h"

// A polygon, of a body or of the ground, where the transform puts it.
SIM_FN void rigid2d_draw_polygon(SimFrame *f, SimColour colour, const Rigid2dPolygon *p, Rigid2dTransform t) {
    sim_frame_begin(f, SIM_POLYGON, colour, R(0.0));
    for (int32_t i = 0; i < p->count; i++) {
        Rigid2dVec at = rigid2d_apply(t, p->vertex[i]);
        sim_frame_point(f, at.x, at.y);
    }
}

SIM_FN Rigid2dTransform rigid2d_draw_transform(const Rigid2dBody *b, const Rigid2dMass *mass) {
    return rigid2d_transform(rigid2d_body_position(b), b->angle_rad, mass->center);
}

SIM_FN void rigid2d_draw_body(SimFrame *f, SimColour colour, const Rigid2dBody *b, const Rigid2dPolygon *p,
                              const Rigid2dMass *mass) {
    rigid2d_draw_polygon(f, colour, p, rigid2d_draw_transform(b, mass));
}

// Ground below a chain of edges [count], down to a depth.
SIM_FN void rigid2d_draw_ground(SimFrame *f, SimColour colour, const Rigid2dEdge *edge, int32_t count, real depth) {
    if (count < 1) return;
    sim_frame_begin(f, SIM_POLYGON, colour, R(0.0));
    sim_frame_point(f, edge[0].a.x, depth);
    for (int32_t i = 0; i < count; i++)
        sim_frame_point(f, edge[i].a.x, edge[i].a.y);
    sim_frame_point(f, edge[count - 1].b.x, edge[count - 1].b.y);
    sim_frame_point(f, edge[count - 1].b.x, depth);
}

// Ground below the world's chain of heights, down to a depth.
SIM_FN void rigid2d_draw_chain(SimFrame *f, SimColour colour, const Rigid2dWorld *w, real depth) {
    sim_frame_begin(f, SIM_POLYGON, colour, R(0.0));
    sim_frame_point(f, rigid2d_chain_x(w, 0), depth);
    for (int32_t i = 0; i <= w->edges; i++)
        sim_frame_point(f, rigid2d_chain_x(w, i), w->chain_y_m[i]);
    sim_frame_point(f, rigid2d_chain_x(w, w->edges), depth);
}

SIM_FN void rigid2d_draw_box(SimFrame *f, SimColour colour, Rigid2dBox box) {
    const SimSinCos upright = {R(0.0), R(1.0)};
    const real half = R(0.5);
    sim_frame_box(f, colour, half * (box.low.x + box.high.x), half * (box.low.y + box.high.y),
                  half * (box.high.x - box.low.x), half * (box.high.y - box.low.y), upright);
}

#endif
