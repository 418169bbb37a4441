// Proximal policy optimisation after Schulman et al., 2017; kernels/ppo_kern.h has the formulas.
//
// The training state is (parameters, Adam's moments, normalisers, envs, update); everything else follows from the
// settings. One update is a rollout of all envs and the learning from it.
//
// Ownership: ppo_open()/ppo_close(). Errors: Status. The state here is that of the last completed update: one that is
// stopped or meets a NaN leaves it as it was, but no further update can be made, no more than after a checkpoint whose
// way to the device failed. Thread safety: none.
#ifndef SHOAL_PPO_PPO_H
#define SHOAL_PPO_PPO_H

#include "host/checkpoint.h"
#include "host/hash.h"
#include "host/plan.h"
#include "kernels/frozen.h"
#include "kernels/ppo_kern.h"
#include "ppo/ppo_config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Ppo {
    PpoConfig config;
    KernPpoSpec spec;
    KernBackend *backend; // borrowed
    KernPpo *kern;
    KernEs *tester; // holds the actor alone, during a test
    HostBlock block;
    // The state, as of the last completed update.
    int64_t update;    // completed
    int64_t env_steps; // of completed updates
    double train_s;    // spent in updates and tests, over all calls of a resumed run
    KernPpoState state;
    KernEpisode *episodes; // [test episodes]
} Ppo;

typedef struct PpoReport {
    int64_t update, env_steps;
    double wall_s;
    int64_t env_steps_total;         // of all updates up to this one
    double train_s;                  // likewise
    double return_mean, length_mean; // of the episodes that ended in the rollout; NaN: none did
    double learning_rate;
    KernPpoReport kern;
} PpoReport;

// What memory ppo_open takes, by purpose, the kernels' included.
Status ppo_plan(KernBackend *backend, const PpoConfig *config, HostPlan *plan) HOST_MUST_CHECK;

Status ppo_open(KernBackend *backend, const PpoConfig *config, Ppo *ppo) HOST_MUST_CHECK;
void ppo_close(Ppo *ppo);

Status ppo_update(Ppo *ppo, PpoReport *report) HOST_MUST_CHECK;

// Episodes of the actor without noise: the likeliest action, or the mean; kernels/frozen.h says which episodes.
Status ppo_test(Ppo *ppo, uint32_t round, int32_t episodes, KernTest *test) HOST_MUST_CHECK;

// The policy as it is tested; what it points to is lent.
void ppo_frozen(const Ppo *ppo, KernFrozen *out);

// Hash of the parameters: 64-bit FNV-1a over their bytes.
HostHash ppo_params_hash(const Ppo *ppo);

// The state as one checkpoint file, and back. Loading checks that shapes, sizes and simulator fit; on failure the state
// is what it was.
Status ppo_save(const Ppo *ppo, const char *path) HOST_MUST_CHECK;
Status ppo_load(Ppo *ppo, const char *path) HOST_MUST_CHECK;

// The same in memory, with more tensors, of which there are four at most: free the bytes. And back: `path` is what
// messages call the file.
Status ppo_pack(const Ppo *ppo, const HostTensor *more, int more_count, void **bytes,
                size_t *size_bytes) HOST_MUST_CHECK;
Status ppo_load_from(Ppo *ppo, const HostCheckpoint *file, const char *path) HOST_MUST_CHECK;

// Hash of all that an update follows from.
uint64_t ppo_state_hash(const Ppo *ppo);

#ifdef __cplusplus
}
#endif

#endif
