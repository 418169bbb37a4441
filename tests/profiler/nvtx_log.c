// A tool that NVTX loads (NVTX_INJECTION64_PATH): writes what it is told into the file NVTX_LOG, a line for each call:
// thread, what, category, name. Source: nvtx3/nvtxDetail/nvtxTypes.h.
#define _GNU_SOURCE // gettid
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *log_file;

static int on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range) {
    (void)domain;
    fprintf(log_file, "%d push %u %s\n", (int)gettid(), range->category, range->message.ascii);
    return 0;
}

static int on_pop(nvtxDomainHandle_t domain) {
    (void)domain;
    fprintf(log_file, "%d pop 0 \n", (int)gettid());
    return 0;
}

static void on_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *mark) {
    (void)domain;
    fprintf(log_file, "%d mark %u %s\n", (int)gettid(), mark->category, mark->message.ascii);
}

static nvtxDomainHandle_t on_domain(const char *name) {
    fprintf(log_file, "%d domain 0 %s\n", (int)gettid(), name);
    return (nvtxDomainHandle_t)log_file; // anything but NULL
}

static void on_category(nvtxDomainHandle_t domain, uint32_t category, const char *name) {
    (void)domain;
    fprintf(log_file, "%d category %u %s\n", (int)gettid(), category, name);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    log_file = fopen(getenv("NVTX_LOG"), "we");
    if (log_file == NULL || callbacks == NULL) return 0;
    setvbuf(log_file, NULL, _IOLBF, BUFSIZ); // lines are whole, and there before a kill
    if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)on_push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)on_pop;
    *table[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)on_mark;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)on_domain;
    *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)on_category;
    return 1;
}
