// Ticks of the processor's counter as nanoseconds of CLOCK_MONOTONIC. Private to the recorder.
//
// Recording reads the counter only. Whoever writes events down reads both clocks now and then (prof_clock_sync()),
// always once after the events at hand, and interpolates between the readings before and after an event: no rate has to
// be known, and errors do not add up. Of readings that are close together the last is kept, so that one pass over many
// events leaves those that older ones lie between. Where the counter is not invariant, ticks are nanoseconds of the
// system's clock.
//
// Ownership: plain data. Errors: none. Thread safety: prof_ticks() from any thread; the rest by one thread at a time.
#ifndef SHOAL_PROFILER_PROF_CLOCK_H
#define SHOAL_PROFILER_PROF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "host/clock.h"
#include "host/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_SYNCS_MAX = 1024,
    PROF_SYNC_EVERY_NS = 10000000, // a fifth of the time between two passes of the recorder
};

typedef struct ProfSync {
    uint64_t ticks;
    int64_t ns;
} ProfSync;

typedef struct ProfClock {
    bool is_counter; // ticks are the processor's counter
    int count;
    ProfSync sync[PROF_SYNCS_MAX]; // the latest, both ascending; but for the last, PROF_SYNC_EVERY_NS or more apart
    // The pair that was used last: ns = from.ns + ticks since x rate / 2^32, up to `until`.
    ProfSync from;
    uint64_t until, rate;
} ProfClock;

// Whether the processor's counter runs at one rate, whatever the processor does.
bool prof_clock_has_counter(void);

// Starts with one reading; `use_counter` false takes the system's clock.
void prof_clock_init(ProfClock *clock, bool use_counter);

// Another reading; returns its ticks.
uint64_t prof_clock_sync(ProfClock *clock);

// Nanoseconds of a moment that is no later than the last reading (later ones are guessed).
int64_t prof_clock_ns(ProfClock *clock, uint64_t ticks);

// Nanoseconds of so many ticks, about now.
int64_t prof_clock_span_ns(ProfClock *clock, uint64_t ticks);

static inline uint64_t prof_ticks(bool is_counter) {
    return __builtin_expect(is_counter, 1) ? host_trace_ticks() : (uint64_t)host_now_ns();
}

#ifdef __cplusplus
}
#endif

#endif
