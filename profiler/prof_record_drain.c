// The recorder's own thread: takes raw events out of the buffers and writes them down.
#define _GNU_SOURCE // sem_clockwait, SCHED_BATCH
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/prof_buffers.h"

// Readings of the clocks differ by some tens of nanoseconds, which may turn two events around. Larger steps back are
// the clock's own and go into the trace as they are.
enum { DRAIN_EVERY_NS = 50000000, READING_ERROR_NS = 1000 };

// A call as people know it: "__cudaLaunchKernel_ptsz_v13000" is cudaLaunchKernel.
static const char *call_name(const char *name, char text[PROF_TEXT_MAX]) {
    static const char *const suffixes[] = {"_ptsz", "_ptds"};
    while (*name == '_')
        name++;
    snprintf(text, PROF_TEXT_MAX, "%s", name);
    char *version = strstr(text, "_v");
    if (version != NULL && version[2] >= '1' && version[2] <= '9') *version = '\0';
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t length = strlen(text), tail = strlen(suffixes[i]);
        if (length > tail && strcmp(text + length - tail, suffixes[i]) == 0) text[length - tail] = '\0';
    }
    return text;
}

static uint32_t name_number(ProfRecorder *r, uint64_t word) {
    const uint64_t key = word & ((UINT64_C(1) << 60) - 1); // layer, category and address
    int32_t number = prof_table_get(&r->names, key);
    if (number >= 0) return (uint32_t)number;
    char text[PROF_TEXT_MAX];
    const char *name = prof_word_name(word);
    ProfLayer layer = prof_word_layer(word);
    if (layer == PROF_LAYER_API) name = call_name(name, text);
    uint32_t made = prof_writer_name(r->writer, (int)prof_word_category(word), layer, name);
    (void)prof_table_put(&r->names, key, (int32_t)made); // without memory it is looked up anew each time
    return made;
}

static int64_t not_below_0(int64_t x) { return x > 0 ? x : 0; }

// What a thread used of its processor in a stretch, of `used_ns` with its pauses. Those are known by the wall clock,
// and the thread may have lost its processor in one: that takes milliseconds, where stretches take a tenth of one. So
// pauses of twice the stretch say nothing: 0.
static int64_t used_outside(int64_t used_ns, int64_t paused_ns) {
    return paused_ns <= used_ns / 3 * 2 ? used_ns - paused_ns : 0;
}

// One event from the raw ones at `raw`; returns how many of those it took.
static uint32_t decode(ProfRecorder *r, const ProfRaw *raw, ProfEvent *event) {
    uint64_t rest = raw->word & ((UINT64_C(1) << PROF_WORD_BITS) - 1);
    uint32_t count = 1;
    int64_t paused_ns;
    event->kind = (ProfEventKind)(raw->word >> 60);
    event->time_ns = prof_clock_ns(&r->clock, raw->ticks);
    switch (event->kind) {
    case PROF_EVENT_JOIN:
        event->stream = (uint32_t)raw[count++].ticks;
        event->name = name_number(r, raw->word);
        break;
    case PROF_EVENT_BEGIN:
        event->name = name_number(r, raw->word);
        break;
    case PROF_EVENT_SPLIT:
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++)
            event->weight[c] = rest >> c & 1 ? raw[count++].ticks : 0;
        break;
    case PROF_EVENT_PHASE:
        event->phase = (HostTracePhase)rest;
        break;
    case PROF_EVENT_LAUNCH:
    case PROF_EVENT_CALL:
        event->correlation = rest;
        break;
    case PROF_EVENT_CAPTURE:
        event->node = raw[count++].ticks;
        break;
    case PROF_EVENT_OTHER:
        if (r->collector.clone != NULL) r->collector.clone(r->collector.self, raw[1].ticks, raw[2].ticks);
        count += 2;
        break;
    case PROF_EVENT_STRETCH:
        event->is_plain = prof_word_category(raw->word) != 0;
        event->count = rest;
        paused_ns = prof_clock_span_ns(&r->clock, raw[2].ticks);
        event->pauses = raw[2].word;
        event->processor_ns = used_outside((int64_t)raw[1].word, paused_ns);
        event->duration_ns = not_below_0(event->time_ns - prof_clock_ns(&r->clock, raw[1].ticks) - paused_ns);
        count += 2;
        break;
    default:
        break;
    }
    return count;
}

static void know_thread(ProfRecorder *r, ProfThread *t) {
    uint64_t os_id = atomic_load_explicit(&t->os_id, memory_order_acquire);
    if (t->is_known || os_id == 0) return;
    ProfStream stream = {.id = t->stream, .kind = PROF_STREAM_THREAD, .os_id = os_id};
    memcpy(stream.name, t->name, sizeof stream.name);
    stream.is_main = strcmp(t->name, "main") == 0;
    prof_writer_stream(r->writer, &stream);
    t->is_known = true;
}

static void take_raws(ProfRecorder *r, ProfThread *t, const ProfBuffer *buffer, uint32_t used) {
    if (used == t->taken) return;
    // A reading of the clocks that is no earlier than any of these events.
    prof_clock_sync(&r->clock);
    ProfEvent event = {0};
    while (t->taken < used) {
        t->taken += decode(r, &buffer->raw[t->taken], &event);
        if (event.time_ns < t->last_ns && t->last_ns - event.time_ns < READING_ERROR_NS) event.time_ns = t->last_ns;
        t->last_ns = event.time_ns;
        if (event.kind == PROF_EVENT_OTHER) continue;
        bool has_number = event.kind == PROF_EVENT_LAUNCH || event.kind == PROF_EVENT_CALL;
        if (has_number && r->collector.launch != NULL)
            r->collector.launch(r->collector.self, event.correlation, event.time_ns);
        prof_writer_put(r->writer, t->stream, &event);
    }
}

static void drain_thread(ProfRecorder *r, ProfThread *t) {
    ProfBuffer *buffer = atomic_load_explicit(&t->head, memory_order_acquire);
    know_thread(r, t);
    if (!t->is_known) return;
    while (buffer != NULL) {
        ProfBuffer *next =
            atomic_load_explicit(&buffer->next, memory_order_acquire); // before `used`: then that is final
        take_raws(r, t, buffer, atomic_load_explicit(&buffer->used, memory_order_acquire));
        if (next == NULL) break;
        t->taken = 0;
        atomic_store_explicit(&t->head, next, memory_order_relaxed);
        atomic_store_explicit(&buffer->next, NULL, memory_order_relaxed);
        atomic_store_explicit(&buffer->used, 0, memory_order_relaxed);
        atomic_store_explicit(&buffer->is_taken, false, memory_order_release);
        buffer = next;
    }
    int64_t dropped = atomic_load_explicit(&t->dropped, memory_order_relaxed);
    if (t->stream == 0) dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed); // of those without a stream
    if (dropped == t->told) return;
    ProfEvent event = {.kind = PROF_EVENT_DROPPED, .count = (uint64_t)(dropped - t->told)};
    event.time_ns = t->last_ns > r->start_ns ? t->last_ns : r->start_ns;
    prof_writer_put(r->writer, t->stream, &event);
    t->told = dropped;
}

void prof_drain(ProfRecorder *r) {
    if (r->collector.take != NULL) r->collector.take(r->collector.self);
    uint32_t count = atomic_load_explicit(&r->thread_count, memory_order_acquire);
    prof_clock_sync(&r->clock); // not too far apart
    for (uint32_t i = 0; i < count && i < PROF_RECORD_THREADS; i++)
        drain_thread(r, &r->threads[i]);
    if (r->collector.write != NULL) r->collector.write(r->collector.self, r->writer);
    prof_writer_flush(r->writer);
}

// Where there is a thread to tell it of.
static void tell_own_time(ProfRecorder *r) {
    const ProfThread *first = &r->threads[0];
    if (!first->is_known) return;
    ProfEvent event = {.kind = PROF_EVENT_READER, .processor_ns = host_thread_ns()};
    event.time_ns = first->last_ns > r->start_ns ? first->last_ns : r->start_ns;
    prof_writer_put(r->writer, first->stream, &event);
    prof_writer_flush(r->writer);
}

void *prof_drain_main(void *recorder) {
    ProfRecorder *r = recorder;
    // Whoever wakes this thread is busy, and goes on: it takes an idle processor, or its share of one later on.
    const struct sched_param none = {.sched_priority = 0};
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
    for (bool stop = false; !stop;) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += DRAIN_EVERY_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (sem_clockwait(&r->wake, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
        }
        stop = atomic_load(&r->stop);
        prof_drain(r);
    }
    tell_own_time(r);
    return NULL;
}
