// How libshoal_inject.so gets into programs that do not know of it: the CUDA driver loads what CUDA_INJECTION64_PATH
// names, and NVTX what NVTX_INJECTION64_PATH names. From then on the program is recorded, and its NVTX ranges are
// scopes.
//
// Ranges that a thread pushes and pops are scopes of that thread; those that are started and ended by an id may begin
// on one thread and end on another, and are not recorded. A range's category is that of its NVTX category's name or,
// where it has none, of its own: see prof_name_category(). Domains are taken together. Source:
// nvtx3/nvtxDetail/nvtxTypes.h and nvtxInit.h of the CUDA toolkit.
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/trace.h"
#include "profiler/prof_names.h"
#include "profiler/prof_scope.h"
#include "profiler/prof_trace.h"

#define EXPORT __attribute__((visibility("default")))

enum { CATEGORIES_MAX = 256 }; // numbers of NVTX categories in a domain that can have names

// What a domain's handle points to. 0: no name was given; else a category + 1.
typedef struct Domain {
    _Atomic uint8_t category[CATEGORIES_MAX];
} Domain;

static Domain standard;               // of calls without a domain
static _Thread_local int32_t depth;   // of pushed ranges
static _Thread_local int32_t skipped; // of those, how many were pushed before the profile began

static Domain *domain_of(nvtxDomainHandle_t handle) { return handle != NULL ? (Domain *)(void *)handle : &standard; }

// ---- texts ---------------------------------------------------------------------------------------------------------

// UTF-32 as UTF-8, cut to PROF_TEXT_MAX.
static const char *narrow(const wchar_t *wide, char text[PROF_TEXT_MAX]) {
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    size_t at = 0;
    for (; *wide != L'\0' && at + 5 < PROF_TEXT_MAX; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
        int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        text[at++] = (char)(lead[more] | c >> (6 * more));
        for (int i = more - 1; i >= 0; i--)
            text[at++] = (char)(0x80 | (c >> (6 * i) & 0x3f));
    }
    text[at] = '\0';
    return text;
}

static const ProfKeptName *wide_name(const wchar_t *wide) {
    char text[PROF_TEXT_MAX];
    return prof_name(wide != NULL ? narrow(wide, text) : "(no name)");
}

static const ProfKeptName *plain_name(const char *text) { return prof_name(text != NULL ? text : "(no name)"); }

static const ProfKeptName *name_of(const nvtxEventAttributes_t *a) {
    if (a == NULL) return plain_name(NULL);
    if (a->messageType == NVTX_MESSAGE_TYPE_ASCII) return plain_name(a->message.ascii);
    if (a->messageType == NVTX_MESSAGE_TYPE_UNICODE) return wide_name(a->message.unicode);
    if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED && a->message.registered != NULL) {
        return (const ProfKeptName *)(const void *)a->message.registered;
    }
    return plain_name(NULL);
}

// ---- NVTX's functions ----------------------------------------------------------------------------------------------

static int push(HostTraceCategory category, const ProfKeptName *name) {
    if (host_trace_begin(category, name->text) == NULL) skipped = depth + 1;
    return depth++;
}

static int push_event(Domain *domain, const nvtxEventAttributes_t *a) {
    const ProfKeptName *name = name_of(a);
    uint8_t category = a != NULL && a->category < CATEGORIES_MAX ? domain->category[a->category] : 0;
    return push(category > 0 ? (HostTraceCategory)(category - 1) : name->category, name);
}

static int pop(void) {
    if (depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
    depth--;
    if (depth >= skipped) {
        host_trace_end(host_trace_hooks());
    } else {
        skipped = depth;
    }
    return depth;
}

static void name_category(Domain *domain, uint32_t number, const ProfKeptName *name) {
    if (number < CATEGORIES_MAX) domain->category[number] = (uint8_t)(name->category + 1);
}

static int NVTX_API range_push_ex(const nvtxEventAttributes_t *a) { return push_event(&standard, a); }

static int NVTX_API range_push_a(const char *text) {
    const ProfKeptName *name = plain_name(text);
    return push(name->category, name);
}

static int NVTX_API range_push_w(const wchar_t *text) {
    const ProfKeptName *name = wide_name(text);
    return push(name->category, name);
}

static int NVTX_API range_pop(void) { return pop(); }

static void NVTX_API name_category_a(uint32_t number, const char *text) {
    name_category(&standard, number, plain_name(text));
}

static void NVTX_API name_category_w(uint32_t number, const wchar_t *text) {
    name_category(&standard, number, wide_name(text));
}

static int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a) {
    return push_event(domain_of(domain), a);
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
    (void)domain;
    return pop();
}

static void NVTX_API domain_name_category_a(nvtxDomainHandle_t domain, uint32_t number, const char *text) {
    name_category(domain_of(domain), number, plain_name(text));
}

static void NVTX_API domain_name_category_w(nvtxDomainHandle_t domain, uint32_t number, const wchar_t *text) {
    name_category(domain_of(domain), number, wide_name(text));
}

static nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t domain, const char *text) {
    (void)domain;
    return (nvtxStringHandle_t)(uintptr_t)plain_name(text); // NOLINT(performance-no-int-to-ptr): not written to
}

static nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t domain, const wchar_t *text) {
    (void)domain;
    return (nvtxStringHandle_t)(uintptr_t)wide_name(text); // NOLINT(performance-no-int-to-ptr): not written to
}

// Domains are few, and last as long as the process: ranges of other threads may still use them.
static nvtxDomainHandle_t make_domain(void) {
    Domain *made = calloc(1, sizeof *made);
    return (nvtxDomainHandle_t)(void *)made;
}

static nvtxDomainHandle_t NVTX_API domain_create_a(const char *text) {
    (void)text;
    return make_domain();
}

static nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t *text) {
    (void)text;
    return make_domain();
}

// ---- the way in ----------------------------------------------------------------------------------------------------

#define CALLBACK(id, function) \
    { NVTX_CBID_##id, (NvtxFunctionPointer)(function) }

typedef struct Callback {
    unsigned id;
    NvtxFunctionPointer function;
} Callback;

static const Callback core[] = {
    CALLBACK(CORE_RangePushEx, range_push_ex),     CALLBACK(CORE_RangePushA, range_push_a),
    CALLBACK(CORE_RangePushW, range_push_w),       CALLBACK(CORE_RangePop, range_pop),
    CALLBACK(CORE_NameCategoryA, name_category_a), CALLBACK(CORE_NameCategoryW, name_category_w),
};

static const Callback core2[] = {
    CALLBACK(CORE2_DomainRangePushEx, domain_push),
    CALLBACK(CORE2_DomainRangePop, domain_pop),
    CALLBACK(CORE2_DomainNameCategoryA, domain_name_category_a),
    CALLBACK(CORE2_DomainNameCategoryW, domain_name_category_w),
    CALLBACK(CORE2_DomainRegisterStringA, register_a),
    CALLBACK(CORE2_DomainRegisterStringW, register_w),
    CALLBACK(CORE2_DomainCreateA, domain_create_a),
    CALLBACK(CORE2_DomainCreateW, domain_create_w),
};

static int fill(const NvtxExportTableCallbacks *table, NvtxCallbackModule module, const Callback *callbacks,
                size_t count) {
    NvtxFunctionTable functions = NULL;
    unsigned size = 0;
    if (!table->GetModuleFunctionTable(module, &functions, &size) || functions == NULL) return 0;
    for (size_t i = 0; i < count; i++) {
        if (callbacks[i].id < size && functions[callbacks[i].id] != NULL) {
            *functions[callbacks[i].id] = callbacks[i].function;
        }
    }
    return 1;
}

// The profile of a program that was not started with SHOAL_PROFILE. A failure is said once, and the program goes on.
static void start_recording(void) {
    static atomic_bool is_tried;
    const char *folder = getenv("SHOAL_PROFILE");
    if ((folder != NULL && folder[0] != '\0') || atomic_exchange(&is_tried, true)) return; // that did start one
    if (prof_scope_start(NULL, NULL) != STATUS_OK) fprintf(stderr, "shoal: no profile: %s\n", host_message());
}

// NVTX calls this at a program's first use of it; 1: attached.
EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks *table = get_table(NVTX_ETID_CALLBACKS);
    if (table == NULL || table->struct_size < sizeof *table) return 0;
    start_recording();
    return fill(table, NVTX_CB_MODULE_CORE, core, sizeof core / sizeof core[0]) &
           fill(table, NVTX_CB_MODULE_CORE2, core2, sizeof core2 / sizeof core2[0]);
}

// The CUDA driver calls this when it starts; 1: done. NVTX is told of this library too, if it has not started yet.
EXPORT int InitializeInjection(void);
int InitializeInjection(void) {
    Dl_info info;
    start_recording();
    if (dladdr((const void *)&standard, &info) != 0 && info.dli_fname != NULL) {
        setenv("NVTX_INJECTION64_PATH", info.dli_fname, 0);
    }
    return 1;
}
