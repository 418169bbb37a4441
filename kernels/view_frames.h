// Frames of drawings as JSON, small: points rounded to a unit, shapes written where they are not in the frame before.
//
// Ownership: view_frames_open()/view_frames_close(). Errors: STATUS_MEMORY; STATUS_NUMERIC names what of a drawing
// cannot be kept. Thread safety: none.
#ifndef SHOAL_KERNELS_VIEW_FRAMES_H
#define SHOAL_KERNELS_VIEW_FRAMES_H

#include "host/json_text.h"
#include "sim/sim_draw.h"

#ifdef __cplusplus
extern "C" {
#endif

// A frame in whole units.
typedef struct ViewFrame {
    int32_t shapes;
    int32_t number[SIM_FRAME_SHAPES]; // of each shape, in the order in which they are written
    int32_t first[SIM_FRAME_SHAPES];  // word
    int32_t count[SIM_FRAME_SHAPES];  // words: kind, colour, size, then x and y of each point
    int32_t word[3 * SIM_FRAME_SHAPES + 2 * SIM_FRAME_POINTS];
} ViewFrame;

typedef struct ViewFrames {
    SimFrame drawn;       // the caller draws here
    ViewFrame *now, *old; // this frame, and the one before
    double unit;          // 0: no frame yet
    int32_t shapes, views;
    int32_t view[4]; // the latest: left, bottom, right, top
    JsonText shape;  // the shapes' list, open
    JsonText place;  // the views' list, open
} ViewFrames;

Status view_frames_open(ViewFrames *frames) HOST_MUST_CHECK;
void view_frames_close(ViewFrames *frames);

// Puts what was drawn to `stream` as a list of numbers.
Status view_frames_put(ViewFrames *frames, FILE *stream) HOST_MUST_CHECK;

// Puts the members unit, shapes and views of an object to `stream`. The last thing to be done.
Status view_frames_finish(ViewFrames *frames, FILE *stream) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
