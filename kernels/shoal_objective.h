/* What a shared library has to define to be an objective of esrun:
 *
 *     cc -O2 -shared -fPIC -o mine.so mine.c
 *     esrun objective:mine.so --dim 10
 *
 * Only shoal_objective() is needed. In C++ the definitions get their names by including this file.
 *
 * Fitness is maximised, and must be a finite float32: else the run fails, and names the member.
 *
 * Threads: as many as the worker has (--threads) call shoal_objective() at the same time, `thread` telling them apart:
 * from 0 to threads - 1, for memory of their own. The others are called by one thread, while none is in the first.
 *
 * Determinism: a run gives the same parameters for any number of threads and workers if the fitness is a function of x
 * alone. With noise of its own it is not. */
#ifndef SHOAL_OBJECTIVE_H
#define SHOAL_OBJECTIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The fitness of x [dim]. */
double shoal_objective(const float *x, int32_t dim, int32_t thread);

/* Optional: called once, before anything else; not 0: it cannot be used, and the number is in the message. */
int32_t shoal_objective_open(int32_t dim, int32_t threads, uint64_t seed);

/* Optional: called once at the end. */
void shoal_objective_close(void);

#ifdef __cplusplus
}
#endif

#endif
