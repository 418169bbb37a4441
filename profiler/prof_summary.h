// The figures of a report: of each worker (trace), of all together, and the tree of scopes merged over workers.
//
// Where a scope says what its time consists of (split), its time counts for those categories: threads' and devices'
// time by the scope's own weights, and the wall clock's, which knows categories only, by the weights that threads'
// (devices') time of that category has.
//
// Ownership: the summary owns everything until freed. Errors: STATUS_MEMORY. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_SUMMARY_H
#define SHOAL_PROFILER_PROF_SUMMARY_H

#include "profiler/prof_analysis.h"
#include "profiler/prof_table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_ALL_PHASES = (1 << HOST_TRACE_PHASES) - 1 };

// int64_t only, so that figures add up field by field: peaks are then each worker's at most, added up; but that of
// pools is of one pool, and of several workers the highest.
typedef struct ProfFigures {
    int64_t wall_ns, threads, thread_ns, main_ns;    // thread_ns: of all threads
    int64_t bound_ns[PROF_BOUNDS];                   // adds up to wall_ns
    int64_t gpu_bound_ns[HOST_TRACE_CATEGORIES + 1]; // of bound GPU, by what the device does; the last: unknown
    int64_t overlapped_ns[HOST_TRACE_CATEGORIES + 1];
    int64_t category_thread_ns[HOST_TRACE_CATEGORIES + 1]; // the last: in no scope, or lost; adds up to thread_ns
    int64_t category_device_ns[HOST_TRACE_CATEGORIES + 1]; // adds up to device_sum_ns, over all phases
    int64_t category_cpu_ns[HOST_TRACE_CATEGORIES];        // on the wall clock
    int64_t category_gpu_ns[HOST_TRACE_CATEGORIES];
    int64_t category_both_ns[HOST_TRACE_CATEGORIES];
    int64_t layer_ns[PROF_LAYERS]; // threads, within scopes
    int64_t outside_ns;            // threads, outside leaf scopes; the time that is lost is apart
    int64_t outside_main_ns;       // the same of the main thread
    int64_t lost_ns;
    int64_t costs[PROF_COSTS];         // what the recorder did, outside of loops in full detail: by any thread,
    int64_t main_costs[PROF_COSTS];    // by the main thread,
    int64_t covered_costs[PROF_COSTS]; // by it while the device was busy
    int64_t kernels;
    int64_t waits, wait_ns; // of threads, that a device's interface told of

    // Of the whole trace, whatever the phases.
    int64_t phase_ns[HOST_TRACE_PHASES];
    int64_t queues, intervals, unknown_launches, device_busy_ns, device_sum_ns, device_span_ns;
    ProfMemorySum memory[PROF_MEMORIES];
    int64_t pools[PROF_POOL_CHANGES], pool_peak_bytes, ids, launches_beyond_ids;
    int64_t work_ns[PROF_DEVICE_WORKS], fill_ns, fill_of_ns, gaps, gap_ns[PROF_GAPS];
    int64_t transitions[HOST_TRACE_CATEGORIES + 1][HOST_TRACE_CATEGORIES + 1];
    int64_t events, dropped, dropped_intervals, unmatched_ends, too_deep, reader_ns;
    int64_t kernel_busy_ns, monitor_samples, monitor_percent, memory_peak_bytes, overhead_ns;
} ProfFigures;

// What recorded stretches took more than plain ones would have: a sum of estimates.
typedef struct ProfExcessSum {
    double ns, half_square; // half the interval's length, squared
    int64_t units;          // recorded
} ProfExcessSum;

typedef struct ProfWorker {
    ProfProcess process;
    ProfDamage damage;
    ProfFigures figures;
    ProfExcessSum excess; // of the main thread
    ProfId *ids;          // [figures.ids] of other tools
} ProfWorker;

typedef struct ProfScope {
    int32_t parent; // -1: none; a parent comes before its children
    int32_t depth;
    uint8_t category, layer; // category PROF_NO_CATEGORY: outside, lost, unknown launches
    bool is_leaf;
    char name[PROF_TEXT_MAX];
    uint64_t split[HOST_TRACE_CATEGORIES]; // of thread_ns, what traces say that it consists of; all 0: nothing
    int64_t count, thread_ns, main_ns, intervals, kernels, device_ns;
    int64_t allocations, allocated_bytes, released_bytes; // memory that devices have or share
    int64_t entries;                                      // joining, too
    int64_t costs[PROF_COSTS];                            // what the recorder did there, by any thread
    int64_t costs_within[PROF_COSTS];                     // in the scopes directly below
    int32_t loop;                                         // the loop in full detail that it is or is part of; -1: none
    int64_t plain_ns;                                     // of a loop's thread_ns, in plain stretches
    ProfExcessSum excess;                                 // of a loop, all threads
    int64_t within_ns;                                    // thread_ns with all scopes below
    ProfWall wall;
} ProfScope;

typedef struct ProfSummary {
    unsigned phases; // bits of those that count
    ProfWorker *workers;
    int32_t worker_count;
    ProfFigures total;
    ProfExcessSum excess; // of the main threads
    ProfScope *scopes;
    int32_t scope_count, scope_capacity;
    ProfTable table; // of scopes
} ProfSummary;

void prof_summary_init(ProfSummary *summary, unsigned phases);
Status prof_summary_add(ProfSummary *summary, const ProfAnalysis *analysis) HOST_MUST_CHECK;
// Once, after the last one.
void prof_summary_finish(ProfSummary *summary);
void prof_summary_free(ProfSummary *summary);

// The wall clock of all phases, which the figures of devices are of.
int64_t prof_figures_whole_ns(const ProfFigures *figures);

// Mean and standard deviation over workers of the share of the wall that they are bound so; deviation 0 of one worker.
double prof_summary_bound(const ProfSummary *summary, ProfBound bound, double *deviation);

const char *prof_bound_name(ProfBound bound); // "GPU-bound", ...
const char *prof_gap_name(ProfGap gap);
const char *prof_memory_name(ProfMemory memory); // "device", ...
const char *prof_category_name(int category);    // also of the one behind the last: "none"

#ifdef __cplusplus
}
#endif

#endif
