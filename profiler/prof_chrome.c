// A run as trace events for Perfetto and chrome://tracing. Workers are processes, threads and queues their threads; a
// launch is tied to its intervals by flow events.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "profiler/prof_report.h"
#include "profiler/prof_walk.h"

enum { QUEUE_TID = 1 << 24 }; // queues come behind threads, whatever those are numbered

typedef struct Chrome {
    FILE *stream;
    ProfReader *reader;
    bool first;      // no event was written yet
    int64_t zero_ns; // of the axis, in the trace's times
    int worker;
    uint64_t tid; // of the stream
} Chrome;

// "name": ..., "ph": ..., "pid": ..., "tid": ..., "ts": ...; microseconds.
static void put_event(Chrome *c, const char *phase, const char *name, int64_t time_ns) {
    fputs(c->first ? "\n{" : ",\n{", c->stream);
    c->first = false;
    if (name != NULL) {
        fputs("\"name\": ", c->stream);
        host_json_put(c->stream, name);
        fputs(", ", c->stream);
    }
    int64_t ns = time_ns - c->zero_ns;
    fprintf(c->stream, "\"ph\": \"%s\", \"pid\": %d, \"tid\": %" PRIu64 ", \"ts\": %s%" PRId64 ".%03d", phase,
            c->worker, c->tid, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000, (int)((ns < 0 ? -ns : ns) % 1000));
}

static void end_event(const Chrome *c) { fputc('}', c->stream); }

static void put_metadata(Chrome *c, const char *what, const char *text) {
    put_event(c, "M", what, c->zero_ns);
    fputs(", \"args\": {\"name\": ", c->stream);
    host_json_put(c->stream, text);
    fputc('}', c->stream);
    end_event(c);
}

static const char *name_text(const Chrome *c, uint32_t number) {
    const ProfName *name = prof_reader_name(c->reader, number);
    return name != NULL ? name->text : "(name lost)";
}

static void put_begin(void *self, int64_t time_ns, uint32_t number) {
    Chrome *c = self;
    const ProfName *name = prof_reader_name(c->reader, number);
    put_event(c, "B", name_text(c, number), time_ns);
    if (name != NULL) fprintf(c->stream, ", \"cat\": \"%s\"", prof_category_name(name->category));
    end_event(c);
}

static void put_end(void *self, int64_t time_ns) {
    Chrome *c = self;
    put_event(c, "E", NULL, time_ns);
    end_event(c);
}

static void put_interval(Chrome *c, const ProfEvent *event) {
    static const char *const works[] = {"kernel", "copy", "fill", "other"};
    bool is_wait = event->kind == PROF_EVENT_WAIT;
    put_event(c, "X", name_text(c, event->name), event->time_ns);
    fprintf(c->stream, ", \"cat\": \"%s\", \"dur\": %" PRId64 ".%03d, \"args\": {\"correlation\": %" PRIu64 "}",
            is_wait ? "wait" : works[event->work], event->duration_ns / 1000, (int)(event->duration_ns % 1000),
            event->correlation);
    end_event(c);
    if (is_wait) return;
    put_event(c, "f", "launch", event->time_ns);
    fprintf(c->stream, ", \"cat\": \"launch\", \"bp\": \"e\", \"id\": \"%d.%" PRIu64 "\"", c->worker,
            event->correlation);
    end_event(c);
}

static void put_launch(Chrome *c, const ProfEvent *event) {
    put_event(c, "s", "launch", event->time_ns);
    fprintf(c->stream, ", \"cat\": \"launch\", \"id\": \"%d.%" PRIu64 "\"", c->worker, event->correlation);
    end_event(c);
}

static void put_instant(Chrome *c, int64_t time_ns, const char *name, const char *scope) {
    put_event(c, "i", name, time_ns);
    fprintf(c->stream, ", \"s\": \"%s\"", scope);
    end_event(c);
}

static void put_other(void *self, const ProfEvent *event) {
    Chrome *c = self;
    if (event->kind == PROF_EVENT_LAUNCH) {
        put_launch(c, event);
    } else if (event->kind == PROF_EVENT_INTERVAL || event->kind == PROF_EVENT_WAIT) {
        put_interval(c, event);
    } else if (event->kind == PROF_EVENT_PHASE) {
        put_instant(c, event->time_ns, host_trace_phase_name(event->phase), "p");
    } else if (event->kind == PROF_EVENT_LOST) {
        put_instant(c, event->time_ns, "events are lost", "t");
    }
}

static void put_stream(Chrome *c, int index) {
    const ProfStream *stream = prof_reader_stream(c->reader, index);
    const ProfWalk walk = {put_begin, put_end, put_other, c};
    c->tid = stream->id + (stream->kind == PROF_STREAM_DEVICE ? (uint64_t)QUEUE_TID : 0);
    put_metadata(c, "thread_name", stream->name);
    prof_walk_stream(c->reader, index, &walk);
}

Status prof_chrome_write(const ProfRun *run, FILE *stream) {
    const ProfSummary *s = &run->summary;
    Chrome c = {.stream = stream, .first = true};
    fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", stream);
    for (int i = 0; i < run->trace_count; i++) {
        const ProfProcess *first = &s->workers[0].process, *process = &s->workers[i].process;
        char name[3 * PROF_TEXT_MAX];
        TRY(prof_reader_open(run->traces[i], &c.reader));
        c.worker = i;
        c.zero_ns = (int64_t)((uint64_t)first->start_ns - (uint64_t)prof_process_shift_ns(first, process));
        snprintf(name, sizeof name, "%s, rank %" PRId64 ", %s", process->tool, process->rank, process->device);
        c.tid = 0;
        put_metadata(&c, "process_name", name);
        for (int k = 0; k < prof_reader_stream_count(c.reader); k++)
            put_stream(&c, k);
        prof_reader_close(c.reader);
    }
    fputs("\n]}\n", stream);
    return STATUS_OK;
}
