// Members of an objective, evaluated by all threads.
#include <stdio.h>
#include <string.h>

#include "host/signals.h"
#include "kernels/cpu/objective_call.h"

enum { MESSAGE_MAX = 1024, STRETCH_MEMBERS = 64 };

// One call, shared by its threads. Tasks are evaluations, by (member, episode).
typedef struct Work {
    CpuEs *es;
    const KernEsJob *job;
    KernEpisode *episodes;
    int64_t tasks, chunk; // chunk: taken at a time
    atomic_llong next;
    atomic_bool is_stopped;
    // The lowest task that failed: those below it were begun before, so that it is the same for any threads.
    atomic_llong failed;
    atomic_flag lock; // of what follows
    Status status;
    char message[MESSAGE_MAX];
} Work;

static void record_failure(Work *work, int64_t task, Status status) {
    while (atomic_flag_test_and_set(&work->lock)) {
    }
    if (task < atomic_load(&work->failed)) {
        atomic_store(&work->failed, task);
        work->status = status;
        snprintf(work->message, sizeof work->message, "%s", host_message());
    }
    atomic_flag_clear(&work->lock);
}

static void evaluate_task(Work *work, int64_t task, int worker, CpuPair *pair) {
    CpuEs *es = work->es;
    CpuProbe *probe = &es->scratch[worker].probe;
    int32_t member = work->job->first + (int32_t)(task / work->job->episodes);
    double fitness = 0.0;
    bool is_measured = cpu_probe_takes(probe);
    if (is_measured) cpu_probe_enter(probe, HOST_TRACE_LEARNING, CPU_PROBE_EVERY);
    const float *x = es->isa->ops->member(es, work->job, member, &es->scratch[worker], pair);
    if (is_measured) cpu_probe_turn(probe, HOST_TRACE_SIMULATION);
    Status status = cpu_objective_call(es, work->job, worker, member, x, &fitness);
    if (is_measured) cpu_probe_leave(probe);
    cpu_probe_count(probe, 1);
    if (status == STATUS_OK) {
        work->episodes[task] = (KernEpisode){(float)fitness, 1};
    } else if (status == STATUS_STOPPED) {
        atomic_store(&work->is_stopped, true);
    } else {
        record_failure(work, task, status);
    }
}

static void evaluate_tasks(Work *work, int worker) {
    CpuPair pair = {.number = -1};
    for (;;) {
        int64_t first = atomic_fetch_add(&work->next, work->chunk);
        int64_t end = first + work->chunk < work->tasks ? first + work->chunk : work->tasks;
        if (first >= end) return;
        for (int64_t task = first; task < end; task++) {
            if (host_stop_requested()) atomic_store(&work->is_stopped, true);
            if (atomic_load(&work->is_stopped) || task > atomic_load(&work->failed)) return;
            evaluate_task(work, task, worker, &pair);
        }
    }
}

static void evaluate_piece(void *context, int64_t begin, int64_t end, int worker) {
    (void)begin;
    (void)end;
    Work *work = context;
    CpuProbe *probe = &work->es->scratch[worker].probe;
    cpu_probe_open(probe, STRETCH_MEMBERS);
    evaluate_tasks(work, worker);
    cpu_probe_close(probe);
}

// Where a call costs little, a pair's members go together, so that its noise is made once.
static bool is_cheap(KernObjectiveKind kind) {
    return kind != KERN_OBJECTIVE_SLEEP && kind != KERN_OBJECTIVE_EXEC && kind != KERN_OBJECTIVE_LIB;
}

Status cpu_objective_evaluate(CpuEs *es, const KernEsJob *job, KernEpisode *episodes) {
    Work work = {.es = es,
                 .job = job,
                 .episodes = episodes,
                 .tasks = (int64_t)job->count * job->episodes,
                 .chunk = is_cheap(es->spec.objective.kind) ? (int64_t)2 * job->episodes : 1,
                 .failed = INT64_MAX};
    atomic_flag_clear(&work.lock);
    int threads = host_pool_threads(es->pool);
    host_pool_for(es->pool, threads, 1, evaluate_piece, &work);
    // A stop may have kept a lower member from failing.
    if (atomic_load(&work.is_stopped)) return host_fail(STATUS_STOPPED, "stopped during an evaluation");
    return work.status == STATUS_OK ? STATUS_OK : host_fail(work.status, "%s", work.message);
}
