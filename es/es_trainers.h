// Several trainers that hold the same state and share its update: es/ on top of host/group.h.
//
// The lead is the trainer that begins rounds and writes the run's folder. While a generation is evaluated the others,
// its followers, take leases as evaluators do; where their state is the generation's, no parameters are sent to them.
// Then the lead calls a meeting: it broadcasts what the generation came to (EsOutcome, fitness), every trainer updates
// its own range of the parameters, and an all-gather puts parameters and moments together. A range is a multiple of
// KERN_ES_UNIT, so the bits are those of one trainer.
//
// In a new group all compare generation and state; the one that is furthest, the lead where several are, gives its
// state to those that lack it, and the generation that was not committed is done again. So the lead may be started
// again from a checkpoint: it goes on where the others are. What its metrics.csv then lacks they know, too: trainers
// keep the reports of all generations since the lead's last checkpoint.
//
// Ownership: es_close() closes what es_trainers_open() opened; member and group are borrowed. Errors: Status; where the
// group fails, another one is formed. Thread safety: none.
#ifndef SHOAL_ES_ES_TRAINERS_H
#define SHOAL_ES_ES_TRAINERS_H

#include "es/es.h"
#include "host/group.h"

#ifdef __cplusplus
extern "C" {
#endif

// A generation, for metrics.csv.
typedef struct EsEntry {
    EsReport report;
    double test_mean, test_std; // of the test after it; NaN: there was none
} EsEntry;

Status es_trainers_open(Es *es, HostMember *member, HostGroup *group) HOST_MUST_CHECK;
void es_trainers_close(EsTrainers *trainers); // NULL is fine

// ---- the lead ------------------------------------------------------------------------------------------------------

// Takes the state of the trainers that are there, where they are further.
Status es_trainers_join(Es *es) HOST_MUST_CHECK;

// Makes the outcome the state, in all trainers. Where others prove to be further their state is taken instead, and
// outcome->report is that of its last generation.
Status es_trainers_update(Es *es, EsOutcome *outcome) HOST_MUST_CHECK;

// What the others are told with the next update: the result of a test of the present state, and that a checkpoint of a
// generation was written, so that nobody needs to know of those up to it.
void es_trainers_tested(Es *es, double mean, double std);
void es_trainers_saved(Es *es, int64_t generation);

// The entry of a generation since the last checkpoint; NULL: it is not known.
const EsEntry *es_trainers_entry(const Es *es, int64_t generation);

// ---- the others ----------------------------------------------------------------------------------------------------

// A follower's work, until the run is over (STATUS_OK) or a stop is asked for (STATUS_STOPPED).
Status es_trainers_follow(Es *es) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
