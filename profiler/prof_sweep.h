// The state of a sweep. Private to profiler/prof_sweep*.c.
//
// Ownership: prof_analyse() owns it. Errors: `status`, the first one. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_SWEEP_H
#define SHOAL_PROFILER_PROF_SWEEP_H

#include "profiler/prof_analysis.h"
#include "profiler/prof_table.h"

#ifdef __cplusplus
extern "C" {
#endif

__extension__ typedef unsigned __int128 ProfWide;

// Launches that are remembered, by the low bits of their numbers: an interval is charged if no launch came after its
// own whose number is higher by a multiple of the most.
enum { PROF_LAUNCHES_MIN = 1 << 8, PROF_LAUNCHES_MAX = 1 << 18 };

// Of a launch, instead of an index. SWEEP_NO_ROOM: it has an id that could not be kept.
enum { SWEEP_NO_ID = -1, SWEEP_NO_ROOM = -2 };

// What is active now: a node, or a category.
typedef struct SweepActive {
    uint32_t cpu, gpu; // threads, intervals
    int64_t since_ns;  // accounted for up to here
} SweepActive;

typedef struct SweepThread {
    bool is_thread, is_seen;
    uint32_t depth, over; // over: open scopes that found no place
    int32_t node;         // innermost
    bool is_waiting;      // in a wait that the device's interface told of, until wait_end_ns
    int64_t wait_end_ns;
    int64_t since_ns; // accounted for up to here
    int32_t *stack;   // [PROF_DEPTH_MAX] nodes
} SweepThread;

typedef struct SweepRunning {
    int64_t end_ns;
    int32_t node;
    bool is_kernel;
} SweepRunning;

typedef struct SweepLaunch {
    uint64_t correlation;
    int64_t time_ns;
    int64_t cause_ns[PROF_GAPS]; // of the sweep, at that time
    int32_t node;                // that it is charged to
    int32_t thread, call;        // where it was made, the innermost node
    uint32_t depth;              // of the thread
    int32_t id;                  // index of another tool's id, SWEEP_NO_ID, SWEEP_NO_ROOM
    bool is_launch;              // else another call whose number is told
    bool has_worked;             // under its id
    bool is_used;
} SweepLaunch;

typedef struct Sweep {
    ProfReader *reader;
    ProfAnalysis *a;
    Status status;
    int64_t now_ns, start_ns, limit_ns; // limit: where the trace says it ended, or INT64_MAX
    HostTracePhase phase;

    ProfTable children;       // parent << 32 | name -> node
    SweepActive *active;      // [node_capacity]
    bool *entered;            // [node_capacity] by a thread
    ProfStretches *stretches; // [node_capacity]
    int32_t node_capacity;
    SweepActive category[HOST_TRACE_CATEGORIES];

    SweepThread *threads; // [streams]
    int32_t *index_of;    // [PROF_STREAMS_MAX] stream of an id + 1
    int main;             // stream; -1: none
    int32_t main_work;    // the innermost scope of the main thread that is not IDLE
    bool is_main_working;
    int working;         // threads
    int waiting;         // threads that are in waits that the device's interface told of
    int64_t wait_end_ns; // the first end of those

    SweepRunning *running; // a heap, the earliest end first
    int running_count, running_capacity;
    int kernels;      // of them
    unsigned gpu_set; // categories of the running intervals

    SweepLaunch *launches; // [launch_size] by the low bits of the correlation; grows with their number
    uint32_t launch_size;
    ProfTable captured; // node of a graph -> node
    ProfTable id_of;    // hash of kind and id -> index
    int32_t id_capacity;
    bool is_used;              // the device was busy before
    int64_t first_ns, last_ns; // of its intervals
    int64_t idle_since_ns;
    int64_t cause_ns[PROF_GAPS], cause_at_idle_ns[PROF_GAPS]; // of the idle times since the first interval
} Sweep;

// Sums that wrap around in a forged trace.
static inline void prof_sweep_add(int64_t *sum, uint64_t x) { *sum = (int64_t)((uint64_t)*sum + x); }

// prof_tree.c: the child of a node; made if there is none. The parent itself where memory or PROF_NODES_MAX ends.
int32_t prof_sweep_child(Sweep *sweep, int32_t parent, uint32_t name);
Status prof_sweep_make_roots(Sweep *sweep) HOST_MUST_CHECK;
void prof_sweep_find_leaves(Sweep *sweep);
void prof_sweep_find_loops(Sweep *sweep);

// prof_sweep_calls.c: what is known of calls by their numbers.
void prof_sweep_wait(Sweep *sweep, const ProfEvent *event);
void prof_sweep_end_wait(Sweep *sweep, int thread); // nothing where it is in none
void prof_sweep_end_waits(Sweep *sweep, int64_t at_ns);
void prof_sweep_memory(Sweep *sweep, const ProfEvent *event);
void prof_sweep_id(Sweep *sweep, const ProfEvent *event);
void prof_sweep_work_of_id(Sweep *sweep, SweepLaunch *launch, int64_t duration_ns); // an interval of the launch

// prof_sweep_time.c: time goes by.
void prof_sweep_advance(Sweep *sweep, int64_t to_ns);                       // not beyond the end of a running interval
void prof_sweep_pass(Sweep *sweep, int64_t to_ns);                          // ends the intervals that end by then
SweepLaunch *prof_sweep_launch(const Sweep *sweep, uint64_t correlation);   // its place
SweepLaunch *prof_sweep_launched(const Sweep *sweep, uint64_t correlation); // NULL: not in the trace
void prof_sweep_switch(Sweep *sweep, int thread, int32_t node);
void prof_sweep_run(Sweep *sweep, const ProfEvent *event, const ProfStream *stream);
void prof_sweep_account(Sweep *sweep); // everything that is active, up to now

#ifdef __cplusplus
}
#endif

#endif
