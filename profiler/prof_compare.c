#include "profiler/prof_compare.h"

#include <math.h>
#include <string.h>

// ---- figures -------------------------------------------------------------------------------------------------------

// Whether an earlier trace is of the same worker.
static bool is_part(const ProfSummary *s, int32_t worker) {
    for (int32_t i = 0; i < worker; i++) {
        if (s->workers[i].process.rank == s->workers[worker].process.rank) return true;
    }
    return false;
}

ProfScale prof_scale(const ProfSummary *s) {
    ProfScale scale = {.is_cpu = true, .is_gpu = true};
    for (int32_t i = 0; i < s->worker_count; i++) {
        const ProfProcess *p = &s->workers[i].process;
        scale.env_steps += p->env_steps;
        scale.is_cpu = scale.is_cpu && strcmp(p->device_kind, "cpu") == 0;
        scale.is_gpu = scale.is_gpu && strcmp(p->device_kind, "cuda") == 0;
        if (is_part(s, i)) continue;
        scale.workers++;
        scale.devices += p->devices;
        scale.threads += p->threads;
        scale.envs += p->envs;
    }
    if (scale.threads == 0) scale.threads = s->total.threads;
    int64_t train_ns = s->total.phase_ns[HOST_PHASE_WARM_UP] + s->total.phase_ns[HOST_PHASE_TRAIN];
    double train_s = 1e-9 * (double)train_ns / (double)scale.workers;
    scale.wall_s = 1e-9 * (double)s->total.wall_ns / (double)scale.workers;
    scale.env_steps_per_s = scale.env_steps > 0 && train_ns > 0 ? (double)scale.env_steps / train_s : (double)NAN;
    return scale;
}

ProfBasis prof_compare_basis(const ProfRun *runs, int count) {
    bool by_steps = true, is_cpu = true, is_gpu = true, has_devices = true;
    for (int i = 0; i < count; i++) {
        ProfScale scale = prof_scale(&runs[i].summary);
        by_steps = by_steps && isfinite(scale.env_steps_per_s);
        is_cpu = is_cpu && scale.is_cpu;
        is_gpu = is_gpu && scale.is_gpu;
        has_devices = has_devices && scale.devices > 0;
    }
    ProfResource resource = is_gpu && has_devices ? PROF_RESOURCE_DEVICE
                            : is_cpu              ? PROF_RESOURCE_THREAD
                                                  : PROF_RESOURCE_WORKER;
    return (ProfBasis){by_steps, resource};
}

const char *prof_resource_name(ProfResource resource) {
    static const char *const names[] = {"worker", "thread", "device"};
    return names[resource];
}

static double ratio(double a, double b) { return b > 0.0 ? a / b : (double)NAN; }

double prof_compare_speed_up(ProfBasis basis, const ProfRun *first, const ProfRun *run) {
    ProfScale from = prof_scale(&first->summary), to = prof_scale(&run->summary);
    return basis.is_by_steps ? ratio(to.env_steps_per_s, from.env_steps_per_s) : ratio(from.wall_s, to.wall_s);
}

static double resources(ProfBasis basis, const ProfRun *run) {
    ProfScale scale = prof_scale(&run->summary);
    const int64_t of[] = {scale.workers, scale.threads, scale.devices};
    return (double)of[basis.resource];
}

double prof_compare_efficiency(ProfBasis basis, const ProfRun *first, const ProfRun *run) {
    return ratio(prof_compare_speed_up(basis, first, run), ratio(resources(basis, run), resources(basis, first)));
}

// ---- the table -----------------------------------------------------------------------------------------------------

enum { NAME_WIDTH = 34 };

static double value_workers(const ProfRun *run, int of) {
    (void)of;
    return (double)prof_scale(&run->summary).workers;
}

static double value_devices(const ProfRun *run, int of) {
    (void)of;
    return (double)prof_scale(&run->summary).devices;
}

static double value_threads(const ProfRun *run, int of) {
    (void)of;
    return (double)prof_scale(&run->summary).threads;
}

static double value_envs(const ProfRun *run, int of) {
    (void)of;
    return (double)prof_scale(&run->summary).envs;
}

static double value_wall(const ProfRun *run, int of) {
    (void)of;
    return prof_scale(&run->summary).wall_s;
}

static double value_steps(const ProfRun *run, int of) {
    (void)of;
    return prof_scale(&run->summary).env_steps_per_s;
}

static double value_bound(const ProfRun *run, int bound) {
    double deviation;
    return 100.0 * prof_summary_bound(&run->summary, (ProfBound)bound, &deviation);
}

static double value_category(const ProfRun *run, int category) {
    const ProfFigures *f = &run->summary.total;
    return 100.0 * ratio((double)f->category_thread_ns[category], (double)f->thread_ns);
}

static double value_busy(const ProfRun *run, int of) {
    (void)of;
    int64_t wall_ns = prof_figures_whole_ns(&run->summary.total);
    return 100.0 * ratio((double)run->summary.total.device_busy_ns, (double)wall_ns);
}

typedef double Value(const ProfRun *run, int of);

static void print_value(double value, const char *format, FILE *stream) {
    if (isfinite(value)) {
        fprintf(stream, format, value);
    } else {
        fprintf(stream, " %12s", "-");
    }
}

static void print_row(const ProfRun *runs, int count, const char *name, Value *value, int of, const char *format,
                      FILE *stream) {
    fprintf(stream, "%-*s", NAME_WIDTH, name);
    for (int i = 0; i < count; i++)
        print_value(value(&runs[i], of), format, stream);
    fprintf(stream, "\n");
}

static void print_gain(const ProfRun *runs, int count, FILE *stream) {
    ProfBasis basis = prof_compare_basis(runs, count);
    char name[64];
    snprintf(name, sizeof name, "speed-up, %s", basis.is_by_steps ? "env steps per second" : "if the work is the same");
    fprintf(stream, "%-*s", NAME_WIDTH, name);
    for (int i = 0; i < count; i++)
        print_value(prof_compare_speed_up(basis, &runs[0], &runs[i]), " %11.2fx", stream);
    snprintf(name, sizeof name, "efficiency, per %s", prof_resource_name(basis.resource));
    fprintf(stream, "\n%-*s", NAME_WIDTH, name);
    for (int i = 0; i < count; i++)
        print_value(100.0 * prof_compare_efficiency(basis, &runs[0], &runs[i]), " %11.1f%%", stream);
    fprintf(stream, "\n");
}

void prof_report_compare(const ProfRun *runs, int count, FILE *stream) {
    fprintf(stream, "%-*s", NAME_WIDTH, "comparison; speed-up over the first");
    for (int i = 0; i < count; i++) {
        size_t length = strlen(runs[i].name);
        fprintf(stream, " %12s", runs[i].name + (length > 12 ? length - 12 : 0));
    }
    fprintf(stream, "\n");
    print_row(runs, count, "devices", value_devices, 0, " %12.0f", stream);
    print_row(runs, count, "workers", value_workers, 0, " %12.0f", stream);
    print_row(runs, count, "threads", value_threads, 0, " %12.0f", stream);
    print_row(runs, count, "envs", value_envs, 0, " %12.0f", stream);
    print_row(runs, count, "wall time, s", value_wall, 0, " %12.4f", stream);
    print_row(runs, count, "env steps per second of training", value_steps, 0, " %12.4g", stream);
    print_gain(runs, count, stream);
    for (int b = 0; b < PROF_BOUNDS; b++)
        print_row(runs, count, prof_bound_name((ProfBound)b), value_bound, b, " %11.2f%%", stream);
    print_row(runs, count, "GPU busy", value_busy, 0, " %11.2f%%", stream);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        char name[64];
        snprintf(name, sizeof name, "threads in %s", prof_category_name(c));
        print_row(runs, count, name, value_category, c, " %11.2f%%", stream);
    }
}
