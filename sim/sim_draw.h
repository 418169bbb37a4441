// What a simulator draws one state with: lines, polygons and circles in the units of its world, y upwards. Host only.
//
// A simulator that can be drawn has, below `#ifdef SIM_DRAWING` (which only sim/sim_spec.c defines, so that no loop and
// no device ever compiles it),
//     #define <NAME>_DRAW SIM_DRAW(<name>_draw)
//     SIM_FN void <name>_draw(const void *state, const void *params, const int32_t *discrete, const float *continuous,
//                             SimFrame *frame)
// with <Name>State and <Name>Params behind the pointers, and the actions that led to the state, NULL for the first of
// an episode. Simulators whose structs have the same fields may share one function: it copies the structs out.
//
// What comes later is drawn over what came before. Shapes that stay as they are from frame to frame (terrain, marks)
// cost nothing: whoever keeps frames keeps such a shape once.
//
// Ownership: a frame is plain data of the caller's. Errors: what has no room sets is_full, and the rest of the frame is
// left out. Thread safety: as plain data.
#ifndef SHOAL_SIM_SIM_DRAW_H
#define SHOAL_SIM_SIM_DRAW_H

#include <stddef.h>

#include "sim/sim.h"
#include "sim/sim_math.h"

// Begins with a comma: sim/sim_spec.c tells by it whether a simulator has one.
#define SIM_DRAW(function) , function

// C(constant, name): what a shape is, from which whoever shows it takes its colour.
#define SIM_COLOURS(C)  \
    C(GROUND, "ground") \
    C(TRACK, "track")   \
    C(BODY, "body")     \
    C(PART, "part")     \
    C(JOINT, "joint")   \
    C(GOAL, "goal")     \
    C(LIMIT, "limit")   \
    C(FORCE, "force")

typedef enum SimColour {
#define SIM_COLOUR_CONSTANT(constant, name) SIM_##constant,
    SIM_COLOURS(SIM_COLOUR_CONSTANT)
#undef SIM_COLOUR_CONSTANT
        SIM_COLOUR_COUNT
} SimColour;

typedef enum SimShapeKind { SIM_LINE, SIM_POLYGON, SIM_CIRCLE } SimShapeKind;

enum { SIM_FRAME_SHAPES = 256, SIM_FRAME_POINTS = 4096 };

typedef struct SimShape {
    SimShapeKind kind;
    SimColour colour;
    float size;           // width of a line, 0: as thin as can be seen; radius of a circle
    int32_t first, count; // points
} SimShape;

typedef struct SimFrame {
    float left, bottom, right, top; // what is to be seen of the world, right > left and top > bottom
    float step_s;                   // a step in seconds; 0: the simulator's time has no unit
    int32_t shapes, points;
    int32_t is_full; // 1: something had no room
    SimShape shape[SIM_FRAME_SHAPES];
    float x[SIM_FRAME_POINTS], y[SIM_FRAME_POINTS];
} SimFrame;

// Nothing drawn yet, a view of a unit square.
SIM_FN void sim_frame_clear(SimFrame *f) {
    f->left = f->bottom = 0.0f;
    f->right = f->top = 1.0f;
    f->step_s = 0.0f;
    f->shapes = f->points = f->is_full = 0;
}

// A view without a width or a height, as of parameters that are 0, becomes one of 1.
SIM_FN void sim_frame_view(SimFrame *f, real left, real bottom, real right, real top) {
    f->left = (float)left, f->right = (float)right;
    f->bottom = (float)bottom, f->top = (float)top;
    if (!(f->right > f->left)) f->right = f->left + 1.0f;
    if (!(f->top > f->bottom)) f->top = f->bottom + 1.0f;
}

// Begins a shape; sim_frame_point() adds its points.
SIM_FN void sim_frame_begin(SimFrame *f, SimShapeKind kind, SimColour colour, real size) {
    if (f->shapes == SIM_FRAME_SHAPES) f->is_full = 1;
    if (f->is_full) return;
    SimShape shape = {kind, colour, (float)size, f->points, 0};
    f->shape[f->shapes++] = shape;
}

SIM_FN void sim_frame_point(SimFrame *f, real x, real y) {
    if (f->points == SIM_FRAME_POINTS) f->is_full = 1;
    if (f->is_full) return;
    f->x[f->points] = (float)x, f->y[f->points] = (float)y;
    f->points++;
    f->shape[f->shapes - 1].count++;
}

SIM_FN void sim_frame_line(SimFrame *f, SimColour colour, real width, real x0, real y0, real x1, real y1) {
    sim_frame_begin(f, SIM_LINE, colour, width);
    sim_frame_point(f, x0, y0);
    sim_frame_point(f, x1, y1);
}

SIM_FN void sim_frame_circle(SimFrame *f, SimColour colour, real radius, real x, real y) {
    sim_frame_begin(f, SIM_CIRCLE, colour, radius);
    sim_frame_point(f, x, y);
}

SIM_FN void sim_frame_triangle(SimFrame *f, SimColour colour, real x0, real y0, real x1, real y1, real x2, real y2) {
    sim_frame_begin(f, SIM_POLYGON, colour, R(0.0));
    sim_frame_point(f, x0, y0);
    sim_frame_point(f, x1, y1);
    sim_frame_point(f, x2, y2);
}

// A box about (x, y), turned counter-clockwise by an angle with that sine and cosine.
SIM_FN void sim_frame_box(SimFrame *f, SimColour colour, real x, real y, real half_width, real half_height,
                          SimSinCos turn) {
    sim_frame_begin(f, SIM_POLYGON, colour, R(0.0));
    for (int32_t i = 0; i < 4; i++) {
        real u = i == 0 || i == 3 ? -half_width : half_width, v = i < 2 ? -half_height : half_height;
        sim_frame_point(f, x + turn.cos * u - turn.sin * v, y + turn.sin * u + turn.cos * v);
    }
}

// A level force at (x, y): an arrow of that length, to the left where it is negative. Nothing where it is 0.
SIM_FN void sim_frame_push(SimFrame *f, real x, real y, real length, real width) {
    if (length == R(0.0)) return;
    real head = length < R(0.0) ? R(-2.5) * width : R(2.5) * width;
    sim_frame_line(f, SIM_FORCE, width, x, y, x + length, y);
    sim_frame_triangle(f, SIM_FORCE, x + length + head, y, x + length, y + R(1.6) * width, x + length,
                       y - R(1.6) * width);
}

// A torque about (x, y): an arc with a head, from below, counter-clockwise by that angle. Nothing where it is 0.
SIM_FN void sim_frame_turn(SimFrame *f, real x, real y, real radius, real angle_rad, real width) {
    if (angle_rad == R(0.0)) return;
    SimSinCos at = {R(0.0), R(1.0)};
    sim_frame_begin(f, SIM_LINE, SIM_FORCE, width);
    for (int32_t i = 0; i <= 12; i++) {
        at = sim_sincos(angle_rad * (real)i / R(12.0));
        sim_frame_point(f, x + radius * at.sin, y - radius * at.cos);
    }
    real ahead = angle_rad < R(0.0) ? R(-2.5) * width : R(2.5) * width, inner = radius - R(1.6) * width;
    real outer = radius + R(1.6) * width, end_x = x + radius * at.sin, end_y = y - radius * at.cos;
    sim_frame_triangle(f, SIM_FORCE, end_x + ahead * at.cos, end_y + ahead * at.sin, x + inner * at.sin,
                       y - inner * at.cos, x + outer * at.sin, y - outer * at.cos);
}

#endif
