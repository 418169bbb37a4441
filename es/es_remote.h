// A generation's members, evaluated by several workers: es/ on top of host/member.h.
//
// A round is a generation, an item a member, its records its episodes' outcomes and sums. A payload is what the members
// follow from: EsPayload, then the normaliser's means [obs] and scales [obs], then the parameters [params], as float32.
// Whatever was computed where, the results are the same bits.
//
// Ownership: es_close() closes what es_remote_open() opened; the member is borrowed. Errors: Status. Thread safety:
// none.
#ifndef SHOAL_ES_ES_REMOTE_H
#define SHOAL_ES_ES_REMOTE_H

#include "es/es.h"
#include "host/member.h"

#ifdef __cplusplus
extern "C" {
#endif

// The fixed part of a payload. All workers of a run are of one build and little-endian.
typedef struct EsPayload {
    uint32_t purpose, generation;
    float sigma;
    int32_t episodes, params, obs;
} EsPayload;

// From now on `es`, the trainer's, shares generations with the master's other workers.
Status es_remote_open(Es *es, HostMember *member) HOST_MUST_CHECK;
void es_remote_close(EsRemote *remote); // NULL is fine

// Evaluates a generation into es->episodes and es->sums. lost: [lost_count] members that end every worker, ascending,
// valid until the next call; their results are zeros.
Status es_remote_evaluate(Es *es, const KernEsJob *job, const KernNormalizer *normalizer, const int32_t **lost,
                          int32_t *lost_count) HOST_MUST_CHECK;

// What the kernels of a worker that serves others have in place.
typedef struct EsServing {
    int64_t session, round; // whose parameters; round 0: the state's own
    KernEsJob job;
    KernNormalizer normalizer;
} EsServing;

// Computes a lease and hands it over. A task without a payload is of the state's own generation.
Status es_remote_serve(Es *es, HostMember *member, const HostTask *task, EsServing *serving) HOST_MUST_CHECK;

// The kernels have the state's parameters again.
Status es_remote_restore(Es *es, EsServing *serving) HOST_MUST_CHECK;

// An evaluator's work, until the run is over (STATUS_OK) or a stop is asked for (STATUS_STOPPED).
Status es_remote_evaluator(Es *es, HostMember *member) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
