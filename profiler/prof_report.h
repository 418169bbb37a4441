// Reports: runs are loaded, and printed for people or for programs.
//
// Ownership: ProfRun owns its summary until freed. Errors: STATUS_USAGE (no such phase), STATUS_IO (no run, no traces,
// what cannot be written), STATUS_CORRUPT (no trace of several can be read), STATUS_MEMORY. Whether a stream took
// everything is the caller's to check. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_REPORT_H
#define SHOAL_PROFILER_PROF_REPORT_H

#include <stdio.h>

#include "host/file.h"
#include "profiler/prof_cost.h"
#include "profiler/prof_summary.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_TRACES_MAX = 4096 };

typedef struct ProfRun {
    char name[HOST_PATH_MAX]; // as it was asked for
    char **traces;            // [trace_count] paths, in order
    int trace_count;
    ProfSummary summary;
    ProfCost cost; // of the profiler, where it is known for the machine that the run was on
    bool has_cost;
    bool is_too_dense; // for it: see prof_run_correct()
    bool is_corrected; // by costs, or by what full detail says of itself
    ProfCorrection correction;
    ProfEstimate *corrected_ns; // [scope_count]
} ProfRun;

// ALL: everything. PAGE: for a page, the scopes with the most time in them, without their paths, and so many workers.
typedef enum ProfJsonForm { PROF_JSON_ALL, PROF_JSON_PAGE } ProfJsonForm;

// `path` is a run's folder, a folder of traces, or a trace. A trace that cannot be read is named on stderr and left
// out.
Status prof_run_load(const char *tool, const char *path, unsigned phases, ProfRun *run) HOST_MUST_CHECK;
// Takes what the profiler costs from the file at `path` (NULL: there is none), if it is of the run's machine; not where
// scopes outside of loops in full detail, those of an interpreter and calls of CUDA among them, cost more than a
// twentieth of the wall clock, each class at its own cost (one that is not known at that of a program's own scope).
// Then the recorder's own thread is busy beside the others, which slows them by what no cost of a single scope tells.
// After a failure the run is corrected by what full detail says of itself.
Status prof_run_correct(ProfRun *run, const char *path) HOST_MUST_CHECK;
// Scopes and calls of main threads that count for that.
int64_t prof_run_main_scopes(const ProfRun *run);
// Of a run that is corrected: what it is not corrected for, in whole sentences; "" where there is nothing.
const char *prof_run_unknown(const ProfRun *run, char text[512]);
void prof_run_free(ProfRun *run);

// `all`: also scopes that have less than a thousandth of the time.
void prof_report_text(const ProfRun *run, bool all, FILE *stream);
void prof_report_compare(const ProfRun *runs, int count, FILE *stream); // prof_compare.c
void prof_report_json(const ProfRun *runs, int count, ProfJsonForm form, FILE *stream);
void prof_report_csv(const ProfRun *runs, int count, FILE *stream);

// Trace events of Chromium's format, for Perfetto: all workers of a run on one time axis.
// Source: "Trace Event Format", the Chromium project.
Status prof_chrome_write(const ProfRun *run, FILE *stream) HOST_MUST_CHECK;

// A GPU's utilisation as its monitor shows it, beside what its intervals say; nothing where there was no monitor.
void prof_report_monitor(const ProfFigures *figures, FILE *stream);

// Waits, memory and other tools' ids, as calls of a device's interface had to do with them; nothing where there are
// none.
void prof_report_calls(const ProfSummary *summary, FILE *stream);

// Why a run has no GPU time; NULL where it has some.
const char *prof_report_no_gpu(const ProfSummary *summary, char *text, size_t size);

// One page for a browser that needs nothing else: figures, and a timeline of each run. It stays below some megabytes
// for traces of any length: prof_timeline.h.
Status prof_html_write(const ProfRun *runs, int count, FILE *stream) HOST_MUST_CHECK;

// "/a/b/c"; cut to `size`.
const char *prof_scope_path(const ProfSummary *summary, int32_t scope, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
