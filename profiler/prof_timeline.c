#include "profiler/prof_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "host/hash.h"
#include "profiler/prof_walk.h"

#define TIME_MAX_NS (INT64_MAX / 8) // beyond it, times are not on the axis

enum { QUEUE_ROWS = 8 }; // for intervals of one queue at a time

typedef struct Open {
    int64_t begin_ns;
    uint32_t name;
} Open;

typedef struct Launch {
    uint64_t correlation;
    int64_t time_ns;
    int32_t lane;
    bool is_used;
} Launch;

// One trace's way into the timeline.
typedef struct Maker {
    ProfTimeline *timeline;
    ProfReader *reader;
    Status status;
    int32_t worker, lane, phase_lane; // lane: of the stream that is read
    int64_t zero_ns;                  // of the axis, in the trace's times
    int32_t *name_of; // [names of the trace][HOST_TRACE_CATEGORIES + 1] number in the timeline + 1; 0: not known yet
    Open open[PROF_DEPTH_MAX];
    uint32_t depth;
    int64_t lost_ns;  // since when events are lost; -1: they are not
    Open phase;       // the present one
    Launch *launches; // [launch_count], a sample
    int32_t launch_count, launch_max;
    ProfTable launch_of; // correlation -> index
} Maker;

// ---- names and times -----------------------------------------------------------------------------------------------

static int64_t on_axis(const Maker *m, int64_t time_ns) {
    int64_t ns;
    if (__builtin_sub_overflow(time_ns, m->zero_ns, &ns)) return time_ns < m->zero_ns ? -TIME_MAX_NS : TIME_MAX_NS;
    return ns < -TIME_MAX_NS ? -TIME_MAX_NS : ns > TIME_MAX_NS ? TIME_MAX_NS : ns;
}

static uint32_t take_name(ProfTimeline *t, const char *text, int category) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, &category, sizeof category);
    host_hash_add(&hash, text, strlen(text));
    int32_t at = prof_table_get(&t->name_table, hash.state);
    if (at >= 0) return (uint32_t)at;
    bool is_last = t->name_count == PROF_TIMELINE_NAMES - 1;
    if (is_last && strcmp(text, "(other)") != 0) return take_name(t, "(other)", PROF_NO_CATEGORY);
    if (t->name_count == PROF_TIMELINE_NAMES || !prof_table_put(&t->name_table, hash.state, t->name_count)) return 0;
    ProfLaneName *name = &t->names[t->name_count];
    snprintf(name->text, sizeof name->text, "%s", text);
    name->category = (uint8_t)category;
    return (uint32_t)t->name_count++;
}

// A name of the trace in a scope of this category, which counts where the name has none of its own.
static uint32_t trace_name(Maker *m, uint32_t number, int enclosing) {
    const ProfName *name = prof_reader_name(m->reader, number);
    if (name == NULL) return take_name(m->timeline, "(name lost)", PROF_NO_CATEGORY);
    int category = name->category == PROF_CATEGORY_ENCLOSING ? enclosing : name->category;
    int32_t *at = &m->name_of[(size_t)number * (HOST_TRACE_CATEGORIES + 1) + (size_t)category];
    if (*at == 0) *at = (int32_t)take_name(m->timeline, name->text, category) + 1;
    return (uint32_t)(*at - 1);
}

static void add(Maker *m, int32_t lane, int32_t row, int64_t begin_ns, int64_t end_ns, uint32_t name) {
    int64_t ns = end_ns - begin_ns;
    ProfSpan span = {begin_ns, end_ns, ns, ns, name, 1};
    if (m->status == STATUS_OK) m->status = prof_timeline_add(m->timeline, &m->timeline->lanes[lane], row, span);
}

// ---- threads -------------------------------------------------------------------------------------------------------

static void begin_scope(void *self, int64_t time_ns, uint32_t number) {
    Maker *m = self;
    uint32_t depth = m->depth++, rows = PROF_TIMELINE_ROWS;
    if (depth >= rows) return;
    int enclosing = depth > 0 ? m->timeline->names[m->open[depth - 1].name].category : HOST_TRACE_HOST;
    m->open[depth] = (Open){on_axis(m, time_ns), trace_name(m, number, enclosing)};
}

static void end_scope(void *self, int64_t time_ns) {
    Maker *m = self;
    uint32_t depth = --m->depth, rows = PROF_TIMELINE_ROWS;
    if (depth >= rows) return;
    add(m, m->lane, (int32_t)depth, m->open[depth].begin_ns, on_axis(m, time_ns), m->open[depth].name);
}

// By bits that have nothing to do with the place in the table.
static bool is_sampled(const Maker *m, uint64_t correlation) {
    return (correlation * UINT64_C(0xd6e8feb86659fd93) >> 40 & (m->timeline->launch_stride - 1)) == 0;
}

// Where there are too many launches, every second one goes.
static void thin_launches(Maker *m) {
    while (m->launch_count == m->launch_max && m->timeline->launch_stride < 1 << 20) {
        int32_t kept = 0;
        m->timeline->launch_stride *= 2;
        prof_table_free(&m->launch_of);
        for (int32_t i = 0; i < m->launch_count; i++) {
            if (!is_sampled(m, m->launches[i].correlation)) continue;
            m->launches[kept] = m->launches[i];
            (void)prof_table_put(&m->launch_of, m->launches[kept].correlation, kept);
            kept++;
        }
        m->launch_count = kept;
    }
}

static void take_launch(Maker *m, const ProfEvent *event) {
    if (m->launch_count == m->launch_max) thin_launches(m);
    if (m->launch_count == m->launch_max || !is_sampled(m, event->correlation)) return;
    if (!prof_table_put(&m->launch_of, event->correlation, m->launch_count)) return;
    m->launches[m->launch_count++] = (Launch){event->correlation, on_axis(m, event->time_ns), m->lane, false};
}

static void take_phase(Maker *m, int64_t time_ns, uint32_t name) {
    if (time_ns > m->phase.begin_ns) add(m, m->phase_lane, 0, m->phase.begin_ns, time_ns, m->phase.name);
    m->phase = (Open){time_ns, name};
}

static void end_loss(Maker *m, int64_t time_ns) {
    if (m->lost_ns < 0) return;
    add(m, m->lane, 0, on_axis(m, m->lost_ns), on_axis(m, time_ns), take_name(m->timeline, "(lost)", PROF_NO_CATEGORY));
    m->lost_ns = -1;
}

// ---- queues --------------------------------------------------------------------------------------------------------

static void take_interval(Maker *m, const ProfEvent *event) {
    ProfTimeline *t = m->timeline;
    int64_t begin_ns = on_axis(m, event->time_ns);
    int64_t end_ns = event->duration_ns < TIME_MAX_NS - begin_ns ? begin_ns + event->duration_ns : TIME_MAX_NS;
    const ProfLane *lane = &t->lanes[m->lane];
    int32_t row = 0;
    for (; row < lane->row_count && row < QUEUE_ROWS - 1; row++) {
        const ProfSpanRow *spans = &lane->rows[row];
        if (spans->count == 0 || spans->spans[spans->count - 1].end_ns <= begin_ns) break;
    }
    add(m, m->lane, row, begin_ns, end_ns, trace_name(m, event->name, HOST_TRACE_HOST));
    int32_t launch = prof_table_get(&m->launch_of, event->correlation);
    if (event->kind == PROF_EVENT_WAIT || launch < 0 || m->launches[launch].is_used) return;
    m->launches[launch].is_used = true;
    t->ties[t->tie_count++] = (ProfTie){m->launches[launch].lane, m->lane, m->launches[launch].time_ns, begin_ns};
}

static void take_other(void *self, const ProfEvent *event) {
    Maker *m = self;
    if (event->kind == PROF_EVENT_LAUNCH) {
        take_launch(m, event);
    } else if (event->kind == PROF_EVENT_INTERVAL || event->kind == PROF_EVENT_WAIT) {
        take_interval(m, event);
    } else if (event->kind == PROF_EVENT_PHASE) {
        const char *name = host_trace_phase_name(event->phase);
        take_phase(m, on_axis(m, event->time_ns), take_name(m->timeline, name, PROF_NO_CATEGORY));
    } else if (event->kind == PROF_EVENT_LOST) {
        m->lost_ns = event->time_ns;
    } else if (event->kind == PROF_EVENT_RESYNC) {
        end_loss(m, event->time_ns);
    }
}

// ---- traces --------------------------------------------------------------------------------------------------------

static ProfLane *add_lane(ProfTimeline *t, ProfLaneKind kind, int32_t worker, const char *name) {
    if (t->lane_count == PROF_TIMELINE_LANES) return NULL;
    ProfLane *lane = &t->lanes[t->lane_count++];
    lane->kind = kind;
    lane->worker = worker;
    snprintf(lane->name, sizeof lane->name, "%s", name);
    return lane;
}

static void read_stream(Maker *m, int index, const ProfStream *stream) {
    ProfTimeline *t = m->timeline;
    ProfLaneKind kind = stream->kind == PROF_STREAM_DEVICE ? PROF_LANE_QUEUE : PROF_LANE_THREAD;
    const ProfWalk walk = {begin_scope, end_scope, take_other, m};
    if (add_lane(t, kind, m->worker, stream->name) == NULL) {
        t->hidden_lanes++;
        return;
    }
    m->lane = t->lane_count - 1;
    m->depth = 0;
    m->lost_ns = -1;
    prof_walk_stream(m->reader, index, &walk);
    int64_t end_ns;
    if (prof_reader_end(m->reader, &end_ns)) end_loss(m, end_ns);
}

// Main threads, then other threads, then queues, whose intervals need the launches. Where there are more lanes than
// find room, threads give way.
static void read_streams(Maker *m, int lanes) {
    int count = prof_reader_stream_count(m->reader), queues = 0;
    for (int i = 0; i < count; i++)
        queues += prof_reader_stream(m->reader, i)->kind == PROF_STREAM_DEVICE;
    int threads = lanes - queues > lanes / 2 ? lanes - queues : lanes / 2, used = 0;
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < count && m->status == STATUS_OK; i++) {
            const ProfStream *stream = prof_reader_stream(m->reader, i);
            int wanted = stream->kind == PROF_STREAM_DEVICE ? 2 : stream->is_main ? 0 : 1;
            if (wanted != pass) continue;
            if (used < (pass == 2 ? lanes : threads)) {
                read_stream(m, i, stream);
                used++;
            } else {
                m->timeline->hidden_lanes++;
            }
        }
    }
}

static Status read_trace(const ProfRun *run, int32_t worker, ProfTimeline *t) {
    const ProfProcess *first = &run->summary.workers[0].process, *process = &run->summary.workers[worker].process;
    int64_t shift_ns = prof_process_shift_ns(first, process), end_ns;
    int lanes = PROF_TIMELINE_LANES / run->trace_count - 1;
    Maker m = {.timeline = t, .worker = worker, .launch_max = PROF_TIMELINE_LAUNCHES / run->trace_count};
    if (add_lane(t, PROF_LANE_PHASES, worker, "phases") == NULL) return STATUS_OK;
    m.phase_lane = t->lane_count - 1;
    TRY(prof_reader_open(run->traces[worker], &m.reader));
    m.zero_ns = (int64_t)((uint64_t)first->start_ns - (uint64_t)shift_ns);
    m.phase =
        (Open){on_axis(&m, process->start_ns), take_name(t, host_trace_phase_name(HOST_PHASE_SETUP), PROF_NO_CATEGORY)};
    m.name_of = calloc((size_t)prof_reader_name_count(m.reader) * (HOST_TRACE_CATEGORIES + 1) + 1, sizeof *m.name_of);
    m.launches = malloc(((size_t)m.launch_max + 1) * sizeof *m.launches);
    if (m.name_of == NULL || m.launches == NULL) m.status = host_fail(STATUS_MEMORY, "no memory for a timeline");
    if (m.status == STATUS_OK) read_streams(&m, lanes > 1 ? lanes : 1);
    if (!prof_reader_end(m.reader, &end_ns))
        end_ns = process->start_ns + prof_figures_whole_ns(&run->summary.workers[worker].figures);
    if (m.status == STATUS_OK) take_phase(&m, on_axis(&m, end_ns), 0);
    free(m.name_of);
    free(m.launches);
    prof_table_free(&m.launch_of);
    prof_reader_close(m.reader);
    return m.status;
}

Status prof_timeline_make(const ProfRun *run, int64_t spans_max, ProfTimeline *t) {
    *t = (ProfTimeline){.spans_max = spans_max, .launch_stride = 1};
    t->lanes = calloc(PROF_TIMELINE_LANES, sizeof *t->lanes);
    t->names = malloc(PROF_TIMELINE_NAMES * sizeof *t->names);
    t->ties = malloc(PROF_TIMELINE_LAUNCHES * sizeof *t->ties);
    if (t->lanes == NULL || t->names == NULL || t->ties == NULL) {
        prof_timeline_free(t);
        return host_fail(STATUS_MEMORY, "no memory for a timeline");
    }
    Status status = STATUS_OK;
    for (int32_t i = 0; status == STATUS_OK && i < run->trace_count; i++)
        status = read_trace(run, i, t);
    if (status != STATUS_OK) prof_timeline_free(t);
    return status;
}

void prof_timeline_free(ProfTimeline *t) {
    for (int32_t l = 0; t->lanes != NULL && l < t->lane_count; l++) {
        for (int32_t r = 0; r < t->lanes[l].row_count; r++)
            free(t->lanes[l].rows[r].spans);
        free(t->lanes[l].rows);
    }
    free(t->lanes);
    free(t->names);
    free(t->ties);
    prof_table_free(&t->name_table);
    memset(t, 0, sizeof *t);
}
