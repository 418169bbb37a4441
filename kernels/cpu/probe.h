// What a loop consists of that does the work of several categories at once: one round of 64, picked at random, is timed
// while a profiler is attached, and the profiler told in what proportion (host_trace_split()).
//
// Ownership: plain data, one for each thread. Errors: none. Thread safety: one thread at a time.
#ifndef SHOAL_KERNELS_CPU_PROBE_H
#define SHOAL_KERNELS_CPU_PROBE_H

#include <stdbool.h>
#include <string.h>

#include "host/trace.h"

enum { CPU_PROBE_EVERY = 64 };

typedef struct CpuProbe {
    bool is_on;
    uint32_t rounds; // of all loops of this thread
    uint64_t ticks[HOST_TRACE_CATEGORIES];
} CpuProbe;

// Around a thread's part of a loop, within the loop's scope.
static inline void cpu_probe_open(CpuProbe *probe) {
    probe->is_on = host_trace_hooks() != NULL;
    memset(probe->ticks, 0, sizeof probe->ticks);
}

static inline void cpu_probe_close(CpuProbe *probe) {
    if (probe->is_on) host_trace_split(probe->ticks);
}

// Whether the round that begins is timed.
static inline bool cpu_probe_takes(CpuProbe *probe) {
    return __builtin_expect(probe->is_on, 0) && ++probe->rounds * UINT32_C(0x9e3779b1) < UINT32_MAX / CPU_PROBE_EVERY;
}

// The time since `since` goes to a category; returns the present. `stands_for`: CPU_PROBE_EVERY in a round that was
// picked, 1 for what is always timed.
static inline uint64_t cpu_probe_lap(CpuProbe *probe, uint64_t since, HostTraceCategory category, uint64_t stands_for) {
    uint64_t now = host_trace_ticks();
    probe->ticks[category] += (now - since) * stands_for;
    return now;
}

#endif
