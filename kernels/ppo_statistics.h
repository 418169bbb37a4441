// The running statistics of PPO's normalisers as the backends keep them, and their way into KernPpoState and back.
#ifndef SHOAL_KERNELS_PPO_STATISTICS_H
#define SHOAL_KERNELS_PPO_STATISTICS_H

#include <math.h>
#include <stdbool.h>

#include "kernels/ppo_kern.h"
#include "kernels/ppo_math.h"

// Of the updates before.
typedef struct PpoStatistics {
    PpoMoments obs[POLICY_OBS_MAX]; // all of the same count
    PpoMoments discounted;          // the discounted return
} PpoStatistics;

static inline bool ppo_moments_are_finite(PpoMoments m) { return isfinite(m.mean) && isfinite(m.square); }

// Adds a rollout's moments. Returns NULL, or which of the sums is NaN or infinite: those of finite numbers may
// overflow.
static inline const char *ppo_statistics_add(PpoStatistics *statistics, int obs, const PpoMoments *of_obs,
                                             PpoMoments discounted) {
    for (int k = 0; k < obs; k++) {
        statistics->obs[k] = ppo_moments_fold(statistics->obs[k], of_obs[k]);
        if (!ppo_moments_are_finite(statistics->obs[k])) return "the variance of an observation";
    }
    statistics->discounted = ppo_moments_fold(statistics->discounted, discounted);
    return ppo_moments_are_finite(statistics->discounted) ? NULL : "the variance of the discounted return";
}

// obs: how many observations there are.
static inline void ppo_statistics_read(const PpoStatistics *statistics, int obs, KernPpoState *state) {
    state->obs_count = statistics->obs[0].count;
    for (int k = 0; k < obs; k++) {
        state->obs_mean[k] = statistics->obs[k].mean;
        state->obs_square[k] = statistics->obs[k].square;
    }
    state->return_count = statistics->discounted.count;
    state->return_mean = statistics->discounted.mean;
    state->return_square = statistics->discounted.square;
}

static inline void ppo_statistics_write(PpoStatistics *statistics, int obs, const KernPpoState *state) {
    for (int k = 0; k < obs; k++)
        statistics->obs[k] = (PpoMoments){state->obs_count, state->obs_mean[k], state->obs_square[k]};
    statistics->discounted = (PpoMoments){state->return_count, state->return_mean, state->return_square};
}

#endif
