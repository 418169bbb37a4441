// The parts of a calibration. Private to profiler/prof_cost*.c.
//
// Each part measures in PROF_COST_REPEATS rounds, and in each of them opens a scope whose name is the round's, or whose
// calls are: the trace then says how long they seemed to take.
//
// Ownership: none kept. Errors: Status, as each function says. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_COST_PARTS_H
#define SHOAL_PROFILER_PROF_COST_PARTS_H

#include "profiler/prof_cost.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_COST_REPEATS = 41 };

typedef struct ProfCostNames {
    char of[PROF_COST_REPEATS][16]; // "r00", "r01", ...: lasts as long as what records them
} ProfCostNames;

// Of the scopes of one round.
typedef struct ProfCostCell {
    double ns, records; // on average: time, RECORD events in it
} ProfCostCell;

// prof_cost_measure.c
void prof_cost_names(ProfCostNames *names);
// The rounds' scopes in the trace at `path`, or the calls of that name in them (NULL: the scopes themselves).
Status prof_cost_read(const char *path, const char *call, ProfCostCell cells[PROF_COST_REPEATS]) HOST_MUST_CHECK;
// How long the rounds' scopes, which are empty, seem to take.
Status prof_cost_insides(const char *path, ProfEstimate *inside) HOST_MUST_CHECK;

// prof_cost.c: host and cpu, of this machine.
void prof_cost_describe(ProfCost *cost);

// prof_cost_script.c: SCRIPT, by `python`, a program's name or path. STATUS_SYSTEM: it, or Shoal's module for it, is
// not there or fails, or does not end within a minute.
Status prof_cost_measure_script(const char *folder, const char *python, ProfCost *cost) HOST_MUST_CHECK;

// prof_cost_gpu.c: CALL, RECORD and kernels, on the first GPU. STATUS_DEVICE: there is none, or no CUPTI.
Status prof_cost_measure_gpu(const char *folder, ProfCost *cost) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
