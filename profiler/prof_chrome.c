// A run as trace events for Perfetto and chrome://tracing. Workers are processes, threads and queues their threads; a
// launch is tied to its intervals by flow events.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "profiler/prof_report.h"

enum { QUEUE_TID = 1 << 24 }; // queues come behind threads, whatever those are numbered

typedef struct Chrome {
    FILE *stream;
    ProfReader *reader;
    bool first;      // no event was written yet
    int64_t zero_ns; // of the axis, in the trace's times
    int worker;
} Chrome;

// "name": ..., "ph": ..., "pid": ..., "tid": ..., "ts": ...; microseconds.
static void put_event(Chrome *c, const char *phase, const char *name, uint64_t tid, int64_t time_ns) {
    fputs(c->first ? "\n{" : ",\n{", c->stream);
    c->first = false;
    if (name != NULL) {
        fputs("\"name\": ", c->stream);
        host_json_put(c->stream, name);
        fputs(", ", c->stream);
    }
    int64_t ns = time_ns - c->zero_ns;
    fprintf(c->stream, "\"ph\": \"%s\", \"pid\": %d, \"tid\": %" PRIu64 ", \"ts\": %s%" PRId64 ".%03d", phase,
            c->worker, tid, ns < 0 ? "-" : "", (ns < 0 ? -ns : ns) / 1000, (int)((ns < 0 ? -ns : ns) % 1000));
}

static void end_event(const Chrome *c) { fputc('}', c->stream); }

static void put_metadata(Chrome *c, const char *what, uint64_t tid, const char *text) {
    put_event(c, "M", what, tid, c->zero_ns);
    fputs(", \"args\": {\"name\": ", c->stream);
    host_json_put(c->stream, text);
    fputc('}', c->stream);
    end_event(c);
}

static const char *name_text(const Chrome *c, uint32_t number) {
    const ProfName *name = prof_reader_name(c->reader, number);
    return name != NULL ? name->text : "(name lost)";
}

static void put_begin(Chrome *c, uint64_t tid, int64_t time_ns, uint32_t number) {
    const ProfName *name = prof_reader_name(c->reader, number);
    put_event(c, "B", name_text(c, number), tid, time_ns);
    if (name != NULL) fprintf(c->stream, ", \"cat\": \"%s\"", prof_category_name(name->category));
    end_event(c);
}

static void put_interval(Chrome *c, uint64_t tid, const ProfEvent *event) {
    static const char *const works[] = {"kernel", "copy", "fill", "other"};
    put_event(c, "X", name_text(c, event->name), tid, event->time_ns);
    fprintf(c->stream, ", \"cat\": \"%s\", \"dur\": %" PRId64 ".%03d, \"args\": {\"correlation\": %" PRIu64 "}",
            works[event->work], event->duration_ns / 1000, (int)(event->duration_ns % 1000), event->correlation);
    end_event(c);
    put_event(c, "f", "launch", tid, event->time_ns);
    fprintf(c->stream, ", \"cat\": \"launch\", \"bp\": \"e\", \"id\": \"%d.%" PRIu64 "\"", c->worker,
            event->correlation);
    end_event(c);
}

static void put_launch(Chrome *c, uint64_t tid, const ProfEvent *event) {
    put_event(c, "s", "launch", tid, event->time_ns);
    fprintf(c->stream, ", \"cat\": \"launch\", \"id\": \"%d.%" PRIu64 "\"", c->worker, event->correlation);
    end_event(c);
}

static void put_instant(Chrome *c, uint64_t tid, int64_t time_ns, const char *name, const char *scope) {
    put_event(c, "i", name, tid, time_ns);
    fprintf(c->stream, ", \"s\": \"%s\"", scope);
    end_event(c);
}

static void put_stream(Chrome *c, int index) {
    const ProfStream *stream = prof_reader_stream(c->reader, index);
    uint64_t tid = stream->id + (stream->kind == PROF_STREAM_DEVICE ? (uint64_t)QUEUE_TID : 0);
    uint32_t depth = 0;
    int64_t last_ns = c->zero_ns;
    ProfEvent event;
    put_metadata(c, "thread_name", tid, stream->name);
    while (prof_reader_next(c->reader, index, &event)) {
        last_ns = event.time_ns;
        bool is_gone = event.kind == PROF_EVENT_LOST || event.kind == PROF_EVENT_RESYNC;
        for (; is_gone && depth > 0; depth--) {
            put_event(c, "E", NULL, tid, last_ns);
            end_event(c);
        }
        if (event.kind == PROF_EVENT_BEGIN || event.kind == PROF_EVENT_JOIN) {
            put_begin(c, tid, event.time_ns, event.name);
            depth++;
        } else if (event.kind == PROF_EVENT_END && depth > 0) {
            put_event(c, "E", NULL, tid, event.time_ns);
            end_event(c);
            depth--;
        } else if (event.kind == PROF_EVENT_LAUNCH) {
            put_launch(c, tid, &event);
        } else if (event.kind == PROF_EVENT_INTERVAL) {
            put_interval(c, tid, &event);
        } else if (event.kind == PROF_EVENT_PHASE) {
            put_instant(c, tid, event.time_ns, host_trace_phase_name(event.phase), "p");
        } else if (event.kind == PROF_EVENT_LOST) {
            put_instant(c, tid, event.time_ns, "events are lost", "t");
        } else if (event.kind == PROF_EVENT_RESYNC) {
            for (; depth < event.depth; depth++)
                put_begin(c, tid, event.time_ns, event.stack[depth]);
        }
    }
    int64_t end_ns = last_ns;
    (void)prof_reader_end(c->reader, &end_ns);
    for (; depth > 0; depth--) {
        put_event(c, "E", NULL, tid, end_ns > last_ns ? end_ns : last_ns);
        end_event(c);
    }
}

// What is added to a worker's times to have them on the first one's axis; FORMAT.md says how.
static int64_t shift_ns(const ProfProcess *to, const ProfProcess *from) {
    if (from->boot_id[0] != '\0' && strcmp(from->boot_id, to->boot_id) == 0) return 0;
    if (from->offset_error_ns >= 0 && to->offset_error_ns >= 0) return from->offset_ns - to->offset_ns;
    int64_t unix_from = from->start_unix_ns, unix_to = to->start_unix_ns;
    return (int64_t)((uint64_t)unix_from - (uint64_t)from->start_ns - (uint64_t)unix_to + (uint64_t)to->start_ns);
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
        c.zero_ns = (int64_t)((uint64_t)first->start_ns - (uint64_t)shift_ns(first, process));
        snprintf(name, sizeof name, "%s, rank %" PRId64 ", %s", process->tool, process->rank, process->device);
        put_metadata(&c, "process_name", 0, name);
        for (int k = 0; k < prof_reader_stream_count(c.reader); k++)
            put_stream(&c, k);
        prof_reader_close(c.reader);
    }
    fputs("\n]}\n", stream);
    return STATUS_OK;
}
