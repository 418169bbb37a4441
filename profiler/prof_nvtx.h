// Scopes as NVTX ranges, for tools such as Nsight Systems: domain "shoal", a category for each of host/trace.h. A
// pool's threads that help with a scope have a range of its name, too. What a fused loop consists of (split) has no
// place there.
//
// Ownership: static. Errors: none; where the toolkit's headers were missing at build time, nothing is attached. Thread
// safety: as host_trace_attach().
#ifndef SHOAL_PROFILER_PROF_NVTX_H
#define SHOAL_PROFILER_PROF_NVTX_H

#ifdef __cplusplus
extern "C" {
#endif

// Once, before anything is traced: where a tool takes NVTX ranges (NVTX_INJECTION64_PATH is set, as Nsight Systems
// does), to the hooks of host/trace.h, until something else is attached: a profile of Shoal's own.
void prof_nvtx_attach(void);

#ifdef __cplusplus
}
#endif

#endif
