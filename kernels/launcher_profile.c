// --profile of a launcher: when the profiler records.
#include "kernels/launcher_run.h"

Status launch_profile_begin(LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    int64_t step = run->at.done + 1;
    if (!o->profile || run->is_profiled || step < o->profile_first || step > o->profile_last) return STATUS_OK;
    const KernProfiler *profiler = &run->trainer->profiler;
    char text[1024];
    const HostPool *pool = run->device.pool;
    const HostTraceRun what = {
        .folder = run->dir.path,
        .tool = run->trainer->tool,
        .device_kind = pool != NULL ? "cpu" : "cuda",
        .device = run->device.text,
        .devices = 1,
        .threads = pool != NULL ? host_pool_threads(pool) : 1,
        .envs = run->at.envs,
        .is_full = o->profile_full,
    };
    TRY(profiler->start(profiler->self, &what, text, sizeof text));
    run->profiled_from = run->at.env_steps;
    run->is_profiled = true;
    if (text[0] != '\0') host_progress_note(&run->progress, "%s: warning: %s", run->trainer->tool, text);
    return STATUS_OK;
}

void launch_profile_end(LaunchRun *run) {
    if (!run->is_profiled) return;
    run->is_profiled = false;
    const KernProfiler *profiler = &run->trainer->profiler;
    char text[HOST_PATH_MAX + 128];
    if (profiler->stop(profiler->self, run->at.env_steps - run->profiled_from, text, sizeof text) != STATUS_OK) {
        host_progress_note(&run->progress, "%s: warning: the profile is not whole: %s", run->trainer->tool,
                           host_message());
    } else if (!run->options.quiet) {
        host_progress_note(&run->progress, "%s: %s", run->trainer->tool, text);
    }
}
