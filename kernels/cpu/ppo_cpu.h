// PPO on the CPU backend: what the driver, the rollout and the updates share. Nothing outside kernels/cpu includes
// this.
#ifndef SHOAL_KERNELS_CPU_PPO_CPU_H
#define SHOAL_KERNELS_CPU_PPO_CPU_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ppo_net.h"
#include "kernels/ppo_group.h"
#include "kernels/ppo_statistics.h"

enum {
    PPO_BRANCHES = 3,
    PPO_GROUP_MAX = 1 << PPO_BRANCHES,
    PPO_GROUPS_PER_THREAD = 4,
};

typedef struct CpuPpo {
    KernPpo base;
    KernPpoSpec spec;
    PpoNet net;
    const LanesOps *sim;
    const CpuIsa *isa;
    HostPool *pool;
    HostPlan plan;
    HostBlock block;

    float *params, *first, *second; // [params]
    float *packed;                  // [net.packed]
    int64_t adam_steps;
    PpoStatistics statistics; // of the updates before

    LanesBatch batch;
    float *discounted; // [env] discounted return of the episode under way
    float *state;      // [env][net.state_pad] recurrent states of the episode under way
    LanesInfinite infinite;

    // One rollout, [env][step]
    PpoSamples samples;
    float *reward;       // normalised
    float *final_value;  // of the final observation, where an episode was truncated
    PpoMoments *env_obs; // [env][obs]
    PpoOutcome *of_env;  // [env]
    KernNormalizer normalizer;
    float reward_scale;
    uint32_t update;
    int32_t piece_blocks;  // of lanes, in one piece of the rollout
    PpoMoments *shard_obs; // [shard][obs]
    PpoOutcome *of_shard;  // [shard]

    // This trainer's part
    PpoGroup group;
    int32_t first_block, end_block; // of lanes
    HostBlock group_block;
    uint32_t *all_envs; // [envs][env_words]

    // Learning
    uint32_t *order;               // [shard][sample]
    PpoMoments *advantage_moments; // [shard][minibatch]
    int32_t group_shards;          // a power of two: shards whose gradients one thread folds
    float *gradients;              // [group][net.gradient] of its own shards
    float *gradient;               // [params]
    PpoLosses *losses;             // [shard]
    PpoScratch *scratch;           // [thread]
    float *branches;               // [thread][PPO_BRANCHES][net.gradient] gradients on their way down the tree
} CpuPpo;

static inline int32_t cpu_ppo_shard_samples(const KernPpoSpec *spec) {
    return spec->envs / spec->shards * spec->rollout;
}

// kernels/cpu/ppo_backend.c: this trainer's envs to `envs` [envs][env_words], or all of them from there.
void cpu_ppo_move_envs(CpuPpo *ppo, uint32_t *envs, bool out);

// kernels/cpu/ppo_exchange.c: takes what is its own of the shards in a group (NULL: all), without an exchange's memory.
Status cpu_ppo_share(CpuPpo *ppo, HostComm *comm);

// What trainers tell each other, each call by all of them. One alone goes on at once.
Status cpu_ppo_gather_statistics(CpuPpo *ppo);
Status cpu_ppo_gather_advantages(CpuPpo *ppo);
Status cpu_ppo_gather_envs(CpuPpo *ppo);
// With others: the first of ppo->gradients becomes known as ppo_group_gradient(rank), and the losses of all shards are
// filled in.
Status cpu_ppo_gather_gradients(CpuPpo *ppo);

// kernels/cpu/ppo_update.c: what follows the rollout. Fills in what is its own of the report.
Status cpu_ppo_learn(CpuPpo *ppo, const KernPpoStep *step, KernPpoReport *report);

#endif
