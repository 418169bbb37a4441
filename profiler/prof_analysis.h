// What a trace says about where the time went: one sweep over its events in the order of their times.
//
// Every nanosecond between the start and the end of the trace is accounted for once in each of these ways:
//
// - of a thread: to the scope that is innermost on it, or to node 0 where none is open. A thread counts from its first
//   event on; the main thread from the start.
// - of a device interval: to the node it is charged to, which is where its launch was made; if it is of a graph's node
//   that was captured elsewhere, to a node of the capture's name below the launch's. Where a launch or a capture is
//   made within calls of a device's interface, the scope that they are in counts.
// - of a node, on the wall clock: cpu (a thread has it innermost, no interval is charged to it), gpu (the other way
//   round), both. The same for each category.
// - of the process, the bound: see ProfBound.
//
// A wait that a device's interface tells of is a scope within the call that it is of, from its begin to its end or to
// the thread's next event, whichever comes first.
//
// "Working" is a thread whose innermost scope is not IDLE. Where events have the same time, those of lower streams come
// first, threads before device queues; an interval ends before anything else of that time.
//
// Ownership: the analysis owns everything until freed. Errors: STATUS_MEMORY. Thread safety: none.
// Source: the sweep after RL-Scope (Gleeson et al., MLSys 2021), with work charged to the scope that launched it.
#ifndef SHOAL_PROFILER_PROF_ANALYSIS_H
#define SHOAL_PROFILER_PROF_ANALYSIS_H

#include "host/status.h"
#include "profiler/prof_estimate.h"
#include "profiler/prof_read.h"
#include "profiler/prof_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_NODE_OUTSIDE = 0, // the root: outside of every scope
    PROF_NODE_LOST = 1,    // the events are lost
    PROF_NODE_UNKNOWN = 2, // intervals whose launch is not in the trace
    PROF_NODES_MAX = 1 << 20,
    PROF_IDS_MAX = 1 << 16,
    PROF_NO_CATEGORY = HOST_TRACE_CATEGORIES,
    PROF_CATEGORY_SETS = 1 << HOST_TRACE_CATEGORIES,
};

// The six classes of an instant; they are disjoint, and cover everything. B(name, what it says)
#define PROF_BOUND_LIST(B)                                                         \
    B(GPU, "the device is busy and every thread waits")                            \
    B(OVERLAPPED, "the device is busy and a thread works")                         \
    B(COMMUNICATION, "the device is idle and the main thread is in communication") \
    B(SIMULATION, "the device is idle and the main thread is in simulation")       \
    B(HOST, "the device is idle and the main thread is in anything else")          \
    B(IDLE, "nothing goes on; also where the main thread is in no scope")

// While the main thread waits and another thread works, the scope that it waits in counts.
typedef enum ProfBound {
#define PROF_BOUND_ENUM(name, meaning) PROF_BOUND_##name,
    PROF_BOUND_LIST(PROF_BOUND_ENUM)
#undef PROF_BOUND_ENUM
        PROF_BOUNDS
} ProfBound;

// Why the device did nothing between two intervals. G(name, what it says)
#define PROF_GAP_LIST(G)                                                   \
    G(LAUNCH, "what came next had been launched")                          \
    G(SYNCHRONISATION, "nothing was launched, and the main thread waited") \
    G(COMMUNICATION, "nothing was launched; main thread in communication") \
    G(HOST, "nothing was launched; main thread in any other scope")        \
    G(NONE_READY, "nothing was launched; main thread in no scope")

typedef enum ProfGap {
#define PROF_GAP_ENUM(name, meaning) PROF_GAP_##name,
    PROF_GAP_LIST(PROF_GAP_ENUM)
#undef PROF_GAP_ENUM
        PROF_GAPS
} ProfGap;

// What the recorder does for a program, each of which takes time of its own. C(name, what it is)
#define PROF_COST_LIST(C)                                        \
    C(SCOPE, "a scope's begin and end")                          \
    C(JOIN, "joining another thread's scope, its end")           \
    C(SPLIT, "saying what a scope's time consists of")           \
    C(STRETCH, "ending a stretch of a loop")                     \
    C(PAUSE, "leaving a stretch, and coming back to it")         \
    C(SCRIPT, "a scope's begin and end in an interpreter")       \
    C(CALL, "a call of a device's interface, its begin and end") \
    C(RECORD, "what that interface records of such a call")

typedef enum ProfCostClass {
#define PROF_COST_ENUM(name, meaning) PROF_COST_##name,
    PROF_COST_LIST(PROF_COST_ENUM)
#undef PROF_COST_ENUM
        PROF_COSTS
} ProfCostClass;

// On the wall clock.
typedef struct ProfWall {
    int64_t cpu_ns, gpu_ns, both_ns;
} ProfWall;

// Of one node in one phase.
typedef struct ProfCell {
    int64_t count;                               // how often it was entered; joining does not count
    int64_t costs[PROF_COSTS];                   // what the recorder did, by any thread,
    int64_t main_costs[PROF_COSTS];              // by the main thread,
    int64_t covered_costs[PROF_COSTS];           // by the main thread, while the device was busy
    int64_t recorded_units, main_recorded_units; // of stretches that are not plain
    int64_t plain_ns;                            // of those that are, all threads
    int64_t thread_ns;                           // of all threads
    int64_t main_ns;                             // of the main thread
    int64_t intervals, kernels;                  // of the device; those of them that are kernels
    int64_t device_ns;                           // sum of them
    int64_t allocations;                         // of memory that devices have or share
    int64_t allocated_bytes, released_bytes;     // the second: of such memory, by calls from here
    int64_t bound_ns;                            // the device is idle, and this node is what the main thread is in
    ProfWall wall;
} ProfCell;

typedef struct ProfNode {
    int32_t parent;   // -1: none
    uint32_t name;    // of the trace; not of the first three nodes
    uint8_t category; // PROF_NO_CATEGORY of the first three
    uint8_t layer;
    bool is_wait; // that a device's interface told of
    bool is_leaf; // no scope within it is anything but a wait, or a call of a device's interface
    uint64_t split[HOST_TRACE_CATEGORIES]; // weights; all 0: its time is of its category
    bool is_loop;                          // it has stretches
    int32_t loop;                          // the outermost loop of known excess that it is or is part of; -1: none
    ProfExcess excess;                     // of a loop
    ProfCell cell[HOST_TRACE_PHASES];
} ProfNode;

// Memory of one kind.
typedef struct ProfMemorySum {
    int64_t allocations, releases;
    int64_t allocated_bytes, held_bytes, peak_bytes; // held: at the end; peak: held at a time
} ProfMemorySum;

// What was launched under an id of another tool. A launch counts by its work: within a call of the runtime's, one of
// the driver's may have a number and the id, too.
typedef struct ProfId {
    uint8_t kind;
    uint64_t id;
    int64_t launches, intervals, device_ns; // launches: that have intervals
} ProfId;

typedef struct ProfAnalysis {
    ProfProcess process;
    ProfDamage damage;
    int64_t wall_ns;
    int64_t phase_ns[HOST_TRACE_PHASES];        // of the wall
    int64_t events, dropped, dropped_intervals; // the last: of those dropped, records of a device's work
    int64_t unmatched_ends, too_deep;           // ends without a begin; scopes beyond PROF_DEPTH_MAX
    int threads, queues;
    int64_t reader_ns; // processor time of the recorder's own thread

    ProfNode *nodes; // [node_count]; a parent comes before its children
    int32_t node_count;
    ProfName *names; // [name_count]
    uint32_t name_count;

    ProfWall category[HOST_TRACE_PHASES][HOST_TRACE_CATEGORIES]; // by the categories of nodes, not split

    int64_t intervals, unknown_launches;
    int64_t device_sum_ns, device_busy_ns; // added up; union
    int64_t kernel_busy_ns;                // union of the kernels alone
    int64_t device_span_ns;                // from the first interval's begin to the last one's end
    int64_t work_ns[PROF_DEVICE_WORKS];    // sums
    int64_t fill_ns, fill_of_ns;           // kernels' time x the share of the device that they fill, of this time
    int64_t gap_ns[PROF_GAPS];
    int64_t gaps;                             // how many
    int64_t monitor_samples, monitor_percent; // a device as its monitor shows it: how often, sum of its percentages
    ProfMemorySum memory[PROF_MEMORIES];      // as calls allocated it while the trace was recorded
    int64_t pools[PROF_POOL_CHANGES];         // how often each happened to one
    int64_t pool_peak_bytes;                  // of one pool
    ProfId *ids;                              // [id_count] in the order in which they came
    int32_t id_count;
    int64_t launches_beyond_ids; // under ids beyond PROF_IDS_MAX
    int64_t memory_peak_bytes;   // in use on the device, by the monitor
    int64_t overhead_ns;         // of the device's profiling interface, as it says itself

    // By the categories of the intervals that run, a set of bits.
    int64_t gpu_bound_ns[HOST_TRACE_PHASES][PROF_CATEGORY_SETS];
    int64_t overlapped_ns[HOST_TRACE_PHASES][PROF_CATEGORY_SETS];
    int64_t idle_ns[HOST_TRACE_PHASES];

    // How often a thread went from one category to another; the last is "in no scope".
    int64_t transitions[HOST_TRACE_CATEGORIES + 1][HOST_TRACE_CATEGORIES + 1];
} ProfAnalysis;

// Reads every event of the trace. The analysis keeps nothing of the reader.
Status prof_analyse(ProfReader *reader, ProfAnalysis *analysis) HOST_MUST_CHECK;

// The same of the trace in a file.
Status prof_analyse_file(const char *path, ProfAnalysis *analysis) HOST_MUST_CHECK;
void prof_analysis_free(ProfAnalysis *analysis);

// A node's name; "(outside)", "(lost)", "(unknown launch)" of the first three.
const char *prof_node_name(const ProfAnalysis *analysis, int32_t node);

// Shares out `total` in proportion to the weights, to the last nanosecond: each gets what the running sum of weights
// gives it, rounded down. All weights 0: everything goes to `otherwise`.
void prof_share(int64_t total, const uint64_t *weight, int count, int otherwise, int64_t *part);

#ifdef __cplusplus
}
#endif

#endif
