// The scopes of one stream as begins and ends that match, whatever is missing in the trace; and where a trace lies on
// another one's time axis. For what draws traces.
//
// Ownership: none kept. Errors: none. Thread safety: as the reader.
#ifndef SHOAL_PROFILER_PROF_WALK_H
#define SHOAL_PROFILER_PROF_WALK_H

#include "profiler/prof_read.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfWalk {
    void (*begin)(void *self, int64_t time_ns, uint32_t name); // also of a scope that a thread joins
    void (*end)(void *self, int64_t time_ns);                  // of the innermost one
    void (*other)(void *self, const ProfEvent *event);         // anything else
    void *self;
} ProfWalk;

// Where events are lost, the open scopes end before `other` hears of it; those that are open behind the loss begin
// after it. What is open at last ends with the trace.
void prof_walk_stream(ProfReader *reader, int stream, const ProfWalk *walk);

// What is to be added to the times of `from` to have them on the axis of `to`; FORMAT.md says how.
int64_t prof_process_shift_ns(const ProfProcess *to, const ProfProcess *from);

#ifdef __cplusplus
}
#endif

#endif
