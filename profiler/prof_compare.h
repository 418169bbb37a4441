// Several runs side by side: each one's sharding configuration (devices x workers x envs), what it gained over the
// first one, and what of that its resources would have let expect.
//
// Where every run says how many env steps it did, speed-up is of env steps per second of the phases that train (warm-up
// and training); else of the wall clock, which means something only where the work is the same. Efficiency is speed-up
// over the growth of what the runs differ in: devices where all ran on GPUs, threads where all ran on CPUs, else
// workers.
//
// Traces of one rank are the parts of one worker, one after the other.
//
// Ownership: plain data. Errors: none; a figure that is not known is NaN. Thread safety: none needed.
#ifndef SHOAL_PROFILER_PROF_COMPARE_H
#define SHOAL_PROFILER_PROF_COMPARE_H

#include "profiler/prof_report.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of all workers together; 0: unknown.
typedef struct ProfScale {
    int64_t workers, devices, threads, envs, env_steps;
    bool is_cpu, is_gpu;    // every worker is
    double wall_s;          // a worker's, the mean
    double env_steps_per_s; // of all workers; NaN: unknown
} ProfScale;

ProfScale prof_scale(const ProfSummary *summary);

typedef enum ProfResource { PROF_RESOURCE_WORKER, PROF_RESOURCE_THREAD, PROF_RESOURCE_DEVICE } ProfResource;

const char *prof_resource_name(ProfResource resource); // "worker", ...

typedef struct ProfBasis {
    bool is_by_steps; // speed-up; else by the wall clock
    ProfResource resource;
} ProfBasis;

ProfBasis prof_compare_basis(const ProfRun *runs, int count);
double prof_compare_speed_up(ProfBasis basis, const ProfRun *first, const ProfRun *run);
double prof_compare_efficiency(ProfBasis basis, const ProfRun *first, const ProfRun *run);

#ifdef __cplusplus
}
#endif

#endif
