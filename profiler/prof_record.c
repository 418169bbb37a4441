#define _GNU_SOURCE // names of threads
#include "profiler/prof_record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/file.h"
#include "profiler/prof_buffers.h"

// Full buffers of a thread between two calls of the reader: half a megabyte, which second-level caches hold.
enum { WAKE_EVERY = 8 };

// Where the calling thread writes: valid while its session is the recorder's.
static _Thread_local struct {
    uint64_t session;
    ProfThread *thread;
} here __attribute__((tls_model("initial-exec")));

static uint64_t make_word(ProfEventKind kind, unsigned category, uint64_t rest) {
    return (uint64_t)kind << 60 | (uint64_t)category << PROF_WORD_BITS | rest;
}

static uint64_t begin_word(ProfLayer layer, unsigned category, const char *name) {
    unsigned above = (unsigned)layer << PROF_WORD_CATEGORY_BITS;
    return make_word(PROF_EVENT_BEGIN, above | category, (uint64_t)(uintptr_t)name);
}

// ---- hooks ---------------------------------------------------------------------------------------------------------

static ProfBuffer *take_buffer(ProfRecorder *r) {
    for (size_t i = 0; i < r->buffer_count; i++) { // the lowest that is free: few are touched, and stay in the caches
        ProfBuffer *buffer = &r->buffers[i];
        if (atomic_load_explicit(&buffer->is_taken, memory_order_relaxed)) continue;
        if (!atomic_exchange_explicit(&buffer->is_taken, true, memory_order_acquire)) return buffer;
    }
    return NULL;
}

static __attribute__((noinline, cold)) ProfThread *register_thread(ProfRecorder *r, uint64_t session) {
    here.session = session;
    here.thread = NULL;
    if (session == 0) return NULL;
    uint32_t stream = atomic_fetch_add(&r->thread_count, 1);
    if (stream >= PROF_RECORD_THREADS) {
        atomic_store(&r->thread_count, PROF_RECORD_THREADS);
        return NULL;
    }
    ProfThread *t = &r->threads[stream];
    t->stream = stream;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    char name[16] = "";
    if (tid != getpid()) pthread_getname_np(pthread_self(), name, sizeof name);
    snprintf(t->name, sizeof t->name, "%s", tid == getpid() ? "main" : name);
    atomic_store_explicit(&t->os_id, (uint64_t)tid, memory_order_release);
    here.thread = t;
    return t;
}

// NULL: this thread's events cannot be kept.
static inline ProfThread *thread_here(ProfRecorder *r) {
    uint64_t session = atomic_load_explicit(&r->session, memory_order_relaxed);
    return __builtin_expect(here.session == session, 1) ? here.thread : register_thread(r, session);
}

// The thread's buffer is full, or there is none: goes on to another one.
static __attribute__((noinline, cold)) bool next_buffer(ProfRecorder *r, ProfThread *t) {
    ProfBuffer *next = take_buffer(r);
    if (next == NULL) return false;
    if (t->buffer == NULL) {
        atomic_store_explicit(&t->head, next, memory_order_release);
    } else {
        atomic_store_explicit(&t->buffer->next, next, memory_order_release);
        if (++t->filled % r->wake_every == 0) sem_post(&r->wake);
    }
    t->buffer = next;
    t->used = 0;
    return true;
}

// Whether there is room for `count` raw events and the ends of all open scopes; an end then always finds room.
static inline bool has_room(ProfRecorder *r, ProfThread *t, uint32_t count) {
    if (__builtin_expect(t->buffer != NULL && t->used + t->depth + 1 + count <= PROF_RAWS, 1)) return true;
    return next_buffer(r, t);
}

static void drop(ProfThread *t, int64_t events) {
    atomic_store_explicit(&t->dropped, atomic_load_explicit(&t->dropped, memory_order_relaxed) + events,
                          memory_order_relaxed);
}

static inline void put(ProfThread *t, uint32_t at, uint64_t ticks, uint64_t word) {
    t->buffer->raw[t->used + at] = (ProfRaw){ticks, word};
}

static inline void publish(ProfThread *t, uint32_t count) {
    t->used += count;
    atomic_store_explicit(&t->buffer->used, t->used, memory_order_release);
}

// Opens a scope with `count` raw events to be written; false where it is dropped.
static inline bool open_scope(ProfRecorder *r, ProfThread *t, uint64_t word, uint32_t count) {
    if (__builtin_expect(t->skipped > 0 || t->depth == PROF_RECORD_DEPTH || !has_room(r, t, count), 0)) {
        t->skipped++;
        drop(t, 2);
        return false;
    }
    t->stack[t->depth++] = word;
    return true;
}

// Of a thread that found no place.
static __attribute__((noinline, cold)) void lose(ProfRecorder *r, int64_t events) {
    if (here.session != 0) atomic_fetch_add_explicit(&r->dropped, events, memory_order_relaxed);
}

// Both ends.
static void lose_scope(ProfRecorder *r) { lose(r, 2); }

static inline void begin_scope(ProfRecorder *r, uint64_t word) {
    ProfThread *t = thread_here(r);
    if (__builtin_expect(t == NULL, 0)) {
        lose_scope(r);
        return;
    }
    if (!open_scope(r, t, word, 1)) return;
    put(t, 0, prof_ticks(r->is_counter), word);
    publish(t, 1);
}

static void hook_begin(const HostTraceHooks *hooks, HostTraceCategory category, const char *name) {
    begin_scope((ProfRecorder *)hooks, begin_word(PROF_LAYER_CODE, (unsigned)category, name));
}

void prof_record_script_begin(const HostTraceHooks *hooks, HostTraceCategory category, const char *name) {
    begin_scope((ProfRecorder *)hooks, begin_word(PROF_LAYER_SCRIPT, (unsigned)category, name));
}

static void hook_end(const HostTraceHooks *hooks) {
    ProfRecorder *r = (ProfRecorder *)hooks;
    // A scope that was begun before this session, or that outlived it, is not its own.
    if (here.session != atomic_load_explicit(&r->session, memory_order_relaxed) || here.thread == NULL) return;
    ProfThread *t = here.thread;
    uint64_t ticks = prof_ticks(r->is_counter);
    if (__builtin_expect(t->skipped > 0, 0)) {
        t->skipped--;
        return;
    }
    if (t->depth == 0) return;
    t->depth--;
    put(t, 0, ticks, make_word(PROF_EVENT_END, 0, 0));
    publish(t, 1);
}

static HostTraceMark hook_mark(const HostTraceHooks *hooks) {
    const ProfThread *t = thread_here((ProfRecorder *)hooks);
    if (t == NULL || t->depth == 0 || t->skipped > 0) return (HostTraceMark){NULL, (HostTraceCategory)0, 0};
    uint64_t word = t->stack[t->depth - 1];
    return (HostTraceMark){prof_word_name(word), (HostTraceCategory)prof_word_category(word), t->stream};
}

static void hook_join(const HostTraceHooks *hooks, HostTraceMark mark) {
    ProfRecorder *r = (ProfRecorder *)hooks;
    ProfThread *t = thread_here(r);
    uint64_t word = make_word(PROF_EVENT_JOIN, (unsigned)mark.category, (uint64_t)(uintptr_t)mark.name);
    if (t == NULL) lose_scope(r);
    if (t == NULL || !open_scope(r, t, word, 2)) return;
    put(t, 0, prof_ticks(r->is_counter), word);
    put(t, 1, mark.thread, 0);
    publish(t, 2);
}

static void hook_split(const HostTraceHooks *hooks, const uint64_t weight[HOST_TRACE_CATEGORIES]) {
    ProfRecorder *r = (ProfRecorder *)hooks;
    ProfThread *t = thread_here(r);
    if (t == NULL) lose(r, 1);
    if (t == NULL || t->skipped > 0) return;
    if (!has_room(r, t, 1 + HOST_TRACE_CATEGORIES)) {
        drop(t, 1);
        return;
    }
    uint64_t mask = 0;
    uint32_t count = 1;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        if (weight[c] == 0) continue;
        mask |= UINT64_C(1) << c;
        put(t, count++, weight[c], 0);
    }
    if (mask == 0) return;
    put(t, 0, prof_ticks(r->is_counter), make_word(PROF_EVENT_SPLIT, 0, mask));
    publish(t, count);
}

// An event that opens no scope: a word, and `more` behind it.
static void put_event(ProfRecorder *r, ProfEventKind kind, uint64_t rest, const uint64_t *more, uint32_t count) {
    ProfThread *t = thread_here(r);
    if (t == NULL) lose(r, 1);
    if (t == NULL) return;
    if (!has_room(r, t, 1 + count)) {
        drop(t, 1);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        put(t, 1 + i, more[i], 0);
    put(t, 0, prof_ticks(r->is_counter), make_word(kind, 0, rest));
    publish(t, 1 + count);
}

static void hook_phase(const HostTraceHooks *hooks, HostTracePhase phase) {
    put_event((ProfRecorder *)hooks, PROF_EVENT_PHASE, (uint64_t)phase, NULL, 0);
}

// ---- calls of a device's interface ---------------------------------------------------------------------------------

static ProfEventKind number_kind(bool launches) { return launches ? PROF_EVENT_LAUNCH : PROF_EVENT_CALL; }

void prof_record_call_begin(ProfRecorder *r, const char *name, bool waits, bool launches, uint64_t correlation) {
    ProfThread *t = thread_here(r);
    unsigned category = waits ? HOST_TRACE_IDLE : HOST_TRACE_ENCLOSING;
    uint64_t word = begin_word(PROF_LAYER_API, category, name), ticks = prof_ticks(r->is_counter);
    uint32_t count = correlation != 0 ? 2 : 1;
    if (t == NULL) lose_scope(r);
    if (t == NULL || !open_scope(r, t, word, count)) return;
    put(t, 0, ticks, word);
    if (correlation != 0) put(t, 1, ticks, make_word(number_kind(launches), 0, correlation));
    publish(t, count);
}

void prof_record_call_end(ProfRecorder *r) { hook_end(&r->hooks); }

void prof_record_call_number(ProfRecorder *r, bool launches, uint64_t correlation) {
    put_event(r, number_kind(launches), correlation, NULL, 0);
}

void prof_record_capture(ProfRecorder *r, uint64_t node) { put_event(r, PROF_EVENT_CAPTURE, 0, &node, 1); }

void prof_record_clone(ProfRecorder *r, uint64_t node, uint64_t original) {
    put_event(r, PROF_EVENT_OTHER, 0, (uint64_t[]){node, original}, 2);
}

static void end_stretch(ProfRecorder *r, ProfThread *t, bool is_plain, uint64_t units, uint64_t now, int64_t used_ns) {
    if (!has_room(r, t, 3)) {
        drop(t, 1);
        return;
    }
    put(t, 0, now, make_word(PROF_EVENT_STRETCH, is_plain, units));
    put(t, 1, t->stretch.since, (uint64_t)(used_ns - t->stretch.used_ns));
    put(t, 2, t->stretch.paused, t->stretch.pauses);
    publish(t, 3);
}

// What it takes itself is, by half a reading of the clock, part of the stretch before, and else of the one that begins:
// whether those are plain has nothing to do with each other, so that both kinds have the same of it.
static void hook_stretch(const HostTraceHooks *hooks, HostTraceStretch what, bool is_plain, uint64_t units) {
    ProfRecorder *r = (ProfRecorder *)hooks;
    ProfThread *t = thread_here(r);
    if (t == NULL || t->skipped > 0) return;
    if (what == HOST_STRETCH_PAUSE) {
        t->stretch.pause_since = prof_ticks(r->is_counter);
        t->stretch.pauses++;
    } else if (what == HOST_STRETCH_RESUME) {
        t->stretch.paused += prof_ticks(r->is_counter) - t->stretch.pause_since;
    } else {
        uint64_t now = prof_ticks(r->is_counter);
        int64_t used_ns = host_thread_ns();
        if (units > 0) end_stretch(r, t, is_plain, units, now, used_ns);
        t->stretch.paused = t->stretch.pauses = 0;
        t->stretch.since = now;
        t->stretch.used_ns = used_ns;
    }
}

// ---- start and stop ------------------------------------------------------------------------------------------------

static void describe_process(ProfProcess *process, bool is_counter) {
    gethostname(process->host, sizeof process->host - 1);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fgets(process->boot_id, sizeof process->boot_id, file) != NULL) {
        process->boot_id[strcspn(process->boot_id, "\n")] = '\0';
    }
    if (file != NULL) fclose(file);
    snprintf(process->clock, sizeof process->clock, "%s", is_counter ? "tsc" : "clock_gettime");
    process->pid = getpid();
    if (process->workers == 0) process->workers = 1;
    if (process->offset_ns == 0 && process->offset_error_ns == 0) process->offset_error_ns = -1;
    struct timespec now;
    process->start_ns = host_now_ns();
    clock_gettime(CLOCK_REALTIME, &now);
    process->start_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Pages that take memory when they are touched first. NULL: none.
static void *map_zeros(size_t size_bytes) {
    void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

static Status allocate(ProfRecorder *r, const ProfRecordOptions *options) {
    size_t memory = options->memory_bytes > 0 ? options->memory_bytes : (size_t)PROF_RECORD_MEMORY_BYTES;
    r->buffer_count = memory > sizeof(ProfBuffer) ? memory / sizeof(ProfBuffer) : 1;
    r->buffer_bytes = r->buffer_count * sizeof(ProfBuffer);
    r->buffers = map_zeros(r->buffer_bytes);
    if (r->buffers == NULL) return host_fail(STATUS_MEMORY, "no memory for a profile's buffers");
    r->wake_every = r->buffer_count < 4 * WAKE_EVERY ? 1 : WAKE_EVERY;
    r->threads = map_zeros(PROF_RECORD_THREADS * sizeof *r->threads);
    return r->threads != NULL ? STATUS_OK : host_fail(STATUS_MEMORY, "no memory for a profile");
}

// Signals are for the other threads.
static Status start_reader(ProfRecorder *r) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&r->reader, NULL, prof_drain_main, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) return host_fail(STATUS_SYSTEM, "cannot start the profiler's thread: %s", strerror(failed));
    pthread_setname_np(r->reader, "profiler");
    return STATUS_OK;
}

static Status start_parts(ProfRecorder *r, const ProfRecordOptions *options) {
    TRY(allocate(r, options));
    prof_clock_init(&r->clock, !options->use_system_clock);
    r->is_counter = r->clock.is_counter;
    ProfProcess process = options->process;
    describe_process(&process, r->is_counter);
    r->start_ns = process.start_ns;
    TRY(prof_writer_open(options->path, &process, &r->writer));
    prof_writer_clock(r->writer, process.start_ns, process.start_unix_ns);
    return start_reader(r);
}

Status prof_recorder_start(const ProfRecordOptions *options, ProfRecorder **recorder) {
    ProfRecorder *r = aligned_alloc(64, (sizeof *r + 63) / 64 * 64);
    if (r == NULL) return host_fail(STATUS_MEMORY, "no memory for a profile");
    memset(r, 0, sizeof *r);
    sem_init(&r->wake, 0, 0);
    r->hooks = (HostTraceHooks){.begin = hook_begin,
                                .end = hook_end,
                                .mark = hook_mark,
                                .join = hook_join,
                                .split = hook_split,
                                .phase = hook_phase,
                                .stretch = hook_stretch,
                                .is_full = options->is_full};
    r->collector = options->collector;
    Status status = start_parts(r, options);
    if (status != STATUS_OK) {
        prof_writer_abandon(r->writer);
        r->writer = NULL;
        prof_recorder_free(r);
        return status;
    }
    atomic_store(&r->session, (uint64_t)r->start_ns);
    host_trace_attach(&r->hooks);
    *recorder = r;
    return STATUS_OK;
}

void prof_recorder_steps(ProfRecorder *r, int64_t env_steps) { prof_writer_steps(r->writer, env_steps); }

Status prof_recorder_stop(ProfRecorder *r, int64_t *dropped) {
    host_trace_attach(NULL);
    atomic_store(&r->session, 0);
    atomic_store(&r->stop, true);
    sem_post(&r->wake);
    pthread_join(r->reader, NULL);
    int64_t end_ns = host_now_ns();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    prof_writer_clock(r->writer, end_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    int64_t sum = atomic_load(&r->dropped);
    for (uint32_t i = 0; i < atomic_load(&r->thread_count) && i < PROF_RECORD_THREADS; i++)
        sum += atomic_load(&r->threads[i].dropped);
    if (dropped != NULL) *dropped = sum;
    Status status = prof_writer_close(r->writer, end_ns);
    r->writer = NULL;
    return status;
}

void prof_recorder_free(ProfRecorder *r) {
    if (r == NULL) return;
    if (r->buffers != NULL) munmap(r->buffers, r->buffer_bytes);
    if (r->threads != NULL) munmap(r->threads, PROF_RECORD_THREADS * sizeof *r->threads);
    prof_table_free(&r->names);
    sem_destroy(&r->wake);
    free(r);
}
