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
#include "profiler/prof_write.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_RECORD_DEPTH = 64,              // scopes open at a time on one thread; those within are dropped
    PROF_RECORD_THREADS = 2048,          // threads that were ever in a scope
    PROF_RECORD_BUFFER_BYTES = 64 << 10, // 4,000 events
    PROF_RECORD_MEMORY_BYTES = 64 << 20,
};

// What records a device beside the threads. The functions are called by the recorder's own thread, in each round in
// this order, and must not touch a stream below PROF_RECORD_THREADS.
typedef struct ProfCollector {
    // Before the threads are emptied: the launch of what is taken here is then known when write() is called.
    void (*take)(void *self);
    // A launch or another call that a thread recorded, and a node of a graph that is a copy of another.
    void (*launch)(void *self, uint64_t correlation, int64_t time_ns);
    void (*clone)(void *self, uint64_t node, uint64_t original);
    // Writes down what was taken.
    void (*write)(void *self, ProfWriter *writer);
    void *self;
} ProfCollector;

typedef struct ProfRecordOptions {
    const char *path; // of the trace
    // tool, device, device_kind, devices, threads, envs, rank, workers, offset; the rest is filled in
    ProfProcess process;
    ProfCollector collector; // all zeros: none
    size_t memory_bytes;     // of the pool; 0: PROF_RECORD_MEMORY_BYTES
    bool is_full;            // full detail: each round of fused loops is recorded (host/trace.h)
    bool use_system_clock;   // even where the processor has an invariant counter
} ProfRecordOptions;

typedef struct ProfRecorder ProfRecorder;

// Makes the trace and attaches to the hooks.
Status prof_recorder_start(const ProfRecordOptions *options, ProfRecorder **recorder) HOST_MUST_CHECK;

// How many env steps were done while it recorded, for the trace's end. Before the recorder is stopped.
void prof_recorder_steps(ProfRecorder *recorder, int64_t env_steps);

// Detaches and ends the trace. `dropped` (may be NULL): events that found no buffer.
Status prof_recorder_stop(ProfRecorder *recorder, int64_t *dropped) HOST_MUST_CHECK;

// A call of a device's interface on this thread: a scope of layer API within the innermost one, whose category it has,
// or IDLE if it waits. `name` lives as long as the process. correlation: the interface's number of it, where records of
// the collector refer to it, as those of work that it launches do; 0: none does. Like scopes these take no lock and no
// memory; not after the recorder was freed.
void prof_record_call_begin(ProfRecorder *recorder, const char *name, bool waits, bool launches, uint64_t correlation);
void prof_record_call_end(ProfRecorder *recorder);

// Within a call: it has another number, too; a node of a graph is captured; a node is a copy of `original`.
void prof_record_call_number(ProfRecorder *recorder, bool launches, uint64_t correlation);
void prof_record_capture(ProfRecorder *recorder, uint64_t node);
void prof_record_clone(ProfRecorder *recorder, uint64_t node, uint64_t original);

// A scope of layer SCRIPT, ended as any other; `hooks` are a recorder's.
void prof_record_script_begin(const HostTraceHooks *hooks, HostTraceCategory category, const char *name);

// After it was stopped. NULL is fine.
void prof_recorder_free(ProfRecorder *recorder);

#ifdef __cplusplus
}
#endif

#endif
