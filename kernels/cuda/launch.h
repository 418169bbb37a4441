// The kernels as the host files of the CUDA backend call them: arguments, and one function per launch. Each returns a
// cudaError_t as an int, and the work is done in stream order. Pointers are device memory.
#ifndef SHOAL_KERNELS_CUDA_LAUNCH_H
#define SHOAL_KERNELS_CUDA_LAUNCH_H

#include "host/trace.h"
#include "kernels/es_noise.h"
#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

enum {
    CUDA_LANES = 32,
    CUDA_THREADS_MAX = 256,                         // of a block that evaluates
    CUDA_FIELD_BITS = 10,                           // of an infinite-report
    CUDA_FIELD_REWARD = (1 << CUDA_FIELD_BITS) - 1, // not a field of the state but the reward
    // Parameters are padded to a multiple of this; see the counter table in sim/sim_rng.h.
    CUDA_NOISE_GROUP = KERN_ES_UNIT,
};

// An infinite-report, so that the smallest of all is the one to name: step << 42 | env << 10 | field where envs are
// stepped (step 0 in a batch), and pair << 33 | step << 10 | field in an evaluation.
#define CUDA_INFINITE_NONE UINT64_MAX

// What fused kernels add their phases' times to, in ticks of the SM's clock (kernels/cuda/probe.cuh).
typedef struct CudaProbeTicks {
    uint64_t of[HOST_TRACE_CATEGORIES];
} CudaProbeTicks;

// ---- batches (batch.cu) --------------------------------------------------------------------------------------------

typedef struct CudaBatchArgs {
    KernBatchView view;
    KernSim sim;
    uint32_t *params;    // [block][param][lane], used where sim.any_random
    uint32_t *episode;   // [block][lane] episodes begun
    const uint8_t *mask; // [envs] which to reset, or NULL: all
    uint32_t seed_low, seed_high;
    int32_t autoreset;
    uint64_t *infinite;
} CudaBatchArgs;

// sim: index in SIM_LIST
int cuda_launch_batch_reset(int sim, const CudaBatchArgs *args, struct CUstream_st *stream);
int cuda_launch_batch_step(int sim, const CudaBatchArgs *args, struct CUstream_st *stream);

// ---- evaluation (evaluate.cu) --------------------------------------------------------------------------------------

// Shared by all blocks of a wave.
typedef struct CudaWaveCounters {
    uint32_t next;     // the first (member, episode) that nobody has taken
    uint32_t finished; // how many are done
    uint64_t infinite;
    CudaProbeTicks ticks;
} CudaWaveCounters;

// The words of a slot, which is what a block keeps between launches: these, then the simulator's state, its parameters,
// the sums [2][obs], and the policy's recurrent state.
enum CudaSlotWord {
    CUDA_SLOT_PAIR, // (member, episode) in work, plus 1; 0: none
    CUDA_SLOT_END,  // taken up to here
    CUDA_SLOT_LENGTH,
    CUDA_SLOT_RETURN,
    CUDA_SLOT_STATE,
};

// A wave: `pairs` consecutive (member, episode) pairs, of which the first is number `wave_first` of the job.
typedef struct CudaEvaluateArgs {
    KernSim sim;
    PolicyShape policy;
    PolicyLayer layer[POLICY_DENSE_MAX]; // [layers]
    int32_t layers;
    uint64_t seed;
    EsNoise noise;
    const float *params;   // [params]
    const float *mean;     // [obs] the normaliser
    const float *scale;    // [obs]
    float *weights;        // [slot][params_pad], or NULL: in shared memory
    uint32_t *slots;       // [slot][slot_words]
    KernEpisode *episodes; // [pairs]
    float *sums;           // [pairs][2][obs], or NULL
    CudaWaveCounters *counters;
    int64_t wave_first;
    int32_t pairs;
    int32_t unit; // pairs that a block takes at a time
    int32_t first_member, episodes_per_member;
    uint32_t purpose, generation;
    float sigma;
    int32_t common;
    int32_t steps; // that each block makes in this launch
    int32_t slot_words, params_pad, width_pad;
    int32_t is_probed; // whether phases are timed
} CudaEvaluateArgs;

// Bytes of shared memory a block needs, with its member's weights or without.
size_t cuda_evaluate_shared_bytes(const PolicyShape *policy, int32_t width_pad, int32_t weights);

// How many such blocks one SM takes; also allows the kernel all the shared memory that a block can have, since its
// users differ in what they need.
int cuda_evaluate_occupancy(int sim, int threads, size_t shared_bytes, size_t shared_limit_bytes, int *blocks);

int cuda_launch_evaluate(int sim, const CudaEvaluateArgs *args, int slots, int threads, size_t shared_bytes,
                         struct CUstream_st *stream);

// ---- noise (noise.cu) ----------------------------------------------------------------------------------------------

// Elements [first, first + count) of a seed's table, which begins at `table`; multiples of CUDA_NOISE_GROUP.
int cuda_launch_noise_table(uint64_t seed, int64_t first, int64_t count, float *table, struct CUstream_st *stream);

// ---- update (update.cu) --------------------------------------------------------------------------------------------

typedef struct CudaUpdateArgs {
    KernEsStep step;
    EsNoise noise;
    const float *shaped;            // [members]
    float *partial;                 // [chunks of one round][params_pad]
    float *sum;                     // [params_pad]
    float *params, *first, *second; // [params_pad]
    int32_t begin, end;             // parameters: begin is a multiple of CUDA_NOISE_GROUP
    int32_t params_pad;
    int32_t pairs;
    int32_t chunk, chunks;     // this round's first, and how many
    int32_t is_first, is_last; // round
} CudaUpdateArgs;

// One round: the partial sums of its chunks, added to `sum` in their order; after the last round, the Adam step.
int cuda_launch_update(const CudaUpdateArgs *args, struct CUstream_st *stream);

// Centred ranks of fitness [n].
int cuda_launch_shape(const float *fitness, int32_t n, float *shaped, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
