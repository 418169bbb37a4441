// Evolution strategies after Salimans et al., "Evolution strategies as a scalable alternative to reinforcement
// learning", 2017: antithetic Gaussian perturbations, centred ranks, Adam, weight decay.
//
// The training state is (parameters, Adam's moments, normaliser, generation); everything else follows from the
// settings. One generation:
//     fitness     mean return of each member's episodes
//     gradient    sum over pairs of (rank[2p] - rank[2p + 1]) noise(p) / (2 pairs sigma), minus weight_decay params
//     update      Adam, upwards; then the normaliser takes in the generation's observations
//
// Members whose evaluation ends every worker are lost: they rank last, below all others (several of them share the mean
// of the lowest ranks), and the normaliser takes nothing in of them.
//
// Ownership: es_open()/es_close(). Errors: Status; a generation that is stopped or meets a NaN changes nothing; after a
// device has failed, only a checkpoint is to be trusted. Thread safety: none.
#ifndef SHOAL_ES_ES_H
#define SHOAL_ES_ES_H

#include "es/es_config.h"
#include "host/checkpoint.h"
#include "host/hash.h"
#include "host/plan.h"
#include "kernels/frozen.h"
#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

// Running sums over all observations that members' policies saw.
typedef struct EsNormalizer {
    double count;
    double sum[POLICY_OBS_MAX];
    double square[POLICY_OBS_MAX];
} EsNormalizer;

typedef struct EsRemote EsRemote;     // es/es_remote.h
typedef struct EsTrainers EsTrainers; // es/es_trainers.h

// A member that was lost.
typedef struct EsLost {
    int64_t generation, member;
} EsLost;

// The best parameters of an objective's members; see es/es_best.h.
typedef struct EsBest {
    float fitness;       // -infinity: none yet
    int64_t at[2];       // generation, member; -1
    float *params;       // [params]; NULL: a simulator's, of which none are kept
    int32_t next_member; // of the generation under way; -1: it has none that is better
    float *next;         // [params]
} EsBest;

typedef struct Es {
    EsConfig config;
    KernEsSpec spec;
    KernBackend *backend; // borrowed
    KernEs *kern;
    HostBlock block;
    // The state, as of the last completed generation.
    int64_t generation; // completed
    int64_t env_steps;  // of completed generations
    double train_s;     // spent in generations and tests, over all calls of a resumed run
    EsNormalizer normalizer;
    EsLost *lost; // [lost_count] of completed generations
    int64_t lost_count, lost_room;
    float *params, *first, *second; // [params]
    EsBest best;
    // Derived from (settings, generation), by repeated multiplication so that every machine gets the same bits.
    double sigma, lr, beta1_power, beta2_power;
    // Buffers of one generation or test.
    KernEpisode *episodes;   // [max(members x episodes, test episodes)]
    float *sums;             // [members x episodes][2][obs]
    float *fitness, *shaped; // [members]
    EsRemote *remote;        // the other workers; NULL: none
    EsTrainers *trainers;    // those that hold the same state; NULL: none
} Es;

typedef struct EsReport {
    int64_t generation, env_steps;
    double return_mean, return_min, return_max; // over members
    double length_mean;
    int32_t lost; // members of this generation
    double sigma, lr;
    double wall_s;
    int64_t env_steps_total; // of all generations up to this one
    double train_s;          // likewise
} EsReport;

// What host memory es_open takes, by purpose; the kernels' own plan is added to it.
Status es_plan(KernBackend *backend, const EsConfig *config, HostPlan *plan) HOST_MUST_CHECK;

Status es_open(KernBackend *backend, const EsConfig *config, Es *es) HOST_MUST_CHECK;
void es_close(Es *es);

// One generation.
Status es_generation(Es *es, EsReport *report) HOST_MUST_CHECK;

// Episodes of the policy without noise; kernels/frozen.h says which.
Status es_test(Es *es, uint32_t round, int32_t episodes, KernTest *test) HOST_MUST_CHECK;

// The policy as it is tested; what it points to is lent.
void es_frozen(const Es *es, KernFrozen *out);

// Hash of the parameters: 64-bit FNV-1a over their bytes.
HostHash es_params_hash(const Es *es);

// The state as one checkpoint file, and back. Loading checks that shapes and simulator fit; on failure the state is
// what it was.
Status es_save(const Es *es, const char *path) HOST_MUST_CHECK;
Status es_load(Es *es, const char *path) HOST_MUST_CHECK;

// Internal to es/: recomputes what follows from (settings, generation).
void es_derive_schedule(Es *es);

// Internal to es/: the state as the bytes of a checkpoint, with more tensors; free them. And back: `path` is what
// messages call the file.
Status es_pack(const Es *es, const HostTensor *more, int more_count, void **bytes, size_t *size_bytes) HOST_MUST_CHECK;
Status es_load_from(Es *es, const HostCheckpoint *file, const char *path) HOST_MUST_CHECK;

// Internal to es/: what the members of the present generation follow from.
void es_job(const Es *es, KernEsJob *job, KernNormalizer *normalizer);

// Internal to es/: what a generation came to; with es->fitness it is all that the update follows from. Lost members
// have the fitness -infinity.
typedef struct EsOutcome {
    double start_s;
    EsReport report;         // without times until es_clock()
    EsNormalizer normalizer; // after the generation
} EsOutcome;

// Internal to es/: takes the time; updates parameters [first, first + count) in the kernels' memory
// (KernOps.es_update); and makes the outcome, once the new parameters are in the host's copies, too, the state. There
// must be room for the lost members (es_reserve_lost).
void es_clock(const Es *es, EsOutcome *outcome);
Status es_update(Es *es, int32_t first, int32_t count) HOST_MUST_CHECK;
void es_commit(Es *es, const EsOutcome *outcome);

// Internal to es/: memory for `count` lost members in all.
Status es_reserve_lost(Es *es, int64_t count) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
