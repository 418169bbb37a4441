#include "profiler/prof_launch.h"

#include <stdio.h>
#include <string.h>

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

Status prof_launch_start(void *context, const char *run, const char *tool, const char *device_kind, const char *device,
                         bool is_full) {
    ProfLaunch *launch = context;
    char path[HOST_PATH_MAX];
    ProfRecordOptions options = {.path = path, .process = {.rank = 0, .workers = 1}, .is_full = is_full};
    snprintf(options.process.tool, sizeof options.process.tool, "%s", tool);
    snprintf(options.process.device_kind, sizeof options.process.device_kind, "%s", device_kind);
    snprintf(options.process.device, sizeof options.process.device, "%s", device);
    snprintf(launch->run, sizeof launch->run, "%s", run);
    TRY(trace_path(run, options.process.rank, path));
    return prof_recorder_start(&options, &launch->recorder);
}

Status prof_launch_stop(void *context, char *text, size_t size) {
    ProfLaunch *launch = context;
    int64_t dropped = 0;
    TRY(prof_recorder_stop(launch->recorder, &dropped));
    snprintf(text, size, "profile recorded; profreport %s shows it", launch->run);
    if (dropped == 0) return STATUS_OK;
    size_t length = strlen(text);
    snprintf(text + length, size - length, " (%lld events were dropped)", (long long)dropped);
    return STATUS_OK;
}

void prof_launch_free(ProfLaunch *launch) {
    prof_recorder_free(launch->recorder);
    launch->recorder = NULL;
}
