// PPO on the CUDA backend: what its host files share. Nothing outside kernels/cuda includes this.
#ifndef SHOAL_KERNELS_CUDA_CUDA_PPO_H
#define SHOAL_KERNELS_CUDA_CUDA_PPO_H

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/ppo_launch.h"
#include "kernels/ppo_group.h"
#include "kernels/ppo_statistics.h"

struct CUgraphExec_st;
struct CUevent_st;

// Launches that the host is ahead of the device by, at most.
enum { CUDA_PPO_AHEAD = 16 };

// The host's side of what goes to the device before an update, and comes back after it. Page-locked, so that the copies
// are in stream order.
typedef struct CudaPpoMail {
    CudaPpoStep step;
    CudaPpoReport begin;  // as the device's report is at the beginning
    CudaPpoReport report; // as the host last saw it
} CudaPpoMail;

typedef struct CudaPpo {
    KernPpo base;
    CudaBackend *backend;
    KernPpoSpec spec;
    int sim;
    HostPlan plan;
    HostBlock block;
    CudaPpoArgs args;
    size_t env_words;
    int rollout_blocks, learn_blocks;
    int32_t slice_steps;                         // of the rollout, in one launch
    int32_t graph_minibatches;                   // divides the minibatches
    struct CUgraphExec_st *graph;                // that many minibatches of one alone; NULL before the first update
    struct CUevent_st *launched[CUDA_PPO_AHEAD]; // in turn: that all before a launch is done
    PpoGroup group;                              // its exchange is page-locked, or
    bool exchanges_on_device;                    // in the GPU's memory
    CudaPpoMail *mail;
    CudaPpoStep *d_step;
    uint32_t *d_words; // [env][words] on their way in or out
    // Of the updates before.
    int64_t adam_steps;
    PpoStatistics statistics;
} CudaPpo;

// kernels/cuda/cuda_ppo_exchange.c: takes what is its own of the shards in a group (NULL: all), without an exchange's
// memory; and gives back that memory.
Status cuda_ppo_share(CudaPpo *ppo, HostComm *comm) HOST_MUST_CHECK;
void cuda_ppo_leave(CudaPpo *ppo);

// What trainers tell each other, each call by all of them, and none alone. The first two do nothing where learning has
// come to its end, which the host knows then.
Status cuda_ppo_gather_advantages(const CudaPpo *ppo) HOST_MUST_CHECK;
Status cuda_ppo_gather_gradients(const CudaPpo *ppo) HOST_MUST_CHECK; // sums: [trainer][params]; and all shards' losses
Status cuda_ppo_gather_statistics(const CudaPpo *ppo) HOST_MUST_CHECK; // and the outcome of all is in the report
Status cuda_ppo_gather_envs(const CudaPpo *ppo) HOST_MUST_CHECK;

// kernels/cuda/cuda_ppo_update.c: waits for the stream; the report is then up to date.
Status cuda_ppo_fetch_report(const CudaPpo *ppo) HOST_MUST_CHECK;

// Whether learning has come to its end, as far as the host has seen.
static inline bool cuda_ppo_has_ended(const CudaPpo *ppo) { return ppo->mail->report.end != CUDA_PPO_GOES_ON; }

#endif
