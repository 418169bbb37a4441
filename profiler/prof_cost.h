// What the profiler costs on this machine, and what a run would have taken without it. There are two parts.
//
// Whatever the recorder does costs the thread something of its class (PROF_COST_LIST); what CUPTI does to tell of calls
// is part of theirs, and what an interpreter does of a SCRIPT's. A scope's begin and end cost
// that in all, of which `inside_ns` fall between the two times that are recorded, and count for the scope; the rest
// counts for the scope around it. The costs are measured as RL-Scope does it ("delta calibration"): the same work with
// and without, in turn; what falls inside, by empty scopes. A processor works on what comes before and after while it
// reads its counter, so that where the cost falls is known no better than to some tens of nanoseconds, and what dense
// scopes cost a loop not at all: caches, the recorder's own thread, and work that no longer overlaps slow it by what no
// cost of a single scope tells.
//
// So loops that are recorded in full detail have plain stretches, and what recording takes there is known from the run
// itself (ProfExcess). The scopes within such a loop are part of that, and are not counted again.
//
// Ownership: plain data. Errors: STATUS_IO, STATUS_CORRUPT (the file of costs), and those of the recorder. Thread
// safety: none.
#ifndef SHOAL_PROFILER_PROF_COST_H
#define SHOAL_PROFILER_PROF_COST_H

#include <stdbool.h>

#include "host/file.h"
#include "profiler/prof_estimate.h"
#include "profiler/prof_summary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfCost {
    char host[PROF_TEXT_MAX], cpu[PROF_TEXT_MAX]; // the machine that it was measured on
    bool is_known[PROF_COSTS];                    // SCRIPT, CALL and RECORD may not be
    ProfEstimate each_ns[PROF_COSTS];             // of each class
    ProfEstimate inside_ns[PROF_COSTS];           // of it, what falls between the two times that are recorded
    bool has_kernel;
    ProfEstimate kernel_ns; // that a kernel takes longer on its device because it is recorded
} ProfCost;

// Why a part was not measured; "" where it was.
typedef struct ProfCostMissing {
    char script[512], gpu[512];
} ProfCostMissing;

// What is to be taken off the wall clock, of main threads.
typedef struct ProfCorrection {
    ProfEstimate costs_ns;  // of everything outside of such loops; 0 where costs are not known
    ProfEstimate excess_ns; // of recorded stretches
    ProfEstimate wall_ns;   // what is left
} ProfCorrection;

// Takes two seconds, and as long again for each of the interpreter and the GPU. Records into a temporary folder.
// python: the interpreter whose scopes are measured, by profiler/shoal_scope.py.
Status prof_cost_measure(const char *python, ProfCost *cost, ProfCostMissing *missing) HOST_MUST_CHECK;

// The file for this user and machine: shoal/profiler-cost.json in XDG_CACHE_HOME, or else in ~/.cache.
Status prof_cost_path(char path[HOST_PATH_MAX]) HOST_MUST_CHECK;
Status prof_cost_save(const ProfCost *cost, const char *path) HOST_MUST_CHECK;
// found: false where there is no file, or it is of another machine.
Status prof_cost_load(const char *path, ProfCost *cost, bool *found) HOST_MUST_CHECK;

// The time that workers would have taken in all: the wall without what the main threads spent on recording. `cost`
// NULL: not known. With more threads than one it is the main thread's, which has its share of the loops, that bounds
// the wall. What falls while a device is busy may have lengthened the run or not, since a thread may have had to wait
// for the device anyway: half of it counts, and the interval reaches from none to all.
ProfCorrection prof_cost_correct(const ProfCost *cost, const ProfSummary *summary);

// corrected [scope_count]: each scope's own time without that of its entries and the entries below it; never below 0.
// Of a loop in full detail: the whole loop's time without its excess, shared out among the loop and its scopes as the
// recorded stretches had it; so plain stretches count, too.
Status prof_cost_scopes(const ProfCost *cost, const ProfSummary *summary, ProfEstimate *corrected) HOST_MUST_CHECK;

// A scope's device time without what its kernels took longer.
double prof_cost_device_ns(const ProfCost *cost, const ProfScope *scope);

const char *prof_cost_name(ProfCostClass of); // "scope", ...

#ifdef __cplusplus
}
#endif

#endif
