// A program that knows nothing of Shoal but is annotated with NVTX, as PyTorch and many others are. The test that runs
// it reads the trace.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <string.h>

static nvtxEventAttributes_t event(const char *text, uint32_t category) {
    nvtxEventAttributes_t e;
    memset(&e, 0, sizeof e);
    e.version = NVTX_VERSION;
    e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    e.category = category;
    e.messageType = NVTX_MESSAGE_TYPE_ASCII;
    e.message.ascii = text;
    return e;
}

int main(void) {
    nvtxDomainHandle_t domain = nvtxDomainCreateA("trainer");
    nvtxNameCategoryA(7, "policy");
    nvtxDomainNameCategoryA(domain, 7, "learning");
    nvtxEventAttributes_t act = event("act", 7), descend = event("descend", 7), registered = event(NULL, 0);
    registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxRangePop(); // one too many
    for (int i = 0; i < 4; i++) {
        char text[32];
        snprintf(text, sizeof text, "episode %d", i % 2);
        nvtxRangePushA(text);
        nvtxRangePushA("simulation: step");
        nvtxRangePop();
        nvtxRangePushEx(&act);
        nvtxRangePop();
        nvtxDomainRangePushEx(domain, &descend);
        nvtxDomainRangePushEx(domain, &registered);
        nvtxDomainRangePop(domain);
        nvtxDomainRangePop(domain);
        nvtxRangePushW(L"gr\u00fc\u00dfe");
        nvtxRangePop();
        nvtxMarkA("a mark");
        nvtxRangeEnd(nvtxRangeStartA("from thread to thread"));
        nvtxRangePop();
    }
    nvtxDomainDestroy(domain);
    return 0;
}
