// Reports for people.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/plural.h"
#include "profiler/prof_report.h"
#include "profiler/prof_walk.h"

enum { NAME_WIDTH = 34, BAR_WIDTH = 30, TRANSITIONS_SHOWN = 5 };

static double percent(int64_t part, int64_t of) { return of > 0 ? 100.0 * (double)part / (double)of : 0.0; }

static const char *duration(int64_t ns, char text[24]) {
    double s = 1e-9 * (double)ns;
    if (s >= 100.0) {
        snprintf(text, 24, "%.1f s", s);
    } else if (s >= 0.1) {
        snprintf(text, 24, "%.3f s", s);
    } else if (s >= 1e-4) {
        snprintf(text, 24, "%.3f ms", 1e3 * s);
    } else {
        snprintf(text, 24, "%.3f us", 1e6 * s);
    }
    return text;
}

const char *prof_report_no_gpu(const ProfSummary *s, char *text, size_t size) {
    if (s->total.intervals > 0) return NULL;
    const ProfProcess *p = s->worker_count > 0 ? &s->workers[0].process : NULL;
    if (p != NULL && p->no_device[0] != '\0') {
        snprintf(text, size, "%s", p->no_device);
    } else if (p != NULL && strcmp(p->device_kind, "cpu") == 0) {
        snprintf(text, size, "the run computed on the CPU (%s), not on a GPU", p->device);
    } else if (s->total.queues > 0) {
        snprintf(text, size, "the trace has queues of a device, but no work on them");
    } else {
        snprintf(text, size, "the trace holds no device intervals: they were not recorded");
    }
    return text;
}

static void print_head(const ProfRun *run, FILE *stream) {
    const ProfSummary *s = &run->summary;
    const ProfProcess *p = &s->workers[0].process;
    char text[24];
    int64_t longest_ns = 0;
    for (int32_t i = 0; i < s->worker_count; i++) {
        int64_t wall_ns = s->workers[i].figures.wall_ns;
        longest_ns = wall_ns > longest_ns ? wall_ns : longest_ns;
    }
    fprintf(stream, "%s: %s on %s: %d worker%s, %" PRId64 " thread%s, %s", run->name, p->tool, p->device,
            s->worker_count, host_plural(s->worker_count), s->total.threads, host_plural(s->total.threads),
            duration(longest_ns, text));
    if (s->phases != PROF_ALL_PHASES) {
        fprintf(stream, " in");
        for (int i = 0; i < HOST_TRACE_PHASES; i++) {
            if ((s->phases >> i & 1) != 0) fprintf(stream, " %s", host_trace_phase_name((HostTracePhase)i));
        }
    } else {
        fprintf(stream, ":");
        for (int i = 0; i < HOST_TRACE_PHASES; i++) {
            if (s->total.phase_ns[i] == 0) continue;
            fprintf(stream, " %s %s", host_trace_phase_name((HostTracePhase)i), duration(s->total.phase_ns[i], text));
        }
    }
    fprintf(stream, "\n");
}

static void print_damage(const ProfRun *run, FILE *stream) {
    const ProfSummary *s = &run->summary;
    for (int32_t i = 0; i < s->worker_count; i++) {
        char prefix[HOST_PATH_MAX + 16];
        snprintf(prefix, sizeof prefix, "warning: %s: ", run->traces[i]);
        const ProfFigures *f = &s->workers[i].figures;
        prof_damage_print(&s->workers[i].damage, prefix, stream);
        if (f->dropped > f->dropped_intervals)
            fprintf(stream, "%s%" PRId64 " events found no room and were dropped\n", prefix,
                    f->dropped - f->dropped_intervals);
        if (f->dropped_intervals > 0)
            fprintf(stream, "%s%" PRId64 " records of the GPU's work were dropped: its times are too short\n", prefix,
                    f->dropped_intervals);
        if (f->unmatched_ends > 0) fprintf(stream, "%s%" PRId64 " ends without a begin\n", prefix, f->unmatched_ends);
        if (f->too_deep > 0) fprintf(stream, "%s%" PRId64 " scopes were nested too deep\n", prefix, f->too_deep);
        if (f->unknown_launches > 0) {
            fprintf(stream, "%s%" PRId64 " device intervals have no launch in the trace\n", prefix,
                    f->unknown_launches);
        }
    }
}

static void print_bound(const ProfSummary *s, FILE *stream) {
    char text[256], time[24];
    fprintf(stream, "\n%-*s %7s%s %12s\n", NAME_WIDTH, "what the wall clock's time is bound by", "share",
            s->worker_count > 1 ? "     +-" : "", "time");
    for (int b = 0; b < PROF_BOUNDS; b++) {
        double deviation, share = prof_summary_bound(s, (ProfBound)b, &deviation);
        fprintf(stream, "%-*s   %6.2f%%", NAME_WIDTH, prof_bound_name((ProfBound)b), 100.0 * share);
        if (s->worker_count > 1) fprintf(stream, " %5.2f%%", 100.0 * deviation);
        fprintf(stream, " %12s  %.*s\n", duration(s->total.bound_ns[b], time), (int)lround(share * BAR_WIDTH),
                "##############################");
    }
    const char *why = prof_report_no_gpu(s, text, sizeof text);
    if (why != NULL) fprintf(stream, "No GPU time: %s.\n", why);
}

// Time in which a worker's wall clock waits: for others, or for nothing that is known.
static int64_t waiting_ns(const ProfFigures *f) {
    return f->bound_ns[PROF_BOUND_COMMUNICATION] + f->bound_ns[PROF_BOUND_IDLE];
}

// Each worker, how much of its wall clock it waits, and the one that waits least: whom the others wait for.
static void print_workers(const ProfRun *run, FILE *stream) {
    const ProfSummary *s = &run->summary;
    if (s->worker_count < 2) return;
    char wall[24], busy[24];
    int32_t slowest = 0;
    int64_t error_ns = 0;
    fprintf(stream, "\n%-*s %12s %12s %9s\n", NAME_WIDTH, "worker", "wall clock", "computes", "waits");
    for (int32_t i = 0; i < s->worker_count; i++) {
        const ProfWorker *w = &s->workers[i];
        int64_t wall_ns = w->figures.wall_ns, wait_ns = waiting_ns(&w->figures);
        char name[PROF_TEXT_MAX + 32];
        snprintf(name, sizeof name, "rank %" PRId64 " on %s", w->process.rank, w->process.host);
        fprintf(stream, "%-*s %12s %12s   %6.2f%%\n", NAME_WIDTH, name, duration(wall_ns, wall),
                duration(wall_ns - wait_ns, busy), percent(wait_ns, wall_ns));
        if (wall_ns - wait_ns > s->workers[slowest].figures.wall_ns - waiting_ns(&s->workers[slowest].figures))
            slowest = i;
        int64_t pair_ns = s->workers[0].process.offset_error_ns + w->process.offset_error_ns;
        bool is_shifted = prof_process_shift_ns(&s->workers[0].process, &w->process) != 0;
        if (is_shifted && pair_ns > error_ns) error_ns = pair_ns;
    }
    fprintf(stream, "Computes longest: rank %" PRId64 ".", s->workers[slowest].process.rank);
    if (error_ns > 0) fprintf(stream, " Clocks of different hosts agree to %s.", duration(error_ns, wall));
    fprintf(stream, "\n");
}

static void print_categories(const ProfSummary *s, FILE *stream) {
    const ProfFigures *f = &s->total;
    bool gpu = f->intervals > 0;
    char a[24], b[24], c[24], d[24], e[24];
    fprintf(stream, "\n%-*s %9s %12s %12s", NAME_WIDTH, "category", "threads", "time", "on the clock");
    if (gpu) fprintf(stream, " %12s %12s %12s", "CPU + GPU", "GPU only", "GPU time");
    fprintf(stream, "\n");
    for (int i = 0; i <= HOST_TRACE_CATEGORIES; i++) {
        bool known = i < HOST_TRACE_CATEGORIES;
        if (f->category_thread_ns[i] == 0 && f->category_device_ns[i] == 0) continue;
        fprintf(stream, "%-*s   %6.2f%% %12s %12s", NAME_WIDTH, known ? prof_category_name(i) : "in no scope",
                percent(f->category_thread_ns[i], f->thread_ns), duration(f->category_thread_ns[i], a),
                known ? duration(f->category_cpu_ns[i], b) : "");
        if (gpu) {
            fprintf(stream, " %12s %12s %12s", known ? duration(f->category_both_ns[i], c) : "",
                    known ? duration(f->category_gpu_ns[i], d) : "", duration(f->category_device_ns[i], e));
        }
        fprintf(stream, "\n");
    }
    fprintf(stream, "Outside leaf scopes: %.2f%% of threads' time, %.2f%% of the main thread's.\n",
            percent(f->outside_ns, f->thread_ns), percent(f->outside_main_ns, f->main_ns));
    if (f->lost_ns > 0) fprintf(stream, "Lost: %.2f%% of threads' time.\n", percent(f->lost_ns, f->thread_ns));
}

// A part of the wall clock, with its interval.
static void print_part(const char *what, ProfEstimate e, double wall_ns, FILE *stream) {
    double scale = wall_ns > 0.0 ? 100.0 / wall_ns : 0.0;
    fprintf(stream, "%s: %.3f%% of the wall clock (95%% interval %.3f%% to %.3f%%).\n", what, scale * e.value,
            scale * e.low, scale * e.high);
}

// Raw and corrected time of all workers together.
static void print_cost(const ProfRun *run, FILE *stream) {
    const ProfSummary *s = &run->summary;
    const ProfCorrection *c = &run->correction;
    double wall_ns = (double)s->total.wall_ns;
    if (s->total.reader_ns > 0) {
        fprintf(stream, "The recorder's own thread: %.3f s of processor time.\n", 1e-9 * (double)s->total.reader_ns);
    }
    if (!run->is_corrected) {
        fprintf(stream, "Not corrected for the profiler's own cost: ");
        if (run->is_too_dense) {
            fprintf(stream, "scopes are too dense, %" PRId64 " on main threads.\n", prof_run_main_scopes(run));
        } else {
            fprintf(stream, "profreport --calibrate measures it, once per machine.\n");
        }
        return;
    }
    if (s->excess.units > 0) print_part("Full detail took", c->excess_ns, wall_ns, stream);
    if (run->has_cost) {
        print_part(s->excess.units > 0 ? "Scopes elsewhere took" : "The profiler's own cost", c->costs_ns, wall_ns,
                   stream);
    }
    char unknown[512];
    if (prof_run_unknown(run, unknown)[0] != '\0') fprintf(stream, "%s\n", unknown);
    fprintf(stream, "%.6f s raw, %.6f s corrected (%.6f to %.6f).\n", 1e-9 * wall_ns, 1e-9 * c->wall_ns.value,
            1e-9 * c->wall_ns.low, 1e-9 * c->wall_ns.high);
}

// ---- the tree of scopes --------------------------------------------------------------------------------------------

typedef struct Ordered {
    int32_t scope;
    int64_t weight;
} Ordered;

static int compare_ordered(const void *a, const void *b) {
    const Ordered *x = a, *y = b;
    if (x->weight != y->weight) return (x->weight < y->weight) - (x->weight > y->weight);
    return (x->scope > y->scope) - (x->scope < y->scope);
}

static void print_split(const ProfScope *scope, FILE *stream) {
    uint64_t sum = 0;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        sum += scope->split[c];
    if (sum == 0) return;
    fprintf(stream, "  =");
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        if (scope->split[c] == 0) continue;
        fprintf(stream, " %.1f%% %s", 100.0 * (double)scope->split[c] / (double)sum, prof_category_name(c));
    }
}

static void print_scope(const ProfRun *run, int32_t index, FILE *stream) {
    const ProfSummary *s = &run->summary;
    const ProfScope *scope = &s->scopes[index];
    char time[24], within[24], corrected[24], device[24];
    int indent = 2 * (scope->depth < 8 ? scope->depth : 8), width = NAME_WIDTH - indent;
    fprintf(stream, "%*s%-*.*s %13s %9" PRId64 " %6.2f%% %12s %14s", indent, "", width, width, scope->name,
            scope->category < HOST_TRACE_CATEGORIES ? prof_category_name(scope->category) : "", scope->count,
            percent(scope->thread_ns, s->total.thread_ns), duration(scope->thread_ns, time),
            duration(scope->within_ns, within));
    if (run->is_corrected) fprintf(stream, " %12s", duration((int64_t)run->corrected_ns[index].value, corrected));
    if (s->total.intervals > 0) fprintf(stream, " %12s", duration(scope->device_ns, device));
    print_split(scope, stream);
    fprintf(stream, "\n");
}

// Children of `parent`, the longest first, and their own.
static void print_children(const ProfRun *run, const int32_t *first, const int32_t *next, int32_t parent, bool all,
                           Ordered *buffer, FILE *stream) {
    const ProfSummary *s = &run->summary;
    int count = 0;
    for (int32_t i = first[parent + 1]; i >= 0; i = next[i])
        buffer[count++] = (Ordered){i, s->scopes[i].within_ns + s->scopes[i].device_ns};
    qsort(buffer, (size_t)count, sizeof *buffer, compare_ordered);
    for (int k = 0; k < count; k++) {
        const ProfScope *scope = &s->scopes[buffer[k].scope];
        int64_t of_ns = s->total.thread_ns + s->total.device_sum_ns;
        if (buffer[k].weight == 0 || (!all && percent(buffer[k].weight, of_ns) < 0.1)) continue;
        if (scope->depth > 40) continue; // the stack of this function
        print_scope(run, buffer[k].scope, stream);
        print_children(run, first, next, buffer[k].scope, all, buffer + count, stream);
    }
}

static void print_scopes(const ProfRun *run, bool all, FILE *stream) {
    const ProfSummary *s = &run->summary;
    size_t count = (size_t)s->scope_count;
    int32_t *links = calloc(2 * count + 1, sizeof *links);
    Ordered *buffer = malloc((count + 1) * sizeof *buffer);
    if (links != NULL && buffer != NULL) {
        int32_t *first = links, *next = links + count + 1; // first[0] is the roots'
        for (size_t i = 0; i <= count; i++)
            first[i] = -1;
        for (int32_t i = s->scope_count - 1; i >= 0; i--) {
            next[i] = first[s->scopes[i].parent + 1];
            first[s->scopes[i].parent + 1] = i;
        }
        fprintf(stream, "\n%-*s %13s %9s %7s %12s %14s%s%s\n", NAME_WIDTH, "scope", "category", "count", "threads",
                "time", "with all in it", run->is_corrected ? "    corrected" : "",
                s->total.intervals > 0 ? "    GPU time" : "");
        print_children(run, first, next, -1, all, buffer, stream);
    }
    free(links);
    free(buffer);
}

// ---- the device, transitions ---------------------------------------------------------------------------------------

static void print_device(const ProfSummary *s, FILE *stream) {
    const ProfFigures *f = &s->total;
    char a[24], b[24];
    if (f->intervals == 0) return;
    int64_t wall_ns = prof_figures_whole_ns(f);
    fprintf(stream, "\nGPU: %" PRId64 " intervals; busy %s, %.2f%% of the wall clock; %s added up", f->intervals,
            duration(f->device_busy_ns, a), percent(f->device_busy_ns, wall_ns), duration(f->device_sum_ns, b));
    if (f->fill_of_ns > 0) fprintf(stream, "; kernels fill %.1f%% of it", percent(f->fill_ns, f->fill_of_ns));
    fprintf(stream, ".\n%" PRId64 " gaps between intervals, by cause:", f->gaps);
    for (int g = 0; g < PROF_GAPS; g++)
        fprintf(stream, "%s %s %s", g > 0 ? "," : "", prof_gap_name((ProfGap)g), duration(f->gap_ns[g], a));
    fprintf(stream, ".\n");
    for (int bound = 0; bound < 2; bound++) {
        const int64_t *of = bound == 0 ? f->gpu_bound_ns : f->overlapped_ns;
        fprintf(stream, "%s, by what the GPU does:", prof_bound_name((ProfBound)bound));
        for (int c = 0; c <= HOST_TRACE_CATEGORIES; c++) {
            if (of[c] > 0) fprintf(stream, " %s %s", prof_category_name(c), duration(of[c], a));
        }
        fprintf(stream, ".\n");
    }
    prof_report_calls(s, stream);
    prof_report_monitor(f, stream);
}

static void print_transitions(const ProfSummary *s, FILE *stream) {
    enum { SIZE = HOST_TRACE_CATEGORIES + 1 };
    bool shown[SIZE][SIZE] = {{false}};
    fprintf(stream, "\nMost frequent transitions:");
    for (int n = 0; n < TRANSITIONS_SHOWN; n++) {
        int from = 0, to = 0;
        for (int i = 0; i < SIZE * SIZE; i++) {
            if (shown[i / SIZE][i % SIZE]) continue;
            if (s->total.transitions[i / SIZE][i % SIZE] > s->total.transitions[from][to] || shown[from][to]) {
                from = i / SIZE, to = i % SIZE;
            }
        }
        if (s->total.transitions[from][to] == 0 || shown[from][to]) break;
        shown[from][to] = true;
        fprintf(stream, "%s %s to %s %" PRId64, n > 0 ? "," : "", prof_category_name(from), prof_category_name(to),
                s->total.transitions[from][to]);
    }
    fprintf(stream, ".\n");
}

void prof_report_text(const ProfRun *run, bool all, FILE *stream) {
    const ProfSummary *s = &run->summary;
    print_head(run, stream);
    print_damage(run, stream);
    print_bound(s, stream);
    print_workers(run, stream);
    print_categories(s, stream);
    print_cost(run, stream);
    print_scopes(run, all, stream);
    print_device(s, stream);
    print_transitions(s, stream);
}
