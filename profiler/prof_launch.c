#include "profiler/prof_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_nvtx.h"

enum { TRACES_MAX = 10000 };

// A path that is free; host_file_exists() and the writer's O_EXCL agree, since the run's folder is locked.
static Status trace_path(const char *run, int64_t rank, char path[HOST_PATH_MAX]) {
    char folder[HOST_PATH_MAX], name[64];
    TRY(host_file_join(run, "profile", folder));
    TRY(host_file_make_folder(folder));
    for (int i = 1; i < TRACES_MAX; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, ".%d", i);
        snprintf(name, sizeof name, "rank-%lld%s.trace", (long long)rank, number);
        TRY(host_file_join(folder, name, path));
        if (!host_file_exists(path)) return STATUS_OK;
    }
    return host_fail(STATUS_IO, "%s is full of traces", folder);
}

void prof_launch_open(void) {
    const char *tool = getenv("NVTX_INJECTION64_PATH");
    if (tool != NULL && tool[0] != '\0') prof_nvtx_attach();
}

static void open_gpu(ProfLaunch *launch, ProfProcess *process, char *text, size_t size) {
    text[0] = '\0';
    if (strcmp(process->device_kind, "cuda") != 0) return;
    if (prof_cupti_open(0, &launch->cupti) == STATUS_OK) return;
    snprintf(process->no_device, sizeof process->no_device, "%s", host_message());
    snprintf(text, size, "the profile has no GPU times: %s", host_message());
}

Status prof_launch_start(void *context, const char *run, const char *tool, const char *device_kind, const char *device,
                         char *text, size_t size) {
    ProfLaunch *launch = context;
    char path[HOST_PATH_MAX];
    ProfRecordOptions options = {.path = path, .process = {.rank = 0, .workers = 1}};
    snprintf(options.process.tool, sizeof options.process.tool, "%s", tool);
    snprintf(options.process.device_kind, sizeof options.process.device_kind, "%s", device_kind);
    snprintf(options.process.device, sizeof options.process.device, "%s", device);
    snprintf(launch->run, sizeof launch->run, "%s", run);
    TRY(trace_path(run, options.process.rank, path));
    launch->cupti = NULL;
    open_gpu(launch, &options.process, text, size);
    if (launch->cupti != NULL) options.collector = prof_cupti_collector(launch->cupti);
    Status status = prof_recorder_start(&options, &launch->recorder);
    if (status != STATUS_OK) {
        prof_cupti_close(launch->cupti, NULL);
        return status;
    }
    if (launch->cupti != NULL) prof_cupti_attach(launch->cupti, launch->recorder);
    return STATUS_OK;
}

// The first failure counts; what a message says of the other is lost.
static Status stop_parts(ProfLaunch *launch, int64_t *dropped, int64_t *missing) {
    char message[512] = "";
    Status gpu = launch->cupti != NULL ? prof_cupti_detach(launch->cupti) : STATUS_OK;
    if (gpu != STATUS_OK) snprintf(message, sizeof message, "%s", host_message());
    Status status = prof_recorder_stop(launch->recorder, dropped);
    prof_cupti_close(launch->cupti, missing);
    launch->cupti = NULL;
    TRY(status);
    return gpu != STATUS_OK ? host_fail(gpu, "%s", message) : STATUS_OK;
}

Status prof_launch_stop(void *context, char *text, size_t size) {
    ProfLaunch *launch = context;
    int64_t dropped = 0, missing = 0;
    TRY(stop_parts(launch, &dropped, &missing));
    int length = snprintf(text, size, "profile recorded; profreport %s shows it", launch->run);
    if (dropped + missing == 0 || length < 0 || (size_t)length >= size) return STATUS_OK;
    snprintf(text + length, size - (size_t)length, " (dropped: %lld events, %lld records of the GPU's work)",
             (long long)dropped, (long long)missing);
    return STATUS_OK;
}

void prof_launch_free(ProfLaunch *launch) {
    prof_recorder_free(launch->recorder);
    launch->recorder = NULL;
}
