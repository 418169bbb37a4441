// The insides of the CPU backend: what its files share. Nothing outside kernels/cpu includes this.
#ifndef SHOAL_KERNELS_CPU_CPU_H
#define SHOAL_KERNELS_CPU_CPU_H

#include "host/shared.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/probe.h"
#include "kernels/es_noise.h"
#include "kernels/kern.h"

enum {
    CPU_NOISE_GROUP = KERN_ES_UNIT,
    CPU_UPDATE_TILE = 256,
    CPU_GANGS = 2,                   // blocks of lanes that a thread evaluates in turn
    CPU_L1_BUDGET_BYTES = 40 * 1024, // of weights; first-level caches have 32 to 64 KiB. It changes speed, not results
};

struct CpuEs;
struct CpuEvaluation;
struct CpuObjective;
struct CpuPpo;
struct CpuScratch;
struct PpoKernels;

// The pair of members whose noise is at hand, kept between calls. number -1: none.
typedef struct CpuPair {
    int64_t number;
    const float *noise; // [params]
} CpuPair;

// The functions compiled for one instruction set.
typedef struct CpuIsa {
    const char *name;
    int default_lanes;
    // [sim in the order of SIM_LIST][1, 8, 16 lanes]
    const LanesOps *const *const *sims;
    const struct CpuIsaOps {
        // Runs tasks of an evaluation until none is left; `worker` chooses the scratch.
        void (*evaluate)(struct CpuEvaluation *evaluation, int worker);
        // Parameters [first, first + count) of one Adam step, at most CPU_UPDATE_TILE; first is a multiple of
        // CPU_NOISE_GROUP.
        void (*update)(struct CpuEs *es, const KernEsStep *step, const float *shaped, int first, int count);
        // A member's parameters [params_pad]: the state's own, or in the scratch where they are perturbed.
        const float *(*member)(const struct CpuEs *es, const KernEsJob *job, int32_t member, struct CpuScratch *scratch,
                               CpuPair *pair);
        // The fitness of x [dim] by a built-in objective, as a double.
        double (*objective)(KernObjectiveKind kind, const float *x, int32_t dim);
        // Elements [first, first + count) of a seed's table of noise, both multiples of 64.
        void (*table)(uint64_t seed, int64_t first, int64_t count, float *table);
        // PPO: blocks of lanes [begin, end) for a whole rollout.
        void (*ppo_rollout)(struct CpuPpo *ppo, int64_t begin, int64_t end, int worker);
    } * ops;
    const struct PpoKernels *ppo; // kernels/cpu/ppo_net.h
} CpuIsa;

typedef struct CpuBackend {
    KernBackend base;
    HostPool *pool;
    const CpuIsa *isa;
    int lanes;
} CpuBackend;

typedef struct CpuRanked {
    float fitness;
    int32_t member;
} CpuRanked;

// The scratch of one thread.
typedef struct CpuScratch {
    KernLanes *lanes[CPU_GANGS]; // and all but noise, flat and probe: unused with an objective
    float *noise;                // [params_pad] of one pair
    float *flat;                 // [params_pad] one member's parameters
    float *packed;               // [gang][slots_max][packed] the slots' members
    float *hidden[3];            // [DENSE_SAMPLES_MAX][width_pad] activations: layers alternating, and candidates
    float *state, *kept;         // [gang][lane][state_pad] recurrent states; and while a round is done twice
    CpuProbe probe;
} CpuScratch;

typedef struct CpuEs {
    KernEs base;
    KernEsSpec spec;
    const LanesOps *sim;            // of the backend's number of lanes; NULL: an objective
    const LanesOps *const *sims;    // [1, 8, 16 lanes]
    struct CpuObjective *objective; // NULL: a simulator
    const CpuIsa *isa;
    HostPool *pool;
    HostPlan plan;
    HostBlock block;
    int32_t params_pad; // multiple of 64
    int32_t packed;     // floats of one member's packed weights
    int32_t slots_max;  // members that one gang holds at a time
    int32_t width_pad;
    int32_t state_pad; // 0: no recurrent layer
    int32_t layers;
    PolicyLayer layer[POLICY_DENSE_MAX];
    float *params, *first, *second; // [params_pad]
    CpuScratch *scratch;            // [threads]
    CpuRanked *ranked;              // [members], for es_shape
    EsNoise noise;
    HostShared table;
} CpuEs;

// One call of es_evaluate, shared by its workers.
typedef struct CpuEvaluation {
    CpuEs *es;
    const KernEsJob *job;
    const KernNormalizer *normalizer;
    KernEpisode *episodes; // [count][episodes]
    float *sums;           // [count][episodes][2][obs] or NULL
    int32_t ranges;        // a member's episodes are cut into this many tasks
    int32_t chunk;         // tasks taken at a time: a pair's, so that its noise is made once
    atomic_llong next;     // task
    atomic_bool stopped;
    LanesInfinite infinite; // at: (member - first) x episodes + episode
} CpuEvaluation;

#define CPU_DECLARE(isa)                                                                                         \
    const float *cpu_noise_##isa(const EsNoise *noise, uint32_t generation, uint32_t pair, int first, int count, \
                                 float *buffer);                                                                 \
    const float *cpu_member_##isa(const struct CpuEs *es, const KernEsJob *job, int32_t member,                  \
                                  struct CpuScratch *scratch, CpuPair *pair);                                    \
    double cpu_objective_##isa(KernObjectiveKind kind, const float *x, int32_t dim);                             \
    void cpu_table_##isa(uint64_t seed, int64_t first, int64_t count, float *table);
CPU_DECLARE(baseline)
CPU_DECLARE(v3)
CPU_DECLARE(v4)
#undef CPU_DECLARE
void cpu_update_baseline(struct CpuEs *es, const KernEsStep *step, const float *shaped, int first, int count);
void cpu_update_v3(struct CpuEs *es, const KernEsStep *step, const float *shaped, int first, int count);
void cpu_update_v4(struct CpuEs *es, const KernEsStep *step, const float *shaped, int first, int count);

void cpu_ppo_rollout_baseline(struct CpuPpo *ppo, int64_t begin, int64_t end, int worker);
void cpu_ppo_rollout_v3(struct CpuPpo *ppo, int64_t begin, int64_t end, int worker);
void cpu_ppo_rollout_v4(struct CpuPpo *ppo, int64_t begin, int64_t end, int worker);

extern const struct CpuIsaOps cpu_ops_baseline;
#if defined(__x86_64__)
extern const struct CpuIsaOps cpu_ops_v3, cpu_ops_v4;
#endif

// kernels/cpu/batch.c and kernels/cpu/population.c: the entries of KernOps.
Status cpu_batch_plan(KernBackend *backend, const KernBatchSpec *spec, HostPlan *plan);
Status cpu_batch_open(KernBackend *backend, const KernBatchSpec *spec, KernBatch **batch);
void cpu_batch_close(KernBatch *batch);
KernBatchView cpu_batch_view(KernBatch *batch);
Status cpu_batch_reset(KernBatch *batch, const uint8_t *mask);
Status cpu_batch_step(KernBatch *batch);
Status cpu_batch_read(KernBatch *batch, void *host, const void *buffer, size_t size_bytes);
Status cpu_batch_write(KernBatch *batch, void *buffer, const void *host, size_t size_bytes);

Status cpu_es_plan(KernBackend *backend, const KernEsSpec *spec, HostPlan *plan);
Status cpu_es_open(KernBackend *backend, const KernEsSpec *spec, KernEs **es);
void cpu_es_close(KernEs *es);
Status cpu_es_write(KernEs *es, const float *params, const float *first, const float *second);
Status cpu_es_read(KernEs *es, float *params, float *first, float *second);
Status cpu_es_evaluate(KernEs *es, const KernEsJob *job, const KernNormalizer *normalizer, KernEpisode *episodes,
                       float *sums);
Status cpu_es_shape(KernEs *es, const float *fitness, float *shaped);
Status cpu_es_member(KernEs *es, const KernEsJob *job, int32_t member, float *params);
Status cpu_es_update(KernEs *es, const KernEsStep *step, const float *shaped, int32_t first, int32_t count);

// kernels/cpu/noise_table.c: the table that the spec asks for, which the host's processes share, into es->noise; and
// its end. A warning is printed where this process has one of its own.
Status cpu_noise_open(CpuEs *es) HOST_MUST_CHECK;
void cpu_noise_close(CpuEs *es);

// kernels/cpu/ppo_backend.c
Status cpu_ppo_plan(KernBackend *backend, const KernPpoSpec *spec, HostPlan *plan);
Status cpu_ppo_open(KernBackend *backend, const KernPpoSpec *spec, KernPpo **ppo);
void cpu_ppo_close(KernPpo *ppo);
Status cpu_ppo_write(KernPpo *ppo, const KernPpoState *state);
Status cpu_ppo_read(KernPpo *ppo, KernPpoState *state);
Status cpu_ppo_join(KernPpo *ppo, HostComm *comm);
Status cpu_ppo_update(KernPpo *ppo, const KernPpoStep *step, KernPpoReport *report);

enum { CPU_SIM_TABLES = 3 };

// One simulator for the backend's instruction set: [1, 8, 16 lanes], and the one of the backend's lanes.
const LanesOps *const *cpu_sim_tables(const CpuBackend *backend, const SimSpec *spec);
const LanesOps *cpu_sim_ops(const CpuBackend *backend, const SimSpec *spec);

static inline int32_t cpu_round_up(int32_t x, int32_t to) { return (x + to - 1) / to * to; }

#endif
