// PPO on the CUDA backend: what its host files share. Nothing outside kernels/cuda includes this.
#ifndef SHOAL_KERNELS_CUDA_CUDA_PPO_H
#define SHOAL_KERNELS_CUDA_CUDA_PPO_H

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/ppo_launch.h"
#include "kernels/ppo_statistics.h"

struct CUgraphExec_st;

// The host's side of what goes to the device before an update, and comes back after it. Page-locked, so that the copies
// are in stream order.
typedef struct CudaPpoMail {
    CudaPpoStep step;
    CudaPpoReport begin; // as the device's report is at the beginning
    CudaPpoReport report;
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
    int32_t slice_steps;          // of the rollout, in one launch
    int32_t graph_minibatches;    // divides the minibatches
    struct CUgraphExec_st *graph; // that many minibatches; NULL before the first update
    CudaPpoMail *mail;
    CudaPpoStep *d_step;
    uint32_t *d_words; // [env][words] on their way in or out
    // Of the updates before.
    int64_t adam_steps;
    PpoStatistics statistics;
} CudaPpo;

#endif
