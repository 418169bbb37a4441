// Tests of a frozen policy: episodes without noise, on seeds of their own.
//
// Ownership: everything is the caller's. Errors: those of es_evaluate; STATUS_NUMERIC where a return is infinite.
// Thread safety: as the backend's.
#ifndef SHOAL_KERNELS_FROZEN_H
#define SHOAL_KERNELS_FROZEN_H

#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KernTest {
    double return_mean, return_std, length_mean;
    int64_t env_steps;
} KernTest;

// A policy as it is tested, and the latest test's episodes.
typedef struct KernFrozen {
    const KernSim *sim;
    const PolicyShape *policy;
    const float *params; // [policy->params]
    KernNormalizer normalizer;
    uint64_t seed;
    const KernEpisode *episodes; // [episodes of the test]
} KernFrozen;

// Test `round` never meets another round's episodes, nor those of training. The last test of a run has this round;
// others take the number of generations or updates done, twice it and one more.
enum { KERN_TEST_FINAL = 0x0fffffff };

// Tests the unperturbed policy that `es` holds; episodes: [count], the caller's.
Status kern_test(KernEs *es, const KernNormalizer *normalizer, const char *env, uint32_t round, int32_t count,
                 KernEpisode *episodes, KernTest *test) HOST_MUST_CHECK;

// A sum of finite rewards may still overflow. What would follow from that (ranks, a target that is held) is not to be
// believed: STATUS_NUMERIC names member and episode. episodes: [members][per_member]
Status kern_check_returns(const char *env, const KernEpisode *episodes, int64_t members,
                          int64_t per_member) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
