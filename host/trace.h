// Hooks for a profiler: named scopes with a category. Nothing is attached by default, and a scope then costs one load
// and one predictable branch at each end.
//
//     HOST_TRACE_SCOPE(SIMULATION, "rollout");      until the enclosing block ends
//
// Scopes that have no further working scopes within them are leaves: the time of a program should lie in them. Where
// one loop does the work of several categories, it measures some of its rounds and says how the time of its scope is to
// be shared out: host_trace_split(). Where the profiler wants full detail, such a loop opens scopes in its rounds, but
// for stretches of it that are picked at random and left plain, and says of each stretch how long it took
// (host_trace_stretch()): the difference is what the scopes cost there.
//
// Ownership: the hooks and all names must live as long as they are attached (use literals and statics). Errors: none.
// Thread safety: scopes from any thread, properly nested per thread. Attach and detach while no loop of a pool runs; a
// scope that is open then is ended with the hooks that it was begun with, which must bear it. The pointer is one of
// the three mutable globals of host/.
#ifndef SHOAL_HOST_TRACE_H
#define SHOAL_HOST_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include "host/clock.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

// T(name, what its time is spent on)
#define HOST_TRACE_LIST(T)                       \
    T(SIMULATION, "stepping environments")       \
    T(POLICY, "evaluating the policy")           \
    T(LEARNING, "updating parameters")           \
    T(COMMUNICATION, "collectives and messages") \
    T(HOST, "bookkeeping on the host")           \
    T(IO, "files")                               \
    T(IDLE, "waiting")

typedef enum HostTraceCategory {
#define HOST_TRACE_ENUM(name, meaning) HOST_TRACE_##name,
    HOST_TRACE_LIST(HOST_TRACE_ENUM)
#undef HOST_TRACE_ENUM
        HOST_TRACE_CATEGORIES,
    HOST_TRACE_ENCLOSING = 15, // instead of a category: that of the enclosing scope
} HostTraceCategory;

// P(name, what the process does)
#define HOST_TRACE_PHASE_LIST(P)                                \
    P(SETUP, "preparing")                                       \
    P(WARM_UP, "the first step, which fills memory and caches") \
    P(TRAIN, "training")                                        \
    P(EVALUATE, "testing the policy")

typedef enum HostTracePhase {
#define HOST_TRACE_PHASE_ENUM(name, meaning) HOST_PHASE_##name,
    HOST_TRACE_PHASE_LIST(HOST_TRACE_PHASE_ENUM)
#undef HOST_TRACE_PHASE_ENUM
        HOST_TRACE_PHASES
} HostTracePhase;

// A scope that is open on some thread, for others to join. All zeros: none.
typedef struct HostTraceMark {
    const char *name;
    HostTraceCategory category;
    uint32_t thread;
} HostTraceMark;

// The run whose process is recorded, as its trace says it.
typedef struct HostTraceRun {
    const char *folder, *tool;
    const char *device_kind, *device; // "cpu" or "cuda"; for people
    int64_t devices, threads;         // that the process computes on: devices, threads of its pool
    int64_t envs;                     // in flight: environments, or members of a population; 0: unknown
    int64_t rank;                     // of the process among those of the run
    int64_t offset_ns;                // of a clock that all of them know, against this one's
    int64_t offset_error_ns;          // a bound of its error; -1: it is not known
    bool is_full;                     // full detail, see below
} HostTraceRun;

// What becomes of the stretch of a loop that is under way on a thread.
typedef enum HostTraceStretch {
    HOST_STRETCH_NEXT,   // it ends, if it has units, and another one begins
    HOST_STRETCH_PAUSE,  // its thread does other things for a while
    HOST_STRETCH_RESUME, // goes on with it
} HostTraceStretch;

typedef struct HostTraceHooks HostTraceHooks;
struct HostTraceHooks {
    void (*begin)(const HostTraceHooks *hooks, HostTraceCategory category, const char *name);
    void (*end)(const HostTraceHooks *hooks); // ends the innermost scope of this thread
    HostTraceMark (*mark)(const HostTraceHooks *hooks);
    void (*join)(const HostTraceHooks *hooks, HostTraceMark mark);
    void (*split)(const HostTraceHooks *hooks, const uint64_t weight[HOST_TRACE_CATEGORIES]);
    void (*phase)(const HostTraceHooks *hooks, HostTracePhase phase);
    void (*stretch)(const HostTraceHooks *hooks, HostTraceStretch what, bool is_plain, uint64_t units);
    bool is_full; // full detail: loops end stretches
};

extern const HostTraceHooks *host_trace_attached; // NULL: off. Read through the functions below.

// NULL detaches.
void host_trace_attach(const HostTraceHooks *hooks);

// "simulation", "policy", ...; "setup", "warm-up", ...; "?" where there is none.
const char *host_trace_category_name(HostTraceCategory category);
const char *host_trace_phase_name(HostTracePhase phase);

static inline const HostTraceHooks *host_trace_hooks(void) {
    return __atomic_load_n(&host_trace_attached, __ATOMIC_ACQUIRE);
}

// Opens a scope; the return value goes to host_trace_end, so that both ends see the same hooks.
static inline const HostTraceHooks *host_trace_begin(HostTraceCategory category, const char *name) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks != NULL, 0)) hooks->begin(hooks, category, name);
    return hooks;
}

static inline void host_trace_end(const HostTraceHooks *hooks) {
    if (__builtin_expect(hooks != NULL, 0)) hooks->end(hooks);
}

// The innermost scope of this thread, for host_trace_join() on the threads that help with it.
static inline HostTraceMark host_trace_mark(void) {
    const HostTraceHooks *hooks = host_trace_hooks();
    HostTraceMark none = {NULL, (HostTraceCategory)0, 0};
    return __builtin_expect(hooks != NULL, 0) ? hooks->mark(hooks) : none;
}

// Opens the marked scope on this thread; nothing where the mark is none. Ended with host_trace_end().
static inline const HostTraceHooks *host_trace_join(HostTraceMark mark) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks == NULL || mark.name == NULL, 1)) return NULL;
    hooks->join(hooks, mark);
    return hooks;
}

// Adds to what the innermost scope of this thread consists of: its time, on all threads, is shared out in proportion to
// all weights that were given for it. Weights are ticks, up to 2^52.
static inline void host_trace_split(const uint64_t weight[HOST_TRACE_CATEGORIES]) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks != NULL, 0)) hooks->split(hooks, weight);
}

// Of a stretch of the loop whose scope is this thread's innermost. At its end: scopes were opened in it, or it is
// plain; the loop did `units` in it, as it counts them.
static inline void host_trace_stretch(HostTraceStretch what, bool is_plain, uint64_t units) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks != NULL, 0)) hooks->stretch(hooks, what, is_plain, units);
}

// The process goes over to another phase.
static inline void host_trace_phase(HostTracePhase phase) {
    const HostTraceHooks *hooks = host_trace_hooks();
    if (__builtin_expect(hooks != NULL, 0)) hooks->phase(hooks, phase);
}

// The cheapest clock of the processor, in ticks of its own: for weights.
static inline uint64_t host_trace_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)host_now_ns();
#endif
}

static inline void host_trace_scope_end(const HostTraceHooks **hooks) { host_trace_end(*hooks); }

#define HOST_TRACE_JOIN_(a, b) a##b
#define HOST_TRACE_JOIN(a, b)  HOST_TRACE_JOIN_(a, b)
#define HOST_TRACE_SCOPE(category, name)                               \
    const HostTraceHooks *HOST_TRACE_JOIN(host_trace_scope_, __LINE__) \
        __attribute__((cleanup(host_trace_scope_end), unused)) = host_trace_begin(HOST_TRACE_##category, name)

#ifdef __cplusplus
}
#endif

#endif
