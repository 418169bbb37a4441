// Reports for programs: JSON and CSV. All times are nanoseconds.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_compare.h"
#include "profiler/prof_json.h"

enum { PAGE_SCOPES = 3000, PAGE_WORKERS = 256 }; // of a page: scopes of all runs, workers of each

const char *prof_scope_path(const ProfSummary *s, int32_t scope, char *text, size_t size) {
    const char *parts[PROF_DEPTH_MAX];
    int count = 0;
    for (int32_t i = scope; i >= 0 && count < PROF_DEPTH_MAX; i = s->scopes[i].parent)
        parts[count++] = s->scopes[i].name;
    size_t at = 0;
    text[0] = '\0';
    while (count-- > 0 && at < size)
        at += (size_t)snprintf(text + at, size - at, "/%s", parts[count]);
    return text;
}

// {"simulation": 1, ...}; all categories and "none" where there are that many.
static void put_by_category(FILE *stream, bool *first, const char *key, const int64_t *ns, int count) {
    prof_json_key(stream, first, key);
    fputc('{', stream);
    bool first_of = true;
    for (int c = 0; c < count; c++)
        prof_json_int(stream, &first_of, prof_category_name(c), ns[c]);
    fputc('}', stream);
}

static void put_bound(FILE *stream, bool *first, const ProfFigures *f) {
    prof_json_key(stream, first, "bound_ns");
    fputc('{', stream);
    bool first_of = true;
    for (int b = 0; b < PROF_BOUNDS; b++)
        prof_json_int(stream, &first_of, prof_bound_name((ProfBound)b), f->bound_ns[b]);
    fputc('}', stream);
}

// By kind: what calls allocated while the trace was recorded.
static void put_memory(FILE *stream, bool *first, const ProfFigures *f) {
    bool in = true;
    prof_json_key(stream, first, "memory");
    fputc('{', stream);
    for (int m = 0; m < PROF_MEMORIES; m++) {
        const ProfMemorySum *memory = &f->memory[m];
        bool in_kind = true;
        prof_json_key(stream, &in, prof_memory_name((ProfMemory)m));
        fputc('{', stream);
        prof_json_int(stream, &in_kind, "allocations", memory->allocations);
        prof_json_int(stream, &in_kind, "releases", memory->releases);
        prof_json_int(stream, &in_kind, "allocated_bytes", memory->allocated_bytes);
        prof_json_int(stream, &in_kind, "held_bytes", memory->held_bytes);
        prof_json_int(stream, &in_kind, "peak_bytes", memory->peak_bytes);
        fputc('}', stream);
    }
    fputc('}', stream);
    in = true;
    prof_json_key(stream, first, "pools");
    fputc('{', stream);
    prof_json_int(stream, &in, "made", f->pools[PROF_POOL_MADE]);
    prof_json_int(stream, &in, "trimmed", f->pools[PROF_POOL_TRIMMED]);
    prof_json_int(stream, &in, "destroyed", f->pools[PROF_POOL_DESTROYED]);
    prof_json_int(stream, &in, "peak_bytes", f->pool_peak_bytes);
    fputc('}', stream);
}

static void put_device(FILE *stream, bool *first, const ProfFigures *f) {
    static const char *const works[] = {"kernels_ns", "copies_ns", "fills_ns", "others_ns"};
    prof_json_key(stream, first, "device");
    fputc('{', stream);
    bool in = true;
    prof_json_int(stream, &in, "intervals", f->intervals);
    prof_json_int(stream, &in, "unknown_launches", f->unknown_launches);
    prof_json_int(stream, &in, "busy_ns", f->device_busy_ns);
    prof_json_int(stream, &in, "sum_ns", f->device_sum_ns);
    prof_json_int(stream, &in, "span_ns", f->device_span_ns);
    prof_json_int(stream, &in, "kernels_busy_ns", f->kernel_busy_ns);
    prof_json_int(stream, &in, "fill_ns", f->fill_ns);
    prof_json_int(stream, &in, "fill_of_ns", f->fill_of_ns);
    for (int w = 0; w < PROF_DEVICE_WORKS; w++)
        prof_json_int(stream, &in, works[w], f->work_ns[w]);
    prof_json_int(stream, &in, "gaps", f->gaps);
    prof_json_key(stream, &in, "gaps_ns");
    fputc('{', stream);
    bool in_gaps = true;
    for (int g = 0; g < PROF_GAPS; g++)
        prof_json_int(stream, &in_gaps, prof_gap_name((ProfGap)g), f->gap_ns[g]);
    fputc('}', stream);
    prof_json_int(stream, &in, "dropped", f->dropped_intervals);
    prof_json_int(stream, &in, "monitor_samples", f->monitor_samples);
    prof_json_int(stream, &in, "monitor_percent_sum", f->monitor_percent);
    prof_json_int(stream, &in, "memory_peak_bytes", f->memory_peak_bytes);
    prof_json_int(stream, &in, "waits", f->waits);
    prof_json_int(stream, &in, "wait_ns", f->wait_ns);
    put_memory(stream, &in, f);
    prof_json_int(stream, &in, "interface_overhead_ns", f->overhead_ns);
    fputc('}', stream);
}

static void put_transitions(FILE *stream, bool *first, const ProfFigures *f) {
    prof_json_key(stream, first, "transitions");
    fputc('[', stream);
    bool first_of = true;
    for (int from = 0; from <= HOST_TRACE_CATEGORIES; from++) {
        for (int to = 0; to <= HOST_TRACE_CATEGORIES; to++) {
            if (f->transitions[from][to] == 0) continue;
            bool in = true;
            fputs(first_of ? "{" : ", {", stream);
            first_of = false;
            prof_json_text(stream, &in, "from", prof_category_name(from));
            prof_json_text(stream, &in, "to", prof_category_name(to));
            prof_json_int(stream, &in, "count", f->transitions[from][to]);
            fputc('}', stream);
        }
    }
    fputc(']', stream);
}

static void put_figures(FILE *stream, bool *first, const ProfFigures *f) {
    enum { ALL = HOST_TRACE_CATEGORIES + 1 };
    static const char *const layers[] = {"code", "library", "api", "script"};
    _Static_assert(sizeof layers / sizeof layers[0] == PROF_LAYERS, "a name for each layer");
    prof_json_int(stream, first, "wall_ns", f->wall_ns);
    put_bound(stream, first, f);
    put_by_category(stream, first, "gpu_bound_ns", f->gpu_bound_ns, ALL);
    put_by_category(stream, first, "overlapped_ns", f->overlapped_ns, ALL);
    prof_json_int(stream, first, "threads", f->threads);
    prof_json_int(stream, first, "thread_ns", f->thread_ns);
    prof_json_int(stream, first, "main_ns", f->main_ns);
    put_by_category(stream, first, "category_thread_ns", f->category_thread_ns, ALL);
    put_by_category(stream, first, "category_device_ns", f->category_device_ns, ALL);
    put_by_category(stream, first, "category_cpu_only_ns", f->category_cpu_ns, HOST_TRACE_CATEGORIES);
    put_by_category(stream, first, "category_both_ns", f->category_both_ns, HOST_TRACE_CATEGORIES);
    put_by_category(stream, first, "category_gpu_only_ns", f->category_gpu_ns, HOST_TRACE_CATEGORIES);
    prof_json_key(stream, first, "layer_ns");
    fputc('{', stream);
    bool in = true;
    for (int l = 0; l < PROF_LAYERS; l++)
        prof_json_int(stream, &in, layers[l], f->layer_ns[l]);
    fputc('}', stream);
    prof_json_int(stream, first, "outside_leaf_scopes_ns", f->outside_ns);
    prof_json_int(stream, first, "outside_leaf_scopes_main_ns", f->outside_main_ns);
    prof_json_int(stream, first, "lost_ns", f->lost_ns);
    prof_json_int(stream, first, "queues", f->queues);
    prof_json_key(stream, first, "phase_ns");
    fputc('{', stream);
    in = true;
    for (int p = 0; p < HOST_TRACE_PHASES; p++)
        prof_json_int(stream, &in, host_trace_phase_name((HostTracePhase)p), f->phase_ns[p]);
    fputc('}', stream);
    put_device(stream, first, f);
    put_transitions(stream, first, f);
    prof_json_key(stream, first, "main_thread_recorded");
    fputc('{', stream);
    in = true;
    for (int i = 0; i < PROF_COSTS; i++)
        prof_json_int(stream, &in, prof_cost_name((ProfCostClass)i), f->main_costs[i]);
    fputc('}', stream);
    prof_json_int(stream, first, "recorder_ns", f->reader_ns);
    prof_json_int(stream, first, "events", f->events);
    prof_json_int(stream, first, "dropped_events", f->dropped);
    prof_json_int(stream, first, "unmatched_ends", f->unmatched_ends);
    prof_json_int(stream, first, "too_deep_scopes", f->too_deep);
}

// Those that count.
static void put_phases(FILE *stream, bool *first, unsigned phases) {
    bool in = true;
    prof_json_key(stream, first, "phases");
    fputc('[', stream);
    for (int p = 0; p < HOST_TRACE_PHASES; p++) {
        if ((phases >> p & 1) == 0) continue;
        fputs(in ? "" : ", ", stream);
        in = false;
        host_json_put(stream, host_trace_phase_name((HostTracePhase)p));
    }
    fputc(']', stream);
}

static void put_damage(FILE *stream, bool *first, const ProfDamage *d) {
    prof_json_key(stream, first, "damage");
    fprintf(stream,
            "{\"is_cut\": %s, \"has_no_process\": %s, \"damaged_blocks\": %" PRIu64 ", \"missing_blocks\": %" PRIu64
            ", \"lost_events\": %" PRIu64 ", \"skipped_bytes\": %" PRIu64 ", \"foreign_blocks\": %" PRIu64
            ", \"backward_clocks\": %" PRIu64 "}",
            d->is_cut ? "true" : "false", d->has_no_process ? "true" : "false", d->damaged_blocks, d->missing_blocks,
            d->lost_events, d->skipped_bytes, d->foreign_blocks, d->backward_clocks);
}

// Of the process, and of all that its trace says of where and on what it ran.
static void put_process(FILE *stream, bool *first, const ProfProcess *p) {
    prof_json_text(stream, first, "host", p->host);
    prof_json_text(stream, first, "device", p->device);
    prof_json_text(stream, first, "clock", p->clock);
    prof_json_int(stream, first, "pid", p->pid);
    prof_json_int(stream, first, "rank", p->rank);
    prof_json_int(stream, first, "devices", p->devices);
    prof_json_int(stream, first, "pool_threads", p->threads);
    prof_json_int(stream, first, "envs", p->envs);
    prof_json_int(stream, first, "env_steps", p->env_steps);
}

static void put_ids(FILE *stream, bool *first, const ProfWorker *w) {
    prof_json_key(stream, first, "external_ids");
    fputc('[', stream);
    for (int64_t i = 0; i < w->figures.ids; i++) {
        bool in = true;
        fputs(i > 0 ? ", {" : "{", stream);
        prof_json_int(stream, &in, "kind", w->ids[i].kind);
        prof_json_key(stream, &in, "id");
        fprintf(stream, "%" PRIu64, w->ids[i].id);
        prof_json_int(stream, &in, "launches", w->ids[i].launches);
        prof_json_int(stream, &in, "intervals", w->ids[i].intervals);
        prof_json_int(stream, &in, "device_ns", w->ids[i].device_ns);
        fputc('}', stream);
    }
    fputc(']', stream);
    prof_json_int(stream, first, "launches_beyond_ids", w->figures.launches_beyond_ids);
}

static void put_worker(FILE *stream, const ProfWorker *w, const char *trace, ProfJsonForm form) {
    bool first = true;
    fputc('{', stream);
    prof_json_text(stream, &first, "trace", host_json_is_valid(trace) ? trace : "?");
    put_process(stream, &first, &w->process);
    put_damage(stream, &first, &w->damage);
    put_figures(stream, &first, &w->figures);
    if (form == PROF_JSON_ALL) put_ids(stream, &first, w);
    fputc('}', stream);
}

static void put_estimate(FILE *stream, bool *first, const char *key, ProfEstimate e) {
    prof_json_key(stream, first, key);
    fprintf(stream, "{\"low\": %.17g, \"value\": %.17g, \"high\": %.17g}", e.low, e.value, e.high);
}

// By the names of classes, those whose cost is known.
static void put_classes(FILE *stream, bool *first, const char *key, const ProfRun *run, const ProfEstimate *of) {
    bool in = true;
    prof_json_key(stream, first, key);
    fputc('{', stream);
    for (int i = 0; run->has_cost && i < PROF_COSTS; i++) {
        if (run->cost.is_known[i]) put_estimate(stream, &in, prof_cost_name((ProfCostClass)i), of[i]);
    }
    fputc('}', stream);
}

// null where the profiler's own cost is not known.
static void put_correction(FILE *stream, bool *first, const ProfRun *run) {
    prof_json_key(stream, first, "is_too_dense_to_correct");
    fputs(run->is_too_dense ? "true" : "false", stream);
    prof_json_key(stream, first, "correction");
    if (!run->is_corrected) {
        fputs("null", stream);
        return;
    }
    fputc('{', stream);
    bool in = true;
    put_classes(stream, &in, "each_ns", run, run->cost.each_ns);
    put_classes(stream, &in, "inside_ns", run, run->cost.inside_ns);
    if (run->has_cost && run->cost.has_kernel) put_estimate(stream, &in, "kernel_ns", run->cost.kernel_ns);
    put_estimate(stream, &in, "costs_ns", run->correction.costs_ns);
    put_estimate(stream, &in, "full_detail_ns", run->correction.excess_ns);
    put_estimate(stream, &in, "wall_ns", run->correction.wall_ns);
    char unknown[512];
    prof_json_text(stream, &in, "not_corrected_for", prof_run_unknown(run, unknown));
    fputc('}', stream);
}

// ---- scopes --------------------------------------------------------------------------------------------------------

static void put_scope(FILE *stream, const ProfRun *run, int32_t index, int32_t parent, bool has_path) {
    const ProfSummary *s = &run->summary;
    const ProfScope *scope = &s->scopes[index];
    char path[4096];
    bool first = true;
    fputc('{', stream);
    prof_scope_path(s, index, path, sizeof path);
    // A path may be cut within a letter.
    if (has_path) prof_json_text(stream, &first, "path", host_json_is_valid(path) ? path : scope->name);
    prof_json_text(stream, &first, "name", scope->name);
    prof_json_int(stream, &first, "parent", parent);
    prof_json_text(stream, &first, "category", prof_category_name(scope->category));
    prof_json_key(stream, &first, "leaf");
    fputs(scope->is_leaf ? "true" : "false", stream);
    prof_json_int(stream, &first, "count", scope->count);
    prof_json_int(stream, &first, "thread_ns", scope->thread_ns);
    prof_json_int(stream, &first, "main_ns", scope->main_ns);
    prof_json_int(stream, &first, "within_ns", scope->within_ns);
    prof_json_int(stream, &first, "entries", scope->entries);
    if (run->is_corrected) put_estimate(stream, &first, "corrected_thread_ns", run->corrected_ns[index]);
    prof_json_int(stream, &first, "intervals", scope->intervals);
    prof_json_int(stream, &first, "device_ns", scope->device_ns);
    if (run->has_cost && run->cost.has_kernel)
        prof_json_real(stream, &first, "corrected_device_ns", prof_cost_device_ns(&run->cost, scope));
    prof_json_int(stream, &first, "allocations", scope->allocations);
    prof_json_int(stream, &first, "allocated_bytes", scope->allocated_bytes);
    prof_json_int(stream, &first, "released_bytes", scope->released_bytes);
    prof_json_int(stream, &first, "cpu_only_ns", scope->wall.cpu_ns);
    prof_json_int(stream, &first, "both_ns", scope->wall.both_ns);
    prof_json_int(stream, &first, "gpu_only_ns", scope->wall.gpu_ns);
    prof_json_key(stream, &first, "split");
    fputc('{', stream);
    bool in = true;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        if (scope->split[c] == 0) continue;
        prof_json_key(stream, &in, prof_category_name(c));
        fprintf(stream, "%" PRIu64, scope->split[c]);
    }
    fputs("}}", stream);
}

typedef struct Weighed {
    int64_t ns;
    int32_t scope;
} Weighed;

static int compare_weighed(const void *a, const void *b) {
    const Weighed *x = a, *y = b;
    if (x->ns != y->ns) return (x->ns < y->ns) - (x->ns > y->ns);
    return (x->scope > y->scope) - (x->scope < y->scope);
}

// Numbers the `most` scopes that have the most time in them, threads' and devices', in their order; -1: the others. A
// scope has no less than those within it, and comes before them: whoever is in is in with all above. Returns how many.
static int32_t number_scopes(const ProfSummary *s, int32_t most, int32_t *number) {
    for (int32_t i = 0; i < s->scope_count; i++)
        number[i] = i;
    Weighed *weighed = s->scope_count > most ? malloc((size_t)s->scope_count * sizeof *weighed) : NULL;
    if (weighed == NULL) return s->scope_count;
    for (int32_t i = 0; i < s->scope_count; i++)
        weighed[i] = (Weighed){s->scopes[i].thread_ns + s->scopes[i].device_ns, i};
    for (int32_t i = s->scope_count - 1; i >= 0; i--) {
        if (s->scopes[i].parent >= 0) weighed[s->scopes[i].parent].ns += weighed[i].ns;
        number[i] = -1;
    }
    qsort(weighed, (size_t)s->scope_count, sizeof *weighed, compare_weighed);
    for (int32_t i = 0; i < most; i++)
        number[weighed[i].scope] = 0;
    free(weighed);
    int32_t count = 0;
    for (int32_t i = 0; i < s->scope_count; i++) {
        if (number[i] >= 0) number[i] = count++;
    }
    return count;
}

static void put_scopes(FILE *stream, bool *first, const ProfRun *run, int32_t most, bool has_paths) {
    const ProfSummary *s = &run->summary;
    int32_t *number = malloc(((size_t)s->scope_count + 1) * sizeof *number), shown = 0;
    bool in = true;
    if (number != NULL) shown = number_scopes(s, most, number);
    prof_json_key(stream, first, "scopes");
    fputc('[', stream);
    for (int32_t i = 0; number != NULL && i < s->scope_count; i++) {
        if (number[i] < 0) continue;
        fputs(in ? "\n  " : ",\n  ", stream);
        in = false;
        put_scope(stream, run, i, s->scopes[i].parent >= 0 ? number[s->scopes[i].parent] : -1, has_paths);
    }
    free(number);
    fputc(']', stream);
    prof_json_int(stream, first, "hidden_scopes", s->scope_count - shown);
}

// ---- runs ----------------------------------------------------------------------------------------------------------

static void put_scale(FILE *stream, bool *first, const ProfSummary *s) {
    ProfScale scale = prof_scale(s);
    bool in = true;
    prof_json_key(stream, first, "configuration");
    fputc('{', stream);
    prof_json_int(stream, &in, "devices", scale.devices);
    prof_json_int(stream, &in, "workers", scale.workers);
    prof_json_int(stream, &in, "threads", scale.threads);
    prof_json_int(stream, &in, "envs", scale.envs);
    prof_json_int(stream, &in, "env_steps", scale.env_steps);
    prof_json_real(stream, &in, "env_steps_per_s", scale.env_steps_per_s);
    prof_json_real(stream, &in, "wall_s", scale.wall_s);
    fputc('}', stream);
}

static void put_bound_share(FILE *stream, bool *first, const ProfSummary *s) {
    prof_json_key(stream, first, "bound_share");
    fputc('{', stream);
    bool in = true;
    for (int b = 0; b < PROF_BOUNDS; b++) {
        double deviation, share = prof_summary_bound(s, (ProfBound)b, &deviation);
        prof_json_key(stream, &in, prof_bound_name((ProfBound)b));
        fprintf(stream, "{\"mean\": %.17g, \"deviation\": %.17g}", share, deviation);
    }
    fputc('}', stream);
}

static void put_run(FILE *stream, const ProfRun *run, ProfJsonForm form, int32_t scopes) {
    const ProfSummary *s = &run->summary;
    char why[256];
    bool first = true;
    int32_t workers = form == PROF_JSON_PAGE && s->worker_count > PAGE_WORKERS ? PAGE_WORKERS : s->worker_count;
    fputc('{', stream);
    prof_json_text(stream, &first, "run", host_json_is_valid(run->name) ? run->name : "?");
    prof_json_text(stream, &first, "tool", s->workers[0].process.tool);
    prof_json_text(stream, &first, "device", s->workers[0].process.device);
    const char *no_gpu = prof_report_no_gpu(s, why, sizeof why);
    prof_json_key(stream, &first, "no_gpu_time_because");
    if (no_gpu == NULL) {
        fputs("null", stream);
    } else {
        host_json_put(stream, no_gpu);
    }
    put_phases(stream, &first, s->phases);
    put_scale(stream, &first, s);
    put_correction(stream, &first, run);
    put_bound_share(stream, &first, s);
    fputs(",\n \"total\": {", stream);
    bool in = true;
    put_figures(stream, &in, &s->total);
    fputs("},\n \"workers\": [", stream);
    for (int32_t i = 0; i < workers; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stream);
        put_worker(stream, &s->workers[i], run->traces[i], form);
    }
    fputs("]", stream);
    prof_json_int(stream, &first, "hidden_workers", s->worker_count - workers);
    put_scopes(stream, &first, run, scopes, form == PROF_JSON_ALL);
    fputs("}", stream);
}

static void put_comparison(FILE *stream, bool *first, const ProfRun *runs, int count) {
    ProfBasis basis = prof_compare_basis(runs, count);
    prof_json_key(stream, first, "comparison");
    fputc('{', stream);
    bool in = true;
    prof_json_text(stream, &in, "speed_up_of", basis.is_by_steps ? "env steps per second" : "wall clock");
    prof_json_text(stream, &in, "efficiency_per", prof_resource_name(basis.resource));
    prof_json_key(stream, &in, "runs");
    fputc('[', stream);
    for (int i = 0; i < count; i++) {
        bool within = true;
        fputs(i > 0 ? ", {" : "{", stream);
        prof_json_real(stream, &within, "speed_up", prof_compare_speed_up(basis, &runs[0], &runs[i]));
        prof_json_real(stream, &within, "efficiency", prof_compare_efficiency(basis, &runs[0], &runs[i]));
        fputc('}', stream);
    }
    fputs("]}", stream);
}

// What the names in a report say, for people.
static void put_meanings(FILE *stream) {
#define MEANING(name, meaning) meaning,
    static const char *const bounds[] = {PROF_BOUND_LIST(MEANING)};
    static const char *const gaps[] = {PROF_GAP_LIST(MEANING)};
    static const char *const categories[] = {HOST_TRACE_LIST(MEANING)};
#undef MEANING
    bool in = true;
    fputs(", \"meanings\": {\"bound\": {", stream);
    for (int b = 0; b < PROF_BOUNDS; b++)
        prof_json_text(stream, &in, prof_bound_name((ProfBound)b), bounds[b]);
    in = true;
    fputs("}, \"gap\": {", stream);
    for (int g = 0; g < PROF_GAPS; g++)
        prof_json_text(stream, &in, prof_gap_name((ProfGap)g), gaps[g]);
    in = true;
    fputs("}, \"category\": {", stream);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        prof_json_text(stream, &in, prof_category_name(c), categories[c]);
    fputs("}}", stream);
}

void prof_report_json(const ProfRun *runs, int count, ProfJsonForm form, FILE *stream) {
    int32_t scopes = form == PROF_JSON_ALL ? INT32_MAX : PAGE_SCOPES / count + 1;
    bool first = true;
    fputs("{", stream);
    prof_json_int(stream, &first, "shoal_profile", 1);
    put_meanings(stream);
    put_comparison(stream, &first, runs, count);
    fputs(", \"runs\": [\n", stream);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "", stream);
        put_run(stream, &runs[i], form, scopes);
    }
    fputs("]}\n", stream);
}

// ---- CSV -----------------------------------------------------------------------------------------------------------

static void put_field(FILE *stream, const char *text) {
    fputc('"', stream);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

void prof_report_csv(const ProfRun *runs, int count, FILE *stream) {
    fputs(
        "run,scope,category,leaf,count,thread_ns,main_ns,within_ns,intervals,device_ns,cpu_only_ns,both_ns,gpu_only_ns,"
        "allocations,allocated_bytes,released_bytes",
        stream);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
        fprintf(stream, ",split_%s", prof_category_name(c));
    fputc('\n', stream);
    for (int r = 0; r < count; r++) {
        const ProfSummary *s = &runs[r].summary;
        for (int32_t i = 0; i < s->scope_count; i++) {
            const ProfScope *scope = &s->scopes[i];
            char path[4096];
            put_field(stream, runs[r].name);
            fputc(',', stream);
            put_field(stream, prof_scope_path(s, i, path, sizeof path));
            fprintf(stream, ",%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                    prof_category_name(scope->category), scope->is_leaf, scope->count, scope->thread_ns, scope->main_ns,
                    scope->within_ns, scope->intervals, scope->device_ns);
            fprintf(stream, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, scope->wall.cpu_ns,
                    scope->wall.both_ns, scope->wall.gpu_ns, scope->allocations, scope->allocated_bytes,
                    scope->released_bytes);
            for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
                fprintf(stream, ",%" PRIu64, scope->split[c]);
            fputc('\n', stream);
        }
    }
}
