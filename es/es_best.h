// The best member of an objective without a simulator: that with the highest fitness of all generations, the first of
// equals. Noise follows from counters, so that every trainer makes the same of a generation's fitness.
//
// Ownership: part of Es. Errors: Status. Thread safety: none.
#ifndef SHOAL_ES_ES_BEST_H
#define SHOAL_ES_ES_BEST_H

#include "es/es.h"

#ifdef __cplusplus
extern "C" {
#endif

// A generation's best member against the best so far, before the generation's update; and, with it, afterwards. Neither
// does anything where there is a simulator.
Status es_best_find(Es *es) HOST_MUST_CHECK;
void es_best_commit(Es *es);

// best.json in a run's folder: the best member, the mean of the search, and which of them is the better one. test: of
// the mean; NULL: none was made.
Status es_best_write(const Es *es, const char *folder, const KernTest *test) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
