// Several trainers that hold the same state and share its update: es/ on top of kernels/trainers.h.
//
// The lead is the trainer that begins rounds and writes the run's folder. While a generation is evaluated the others,
// its followers, take leases as evaluators do; where their state is the generation's, no parameters are sent to them.
// Then the lead calls a meeting: it broadcasts what the generation came to (EsOutcome, fitness), every trainer updates
// its own range of the parameters, and an all-gather puts parameters and moments together. A range is a multiple of
// KERN_ES_UNIT, so the bits are those of one trainer.
//
// Ownership: es_close() closes what es_trainers_open() opened; the trainers are borrowed. Errors: Status; where the
// group fails, another one is formed. Thread safety: none.
#ifndef SHOAL_ES_ES_TRAINERS_H
#define SHOAL_ES_ES_TRAINERS_H

#include "es/es.h"
#include "host/member.h"
#include "kernels/trainers.h"

#ifdef __cplusplus
extern "C" {
#endif

// The reports that the trainers keep are EsReport.
Status es_trainers_open(Es *es, KernTrainers *trainers) HOST_MUST_CHECK;
void es_trainers_close(EsTrainers *trainers); // NULL is fine

// The lead's: takes the state of the trainers that are there, where they are further.
Status es_trainers_join(Es *es) HOST_MUST_CHECK;

// The lead's: makes the outcome the state, in all trainers. Where others prove to be further their state is taken
// instead, and outcome->report is that of its last generation.
Status es_trainers_update(Es *es, EsOutcome *outcome) HOST_MUST_CHECK;

// A follower's work, until the run is over (STATUS_OK) or a stop is asked for (STATUS_STOPPED).
Status es_trainers_follow(Es *es, HostMember *member) HOST_MUST_CHECK;

// Hash of all that a generation follows from.
uint64_t es_state_hash(const Es *es);

#ifdef __cplusplus
}
#endif

#endif
