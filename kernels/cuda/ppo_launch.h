// PPO's kernels as the host files of the CUDA backend call them: arguments, and one function per launch. Each returns a
// cudaError_t as an int, and the work is done in stream order. Pointers are device memory.
//
// Everything of an update stays on the device: what changes from update to update is in CudaPpoStep, which the host
// sends at the beginning; where the update stands, whether it was ended and what became of it is in CudaPpoReport,
// which the host fetches at the end. So the arguments of every launch are the same in each update.
#ifndef SHOAL_KERNELS_CUDA_PPO_LAUNCH_H
#define SHOAL_KERNELS_CUDA_PPO_LAUNCH_H

#include "kernels/cuda/launch.h"
#include "kernels/ppo_kern.h"
#include "kernels/ppo_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_PPO_ROLLOUT_THREADS = 128, // of a block, at most
    CUDA_PPO_LEARN_THREADS = 256,   // of a block, at most
    CUDA_PPO_THREADS_PER_ROW = 4,   // of the samples or envs that a block has at a time
    CUDA_PPO_FOLD_SHARDS = 64,      // that one launch folds into one
};

typedef struct CudaPpoStep {
    KernPpoStep step;
    int64_t adam_steps; // before the update
    float reward_scale;
    int32_t is_probed; // whether the rollout's phases are timed
    KernNormalizer normalizer;
} CudaPpoStep;

// Why learning came to its end before the last epoch. Kernels that are launched nevertheless do nothing.
enum CudaPpoEnd {
    CUDA_PPO_GOES_ON,
    CUDA_PPO_TARGET_KL,
    CUDA_PPO_INFINITE_ROLLOUT,
    CUDA_PPO_INFINITE_GRADIENT, // of `infinite_param`
    CUDA_PPO_INFINITE_LOSS,     // in `losses`
};

typedef struct CudaPpoReport {
    uint64_t infinite;        // an infinite-report of the rollout
    uint32_t infinite_param;  // the first parameter whose gradient is NaN or infinite; UINT32_MAX: none
    int32_t end;              // enum CudaPpoEnd
    int32_t epoch, minibatch; // in work
    int32_t stepped;          // whether the minibatch goes to Adam
    int64_t adam_steps;       // made in this update
    double grad_norm;         // of the last minibatch
    PpoLosses losses;         // of the last whole epoch; or up to the minibatch where learning failed
    PpoAdamStep adam;
    PpoOutcome outcome;
    PpoMoments obs[POLICY_OBS_MAX];
    CudaProbeTicks ticks; // of the rollout
} CudaPpoReport;

// Where a block keeps the activations of its rows (samples or envs): floats from the beginning of its scratch memory,
// [unit][pitch]. Learning keeps more: `delta`, the loss by a layer's sums, in the place of its activations where that
// can be, and a few lines for each row.
typedef struct CudaPpoScratch {
    int32_t threads, rows, pitch;
    int32_t floats; // of a block
    int32_t input;
    int32_t output[PPO_LAYERS_MAX];
    int32_t delta[PPO_LAYERS_MAX];
    int32_t choices, choices_pitch; // [row][choices_pitch] what PpoChoices says, one after the other
    int32_t losses;                 // [5][pitch] in the order of PpoLosses
    int32_t log_std;                // [continuous action][pitch] the loss by log_std
    bool is_shared;                 // in shared memory; or in `scratch`, [block][floats]
} CudaPpoScratch;

// A sample's place is step * envs + env.
typedef struct CudaPpoArgs {
    CudaBatchArgs batch;
    PolicyShape actor;
    PpoNetwork network;
    CudaPpoScratch rollout, learn;
    int32_t envs, steps, shards, minibatches;
    int32_t first_shard, own_shards; // of this trainer, and their envs
    int32_t first_env, end_env;
    int32_t part;           // samples of a shard in a minibatch
    int32_t advantage_sums; // of PPO_CHUNK advantages, in a part
    int32_t chunk;          // samples whose gradients are one sum: PPO_CHUNK, or with recurrent layers an env's steps
    int32_t chunks;         // of those, in a part
    int32_t round_chunks;   // of those, how many have their partial sums in memory at a time
    int32_t states;         // recurrent ones of an env, those of the actor first
    int32_t params_count, log_std;
    int32_t action_words; // of a sample: discrete actions, then continuous ones
    float gamma, lambda, per_sample;
    bool normalize_reward;
    uint64_t seed;

    const CudaPpoStep *step;
    CudaPpoReport *report;
    float *params, *first, *second; // [params]
    float *weights;                 // [params] as layers take them: rounded to bfloat16, or `params` itself
    float *discounted;              // [env] of the episode under way
    float *state;                   // [states][env] of the episode under way
    // The rollout.
    float *obs;                                                          // [place][obs] as the simulator gives it
    uint32_t *action;                                                    // [place][action_words]
    float *log_prob, *value, *advantage, *target, *reward, *final_value; // [place]
    int32_t *ended;                                                      // [place]
    float *last_value;                                                   // [env]
    float *first_state;                                                  // [states][env] before the first step
    PpoOutcome *outcomes;                                                // [env], then [shard]
    PpoMoments *obs_moments;                                             // [obs][env], then [shard][obs]
    // Learning.
    uint32_t *order;               // [shard][sample] places
    PpoMoments *advantage_moments; // [shard][minibatch][advantage_sums]
    PpoMoments *shard_advantages;  // [shard][minibatch] all of those as one, where trainers share the shards
    PpoAdvantageScale *advantages; // [minibatch]
    PpoLosses *chunk_losses;       // [shard][chunk]
    PpoLosses *losses;             // [shard]
    float *partial;                // [own shard][round_chunks][params]
    float *sums;                   // [own shard][params], then [trainer][params]
    double *squares;               // [tile]
    float *scratch;                // or NULL
} CudaPpoArgs;

// ---- the rollout (ppo_rollout.cu) ----------------------------------------------------------------------------------

// How many blocks of a rollout, or of learning, one SM takes; also allows the kernel that much shared memory in a
// block.
int cuda_ppo_rollout_occupancy(int sim, const CudaPpoScratch *scratch, size_t shared_limit_bytes, int *blocks);
int cuda_ppo_learn_occupancy(const CudaPpoScratch *scratch, size_t shared_limit_bytes, int *blocks);

// A trainer that owns no shards makes none of the launches of what is computed for shards of its own.

// Begins the first episodes.
int cuda_launch_ppo_reset(int sim, const CudaPpoArgs *args, struct CUstream_st *stream);
// Steps [begin, end) of its own envs.
int cuda_launch_ppo_rollout(int sim, const CudaPpoArgs *args, int32_t begin, int32_t end, int blocks,
                            struct CUstream_st *stream);

// ---- what follows the rollout, and envs on their way in and out (ppo_envs.cu) --------------------------------------

// Advantages; and the statistics of its own shards.
int cuda_launch_ppo_advantages(const CudaPpoArgs *args, struct CUstream_st *stream);
// The outcome of the rollout, of all shards, into the report; the end of learning where something was infinite.
int cuda_launch_ppo_outcome(const CudaPpoArgs *args, struct CUstream_st *stream);
// Between the words of envs [first, end) as in KernPpoState, [env][words], and the batch.
int cuda_launch_ppo_move_envs(const CudaPpoArgs *args, uint32_t *words, int32_t first, int32_t end, int32_t out,
                              struct CUstream_st *stream);

// ---- learning (ppo_learn.cu, ppo_descend.cu) -----------------------------------------------------------------------

// The order of an epoch's samples in its own shards, and the moments of their advantages.
int cuda_launch_ppo_order(const CudaPpoArgs *args, struct CUstream_st *stream);
// Makes shard_advantages of its own shards.
int cuda_launch_ppo_shard_advantages(const CudaPpoArgs *args, struct CUstream_st *stream);
// The scale of each minibatch's advantages; of_shards: from shard_advantages.
int cuda_launch_ppo_scales(const CudaPpoArgs *args, int32_t of_shards, struct CUstream_st *stream);
// The gradients of one round: chunks from `first` of each of its own shards.
int cuda_launch_ppo_gradient(const CudaPpoArgs *args, int32_t first, int blocks, struct CUstream_st *stream);
// Adds a round to the shards' sums; after the last, folds them into the first.
int cuda_launch_ppo_fold(const CudaPpoArgs *args, int32_t first, struct CUstream_st *stream);
// Folds the sums of so many trainers into the first.
int cuda_launch_ppo_fold_trainers(const CudaPpoArgs *args, int32_t trainers, struct CUstream_st *stream);
// Adds a minibatch's losses to those of its own shards.
int cuda_launch_ppo_losses(const CudaPpoArgs *args, struct CUstream_st *stream);
// Makes `weights` of the parameters.
int cuda_launch_ppo_round(const CudaPpoArgs *args, struct CUstream_st *stream);
// The norm, what is not finite, the losses of all shards, and Adam; on to the next minibatch. adds_losses: makes
// cuda_launch_ppo_losses() of its own.
int cuda_launch_ppo_descend(const CudaPpoArgs *args, int32_t adds_losses, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
