#include "host/trace.h"

const HostTraceHooks *host_trace_attached = NULL;

void host_trace_attach(const HostTraceHooks *hooks) { __atomic_store_n(&host_trace_attached, hooks, __ATOMIC_RELEASE); }

const char *host_trace_category_name(HostTraceCategory category) {
    static const char *const names[] = {"simulation", "policy", "learning", "communication", "host", "io", "idle"};
    _Static_assert(sizeof names / sizeof names[0] == HOST_TRACE_CATEGORIES, "a name for each category");
    return (unsigned)category < HOST_TRACE_CATEGORIES ? names[category] : "?";
}

const char *host_trace_phase_name(HostTracePhase phase) {
    static const char *const names[] = {"setup", "warm-up", "train", "evaluate"};
    _Static_assert(sizeof names / sizeof names[0] == HOST_TRACE_PHASES, "a name for each phase");
    return (unsigned)phase < HOST_TRACE_PHASES ? names[phase] : "?";
}
