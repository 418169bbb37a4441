// Episodes of a tested policy as a page for a browser: kernels/view/, with the drawing of every step in it.
//
// The data is one JSON object (kernels/view.c writes it, kernels/view/view.js reads it). Points are whole numbers of
// `unit`, a shape's after the first as differences. A shape that was in the frame before is not written again: frames
// are lists of shapes' numbers, the first one and then differences, behind the number of their view.
//
// Ownership: everything is the caller's. Errors: STATUS_USAGE: the simulator has no drawing, or the episodes are too
// long; STATUS_NUMERIC: a drawing is not finite, or a replay does not give the test's return; STATUS_STOPPED; those of
// host_file_replace(). Thread safety: none.
#ifndef SHOAL_KERNELS_VIEW_H
#define SHOAL_KERNELS_VIEW_H

#include "kernels/frozen.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KERN_VIEW_STEPS_MAX = 200000 }; // of a page's episodes together

// What a page says of the test besides its episodes.
typedef struct KernViewInfo {
    const char *tool, *run, *device;
    char params_hash[17];
    int64_t test_episodes;
    KernTest test;
} KernViewInfo;

// Whether the simulator can be drawn.
Status kern_view_check(const SimSpec *sim) HOST_MUST_CHECK;

// Writes episodes [0, count) of the test of that round to `path`, which is replaced as a whole or left as it is.
Status kern_view_write(const KernFrozen *frozen, uint32_t round, int32_t count, const KernViewInfo *info,
                       const char *path) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
