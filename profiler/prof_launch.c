#include "profiler/prof_launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACES_MAX = 10000 };

static Status trace_path(const char *folder, int64_t rank, int number, char path[HOST_PATH_MAX]) {
    char name[64], suffix[16] = "";
    if (number > 1) snprintf(suffix, sizeof suffix, ".%d", number);
    snprintf(name, sizeof name, "rank-%lld%s.trace", (long long)rank, suffix);
    return host_file_join(folder, name, path);
}

// Starts the recorder with the first path that is free.
static Status start_recorder(ProfLaunch *launch, ProfRecordOptions options) {
    char folder[HOST_PATH_MAX], path[HOST_PATH_MAX];
    options.path = path;
    TRY(host_file_join(launch->run, "profile", folder));
    TRY(host_file_make_folder(folder));
    for (int number = 1; number < TRACES_MAX; number++) {
        TRY(trace_path(folder, options.process.rank, number, path));
        if (host_file_exists(path)) continue;
        Status status = prof_recorder_start(&options, &launch->recorder);
        // Another process may have made it since: the recorder takes no file that is there.
        if (status != STATUS_IO || !host_file_exists(path)) return status;
    }
    return host_fail(STATUS_IO, "%s is full of traces", folder);
}

static void open_gpu(ProfLaunch *launch, ProfProcess *process, bool asks_now, char *text, size_t size) {
    text[0] = '\0';
    if (strcmp(process->device_kind, "cuda") != 0) return;
    const char *ids = getenv("SHOAL_PROFILE_IDS");
    ProfCuptiOptions options = {.asks_now = asks_now, .takes_ids = ids != NULL && strcmp(ids, "1") == 0};
    if (prof_cupti_open(&options, &launch->cupti) == STATUS_OK) return;
    snprintf(process->no_device, sizeof process->no_device, "%s", host_message());
    snprintf(text, size, "the profile has no GPU times: %s", host_message());
}

Status prof_launch_record(ProfLaunch *launch, const char *run, const ProfRecordOptions *given, bool asks_now,
                          char *text, size_t size) {
    ProfRecordOptions options = *given;
    snprintf(launch->run, sizeof launch->run, "%s", run);
    launch->cupti = NULL;
    open_gpu(launch, &options.process, asks_now, text, size);
    if (launch->cupti != NULL) options.collector = prof_cupti_collector(launch->cupti);
    Status status = start_recorder(launch, options);
    if (status != STATUS_OK) {
        prof_cupti_close(launch->cupti, NULL);
        launch->cupti = NULL;
        return status;
    }
    if (launch->cupti != NULL) prof_cupti_attach(launch->cupti, launch->recorder);
    return STATUS_OK;
}

Status prof_launch_start(void *context, const HostTraceRun *run, char *text, size_t size) {
    ProfRecordOptions options = {.is_full = run->is_full};
    ProfProcess *process = &options.process;
    process->workers = 1;
    process->rank = run->rank;
    process->offset_ns = run->offset_ns;
    process->offset_error_ns = run->offset_error_ns;
    process->devices = run->devices;
    process->threads = run->threads;
    process->envs = run->envs;
    snprintf(process->tool, sizeof process->tool, "%s", run->tool);
    snprintf(process->device_kind, sizeof process->device_kind, "%s", run->device_kind);
    snprintf(process->device, sizeof process->device, "%s", run->device);
    return prof_launch_record(context, run->folder, &options, true, text, size);
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

Status prof_launch_stop(void *context, int64_t env_steps, char *text, size_t size) {
    ProfLaunch *launch = context;
    int64_t dropped = 0, missing = 0;
    prof_recorder_steps(launch->recorder, env_steps);
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
