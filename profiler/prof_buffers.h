// What a recorder's threads write and its own thread reads: raw events in buffers. Private to profiler/prof_record*.c.
//
// A buffer has one writer, which publishes by `used`, and one reader. A thread's buffers are a list: the writer is at
// its end, the reader at its head.
//
// Ownership: ProfRecorder. Errors: none. Thread safety: as each field says.
#ifndef SHOAL_PROFILER_PROF_BUFFERS_H
#define SHOAL_PROFILER_PROF_BUFFERS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "profiler/prof_clock.h"
#include "profiler/prof_record.h"
#include "profiler/prof_table.h"

// word: kind << 60 | layer << 58 | category << 54 | 54 bits: a name's address, a phase, a mask of weights, a
// correlation. What needs more has it in the ticks of the raw events behind it: a joined thread, weights, nodes of
// graphs. Kind OTHER is a copy of a node, for the collector. Layer and category are those of a name; what has none uses
// their bits freely.
typedef struct ProfRaw {
    uint64_t ticks, word;
} ProfRaw;

enum {
    PROF_RAWS = (PROF_RECORD_BUFFER_BYTES - 64) / 16,
    PROF_WORD_BITS = 54,
    PROF_WORD_CATEGORY_BITS = 4,
};
_Static_assert(PROF_CATEGORY_ENCLOSING < 1 << PROF_WORD_CATEGORY_BITS, "the category of a word has four bits");
_Static_assert(PROF_LAYERS <= 4, "the layer of a word has two bits");
_Static_assert(PROF_EVENT_READER < 16, "the kind of a word has four bits");

static inline unsigned prof_word_category(uint64_t word) {
    return (unsigned)(word >> PROF_WORD_BITS) & ((1u << PROF_WORD_CATEGORY_BITS) - 1);
}

static inline ProfLayer prof_word_layer(uint64_t word) {
    return (ProfLayer)(word >> (PROF_WORD_BITS + PROF_WORD_CATEGORY_BITS) & 3);
}

// The name's address that a word holds.
static inline const char *prof_word_name(uint64_t word) {
    uint64_t address = word & ((UINT64_C(1) << PROF_WORD_BITS) - 1);
    return (const char *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr): it was one
}

typedef struct ProfBuffer {
    _Alignas(64) _Atomic(struct ProfBuffer *) next; // set by the writer when this one is full
    _Atomic uint32_t used;                          // raw events that are whole
    atomic_bool is_taken;
    _Alignas(64) ProfRaw raw[PROF_RAWS];
} ProfBuffer;

typedef struct ProfThread {
    // The thread's own.
    _Alignas(64) ProfBuffer *buffer; // NULL: none could be had yet
    uint32_t used, depth;
    uint32_t skipped; // scopes that are open and were dropped
    struct {
        uint64_t since, pause_since, paused; // ticks
        uint64_t pauses;
        int64_t used_ns; // the thread's processor time at the begin
    } stretch;
    uint32_t filled; // buffers
    uint32_t stream;
    uint64_t stack[PROF_RECORD_DEPTH]; // words of the open scopes
    _Atomic int64_t dropped;
    // The reader's.
    _Alignas(64) _Atomic(ProfBuffer *) head;
    uint32_t taken;
    int64_t told;    // dropped events that are in the trace
    int64_t last_ns; // of its events
    bool is_known;
    _Atomic uint64_t os_id; // 0 until the thread is ready
    char name[PROF_TEXT_MAX];
} ProfThread;

struct ProfRecorder {
    HostTraceHooks hooks;     // first: hooks are given back to the functions
    _Atomic uint64_t session; // 0: stopped
    bool is_counter;
    ProfBuffer *buffers; // [buffer_count]
    size_t buffer_count, buffer_bytes;
    ProfCollector collector;
    uint32_t wake_every;
    ProfThread *threads; // [PROF_RECORD_THREADS]
    _Atomic uint32_t thread_count;
    _Atomic int64_t dropped; // of threads that found no place
    sem_t wake;
    atomic_bool stop;

    // The reader's.
    pthread_t reader;
    ProfWriter *writer;
    ProfClock clock;
    ProfTable names; // word -> number
    int64_t start_ns;
};

// prof_record_drain.c
void *prof_drain_main(void *recorder); // the recorder's own thread, until `stop`
void prof_drain(ProfRecorder *recorder);

#endif
