// --profile of a program that trains: a trace in its run's folder. The functions are those of a KernProfiler
// (kernels/launcher.h).
//
// Ownership: a ProfLaunch must last as long as any thread may be in a scope; zeros at first. Errors: STATUS_IO,
// STATUS_MEMORY, STATUS_SYSTEM. Thread safety: as prof_recorder_start().
#ifndef SHOAL_PROFILER_PROF_LAUNCH_H
#define SHOAL_PROFILER_PROF_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "host/file.h"
#include "profiler/prof_record.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfLaunch {
    ProfRecorder *recorder;
    char run[HOST_PATH_MAX];
} ProfLaunch;

// The trace is RUN/profile/rank-0.trace, or rank-0.2.trace and so on where a call before this one left traces.
Status prof_launch_start(void *launch, const char *run, const char *tool, const char *device_kind, const char *device,
                         bool is_full) HOST_MUST_CHECK;
Status prof_launch_stop(void *launch, char *text, size_t size) HOST_MUST_CHECK;
void prof_launch_free(ProfLaunch *launch);

#ifdef __cplusplus
}
#endif

#endif
