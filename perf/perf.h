// Timing for the benchmarks: cases are timed in turn, round after round, so that all of them meet the same noise, and a
// line is printed for each: case, min, median, unit, repeats.
//
// Ownership: plain data. Errors: none. Thread safety: none.
#ifndef SHOAL_PERF_PERF_H
#define SHOAL_PERF_PERF_H

#include <stdio.h>
#include <stdlib.h>

#include "host/clock.h"
#include "host/status.h"

enum { PERF_CASES_MAX = 16, PERF_REPEATS_MAX = 64 };

typedef struct PerfCase {
    const char *name;
    const char *unit; // of the rate: "Mstep/s"
    double work;      // units of work in one run
    void (*run)(void *context);
    void *context;
    double rate[PERF_REPEATS_MAX]; // work per second
} PerfCase;

static inline int perf_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double perf_median(const double *values, int count) {
    double sorted[PERF_REPEATS_MAX];
    for (int i = 0; i < count; i++)
        sorted[i] = values[i];
    qsort(sorted, (size_t)count, sizeof sorted[0], perf_compare);
    return count % 2 != 0 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

static inline void perf_print(const char *name, const double *values, int repeats, const char *unit) {
    double low = values[0];
    for (int i = 1; i < repeats; i++)
        low = values[i] < low ? values[i] : low;
    printf("%s, %.4g, %.4g, %s, %d\n", name, low, perf_median(values, repeats), unit, repeats);
}

// Runs every case once to warm up, then `repeats` rounds of all of them.
static inline void perf_run(PerfCase *cases, int count, int repeats) {
    for (int i = 0; i < count; i++)
        cases[i].run(cases[i].context);
    for (int r = 0; r < repeats; r++) {
        for (int i = 0; i < count; i++) {
            double start_s = host_now_s();
            cases[i].run(cases[i].context);
            cases[i].rate[r] = cases[i].work / (host_now_s() - start_s);
        }
    }
    for (int i = 0; i < count; i++)
        perf_print(cases[i].name, cases[i].rate, repeats, cases[i].unit);
}

// The rounds' ratios of two cases, as a line of their own; returns the median.
static inline double perf_ratio(const char *name, const PerfCase *a, const PerfCase *b, int repeats) {
    double ratio[PERF_REPEATS_MAX];
    for (int r = 0; r < repeats; r++)
        ratio[r] = a->rate[r] / b->rate[r];
    perf_print(name, ratio, repeats, "x");
    return perf_median(ratio, repeats);
}

static inline void perf_check(Status status) {
    if (status == STATUS_OK) return;
    fprintf(stderr, "%s\n", host_message());
    exit(1);
}

#endif
