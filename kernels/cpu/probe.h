// What a loop consists of that does the work of several categories at once, as the profiler that is attached wants it.
//
// Sampled: one round of 64, picked at random, is timed, and the profiler told in what proportion (host_trace_split()).
// A loop whose parts overlap finds that in a way of its own and adds it (cpu_probe_add()). Full: each round is
// recorded, as scopes. They take time of their own, and spoil the overlap of what comes before and after; so stretches
// of some rounds, picked at random, are left plain, and the profiler is told how long each stretch took
// (host_trace_stretch()).
//
//     cpu_probe_open(probe, 64);
//     for (...) {
//         bool is_measured = cpu_probe_takes(probe);
//         if (is_measured) cpu_probe_enter(probe, HOST_TRACE_POLICY, CPU_PROBE_EVERY);
//         ...
//         if (is_measured) cpu_probe_turn(probe, HOST_TRACE_SIMULATION);
//         ...
//         if (is_measured) cpu_probe_leave(probe);
//         cpu_probe_count(probe, 1);
//     }
//     cpu_probe_close(probe);
//
// Ownership: plain data, one for each thread. Errors: none. Thread safety: one thread at a time.
#ifndef SHOAL_KERNELS_CPU_PROBE_H
#define SHOAL_KERNELS_CPU_PROBE_H

#include <stdbool.h>
#include <string.h>

#include "host/trace.h"

enum {
    CPU_PROBE_EVERY = 64,       // rounds, one of which is timed
    CPU_PROBE_PLAIN_EVERY = 4,  // stretches, one of which is plain
    CPU_PROBE_INTERRUPTED = 16, // times what is usual
};

typedef struct CpuProbe {
    const HostTraceHooks *hooks;    // NULL: off
    const HostTraceHooks *recorded; // the same where rounds are recorded now, or else NULL
    bool is_plain;                  // full: the stretch under way
    uint32_t count;                 // rounds (sampled) or stretches (full) of all loops of this thread

    // Sampled: the time of what is open, and what it stands for.
    HostTraceCategory category;
    uint64_t since, stands_for;
    uint64_t reading;                     // what one reading of the clock takes; 0: not known yet
    int64_t ticks[HOST_TRACE_CATEGORIES]; // less what the profiler was told
    double usual_all, usual_acts;         // of the latest rounds, a step: of all, and of the policy alone; 0: none yet

    // Full: the stretch under way.
    uint32_t units, length;
    const char *paused; // the name of its loop, between two parts of it; else NULL
} CpuProbe;

// The finaliser of MurmurHash3 (Appleby): every bit of the number counts for every bit of the result, so that what it
// picks has nothing to do with what a loop does in turn.
static inline bool cpu_probe_picks(uint32_t number, uint32_t every) {
    number ^= number >> 16;
    number *= UINT32_C(0x85ebca6b);
    number ^= number >> 13;
    number *= UINT32_C(0xc2b2ae35);
    number ^= number >> 16;
    return number < UINT32_MAX / every;
}

// Ticks after all that comes before: a processor would read its counter before that is done.
static inline uint64_t cpu_probe_ticks(void) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return host_trace_ticks();
}

static inline uint64_t cpu_probe_reading(void) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t begin = cpu_probe_ticks(), ticks = cpu_probe_ticks() - begin;
        if (ticks < least) least = ticks;
    }
    return least;
}

// Ends a stretch of so many units (0: there was none), and picks what the next one is.
static inline void cpu_probe_next_stretch(CpuProbe *probe) {
    probe->hooks->stretch(probe->hooks, HOST_STRETCH_NEXT, probe->recorded == NULL, probe->units);
    probe->is_plain = cpu_probe_picks(++probe->count, CPU_PROBE_PLAIN_EVERY);
    probe->recorded = probe->is_plain ? NULL : probe->hooks;
    probe->units = 0;
}

// Around a thread's part of a loop, within the loop's scope. A stretch has `length` units or a few more.
static inline void cpu_probe_open(CpuProbe *probe, uint32_t length) {
    probe->hooks = host_trace_hooks();
    probe->recorded = NULL;
    probe->paused = NULL;
    probe->length = length;
    probe->units = 0;
    if (__builtin_expect(probe->hooks == NULL, 1)) return;
    if (probe->hooks->is_full) {
        cpu_probe_next_stretch(probe);
    } else if (probe->reading == 0) {
        probe->reading = cpu_probe_reading();
    }
}

// Sums below 0 wait for others: what slows a round down now and then makes it say too much or too little, and all of
// them together do not.
static inline void cpu_probe_split(CpuProbe *probe) {
    uint64_t weight[HOST_TRACE_CATEGORIES];
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        weight[c] = probe->ticks[c] > 0 ? (uint64_t)probe->ticks[c] : 0;
        probe->ticks[c] -= (int64_t)weight[c];
    }
    host_trace_split(weight);
}

static inline void cpu_probe_close(CpuProbe *probe) {
    if (__builtin_expect(probe->hooks == NULL, 1)) return;
    if (!probe->hooks->is_full) {
        cpu_probe_split(probe);
    } else if (probe->units > 0) {
        cpu_probe_next_stretch(probe);
    }
    probe->hooks = probe->recorded = NULL;
}

// The same around parts that are shorter than a stretch: one goes on in the next part of the loop of that name (a
// literal). What another loop finds is given up.
static inline void cpu_probe_open_part(CpuProbe *probe, uint32_t length, const char *loop) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks == NULL || !hooks->is_full || probe->hooks != hooks || probe->paused != loop, 1)) {
        cpu_probe_open(probe, length);
        return;
    }
    probe->recorded = probe->is_plain ? NULL : hooks;
    hooks->stretch(hooks, HOST_STRETCH_RESUME, probe->is_plain, 0);
}

static inline void cpu_probe_close_part(CpuProbe *probe, const char *loop) {
    if (__builtin_expect(probe->hooks == NULL, 1)) return;
    if (!probe->hooks->is_full) {
        probe->hooks = NULL; // it has nothing to tell
        return;
    }
    probe->hooks->stretch(probe->hooks, HOST_STRETCH_PAUSE, probe->is_plain, 0);
    probe->paused = loop;
    probe->recorded = NULL;
}

// Whether the round that begins is measured.
static inline bool cpu_probe_takes(CpuProbe *probe) {
    if (__builtin_expect(probe->hooks == NULL, 1)) return false;
    if (probe->hooks->is_full) return probe->recorded != NULL;
    return cpu_probe_picks(++probe->count, CPU_PROBE_EVERY);
}

// Whether what happens now and then, besides the rounds, is measured: always, but for plain stretches.
static inline bool cpu_probe_takes_apart(const CpuProbe *probe) {
    return __builtin_expect(probe->hooks != NULL, 0) && (!probe->hooks->is_full || probe->recorded != NULL);
}

// Ticks since `begin`, but for the reading that ends them.
static inline uint64_t cpu_probe_since(const CpuProbe *probe, uint64_t begin, uint64_t now) {
    uint64_t ticks = now - begin;
    return ticks > probe->reading ? ticks - probe->reading : 0;
}

// Whether that is so much more than usual that the processor must have been taken away. When it goes on, it is usual.
static inline bool cpu_probe_is_interrupted(double *usual, double ticks) {
    if (*usual > 0.0 && ticks > CPU_PROBE_INTERRUPTED * *usual) {
        *usual *= 2.0;
        return true;
    }
    *usual += (*usual > 0.0 ? 0.125 : 1.0) * (ticks - *usual);
    return false;
}

// Sampled: a round of `steps` took `all` ticks, and `acted` steps of the policy alone took `acts`. The rest is the
// simulator's; of one round it may be less than nothing. Interrupted rounds do not count, nor do those without a step.
static inline void cpu_probe_add_round(CpuProbe *probe, uint64_t all, uint64_t steps, uint64_t acts, uint64_t acted) {
    if (steps == 0 || acted == 0) return;
    const bool is_cut = cpu_probe_is_interrupted(&probe->usual_all, (double)all / (double)steps);
    if (cpu_probe_is_interrupted(&probe->usual_acts, (double)acts / (double)acted) || is_cut) return;
    const int64_t policy = (int64_t)(acts * steps / acted);
    probe->ticks[HOST_TRACE_POLICY] += policy * CPU_PROBE_EVERY;
    probe->ticks[HOST_TRACE_SIMULATION] += ((int64_t)all - policy) * CPU_PROBE_EVERY;
}

// What follows is of this category. `stands_for`: CPU_PROBE_EVERY in a round, 1 for what is always measured.
static inline void cpu_probe_enter(CpuProbe *probe, HostTraceCategory category, uint64_t stands_for) {
    if (probe->recorded != NULL) {
        probe->recorded->begin(probe->recorded, category, host_trace_category_name(category));
        return;
    }
    probe->category = category;
    probe->stands_for = stands_for;
    probe->since = cpu_probe_ticks();
}

static inline void cpu_probe_leave(CpuProbe *probe) {
    if (probe->recorded != NULL) {
        probe->recorded->end(probe->recorded);
        return;
    }
    probe->ticks[probe->category] +=
        (int64_t)(cpu_probe_since(probe, probe->since, cpu_probe_ticks()) * probe->stands_for);
}

// The one ends, the next begins.
static inline void cpu_probe_turn(CpuProbe *probe, HostTraceCategory category) {
    if (probe->recorded != NULL) {
        cpu_probe_leave(probe);
        cpu_probe_enter(probe, category, CPU_PROBE_EVERY);
        return;
    }
    uint64_t now = cpu_probe_ticks();
    probe->ticks[probe->category] += (int64_t)(cpu_probe_since(probe, probe->since, now) * probe->stands_for);
    probe->category = category;
    probe->since = now;
}

// A scope of full detail only, of the enclosing one's category, within a recorded round.
static inline void cpu_probe_begin(const CpuProbe *probe, const char *name) {
    if (__builtin_expect(probe->recorded != NULL, 0)) {
        probe->recorded->begin(probe->recorded, HOST_TRACE_ENCLOSING, name);
    }
}

static inline void cpu_probe_end(const CpuProbe *probe) {
    if (__builtin_expect(probe->recorded != NULL, 0)) probe->recorded->end(probe->recorded);
}

// After a round: it did so many units.
static inline void cpu_probe_count(CpuProbe *probe, uint32_t units) {
    if (__builtin_expect(probe->hooks == NULL || !probe->hooks->is_full, 1)) return;
    probe->units += units;
    if (probe->units >= probe->length) cpu_probe_next_stretch(probe);
}

#endif
