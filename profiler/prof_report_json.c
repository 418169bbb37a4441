// Reports for programs: JSON and CSV. All times are nanoseconds.
#include <inttypes.h>
#include <string.h>

#include "host/json_text.h"
#include "profiler/prof_report.h"

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

static void put_key(FILE *stream, bool *first, const char *key) {
    fputs(*first ? "" : ", ", stream);
    host_json_put(stream, key);
    fputs(": ", stream);
    *first = false;
}

static void put_text(FILE *stream, bool *first, const char *key, const char *text) {
    put_key(stream, first, key);
    host_json_put(stream, text);
}

static void put_int(FILE *stream, bool *first, const char *key, int64_t value) {
    put_key(stream, first, key);
    fprintf(stream, "%" PRId64, value);
}

// {"simulation": 1, ...}; all categories and "none" where there are that many.
static void put_by_category(FILE *stream, bool *first, const char *key, const int64_t *ns, int count) {
    put_key(stream, first, key);
    fputc('{', stream);
    bool first_of = true;
    for (int c = 0; c < count; c++)
        put_int(stream, &first_of, prof_category_name(c), ns[c]);
    fputc('}', stream);
}

static void put_bound(FILE *stream, bool *first, const ProfFigures *f) {
    put_key(stream, first, "bound_ns");
    fputc('{', stream);
    bool first_of = true;
    for (int b = 0; b < PROF_BOUNDS; b++)
        put_int(stream, &first_of, prof_bound_name((ProfBound)b), f->bound_ns[b]);
    fputc('}', stream);
}

static void put_device(FILE *stream, bool *first, const ProfFigures *f) {
    static const char *const works[] = {"kernels_ns", "copies_ns", "fills_ns", "others_ns"};
    put_key(stream, first, "device");
    fputc('{', stream);
    bool in = true;
    put_int(stream, &in, "intervals", f->intervals);
    put_int(stream, &in, "unknown_launches", f->unknown_launches);
    put_int(stream, &in, "busy_ns", f->device_busy_ns);
    put_int(stream, &in, "sum_ns", f->device_sum_ns);
    put_int(stream, &in, "span_ns", f->device_span_ns);
    put_int(stream, &in, "fill_ns", f->fill_ns);
    put_int(stream, &in, "fill_of_ns", f->fill_of_ns);
    for (int w = 0; w < PROF_DEVICE_WORKS; w++)
        put_int(stream, &in, works[w], f->work_ns[w]);
    put_int(stream, &in, "gaps", f->gaps);
    put_key(stream, &in, "gaps_ns");
    fputc('{', stream);
    bool in_gaps = true;
    for (int g = 0; g < PROF_GAPS; g++)
        put_int(stream, &in_gaps, prof_gap_name((ProfGap)g), f->gap_ns[g]);
    fputs("}}", stream);
}

static void put_transitions(FILE *stream, bool *first, const ProfFigures *f) {
    put_key(stream, first, "transitions");
    fputc('[', stream);
    bool first_of = true;
    for (int from = 0; from <= HOST_TRACE_CATEGORIES; from++) {
        for (int to = 0; to <= HOST_TRACE_CATEGORIES; to++) {
            if (f->transitions[from][to] == 0) continue;
            bool in = true;
            fputs(first_of ? "{" : ", {", stream);
            first_of = false;
            put_text(stream, &in, "from", prof_category_name(from));
            put_text(stream, &in, "to", prof_category_name(to));
            put_int(stream, &in, "count", f->transitions[from][to]);
            fputc('}', stream);
        }
    }
    fputc(']', stream);
}

static void put_figures(FILE *stream, bool *first, const ProfFigures *f) {
    enum { ALL = HOST_TRACE_CATEGORIES + 1 };
    static const char *const layers[] = {"code", "library", "api"};
    put_int(stream, first, "wall_ns", f->wall_ns);
    put_bound(stream, first, f);
    put_by_category(stream, first, "gpu_bound_ns", f->gpu_bound_ns, ALL);
    put_by_category(stream, first, "overlapped_ns", f->overlapped_ns, ALL);
    put_int(stream, first, "threads", f->threads);
    put_int(stream, first, "thread_ns", f->thread_ns);
    put_int(stream, first, "main_ns", f->main_ns);
    put_by_category(stream, first, "category_thread_ns", f->category_thread_ns, ALL);
    put_by_category(stream, first, "category_device_ns", f->category_device_ns, ALL);
    put_by_category(stream, first, "category_cpu_only_ns", f->category_cpu_ns, HOST_TRACE_CATEGORIES);
    put_by_category(stream, first, "category_both_ns", f->category_both_ns, HOST_TRACE_CATEGORIES);
    put_by_category(stream, first, "category_gpu_only_ns", f->category_gpu_ns, HOST_TRACE_CATEGORIES);
    put_key(stream, first, "layer_ns");
    fputc('{', stream);
    bool in = true;
    for (int l = 0; l < PROF_LAYERS; l++)
        put_int(stream, &in, layers[l], f->layer_ns[l]);
    fputc('}', stream);
    put_int(stream, first, "outside_leaf_scopes_ns", f->outside_ns);
    put_int(stream, first, "outside_leaf_scopes_main_ns", f->outside_main_ns);
    put_int(stream, first, "lost_ns", f->lost_ns);
    put_key(stream, first, "phase_ns");
    fputc('{', stream);
    in = true;
    for (int p = 0; p < HOST_TRACE_PHASES; p++)
        put_int(stream, &in, host_trace_phase_name((HostTracePhase)p), f->phase_ns[p]);
    fputc('}', stream);
    put_device(stream, first, f);
    put_transitions(stream, first, f);
    put_key(stream, first, "main_thread_recorded");
    fputc('{', stream);
    in = true;
    for (int i = 0; i < PROF_COSTS; i++)
        put_int(stream, &in, prof_cost_name((ProfCostClass)i), f->main_costs[i]);
    fputc('}', stream);
    put_int(stream, first, "recorder_ns", f->reader_ns);
    put_int(stream, first, "events", f->events);
    put_int(stream, first, "dropped_events", f->dropped);
    put_int(stream, first, "unmatched_ends", f->unmatched_ends);
    put_int(stream, first, "too_deep_scopes", f->too_deep);
}

static void put_damage(FILE *stream, bool *first, const ProfDamage *d) {
    put_key(stream, first, "damage");
    fprintf(stream,
            "{\"is_cut\": %s, \"damaged_blocks\": %" PRIu64 ", \"missing_blocks\": %" PRIu64
            ", \"lost_events\": %" PRIu64 ", \"skipped_bytes\": %" PRIu64 ", \"foreign_blocks\": %" PRIu64
            ", \"backward_clocks\": %" PRIu64 "}",
            d->is_cut ? "true" : "false", d->damaged_blocks, d->missing_blocks, d->lost_events, d->skipped_bytes,
            d->foreign_blocks, d->backward_clocks);
}

static void put_worker(FILE *stream, const ProfWorker *w, const char *trace) {
    bool first = true;
    fputc('{', stream);
    put_text(stream, &first, "trace", host_json_is_valid(trace) ? trace : "?");
    put_text(stream, &first, "host", w->process.host);
    put_int(stream, &first, "pid", w->process.pid);
    put_int(stream, &first, "rank", w->process.rank);
    put_text(stream, &first, "clock", w->process.clock);
    put_damage(stream, &first, &w->damage);
    put_figures(stream, &first, &w->figures);
    fputc('}', stream);
}

static void put_estimate(FILE *stream, bool *first, const char *key, ProfEstimate e) {
    put_key(stream, first, key);
    fprintf(stream, "{\"low\": %.17g, \"median\": %.17g, \"high\": %.17g}", e.low, e.median, e.high);
}

// null where the profiler's own cost is not known.
static void put_correction(FILE *stream, bool *first, const ProfRun *run) {
    put_key(stream, first, "correction");
    if (!run->is_corrected) {
        fputs("null", stream);
        return;
    }
    fputc('{', stream);
    bool in = true, in_costs = true;
    put_key(stream, &in, "each_ns");
    fputc('{', stream);
    for (int i = 0; run->has_cost && i < PROF_COSTS; i++)
        put_estimate(stream, &in_costs, prof_cost_name((ProfCostClass)i), run->cost.each_ns[i]);
    fputc('}', stream);
    if (run->has_cost) put_estimate(stream, &in, "inside_ns", run->cost.inside_ns);
    put_estimate(stream, &in, "costs_ns", run->correction.costs_ns);
    put_estimate(stream, &in, "full_detail_ns", run->correction.excess_ns);
    put_estimate(stream, &in, "wall_ns", run->correction.wall_ns);
    fputc('}', stream);
}

static void put_scope(FILE *stream, const ProfRun *run, int32_t index) {
    const ProfSummary *s = &run->summary;
    const ProfScope *scope = &s->scopes[index];
    char path[4096];
    bool first = true;
    fputc('{', stream);
    prof_scope_path(s, index, path, sizeof path);
    put_text(stream, &first, "path", host_json_is_valid(path) ? path : scope->name); // it may be cut within a letter
    put_text(stream, &first, "category", prof_category_name(scope->category));
    put_key(stream, &first, "leaf");
    fputs(scope->is_leaf ? "true" : "false", stream);
    put_int(stream, &first, "count", scope->count);
    put_int(stream, &first, "thread_ns", scope->thread_ns);
    put_int(stream, &first, "main_ns", scope->main_ns);
    put_int(stream, &first, "within_ns", scope->within_ns);
    put_int(stream, &first, "entries", scope->entries);
    if (run->is_corrected) put_estimate(stream, &first, "corrected_thread_ns", run->corrected_ns[index]);
    put_int(stream, &first, "intervals", scope->intervals);
    put_int(stream, &first, "device_ns", scope->device_ns);
    put_int(stream, &first, "cpu_only_ns", scope->wall.cpu_ns);
    put_int(stream, &first, "both_ns", scope->wall.both_ns);
    put_int(stream, &first, "gpu_only_ns", scope->wall.gpu_ns);
    put_key(stream, &first, "split");
    fputc('{', stream);
    bool in = true;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        if (scope->split[c] == 0) continue;
        put_key(stream, &in, prof_category_name(c));
        fprintf(stream, "%" PRIu64, scope->split[c]);
    }
    fputs("}}", stream);
}

static void put_run(FILE *stream, const ProfRun *run) {
    const ProfSummary *s = &run->summary;
    char why[256];
    bool first = true;
    fputc('{', stream);
    put_text(stream, &first, "run", host_json_is_valid(run->name) ? run->name : "?");
    put_text(stream, &first, "tool", s->workers[0].process.tool);
    put_text(stream, &first, "device", s->workers[0].process.device);
    const char *no_gpu = prof_report_no_gpu(s, why, sizeof why);
    put_key(stream, &first, "no_gpu_time_because");
    if (no_gpu == NULL) {
        fputs("null", stream);
    } else {
        host_json_put(stream, no_gpu);
    }
    put_correction(stream, &first, run);
    put_key(stream, &first, "bound_share");
    fputc('{', stream);
    bool in = true;
    for (int b = 0; b < PROF_BOUNDS; b++) {
        double deviation, share = prof_summary_bound(s, (ProfBound)b, &deviation);
        put_key(stream, &in, prof_bound_name((ProfBound)b));
        fprintf(stream, "{\"mean\": %.17g, \"deviation\": %.17g}", share, deviation);
    }
    fputs("},\n \"total\": {", stream);
    in = true;
    put_figures(stream, &in, &s->total);
    fputs("},\n \"workers\": [", stream);
    for (int32_t i = 0; i < s->worker_count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stream);
        put_worker(stream, &s->workers[i], run->traces[i]);
    }
    fputs("],\n \"scopes\": [", stream);
    for (int32_t i = 0; i < s->scope_count; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stream);
        put_scope(stream, run, i);
    }
    fputs("]}", stream);
}

void prof_report_json(const ProfRun *runs, int count, FILE *stream) {
    fputs("{\"shoal_profile\": 1, \"runs\": [\n", stream);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ",\n" : "", stream);
        put_run(stream, &runs[i]);
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
        "run,scope,category,leaf,count,thread_ns,main_ns,within_ns,intervals,device_ns,cpu_only_ns,both_ns,gpu_only_ns",
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
            fprintf(stream, ",%" PRId64 ",%" PRId64 ",%" PRId64, scope->wall.cpu_ns, scope->wall.both_ns,
                    scope->wall.gpu_ns);
            for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
                fprintf(stream, ",%" PRIu64, scope->split[c]);
            fputc('\n', stream);
        }
    }
}
