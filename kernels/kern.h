// Every hot loop of Shoal behind one table of functions per backend: the CPU's, or the CUDA library's. Results are
// the same bits on each of them, for any number of threads, vector width, lane count or device.
//
// Three kinds of work hang on a backend:
//   KernBatch   many envs of one simulator stepped together, with actions from the caller
//   KernEs      evaluation of a population of policies over whole episodes, and the ES update
//   KernPpo     PPO's rollouts and updates; see kernels/ppo_kern.h
//
// Ownership: the caller owns what open() returns and passes it to close(). A spec's pointers are borrowed until then.
// Errors: Status everywhere; STATUS_NUMERIC names env, step and field. Thread safety: one call at a time per backend.
#ifndef SHOAL_KERNELS_KERN_H
#define SHOAL_KERNELS_KERN_H

#include <stdbool.h>
#include <stdint.h>

#include "host/comm.h"
#include "host/plan.h"
#include "host/pool.h"
#include "host/status.h"
#include "kernels/objective.h"
#include "kernels/policy.h"
#include "sim/sim_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KERN_SIM_PARAMS_MAX = 32 };

// An update is cut between parameters at multiples of this: noise is made for so many at a time (sim/sim_rng.h).
enum { KERN_ES_UNIT = 64 };

// The largest table of noise, in floats.
#define KERN_ES_TABLE_MAX (INT64_C(1) << 32)

// One simulator with its parameters: values as set, and the ranges of those drawn anew for each episode.
typedef struct KernSim {
    const SimSpec *spec;
    int time_limit;                   // steps; episodes longer than this are truncated
    float value[KERN_SIM_PARAMS_MAX]; // [param_count]
    bool any_random;                  // some parameter has low < high
    float low[KERN_SIM_PARAMS_MAX];   // [param_count] drawn uniformly from [low, high] where random[] is set
    float high[KERN_SIM_PARAMS_MAX];  // [param_count]
    bool random[KERN_SIM_PARAMS_MAX]; // [param_count]
} KernSim;

// The simulator with its default parameters and time limit.
void kern_sim_default(KernSim *sim, const SimSpec *spec);

// Sets one parameter from "name=value", or has it drawn for each episode from "name=low:high". STATUS_USAGE names the
// text at fault and the nearest parameter.
Status kern_sim_set(KernSim *sim, const char *text) HOST_MUST_CHECK;
Status kern_sim_randomize(KernSim *sim, const char *text) HOST_MUST_CHECK;

// ---- batches -------------------------------------------------------------------------------------------------------

// What happens after an episode's last step, with Gymnasium's meaning.
//   NEXT_STEP  the next call resets that env instead of stepping it: reward 0, no flag, action ignored
//   SAME_STEP  the same call resets it; the observation is the new episode's, the old one's last is in final_obs
//   DISABLED   nothing; the caller resets with a mask
typedef enum KernAutoreset {
    KERN_AUTORESET_NEXT_STEP,
    KERN_AUTORESET_SAME_STEP,
    KERN_AUTORESET_DISABLED
} KernAutoreset;

typedef struct KernBatchSpec {
    KernSim sim;
    int64_t envs;
    uint64_t seed; // env i, episode e draw from the BATCH counters (i, e)
    KernAutoreset autoreset;
} KernBatchSpec;

// A batch's buffers, in the backend's own memory. All are cut into blocks of `lanes` envs: env i is lane i % lanes of
// block i / lanes, and the last block is padded.
typedef struct KernBatchView {
    int64_t envs, blocks;
    int lanes;
    float *obs;            // [block][obs][lane]
    float *final_obs;      // [block][obs][lane]  written where an episode ended (SAME_STEP)
    int32_t *discrete;     // [block][action][lane] actions, written by the caller, where there are any
    float *continuous;     // [block][action][lane]
    float *reward;         // [block][lane]
    int32_t *terminated;   // [block][lane]       0 or 1
    int32_t *truncated;    // [block][lane]       0 or 1
    int32_t *length;       // [block][lane]       steps of the episode so far
    float *episode_return; // [block][lane]       of the episode so far
    int32_t *final_length; // [block][lane]       of the last episode that ended
    float *final_return;   // [block][lane]
    uint32_t *state;       // [block][word][lane] the simulator's state, fields in the order of <NAME>_STATE
} KernBatchView;

typedef struct KernBackend KernBackend;

typedef struct KernBatch {
    KernBackend *backend;
} KernBatch;

// ---- evolution strategies ------------------------------------------------------------------------------------------

typedef struct KernEsSpec {
    KernObjective objective; // KERN_OBJECTIVE_NONE: a policy in a simulator
    KernSim sim;             // none with an objective
    PolicyShape policy;      // with an objective params alone counts: how many the function takes
    uint64_t seed;
    int32_t members;  // even: members 2p and 2p+1 are params + sigma noise(p) and params - sigma noise(p)
    int32_t episodes; // per member and generation
    bool common;      // members meet the same episodes (common random numbers)
    int64_t table;    // floats of the table that noise is read from (kernels/es_noise.h); 0: there is none
} KernEsSpec;

// What one evaluation is of.
typedef struct KernEsJob {
    uint32_t purpose;     // SIM_RNG_EPISODE, or SIM_RNG_EVALUATE
    uint32_t generation;  // of the episodes' counters and of the noise
    float sigma;          // 0: every member is the unperturbed policy
    int32_t first, count; // members
    int32_t episodes;     // per member
} KernEsJob;

// An episode's outcome; with an objective an evaluation's: the fitness, and length 1.
typedef struct KernEpisode {
    float episode_return;
    int32_t length;
} KernEpisode;

// The observation normaliser as the policy applies it: (obs - mean) * scale, clamped to +-POLICY_CLIP.
typedef struct KernNormalizer {
    float mean[POLICY_OBS_MAX];
    float scale[POLICY_OBS_MAX];
} KernNormalizer;

// How one update changes the parameters; see es/es.h for the formulas.
typedef struct KernEsStep {
    uint32_t generation;
    float gradient_scale; // 1 / (2 pairs sigma)
    float learning_rate;  // with Adam's bias corrections folded in
    float beta1, beta2;   // Adam's decay rates
    float second_scale;   // 1 / (1 - beta2^t)
    float epsilon;
    float weight_decay;
} KernEsStep;

typedef struct KernEs {
    KernBackend *backend;
} KernEs;

// ---- PPO -----------------------------------------------------------------------------------------------------------

// kernels/ppo_kern.h says what these are.
typedef struct KernPpoSpec KernPpoSpec;
typedef struct KernPpoStep KernPpoStep;
typedef struct KernPpoReport KernPpoReport;
typedef struct KernPpoState KernPpoState;
typedef struct KernPpo KernPpo;

// ---- the table -----------------------------------------------------------------------------------------------------

typedef struct KernOps {
    const char *name; // "cpu", "cuda"
    void (*close)(KernBackend *backend);
    HostMemory (*memory)(KernBackend *backend);
    void (*describe)(KernBackend *backend, char *text, int size); // "2 threads, x86-64-v4, 16 lanes"

    Status (*batch_plan)(KernBackend *backend, const KernBatchSpec *spec, HostPlan *plan);
    Status (*batch_open)(KernBackend *backend, const KernBatchSpec *spec, KernBatch **batch);
    void (*batch_close)(KernBatch *batch);
    KernBatchView (*batch_view)(KernBatch *batch);
    // Begins a new episode in every env, or where mask[env] is not 0 (host memory; NULL: everywhere).
    Status (*batch_reset)(KernBatch *batch, const uint8_t *mask);
    Status (*batch_step)(KernBatch *batch);
    // Copies between a view's buffer and host memory of the same layout; done when the call returns.
    Status (*batch_read)(KernBatch *batch, void *host, const void *buffer, size_t size_bytes);
    Status (*batch_write)(KernBatch *batch, void *buffer, const void *host, size_t size_bytes);

    Status (*es_plan)(KernBackend *backend, const KernEsSpec *spec, HostPlan *plan);
    Status (*es_open)(KernBackend *backend, const KernEsSpec *spec, KernEs **es);
    void (*es_close)(KernEs *es);
    // Parameters, Adam's first and second moments, each [params], host memory.
    Status (*es_write)(KernEs *es, const float *params, const float *first, const float *second);
    Status (*es_read)(KernEs *es, float *params, float *first, float *second);
    // Runs job->count x job->episodes whole episodes, or evaluates an objective as often. episodes: [count][episodes];
    // sums: [count][episodes][2][obs], the sum and the sum of squares of each observation that the policy saw, before
    // normalisation, or NULL. STATUS_STOPPED when a stop was asked for on the way. Objectives have no sums, and run on
    // CPUs alone.
    Status (*es_evaluate)(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                          float *sums);
    // The parameters of one of the job's members as they are evaluated, host memory. Objectives alone have it.
    Status (*es_member)(KernEs *es, const KernEsJob *job, int32_t member, float *params);
    // Centred ranks of `fitness` [members] in [-0.5, 0.5]; ties share the mean rank.
    Status (*es_shape)(KernEs *es, const float *fitness, float *shaped);
    // One Adam step up the estimated gradient, from shaped fitness [members], of parameters [first, first + count);
    // first is a multiple of KERN_ES_UNIT, and so is count, unless the range ends with the parameters. The bits are
    // those of the whole update.
    Status (*es_update)(KernEs *es, const KernEsStep *step, const float *shaped, int32_t first, int32_t count);

    Status (*ppo_plan)(KernBackend *backend, const KernPpoSpec *spec, HostPlan *plan);
    // Envs are at their first episodes; parameters, moments and statistics are 0 until ppo_write().
    Status (*ppo_open)(KernBackend *backend, const KernPpoSpec *spec, KernPpo **ppo);
    void (*ppo_close)(KernPpo *ppo);
    Status (*ppo_write)(KernPpo *ppo, const KernPpoState *state);
    Status (*ppo_read)(KernPpo *ppo, KernPpoState *state);
    // From now on the updates are shared with the group's other trainers, which have the same state and make the same
    // calls; as many of them as are a power of two compute an equal part of the shards each. comm: borrowed, until the
    // next call; NULL: alone. STATUS_USAGE where there are too many. Where an update fails, only ppo_write() helps.
    Status (*ppo_join)(KernPpo *ppo, HostComm *comm);
    // One update: rollout and learning.
    Status (*ppo_update)(KernPpo *ppo, const KernPpoStep *step, KernPpoReport *report);

    // Between GPUs; all three are NULL on a CPU. What this one has for collectives with others, which are to listen at
    // `address` (NULL: loopback). It may set the environment's NCCL_SOCKET_IFNAME: to be called before the process has
    // other threads that may look at the environment.
    void (*comm_describe)(KernBackend *backend, const char *address, HostCommGpu *gpu);
    // A group by NCCL, as HostCommDevice has it.
    Status (*comm_open)(KernBackend *backend, const HostCommOptions *options, double deadline_s, HostComm **comm);
    // Puts every member's range of the parameters and moments to its place in all of them, by a group that takes the
    // device's memory: ranges [rank * range, (rank + 1) * range), as far as there are parameters.
    Status (*es_gather)(KernEs *es, HostComm *comm, int32_t range);
} KernOps;

struct KernBackend {
    const KernOps *ops;
};

// Names the build: version and hash of the sources that decide a result's bits. Workers of a run have the same.
const char *kern_build_id(void);

typedef struct KernCpuOptions {
    HostPool *pool;  // borrowed
    const char *isa; // "auto", "baseline", "v3", "v4"
    int lanes;       // 0: the ISA's own; 1, 8 or 16
} KernCpuOptions;

// The CPU backend. STATUS_DEVICE where the processor lacks the ISA that was asked for.
Status kern_cpu_open(const KernCpuOptions *options, KernBackend **backend) HOST_MUST_CHECK;

// A worker of several on this machine takes the GPU whose turn it is: that of its place, from 0 on, over and over.
static inline int kern_cuda_in_turn(int place) { return -1 - place; }

// GPU `device` of the CUDA runtime, or kern_cuda_in_turn(), through libshoal_cuda.so, which is opened here.
// STATUS_DEVICE says what is missing: the library, the runtime, the driver, or a GPU.
Status kern_cuda_open(int device, KernBackend **backend) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
