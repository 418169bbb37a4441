#include "profiler/prof_nvtx.h"

#include <stdbool.h>
#include <stdlib.h>

#include "host/trace.h"

#ifdef PROF_HAS_NVTX
#include <nvtx3/nvToolsExt.h>

enum { DEPTH_MAX = 64 }; // scopes that others can join

// The open scopes of this thread: NVTX does not tell.
static _Thread_local struct {
    int depth;
    HostTraceMark stack[DEPTH_MAX];
} here;

// Written before the hooks are attached.
static nvtxDomainHandle_t domain;

static void push(HostTraceMark mark) {
    nvtxEventAttributes_t range = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .category = (uint32_t)mark.category + 1, // 0: none
                                   .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                   .message = {.ascii = mark.name}};
    nvtxDomainRangePushEx(domain, &range);
    if (here.depth < DEPTH_MAX) here.stack[here.depth] = mark;
    here.depth++;
}

static void nvtx_begin(const HostTraceHooks *hooks, HostTraceCategory category, const char *name) {
    (void)hooks;
    push((HostTraceMark){name, category, 0});
}

static void nvtx_end(const HostTraceHooks *hooks) {
    (void)hooks;
    here.depth--;
    nvtxDomainRangePop(domain);
}

static HostTraceMark nvtx_mark(const HostTraceHooks *hooks) {
    (void)hooks;
    bool is_known = here.depth > 0 && here.depth <= DEPTH_MAX;
    return is_known ? here.stack[here.depth - 1] : (HostTraceMark){NULL, (HostTraceCategory)0, 0};
}

static void nvtx_join(const HostTraceHooks *hooks, HostTraceMark mark) {
    (void)hooks;
    push(mark);
}

static void nvtx_split(const HostTraceHooks *hooks, const uint64_t weight[HOST_TRACE_CATEGORIES]) {
    (void)hooks, (void)weight;
}

static void nvtx_stretch(const HostTraceHooks *hooks, HostTraceStretch what, bool is_plain, uint64_t units) {
    (void)hooks, (void)what, (void)is_plain, (void)units;
}

static void nvtx_phase(const HostTraceHooks *hooks, HostTracePhase phase) {
    (void)hooks;
    nvtxEventAttributes_t mark = {.version = NVTX_VERSION,
                                  .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                  .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                  .message = {.ascii = host_trace_phase_name(phase)}};
    nvtxDomainMarkEx(domain, &mark);
}

void prof_nvtx_attach(void) {
    const char *tool = getenv("NVTX_INJECTION64_PATH");
    if (tool == NULL || tool[0] == '\0') return;
    static const HostTraceHooks hooks = {nvtx_begin, nvtx_end,   nvtx_mark,    nvtx_join,
                                         nvtx_split, nvtx_phase, nvtx_stretch, false};
    domain = nvtxDomainCreateA("shoal");
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        nvtxDomainNameCategoryA(domain, (uint32_t)c + 1, host_trace_category_name((HostTraceCategory)c));
    host_trace_attach(&hooks);
}

#else

void prof_nvtx_attach(void) {}

#endif
