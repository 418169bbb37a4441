// --profile of a launcher: when the profiler records.
#include "kernels/launcher_run.h"

#define CLOCK_WAIT_S 1.0

void launch_await_clock(LaunchRun *run) {
    int64_t offset_ns, error_ns;
    if (!host_member_clock(run->member, CLOCK_WAIT_S, &offset_ns, &error_ns)) return; // a trace says so
}

// The lead is rank 0; others have the place that the master gave them, which is that of a worker which is no more, or
// the next one.
static void place(LaunchRun *run, bool helps, HostTraceRun *what) {
    what->offset_error_ns = -1;
    if (run->member == NULL) return;
    what->rank = helps ? host_member_place(run->member) : 0;
    // A helper has a lease by now.
    double wait_s = helps ? 0.0 : CLOCK_WAIT_S;
    if (!host_member_clock(run->member, wait_s, &what->offset_ns, &what->offset_error_ns)) what->offset_error_ns = -1;
}

Status launch_profile_begin(LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    int64_t step = run->at.done + 1;
    if (!o->profile || run->is_profiled || step < o->profile_first || step > o->profile_last) return STATUS_OK;
    const KernProfiler *profiler = &run->trainer->profiler;
    char text[1024];
    const HostPool *pool = run->device.pool;
    bool helps = launch_is_helper(run);
    HostTraceRun what = {
        .folder = helps ? o->out : run->dir.path,
        .tool = run->trainer->tool,
        .device_kind = pool != NULL ? "cpu" : "cuda",
        .device = run->device.text,
        .devices = 1,
        .threads = pool != NULL ? host_pool_threads(pool) : 1,
        .envs = helps ? 0 : run->at.envs, // all of them are the lead's to say
        .is_full = o->profile_full,
    };
    place(run, helps, &what);
    if (helps) TRY(host_file_make_folder(what.folder));
    TRY(profiler->start(profiler->self, &what, text, sizeof text));
    run->profiled_from = run->at.env_steps;
    run->is_profiled = run->has_profile = true;
    if (helps) host_trace_phase(HOST_PHASE_TRAIN);
    if (text[0] != '\0') host_progress_note(&run->progress, "%s: warning: %s", run->trainer->tool, text);
    return STATUS_OK;
}

void launch_profile_work(void *context, int64_t label) {
    LaunchRun *run = context;
    if (label < 0) return; // nothing is computed
    run->at.done = label;
    if (label >= run->options.profile_last) launch_profile_end(run);
    if (launch_profile_begin(run) == STATUS_OK) return;
    host_progress_note(&run->progress, "%s: warning: no profile of this worker: %s", run->trainer->tool,
                       host_message());
    run->options.profile = false;
}

void launch_profile_missed(LaunchRun *run) {
    if (!run->options.profile || run->has_profile) return;
    host_progress_note(&run->progress, "%s: warning: no profile: the run did no %s from %lld on", run->trainer->tool,
                       run->trainer->step, (long long)run->options.profile_first);
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
