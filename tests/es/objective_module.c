// Libraries for tests of objective:lib, by KIND:
//
//     1  fitness x[0] - x[1]^2; SHOAL_TEST_CRASH=x: a SIGSEGV where x[0] is at least that
//     2  the same, and another build
//     3  no shoal_objective()
//     4  shoal_objective_open() fails
//     5  a NaN where x[0] is above 0
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/shoal_objective.h"

extern const int32_t objective_module_kind; // so that no two of them are the same file
const int32_t objective_module_kind = KIND;

static int32_t opened_dim, opened_threads;

#if KIND == 3
double shoal_objectives(const float *x, int32_t dim, int32_t thread);
double shoal_objectives(const float *x, int32_t dim, int32_t thread) {
    return (double)x[0] + dim + thread + opened_dim + opened_threads;
}
#else
double shoal_objective(const float *x, int32_t dim, int32_t thread) {
    const char *crash = getenv("SHOAL_TEST_CRASH");
    if (opened_dim != dim || thread < 0 || thread >= opened_threads) return -1e300;
    if (crash != NULL && (double)x[0] >= strtod(crash, NULL)) raise(SIGSEGV);
    if (KIND == 5 && x[0] > 0.0f) return (double)NAN;
    return (double)x[0] - (double)x[1] * (double)x[1];
}

int32_t shoal_objective_open(int32_t dim, int32_t threads, uint64_t seed) {
    opened_dim = dim;
    opened_threads = threads;
    return KIND == 4 ? (int32_t)seed : 0;
}

void shoal_objective_close(void) {
    const char *marker = getenv("SHOAL_TEST_CLOSED");
    FILE *file = marker != NULL ? fopen(marker, "a") : NULL;
    if (file != NULL) fclose(file);
}
#endif
