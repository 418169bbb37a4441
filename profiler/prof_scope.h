// The profile of a program that is not Shoal's own, from its start to its end: what profiler/shoal_scope.h offers, and
// what libraries that are loaded into a program (prof_inject.c) share. There is one for each process.
//
// Ownership: none; it lasts as long as the process. Errors: Status. Thread safety: one thread at a time.
#ifndef SHOAL_PROFILER_PROF_SCOPE_H
#define SHOAL_PROFILER_PROF_SCOPE_H

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// folder, tool: as of shoal_profile_start(). NULL: SHOAL_PROFILE or else "shoal-profile"; the program's name.
Status prof_scope_start(const char *folder, const char *tool) HOST_MUST_CHECK;
Status prof_scope_stop(void) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
