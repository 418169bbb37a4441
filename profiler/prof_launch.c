#include "profiler/prof_launch.h"

#include <stdio.h>
#include <string.h>

enum { TRACES_MAX = 10000 };

static Status trace_path(const char *folder, int64_t rank, int number, char path[HOST_PATH_MAX]) {
    char name[64], suffix[16] = "";
    if (number > 1) snprintf(suffix, sizeof suffix, ".%d", number);
    snprintf(name, sizeof name, "rank-%lld%s.trace", (long long)rank, suffix);
    return host_file_join(folder, name, path);
}

Status prof_launch_record(ProfLaunch *launch, const char *run, const ProfProcess *process) {
    char folder[HOST_PATH_MAX], path[HOST_PATH_MAX];
    ProfRecordOptions options = {.path = path, .process = *process};
    snprintf(launch->run, sizeof launch->run, "%s", run);
    TRY(host_file_join(run, "profile", folder));
    TRY(host_file_make_folder(folder));
    for (int number = 1; number < TRACES_MAX; number++) {
        TRY(trace_path(folder, process->rank, number, path));
        if (host_file_exists(path)) continue;
        Status status = prof_recorder_start(&options, &launch->recorder);
        // Another process may have made it since: the recorder takes no file that is there.
        if (status != STATUS_IO || !host_file_exists(path)) return status;
    }
    return host_fail(STATUS_IO, "%s is full of traces", folder);
}

Status prof_launch_start(void *context, const HostTraceRun *run) {
    ProfProcess process = {
        .rank = 0, .workers = 1, .devices = run->devices, .threads = run->threads, .envs = run->envs};
    snprintf(process.tool, sizeof process.tool, "%s", run->tool);
    snprintf(process.device_kind, sizeof process.device_kind, "%s", run->device_kind);
    snprintf(process.device, sizeof process.device, "%s", run->device);
    return prof_launch_record(context, run->folder, &process);
}

Status prof_launch_stop(void *context, int64_t env_steps, char *text, size_t size) {
    ProfLaunch *launch = context;
    int64_t dropped = 0;
    prof_recorder_steps(launch->recorder, env_steps);
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
