// Device intervals, and what else is known of calls by their numbers, on their way into a trace. They come in batches
// and in any order; each batch is sorted, and goes to the stream of its queue, what is no interval to a queue of its
// own. What begins before the last interval that was written of its queue goes to another stream of the same queue, so
// that nothing has to be held back, and no stream's times descend.
//
// A launch that was told of is never later than what it launched: where the clocks of host and device disagree, the
// interval begins at the launch. Nodes of graphs are given the number of the node that was captured. Releases of memory
// whose allocation did not come by here are of no bytes. So are those that come in an earlier batch than their
// allocation, or for whose allocation there was no memory to remember it: it then counts as held to the end. Another
// tool's ids are of the launch's time.
//
// Ownership: the object owns its memory until freed; names are borrowed and must live as long. Errors: what is not
// written for want of memory is counted as dropped. Thread safety: one thread at a time.
#ifndef SHOAL_PROFILER_PROF_INTERVALS_H
#define SHOAL_PROFILER_PROF_INTERVALS_H

#include "profiler/prof_table.h"
#include "profiler/prof_trace.h"
#include "profiler/prof_write.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_LAUNCHES_KNOWN = 1 << 16, // the latest, by the low bits of their correlation
    PROF_QUEUE_STREAMS_MAX = 16,   // of one queue; then times of the last one go backwards
    PROF_DEVICES_MAX = 64,
};

#define PROF_QUEUE_OF_CALLS (UINT32_MAX - 1) // of what is no interval
#define PROF_NO_DEVICE      UINT32_MAX

typedef struct ProfInterval {
    ProfEventKind kind;              // INTERVAL, WAIT, ALLOC, RELEASE, POOL, ID
    uint32_t device, context, queue; // as the device's interface numbers them; device PROF_NO_DEVICE: not told
    ProfDeviceWork work;
    int64_t begin_ns, end_ns;
    uint64_t correlation, node; // node 0: of no graph
    uint64_t threads;           // of a kernel; else 0
    const char *name;           // of an interval or a wait; the same address for the same name
    uint8_t which;              // as the kind has it: ProfMemory, ProfPoolChange, id_kind
    uint64_t count;             // bytes; an id
    uint64_t address;           // of memory
} ProfInterval;

typedef struct ProfQueue {
    uint32_t device, context, queue;
    uint32_t stream;
    int64_t last_ns; // begin of its last interval
    int32_t next;    // the next stream of this queue; -1: none yet
} ProfQueue;

typedef struct ProfPlaced {
    uint32_t stream;
    ProfInterval interval;
} ProfPlaced;

typedef struct ProfIntervals {
    ProfPlaced *batch; // [count]
    size_t count, capacity;
    ProfQueue *queues; // [queue_count]
    int32_t queue_count, queue_capacity;
    ProfTable queue_of; // device, context, queue -> the first of its streams
    ProfTable name_of;  // address -> number
    ProfTable clone_of; // node -> index in `originals`
    ProfTable held;     // address -> 1: memory that was allocated; 0: and released
    uint64_t *originals;
    int32_t original_count, original_capacity;
    struct {
        uint64_t correlation;
        int64_t time_ns;
    } * launches;                           // [PROF_LAUNCHES_KNOWN]
    uint32_t device;                        // of what does not tell its own
    uint32_t first_stream;                  // streams are numbered from here on
    int64_t start_ns;                       // of the trace: what ended before is left out
    int64_t dropped;                        // for want of memory
    uint64_t capacity_of[PROF_DEVICES_MAX]; // threads that a device holds; 0: unknown
} ProfIntervals;

// All zeros before. False: no memory.
bool prof_intervals_init(ProfIntervals *intervals, uint32_t first_stream, int64_t start_ns);
void prof_intervals_free(ProfIntervals *intervals);

void prof_intervals_launch(ProfIntervals *intervals, uint64_t correlation, int64_t time_ns);
void prof_intervals_clone(ProfIntervals *intervals, uint64_t node, uint64_t original);

// The first of the batch that tells its device; NULL: none.
const ProfInterval *prof_intervals_first(const ProfIntervals *intervals);

// Into the batch.
void prof_intervals_add(ProfIntervals *intervals, const ProfInterval *interval);
// Writes the batch down, and begins the next one.
void prof_intervals_write(ProfIntervals *intervals, ProfWriter *writer);

#ifdef __cplusplus
}
#endif

#endif
