// What a trace consists of, as writer, reader and analysis hand it to each other; profiler/FORMAT.md has it in bytes.
//
// A trace is of one process. It has streams (a thread of the host, or a queue of a device), each with its events in
// their order. Times are nanoseconds of CLOCK_MONOTONIC.
//
// Ownership: plain data; texts within the structs. Errors: none. Thread safety: none needed.
#ifndef SHOAL_PROFILER_PROF_TRACE_H
#define SHOAL_PROFILER_PROF_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_TEXT_MAX = 128,                            // bytes of a text, with the zero at the end
    PROF_DEPTH_MAX = 256,                           // scopes that are open at a time on one stream
    PROF_STREAMS_MAX = 65536,                       // streams of a trace
    PROF_NAMES_MAX = 65536,                         // names of a trace
    PROF_CATEGORY_ENCLOSING = HOST_TRACE_ENCLOSING, // of a name
};

#define PROF_COUNT_MAX (INT64_C(1) << 50) // of threads, envs, steps and the like

// Which layer of a program a scope belongs to. L(name, what it is)
#define PROF_LAYER_LIST(L)                                           \
    L(CODE, "scopes of the program's own")                           \
    L(LIBRARY, "scopes that libraries bring along")                  \
    L(API, "calls of a device's interface: launches, copies, waits") \
    L(SCRIPT, "scopes of the program's own that an interpreter opens")

typedef enum ProfLayer {
#define PROF_LAYER_ENUM(name, meaning) PROF_LAYER_##name,
    PROF_LAYER_LIST(PROF_LAYER_ENUM)
#undef PROF_LAYER_ENUM
        PROF_LAYERS
} ProfLayer;

// What a device interval is. D(name, what it is)
#define PROF_DEVICE_LIST(D)                     \
    D(KERNEL, "a kernel")                       \
    D(COPY, "a copy to, from or on the device") \
    D(FILL, "a memset")                         \
    D(OTHER, "anything else that occupies the device")

typedef enum ProfDeviceWork {
#define PROF_DEVICE_ENUM(name, meaning) PROF_DEVICE_##name,
    PROF_DEVICE_LIST(PROF_DEVICE_ENUM)
#undef PROF_DEVICE_ENUM
        PROF_DEVICE_WORKS
} ProfDeviceWork;

// Whose memory a call allocates. M(name, what it is)
#define PROF_MEMORY_LIST(M)                            \
    M(DEVICE, "memory of a device")                    \
    M(MANAGED, "memory that host and device share")    \
    M(PINNED, "memory of the host that does not move") \
    M(OTHER, "any other")

typedef enum ProfMemory {
#define PROF_MEMORY_ENUM(name, meaning) PROF_MEMORY_##name,
    PROF_MEMORY_LIST(PROF_MEMORY_ENUM)
#undef PROF_MEMORY_ENUM
        PROF_MEMORIES
} ProfMemory;

// What becomes of a pool that a device's memory is allocated from.
typedef enum ProfPoolChange {
    PROF_POOL_MADE,
    PROF_POOL_TRIMMED,
    PROF_POOL_DESTROYED,
    PROF_POOL_CHANGES
} ProfPoolChange;

typedef struct ProfProcess {
    char tool[PROF_TEXT_MAX];        // "esrun"
    char host[PROF_TEXT_MAX];        // name of the machine
    char boot_id[PROF_TEXT_MAX];     // of its kernel: processes of one boot have one CLOCK_MONOTONIC
    char device[PROF_TEXT_MAX];      // "cpu: 2 threads, v4", for people
    char device_kind[PROF_TEXT_MAX]; // "cpu" or "cuda": what the worker computes on
    char clock[PROF_TEXT_MAX];       // "tsc" or "clock_gettime": where the times come from
    char no_device[PROF_TEXT_MAX];   // why the work of its device is not recorded; "" where it is, or there is none
    int64_t pid, rank, workers;      // rank of `workers`
    int64_t devices, threads;        // that it computes on: devices, threads of its pool; 0: unknown
    int64_t envs;                    // in flight: environments, or members of a population; 0: unknown
    int64_t env_steps;               // done while the trace was recorded, known at its end; 0: unknown
    int64_t start_ns;                // of the trace
    int64_t start_unix_ns;           // the same moment by CLOCK_REALTIME
    int64_t offset_ns;               // add it to times to get those of a clock that all ranks know, rank 0's or another
    int64_t offset_error_ns;         // bound of its error; -1: not measured
} ProfProcess;

typedef enum ProfStreamKind { PROF_STREAM_THREAD, PROF_STREAM_DEVICE } ProfStreamKind;

typedef struct ProfStream {
    uint32_t id; // below PROF_STREAMS_MAX
    ProfStreamKind kind;
    bool is_main;      // the thread whose scope says what an idle device waits for; at most one
    uint64_t os_id;    // thread: as the system numbers it; device: the queue's number
    uint64_t device;   // device queue: the device's number
    uint64_t capacity; // device queue: threads that the device holds at a time; 0: unknown
    char name[PROF_TEXT_MAX];
} ProfStream;

typedef struct ProfName {
    uint8_t category; // HostTraceCategory or PROF_CATEGORY_ENCLOSING
    uint8_t layer;    // ProfLayer
    char text[PROF_TEXT_MAX];
} ProfName;

// The first eight are those of the file; the others are made from PROF_EVENT_OTHER, or by the reader.
typedef enum ProfEventKind {
    PROF_EVENT_END,      // the innermost scope ends
    PROF_EVENT_BEGIN,    // name: a scope begins
    PROF_EVENT_JOIN,     // name, stream: a scope begins, which is the innermost one of that name on that stream
    PROF_EVENT_LAUNCH,   // correlation: device work is launched
    PROF_EVENT_INTERVAL, // on a device queue; duration, correlation, node, work, name, threads
    PROF_EVENT_SPLIT,    // weight: what the innermost scope's time consists of
    PROF_EVENT_CAPTURE,  // node: of a graph, is captured
    PROF_EVENT_OTHER,
    PROF_EVENT_PHASE,    // phase: the process goes over to it
    PROF_EVENT_CALL,     // correlation: the innermost scope is a call that waits, or has to do with memory
    PROF_EVENT_DROPPED,  // count: events that could not be kept
    PROF_EVENT_BUSY,     // count: percent of the time in which a device is busy, as a monitor shows it
    PROF_EVENT_MEMORY,   // count: bytes of a device's memory that are in use
    PROF_EVENT_OVERHEAD, // count: nanoseconds that the device's profiling interface took
    PROF_EVENT_STRETCH,  // is_plain, count, duration, processor, pauses: a stretch of the innermost scope's loop ends
    PROF_EVENT_READER,   // processor: what the recorder's own thread took, in all
    PROF_EVENT_WAIT,    // correlation, duration, name: the thread of that call waits within it, in a scope of that name
    PROF_EVENT_ALLOC,   // correlation, memory, count: a call allocates so many bytes
    PROF_EVENT_RELEASE, // the same: it gives them back; 0 bytes: they were allocated before the trace began
    PROF_EVENT_POOL,    // correlation, change, count: of a pool, which then has so many bytes
    PROF_EVENT_ID,      // correlation, id_kind, count: another tool's id, under which that launch was made
    PROF_EVENT_LOST,    // what follows on this stream was lost, up to the next PROF_EVENT_RESYNC
    PROF_EVENT_RESYNC,  // depth, stack: the scopes that are open from here on
} ProfEventKind;

typedef struct ProfEvent {
    ProfEventKind kind;
    int64_t time_ns; // an interval's begin; no earlier than its launch
    uint32_t name, stream;
    int64_t duration_ns;
    int64_t processor_ns; // of the thread's
    uint64_t pauses;
    uint64_t correlation, node; // node 0: of no graph
    uint64_t threads;           // of a kernel: blocks x threads of a block; 0: unknown
    ProfDeviceWork work;
    ProfMemory memory;
    ProfPoolChange change;
    uint8_t id_kind; // as the device's interface numbers them
    HostTracePhase phase;
    bool is_plain;
    uint64_t count; // of a stretch: units of work, as the loop counts them
    uint64_t weight[HOST_TRACE_CATEGORIES];
    uint32_t depth;
    const uint32_t *stack; // [depth] names, outermost first; valid until the next event is asked for
} ProfEvent;

#ifdef __cplusplus
}
#endif

#endif
