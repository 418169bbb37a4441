// Records the scopes of this process (host/trace.h) into a trace.
//
// A scope's begin and end each write 16 bytes into a buffer of their thread: no lock, no allocation, no system call.
// Buffers come from a fixed pool; a thread of the recorder's own empties them every 50 ms, and when some are full.
// While the pool is empty whole scopes are dropped, and counted.
//
// The recorder's memory must last as long as any thread may be in a scope that was begun with it: stop, later free.
//
// Ownership: the caller frees what it started. Errors: STATUS_IO, STATUS_MEMORY, STATUS_SYSTEM. A failure to write,
// after the start, is reported by prof_recorder_stop(); until then events are dropped. Thread safety: start and stop on
// one thread, while no loop of a pool runs.
#ifndef SHOAL_PROFILER_PROF_RECORD_H
#define SHOAL_PROFILER_PROF_RECORD_H

#include <stddef.h>

#include "host/status.h"
#include "profiler/prof_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_RECORD_DEPTH = 64,              // scopes open at a time on one thread; those within are dropped
    PROF_RECORD_THREADS = 2048,          // threads that were ever in a scope
    PROF_RECORD_BUFFER_BYTES = 64 << 10, // 4,000 events
    PROF_RECORD_MEMORY_BYTES = 64 << 20,
};

typedef struct ProfRecordOptions {
    const char *path;      // of the trace
    ProfProcess process;   // tool, device, device_kind, rank, workers, offset; the rest is filled in
    size_t memory_bytes;   // of the pool; 0: PROF_RECORD_MEMORY_BYTES
    bool is_full;          // full detail: each round of fused loops is recorded (host/trace.h)
    bool use_system_clock; // even where the processor has an invariant counter
} ProfRecordOptions;

typedef struct ProfRecorder ProfRecorder;

// Makes the trace and attaches to the hooks.
Status prof_recorder_start(const ProfRecordOptions *options, ProfRecorder **recorder) HOST_MUST_CHECK;

// Detaches and ends the trace. `dropped` (may be NULL): events that found no buffer.
Status prof_recorder_stop(ProfRecorder *recorder, int64_t *dropped) HOST_MUST_CHECK;

// After it was stopped. NULL is fine.
void prof_recorder_free(ProfRecorder *recorder);

#ifdef __cplusplus
}
#endif

#endif
