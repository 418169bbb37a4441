// A timeline as JSON, times in nanoseconds. Rows are columns of numbers, one for each interval:
//
//     gap     from the end of the interval before (of the first: from the run's start) to its begin
//     ns      how long it is
//     name    index into "names", which are [text, category]
//     count   of what was merged into it; left out where the row has nothing merged
//     busy    sum of the times of what was merged; left out with it
#include "profiler/prof_json.h"
#include "profiler/prof_timeline.h"

static void put_names(const ProfTimeline *t, FILE *stream) {
    fputs(", \"names\": [", stream);
    for (int32_t i = 0; i < t->name_count; i++) {
        fputs(i > 0 ? ", [" : "[", stream);
        host_json_put(stream, t->names[i].text);
        fputs(", ", stream);
        host_json_put(stream, prof_category_name(t->names[i].category));
        fputc(']', stream);
    }
    fputc(']', stream);
}

typedef int64_t Column(const ProfSpan *span, int64_t last_ns);

static int64_t column_gap(const ProfSpan *span, int64_t last_ns) { return span->begin_ns - last_ns; }

static int64_t column_ns(const ProfSpan *span, int64_t last_ns) {
    (void)last_ns;
    return span->end_ns - span->begin_ns;
}

static int64_t column_name(const ProfSpan *span, int64_t last_ns) {
    (void)last_ns;
    return span->name;
}

static int64_t column_count(const ProfSpan *span, int64_t last_ns) {
    (void)last_ns;
    return span->count;
}

static int64_t column_busy(const ProfSpan *span, int64_t last_ns) {
    (void)last_ns;
    return span->busy_ns;
}

static void put_column(const ProfSpanRow *row, bool *first, const char *key, Column *column, FILE *stream) {
    int64_t last_ns = 0;
    prof_json_key(stream, first, key);
    for (int32_t i = 0; i < row->count; i++) {
        fprintf(stream, "%c%" PRId64, i > 0 ? ',' : '[', column(&row->spans[i], last_ns));
        last_ns = row->spans[i].end_ns;
    }
    fputs(row->count > 0 ? "]" : "[]", stream);
}

static void put_row(const ProfSpanRow *row, FILE *stream) {
    bool first = true, is_merged = false;
    for (int32_t i = 0; i < row->count; i++)
        is_merged = is_merged || row->spans[i].count > 1;
    fputc('{', stream);
    put_column(row, &first, "gap", column_gap, stream);
    put_column(row, &first, "ns", column_ns, stream);
    put_column(row, &first, "name", column_name, stream);
    if (is_merged) put_column(row, &first, "count", column_count, stream);
    if (is_merged) put_column(row, &first, "busy", column_busy, stream);
    fputc('}', stream);
}

static void put_lane(const ProfLane *lane, FILE *stream) {
    static const char *const kinds[] = {"phases", "thread", "queue"};
    bool first = true;
    fputc('{', stream);
    prof_json_text(stream, &first, "kind", kinds[lane->kind]);
    prof_json_int(stream, &first, "worker", lane->worker);
    prof_json_text(stream, &first, "name", lane->name);
    prof_json_key(stream, &first, "rows");
    fputc('[', stream);
    for (int32_t r = 0; r < lane->row_count; r++) {
        fputs(r > 0 ? ",\n  " : "\n  ", stream);
        put_row(&lane->rows[r], stream);
    }
    fputs("]}", stream);
}

// [from lane, to lane, launch, begin of its first interval] each.
static void put_launches(const ProfTimeline *t, FILE *stream) {
    fputs(", \"launches\": [", stream);
    for (int32_t i = 0; i < t->tie_count; i++) {
        const ProfTie *tie = &t->ties[i];
        fprintf(stream, "%s[%d,%d,%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", tie->from, tie->to, tie->launch_ns,
                tie->interval_ns);
    }
    fputc(']', stream);
}

void prof_timeline_json(const ProfTimeline *t, FILE *stream) {
    bool first = true;
    fputc('{', stream);
    prof_json_int(stream, &first, "begin_ns", t->begin_ns);
    prof_json_int(stream, &first, "end_ns", t->end_ns);
    prof_json_int(stream, &first, "intervals", t->spans_seen);
    prof_json_int(stream, &first, "drawn", t->spans);
    prof_json_int(stream, &first, "merged_below_ns", t->pixel_ns);
    prof_json_int(stream, &first, "hidden_lanes", t->hidden_lanes);
    prof_json_int(stream, &first, "launches_one_of", (int64_t)t->launch_stride);
    put_names(t, stream);
    fputs(", \"lanes\": [", stream);
    for (int32_t l = 0; l < t->lane_count; l++) {
        fputs(l > 0 ? ",\n " : "\n ", stream);
        put_lane(&t->lanes[l], stream);
    }
    fputc(']', stream);
    put_launches(t, stream);
    fputs("}\n", stream);
}
