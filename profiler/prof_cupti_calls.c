// Calls of CUDA's interfaces, as CUPTI tells them to the thread that makes them: no lock, no memory.
#include <string.h>

#include "profiler/prof_cupti_state.h"

// Of the runtime's calls that this thread is in: the driver's calls within are the runtime's own.
static _Thread_local struct { uint32_t depth, correlation; } within __attribute__((tls_model("initial-exec")));

// ---- which calls ---------------------------------------------------------------------------------------------------

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

// Too short to be looked at, and made all the time.
static bool is_trivial(const char *name) {
    static const char *const parts[] = {
        "GetLastError", "PeekAtLastError",   "GetErrorName", "GetErrorString",   "GetDevice",
        "SetDevice",    "CallConfiguration", "GetAttribute", "SetAttribute",     "Occupancy",
        "IsCapturing",  "GetCaptureInfo",    "GetVersion",   "DriverGetVersion", "StreamQuery",
        "EventQuery",   "EventElapsed",      "PointerGet",   "CtxGet",           "CtxPush",
        "CtxPop",       "CtxSetCurrent",     "RuntimeGet",   "EntryPoint",       "PCIBusId"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (has(name, parts[i])) return true;
    }
    return false;
}

// Memory, or a pool of it: CUPTI's records of these say which call it was.
static bool allocates(const char *name) {
    static const char *const parts[] = {"lloc", "Free", "MemPoolCreate", "MemPoolTrim", "MemPoolDestroy"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (has(name, parts[i])) return !has(name, "Graph");
    }
    return false;
}

// Makes work for a device. A graph's nodes have calls of these names, too, which make none.
static bool launches(const char *name) {
    if (has(name, "Graph")) return has(name, "GraphLaunch");
    return has(name, "Launch") || has(name, "Memcpy") || has(name, "Memset") || has(name, "MemPrefetch");
}

static bool waits(const char *name) {
    if (has(name, "Synchronize")) return true;
    return has(name, "Memcpy") && !has(name, "Graph") && !has(name, "Async") && !has(name, "Batch");
}

static uint8_t class_of(CUpti_CallbackDomain domain, const char *name) {
    uint8_t bits = (uint8_t)((launches(name) ? PROF_CALL_LAUNCHES : 0) | (waits(name) ? PROF_CALL_WAITS : 0) |
                             (allocates(name) ? PROF_CALL_ALLOCATES : 0));
    // Of the driver only what makes work, waits or allocates: a program that calls the driver itself does that there.
    bool is_recorded = domain == CUPTI_CB_DOMAIN_DRIVER_API ? bits != 0 : !is_trivial(name);
    return is_recorded ? bits | PROF_CALL_RECORDED : 0;
}

static Status choose(ProfCupti *c, CUpti_CallbackDomain domain, uint32_t count, uint8_t *bits) {
    for (uint32_t id = 1; id < count && id < PROF_CUPTI_CALLS_MAX; id++) {
        const char *name = NULL;
        bits[id] = 0;
        if (c->calls.cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || name == NULL) continue; // a gap
        bits[id] = class_of(domain, name);
        if (bits[id] != 0) CUPTI_TRY(c, cuptiEnableCallback, 1, c->subscriber, domain, id);
    }
    return STATUS_OK;
}

Status prof_cupti_choose_calls(ProfCupti *c) {
    static const CUpti_CallbackId of_graphs[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                                 CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};
    TRY(choose(c, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, c->runtime));
    TRY(choose(c, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, c->driver));
    for (size_t i = 0; i < sizeof of_graphs / sizeof of_graphs[0]; i++)
        CUPTI_TRY(c, cuptiEnableCallback, 1, c->subscriber, CUPTI_CB_DOMAIN_RESOURCE, of_graphs[i]);
    return STATUS_OK;
}

// ---- callbacks -----------------------------------------------------------------------------------------------------

static void on_graph(ProfCupti *c, ProfRecorder *recorder, CUpti_CallbackId id, const CUpti_ResourceData *data) {
    const CUpti_GraphData *graph = data->resourceDescriptor;
    uint64_t node = 0, original = 0;
    if (graph == NULL || c->calls.cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS) return;
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        prof_record_capture(recorder, node);
    } else if (c->calls.cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS) {
        prof_record_clone(recorder, node, original);
    }
}

static void on_enter(ProfRecorder *recorder, bool is_driver, uint8_t bits, const CUpti_CallbackData *call) {
    bool is_launch = (bits & PROF_CALL_LAUNCHES) != 0, has_records = (bits & PROF_CALL_HAS_RECORDS) != 0;
    if (is_driver && within.depth > 0) {
        // Records have the number of the one call or of the other.
        if (has_records && call->correlationId != within.correlation)
            prof_record_call_number(recorder, is_launch, call->correlationId);
        return;
    }
    prof_record_call_begin(recorder, call->functionName, (bits & PROF_CALL_WAITS) != 0, is_launch,
                           has_records ? call->correlationId : 0);
    *call->correlationData = 1; // the end of this call ends a scope
    if (is_driver) return;
    within.depth++;
    within.correlation = call->correlationId;
}

void CUPTIAPI prof_cupti_on_call(void *cupti, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    ProfCupti *c = cupti;
    ProfRecorder *recorder = atomic_load_explicit(&c->recorder, memory_order_acquire);
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        if (recorder != NULL) on_graph(c, recorder, id, data);
        return;
    }
    const CUpti_CallbackData *call = data;
    bool is_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
    if (id >= PROF_CUPTI_CALLS_MAX) return;
    if (call->callbackSite == CUPTI_API_ENTER) {
        *call->correlationData = 0;
        if (recorder != NULL) on_enter(recorder, is_driver, is_driver ? c->driver[id] : c->runtime[id], call);
    } else if (*call->correlationData == 1) {
        *call->correlationData = 0;
        if (!is_driver) within.depth--;
        if (recorder != NULL) prof_record_call_end(recorder);
    }
}
