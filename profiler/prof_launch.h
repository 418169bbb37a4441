// --profile of a program that trains: a trace in its run's folder, with its GPU's work where it computes on one. The
// functions are those of a KernProfiler (kernels/launcher.h).
//
// Ownership: a ProfLaunch must last as long as any thread may be in a scope; zeros at first. Errors: STATUS_IO,
// STATUS_MEMORY, STATUS_SYSTEM. Thread safety: as prof_recorder_start().
#ifndef SHOAL_PROFILER_PROF_LAUNCH_H
#define SHOAL_PROFILER_PROF_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "host/file.h"
#include "profiler/prof_cupti.h"
#include "profiler/prof_record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfLaunch {
    ProfRecorder *recorder;
    ProfCupti *cupti; // NULL: no GPU's work is recorded
    char run[HOST_PATH_MAX];
} ProfLaunch;

// The trace is RUN/profile/rank-R.trace, or rank-R.2.trace and so on where there are traces already. `text` receives
// why a GPU's work cannot be recorded, which ends no profile; "" where it is.
Status prof_launch_start(void *launch, const HostTraceRun *run, char *text, size_t size) HOST_MUST_CHECK;
// The same for any process; the options' path and collector are filled in. asks_now: as of ProfCuptiOptions. Ids of
// other tools are recorded where SHOAL_PROFILE_IDS is 1.
Status prof_launch_record(ProfLaunch *launch, const char *run, const ProfRecordOptions *options, bool asks_now,
                          char *text, size_t size) HOST_MUST_CHECK;
// env_steps: done meanwhile; 0: unknown.
Status prof_launch_stop(void *launch, int64_t env_steps, char *text, size_t size) HOST_MUST_CHECK;
void prof_launch_free(ProfLaunch *launch);

#ifdef __cplusplus
}
#endif

#endif
