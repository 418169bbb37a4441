// --profile of a launcher: when the profiler records.
#include "kernels/launcher_run.h"

Status launch_profile_begin(LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    int64_t step = run->at.done + 1;
    if (!o->profile || run->is_profiled || step < o->profile_first || step > o->profile_last) return STATUS_OK;
    const KernProfiler *profiler = &run->trainer->profiler;
    TRY(profiler->start(profiler->self, run->dir.path, run->trainer->tool, run->device.pool != NULL ? "cpu" : "cuda",
                        run->device.text, o->profile_full));
    run->is_profiled = true;
    return STATUS_OK;
}

void launch_profile_end(LaunchRun *run) {
    if (!run->is_profiled) return;
    run->is_profiled = false;
    const KernProfiler *profiler = &run->trainer->profiler;
    char text[HOST_PATH_MAX + 128];
    if (profiler->stop(profiler->self, text, sizeof text) != STATUS_OK) {
        host_progress_note(&run->progress, "%s: warning: the profile is not whole: %s", run->trainer->tool,
                           host_message());
    } else if (!run->options.quiet) {
        host_progress_note(&run->progress, "%s: %s", run->trainer->tool, text);
    }
}
