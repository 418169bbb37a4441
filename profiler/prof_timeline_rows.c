// The rows of a timeline: intervals that are merged where they get too many.
#include <stdlib.h>
#include <string.h>

#include "profiler/prof_timeline.h"

enum { PIXEL_MIN_NS = 16 };

static bool is_small(const ProfSpan *span, int64_t pixel_ns) { return span->end_ns - span->begin_ns < pixel_ns; }

// Whether `next` became part of `span`.
static bool merge(ProfSpan *span, const ProfSpan *next, int64_t pixel_ns) {
    if (!is_small(span, pixel_ns) || !is_small(next, pixel_ns) || next->end_ns - span->begin_ns > pixel_ns)
        return false;
    if (next->end_ns > span->end_ns) span->end_ns = next->end_ns;
    span->busy_ns += next->busy_ns;
    span->count = span->count > UINT32_MAX - next->count ? UINT32_MAX : span->count + next->count;
    if (next->longest_ns > span->longest_ns) {
        span->longest_ns = next->longest_ns;
        span->name = next->name;
    }
    return true;
}

static void coarsen_row(ProfTimeline *t, ProfSpanRow *row) {
    int32_t kept = 0;
    for (int32_t i = 1; i < row->count; i++) {
        if (!merge(&row->spans[kept], &row->spans[i], t->pixel_ns)) row->spans[++kept] = row->spans[i];
    }
    if (row->count == 0) return;
    t->spans -= row->count - (kept + 1);
    row->count = kept + 1;
}

// Until a quarter of the room is free: each doubling costs no more than the intervals that there are.
static void coarsen(ProfTimeline *t) {
    while (t->spans > t->spans_max - t->spans_max / 4 && t->pixel_ns < INT64_MAX / 4) {
        t->pixel_ns = t->pixel_ns > 0 ? 2 * t->pixel_ns : PIXEL_MIN_NS;
        for (int32_t l = 0; l < t->lane_count; l++) {
            for (int32_t r = 0; r < t->lanes[l].row_count; r++)
                coarsen_row(t, &t->lanes[l].rows[r]);
        }
    }
}

static Status grow_lane(ProfLane *lane, int32_t row) {
    if (row < lane->row_count) return STATUS_OK;
    ProfSpanRow *rows = realloc(lane->rows, (size_t)(row + 1) * sizeof *rows);
    if (rows == NULL) return host_fail(STATUS_MEMORY, "no memory for a timeline");
    memset(rows + lane->row_count, 0, (size_t)(row + 1 - lane->row_count) * sizeof *rows);
    lane->rows = rows;
    lane->row_count = row + 1;
    return STATUS_OK;
}

static Status grow_row(ProfSpanRow *row) {
    if (row->count < row->capacity) return STATUS_OK;
    int32_t capacity = row->capacity > 0 ? 2 * row->capacity : 16;
    ProfSpan *spans = realloc(row->spans, (size_t)capacity * sizeof *spans);
    if (spans == NULL) return host_fail(STATUS_MEMORY, "no memory for a timeline");
    row->spans = spans;
    row->capacity = capacity;
    return STATUS_OK;
}

Status prof_timeline_add(ProfTimeline *t, ProfLane *lane, int32_t row_index, ProfSpan span) {
    TRY(grow_lane(lane, row_index));
    ProfSpanRow *row = &lane->rows[row_index];
    if (t->spans_seen == 0 || span.begin_ns < t->begin_ns) t->begin_ns = span.begin_ns;
    if (t->spans_seen == 0 || span.end_ns > t->end_ns) t->end_ns = span.end_ns;
    t->spans_seen += span.count;
    if (row->count > 0 && merge(&row->spans[row->count - 1], &span, t->pixel_ns)) return STATUS_OK;
    TRY(grow_row(row));
    row->spans[row->count++] = span;
    if (++t->spans > t->spans_max) coarsen(t);
    return STATUS_OK;
}
