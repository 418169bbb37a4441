// The collector of GPUs' work where CUDA's headers were not there when this was built.
#include "profiler/prof_cupti.h"

Status prof_cupti_open(const ProfCuptiOptions *options, ProfCupti **cupti) {
    (void)options, (void)cupti;
    return host_fail(STATUS_DEVICE,
                     "this program was built without CUPTI, which is part of CUDA's toolkit (13 or later)");
}

// None of these has a collector to work on.
ProfCollector prof_cupti_collector(ProfCupti *cupti) {
    (void)cupti;
    return (ProfCollector){0};
}

void prof_cupti_attach(ProfCupti *cupti, ProfRecorder *recorder) { (void)cupti, (void)recorder; }

Status prof_cupti_detach(ProfCupti *cupti) {
    (void)cupti;
    return STATUS_OK;
}

void prof_cupti_close(ProfCupti *cupti, int64_t *dropped) {
    (void)cupti;
    if (dropped != NULL) *dropped = 0;
}
