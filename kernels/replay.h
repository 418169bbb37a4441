// A test's episodes once more, step by step on the host, for whoever wants to see more of them than their returns.
//
// The arithmetic is that of every backend (policy_forward() and the simulator's own functions), so that the steps are
// those of the test, bit for bit, wherever that ran. It is not fast.
//
// Ownership: kern_replay_open()/kern_replay_close(); what a KernFrozen points to is borrowed until then. Errors:
// STATUS_MEMORY. Thread safety: none.
#ifndef SHOAL_KERNELS_REPLAY_H
#define SHOAL_KERNELS_REPLAY_H

#include "kernels/frozen.h"
#include "sim/sim_play.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KernReplay {
    const KernFrozen *frozen;
    SimRng rng;       // of the episode
    void *state;      // [state_words], as <Name>State
    void *params;     // [param_count], as <Name>Params, of the episode
    float *recurrent; // [recurrent units]
    float obs[POLICY_OBS_MAX];
    int32_t discrete[SIM_DISCRETE_MAX]; // of the latest step
    float continuous[POLICY_OUTPUTS_MAX];
    float reward;
    float episode_return;
    int32_t length; // steps so far
    bool is_terminated, is_truncated;
} KernReplay;

Status kern_replay_open(KernReplay *replay, const KernFrozen *frozen) HOST_MUST_CHECK;
void kern_replay_close(KernReplay *replay);

// Begins an episode of the test of that round.
void kern_replay_begin(KernReplay *replay, uint32_t round, int32_t episode);

// One step; false where the episode has ended, and nothing was done.
bool kern_replay_step(KernReplay *replay);

#ifdef __cplusplus
}
#endif

#endif
