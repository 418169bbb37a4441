// PPO's updates shared by several trainers (KernOps.ppo_join): which shards are whose, and what the trainers tell each
// other, in one layout for every backend, so that those of a group may differ. The first of them, as many as are a
// power of two, share the shards: each owns consecutive ones, as many as the others, so its part of the shards' binary
// tree is a whole subtree. The rest own none; they only take in what the others say.
//
//     after the rollout   what became infinite first
//     in each epoch       moments of the minibatches' advantages: PpoMoments [shard][minibatch]
//     in each minibatch   of each trainer the gradient summed over its shards, float [params]; and its shards' losses,
//                         summed over the epoch's minibatches so far
//     after learning      statistics of the shards: PpoMoments [shard][obs], then PpoOutcome [shard]; the envs, as in
//                         KernPpoState
//
// With that, everything else is computed by all of them, to the same bits. Updates that fail of numbers
// (STATUS_NUMERIC) fail alike and between the same exchanges.
//
// Ownership: comm is borrowed, the exchanges' memory is the backend's. Errors: Status; those of host/comm.h. Thread
// safety: one call at a time for each group.
#ifndef SHOAL_KERNELS_PPO_GROUP_H
#define SHOAL_KERNELS_PPO_GROUP_H

#include <string.h>

#include "host/comm.h"
#include "kernels/ppo_kern.h"
#include "kernels/ppo_math.h"

#ifdef __cplusplus
extern "C" {
#endif

// A trainer's part.
typedef struct PpoGroup {
    HostComm *comm;         // NULL: it is the only one
    int32_t sharers, share; // trainers that own shards, and how many each
    int32_t first_shard, own_shards;
    int32_t params;
    size_t part_bytes; // of each trainer, in the largest exchange; a multiple of 64. Alone 0
    char *exchange;    // [trainers][part_bytes], aligned to 64 bytes: the backend's
} PpoGroup;

// Fills in all but `exchange`, which becomes NULL. comm: NULL, or of one member: alone. STATUS_USAGE where there are
// too many trainers; the group is then as it was.
Status ppo_group_init(PpoGroup *group, const KernPpoSpec *spec, HostComm *comm) HOST_MUST_CHECK;

static inline bool ppo_group_is_alone(const PpoGroup *group) { return group->comm == NULL; }

// Where a trainer's part of an exchange of that many bytes from each begins.
static inline char *ppo_group_part(const PpoGroup *group, int rank, size_t bytes) {
    return group->exchange + (size_t)rank * bytes;
}

// What a trainer says in an exchange by shards, and in one of gradients.
static inline size_t ppo_group_shards_bytes(const PpoGroup *group, size_t shard_bytes) {
    return (size_t)group->share * shard_bytes;
}

static inline size_t ppo_group_losses_offset(const PpoGroup *group) {
    return ((size_t)group->params * sizeof(float) + sizeof(double) - 1) / sizeof(double) * sizeof(double);
}

static inline size_t ppo_group_gradient_bytes(const PpoGroup *group) {
    size_t bytes = ppo_group_losses_offset(group) + (size_t)group->share * sizeof(PpoLosses);
    return (bytes + 63) / 64 * 64;
}

// [params], and [share]: parts of an exchange of ppo_group_gradient_bytes().
static inline float *ppo_group_gradient(const PpoGroup *group, int rank) {
    return (float *)ppo_group_part(group, rank, ppo_group_gradient_bytes(group));
}

static inline PpoLosses *ppo_group_losses(const PpoGroup *group, int rank) {
    char *part = ppo_group_part(group, rank, ppo_group_gradient_bytes(group));
    return (PpoLosses *)(part + ppo_group_losses_offset(group));
}

// Puts each trainer's part, of so many bytes, to its place, where this one's is already. Not alone.
Status ppo_group_gather(const PpoGroup *group, size_t bytes) HOST_MUST_CHECK;

// What a trainer's rollout met first. In the exchange as it is.
typedef struct PpoInfinite {
    int64_t step; // -1: nothing
    int64_t env;
    char field[64];
} PpoInfinite;

// field: NULL where nothing was met.
static inline PpoInfinite ppo_infinite(int64_t step, int64_t env, const char *field) {
    PpoInfinite infinite = {field != NULL ? step : -1, env, {0}};
    if (field != NULL) memcpy(infinite.field, field, strnlen(field, sizeof infinite.field - 1));
    return infinite;
}

// STATUS_NUMERIC if there was something in any trainer's rollout: the first step, and of that the first env.
Status ppo_group_infinite(const PpoGroup *group, const KernPpoSpec *spec, uint32_t update,
                          const PpoInfinite *own) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
