// What repeated measurements say: medians, and what recorded stretches of a loop took more than plain ones, each with
// its 95% confidence interval.
//
// Stretches are picked at random to be recorded or left plain while the loop runs, so that the two groups differ by
// nothing but the recording: a randomised experiment within the run that is to be corrected. The run's stretches are
// cut into up to 128 blocks of neighbours, within which the machine and the work change little. In each block the time
// by units of either group is taken, and their difference is the block's excess. The run's excess is the mean over
// blocks, and nothing is trimmed: what recording costs now and then, a new buffer or the recorder's thread being woken,
// is part of the sum that is to be taken off, and a median would leave it out. Times are those of the thread's
// processor: waiting for one is no matter of scopes.
//
// Ownership: ProfStretches owns its memory until freed. Errors: false where memory is missing. Thread safety: none.
// Sources: ratio estimates within strata, and their difference: Cochran, Sampling Techniques, 3rd edition (1977),
// chapter 6; the mean's interval: Student, Biometrika 6 (1908), its expansion: Abramowitz and Stegun, 26.7.5; the
// median's interval: David and Nagaraja, Order Statistics, 3rd edition (2003), 7.1.
#ifndef SHOAL_PROFILER_PROF_ESTIMATE_H
#define SHOAL_PROFILER_PROF_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A value, and its 95% confidence interval. The value is a median, or the mean of what adds up to a sum.
typedef struct ProfEstimate {
    double low, value, high;
} ProfEstimate;

// The median of `count` values, which are sorted, by order statistics; count >= 6.
ProfEstimate prof_estimate(double *values, int count);

// At most this many stretches are kept: of more, each second, fourth, ... one.
enum { PROF_STRETCHES_MAX = 1 << 15 };

typedef struct ProfStretch {
    int64_t ns; // of the processor
    uint32_t units;
    bool is_plain;
} ProfStretch;

typedef struct ProfStretches {
    ProfStretch *at; // [count], in order
    uint32_t count, capacity;
    uint32_t every, passed; // one in `every` is kept; those that went by since
} ProfStretches;

// What a recorded unit took more than a plain one.
typedef struct ProfExcess {
    ProfEstimate ns;
    bool is_known;
} ProfExcess;

// Stretches of no units say nothing.
bool prof_stretches_add(ProfStretches *stretches, bool is_plain, uint64_t units, int64_t ns);
// Not known of less than eight blocks.
ProfExcess prof_stretches_excess(const ProfStretches *stretches);
void prof_stretches_free(ProfStretches *stretches);

#ifdef __cplusplus
}
#endif

#endif
