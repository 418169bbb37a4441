#include "profiler/prof_estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCKS_MIN = 8,
    BLOCKS_MAX = 128,
    BLOCK_STRETCHES = 40,
    GROUP_STRETCHES = 6, // of each group, in a block
};

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ProfEstimate prof_estimate(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    double median = count % 2 != 0 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
    // How many values lie below the median is binomial: within 1.96 deviations, sqrt(count) / 2 each, in 95% of cases.
    int reach = (int)ceil(0.98 * sqrt((double)count)), low = count / 2 - reach, high = (count - 1) / 2 + reach;
    return (ProfEstimate){values[low > 0 ? low : 0], median, values[high < count ? high : count - 1]};
}

// ---- stretches -----------------------------------------------------------------------------------------------------

// Which ones are kept depends on their number only, and not on their group.
static void thin_out(ProfStretches *s) {
    for (uint32_t i = 0; i < s->count / 2; i++)
        s->at[i] = s->at[2 * i];
    s->count /= 2;
    s->every *= 2;
}

bool prof_stretches_add(ProfStretches *s, bool is_plain, uint64_t units, int64_t ns) {
    if (units == 0 || units > UINT32_MAX) return true;
    if (s->every > 0 && ++s->passed < s->every) return true;
    s->passed = 0;
    if (s->every == 0) s->every = 1;
    if (s->count == PROF_STRETCHES_MAX) thin_out(s);
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity > 0 ? 2 * s->capacity : 4;
        ProfStretch *grown = realloc(s->at, capacity * sizeof *grown);
        if (grown == NULL) return false;
        s->at = grown;
        s->capacity = capacity;
    }
    s->at[s->count++] = (ProfStretch){ns, (uint32_t)units, is_plain};
    return true;
}

void prof_stretches_free(ProfStretches *s) {
    free(s->at);
    memset(s, 0, sizeof *s);
}

// ---- what recording takes ------------------------------------------------------------------------------------------

// A block's excess: time by units of either group.
static double block_excess(const ProfStretch *s, uint32_t count) {
    double ns[2] = {0.0, 0.0}, units[2] = {0.0, 0.0};
    for (uint32_t i = 0; i < count; i++) {
        ns[s[i].is_plain] += (double)s[i].ns;
        units[s[i].is_plain] += (double)s[i].units;
    }
    return ns[false] / units[false] - ns[true] / units[true];
}

// What is left over at the end is no block.
static int cut_into_blocks(const ProfStretches *s, double excess[BLOCKS_MAX]) {
    uint32_t size = s->count / BLOCKS_MAX + 1, first = 0, plain = 0;
    int blocks = 0;
    if (size < BLOCK_STRETCHES) size = BLOCK_STRETCHES;
    for (uint32_t i = 0; i < s->count && blocks < BLOCKS_MAX; i++) {
        uint32_t count = i + 1 - first;
        plain += s->at[i].is_plain;
        if (count < size || plain < GROUP_STRETCHES || count - plain < GROUP_STRETCHES) continue;
        excess[blocks++] = block_excess(s->at + first, count);
        first = i + 1;
        plain = 0;
    }
    return blocks;
}

// 97.5% of Student's distribution lie below: the first terms of its expansion, right within 0.01 from 7 degrees on.
static double student(int degrees) {
    double n = (double)degrees;
    return 1.960 + 2.372 / n + 2.823 / (n * n);
}

static ProfEstimate mean_of(const double *values, int count) {
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    for (int i = 0; i < count; i++)
        square += (values[i] - mean) * (values[i] - mean);
    double half = student(count - 1) * sqrt(square / (count - 1) / count);
    return (ProfEstimate){mean - half, mean, mean + half};
}

ProfExcess prof_stretches_excess(const ProfStretches *s) {
    double excess[BLOCKS_MAX];
    int blocks = cut_into_blocks(s, excess);
    if (blocks < BLOCKS_MIN) return (ProfExcess){.is_known = false};
    return (ProfExcess){mean_of(excess, blocks), true};
}
