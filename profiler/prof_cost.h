// What the profiler costs on this machine, and what a run would have taken without it.
//
// Each entry of a scope costs the thread `pair_ns` in all, of which `inside_ns` fall between the two times that are
// recorded, and count for the scope; the rest counts for the scope around it. The first is measured as RL-Scope does it
// ("delta calibration"): the same work with scopes and without, in turn; the second by empty scopes. A processor works
// on what comes before and after while it reads its counter, so that where the cost falls is known no better than to
// some tens of nanoseconds.
//
// Ownership: plain data. Errors: STATUS_IO, STATUS_CORRUPT (the file of costs), and those of the recorder. Thread
// safety: none.
#ifndef SHOAL_PROFILER_PROF_COST_H
#define SHOAL_PROFILER_PROF_COST_H

#include <stdbool.h>

#include "host/file.h"
#include "profiler/prof_summary.h"

#ifdef __cplusplus
extern "C" {
#endif

// The median of repeated measurements, and its 95% confidence interval (by order statistics).
typedef struct ProfEstimate {
    double low, median, high;
} ProfEstimate;

typedef struct ProfCost {
    char host[PROF_TEXT_MAX], cpu[PROF_TEXT_MAX]; // the machine that it was measured on
    ProfEstimate pair_ns, inside_ns;
} ProfCost;

// Takes a second. Records into a temporary file.
Status prof_cost_measure(ProfCost *cost) HOST_MUST_CHECK;

// The file for this user and machine: shoal/profiler-cost.json in XDG_CACHE_HOME, or else in ~/.cache.
Status prof_cost_path(char path[HOST_PATH_MAX]) HOST_MUST_CHECK;
Status prof_cost_save(const ProfCost *cost, const char *path) HOST_MUST_CHECK;
// found: false where there is no file, or it is of another machine.
Status prof_cost_load(const char *path, ProfCost *cost, bool *found) HOST_MUST_CHECK;

// The median of `count` values, which are sorted; count >= 6.
ProfEstimate prof_estimate(double *values, int count);

// The time that workers would have taken in all: the wall without what the main threads spent on scopes.
ProfEstimate prof_cost_wall(const ProfCost *cost, const ProfSummary *summary);

// A scope's own time without that of its entries and the entries below it; never below 0.
ProfEstimate prof_cost_scope(const ProfCost *cost, const ProfScope *scope);

#ifdef __cplusplus
}
#endif

#endif
