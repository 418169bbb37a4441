// Hooks for a profiler: named scopes with a category. Nothing is attached by default, and a scope then costs one load
// and one predictable branch at each end.
//
//     HOST_TRACE_SCOPE(SIMULATION, "rollout");      until the enclosing block ends
//
// Ownership: the hooks and all names must live as long as they are attached (use literals and statics). Errors: none.
// Thread safety: scopes from any thread, properly nested per thread; attach and detach while no scope is open. The
// pointer is one of Shoal's three mutable globals.
#ifndef SHOAL_HOST_TRACE_H
#define SHOAL_HOST_TRACE_H

#include <stddef.h>

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
        HOST_TRACE_CATEGORIES
} HostTraceCategory;

typedef struct HostTraceHooks {
    void (*begin)(HostTraceCategory category, const char *name);
    void (*end)(void); // ends the innermost scope of this thread
} HostTraceHooks;

extern const HostTraceHooks *host_trace_attached; // NULL: off. Read through the functions below.

// NULL detaches.
void host_trace_attach(const HostTraceHooks *hooks);

// "simulation", "policy", ...
const char *host_trace_category_name(HostTraceCategory category);

// Opens a scope; the return value goes to host_trace_end, so that both ends see the same hooks.
static inline const HostTraceHooks *host_trace_begin(HostTraceCategory category, const char *name) {
    const HostTraceHooks *hooks = __atomic_load_n(&host_trace_attached, __ATOMIC_ACQUIRE);
    if (__builtin_expect(hooks != NULL, 0)) hooks->begin(category, name);
    return hooks;
}

static inline void host_trace_end(const HostTraceHooks *hooks) {
    if (__builtin_expect(hooks != NULL, 0)) hooks->end();
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
