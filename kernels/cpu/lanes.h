// What the CPU backend's drivers know of a simulator: a table of functions over blocks of lanes, one table for each
// simulator, instruction set and number of lanes, made by kernels/cpu/lanes_body.inc.
#ifndef SHOAL_KERNELS_CPU_LANES_H
#define SHOAL_KERNELS_CPU_LANES_H

#include <stdatomic.h>
#include <stddef.h>

#include "kernels/kern.h"

enum {
    LANES_MAX = 16,
    LANES_OBS_MAX = 32,    // of the built-in simulators; checked when they are compiled
    LANES_ACTIONS_MAX = 4, // continuous
    LANES_DISCRETE_MAX = 4,
};

// Envs in evaluation by one thread: up to LANES_MAX, row-wise over lanes. Lanes that nobody started hold zeros and are
// stepped along; what they hold means nothing.
typedef struct KernLanes {
    _Alignas(64) float obs[LANES_OBS_MAX][LANES_MAX]; // as the simulator gives it
    float input[LANES_OBS_MAX][LANES_MAX];            // as the policy takes it: normalised
    float sum[LANES_OBS_MAX][LANES_MAX];              // of the observations the policy saw in this episode
    float square[LANES_OBS_MAX][LANES_MAX];           // of their squares
    float continuous[LANES_ACTIONS_MAX][LANES_MAX];
    int32_t discrete[LANES_DISCRETE_MAX][LANES_MAX];
    float episode_return[LANES_MAX];
    int32_t length[LANES_MAX];
    int32_t done[LANES_MAX];      // the episode has ended or the state is no longer finite
    int32_t infinite[LANES_MAX];  // a field of the state or the reward is NaN or infinite
    uint32_t counter1[LANES_MAX]; // words c1 and c2 of the episode's random numbers
    uint32_t counter2[LANES_MAX];
    uint32_t counter3; // word c3 of all of them
    uint32_t seed_low, seed_high;
    const KernSim *sim;
    uint32_t *state;  // [word][lanes]
    uint32_t *params; // [param][lanes], used where sim->any_random
} KernLanes;

// The first thing in some order that stopped being finite. Its field is looked up when it happens: the state may be
// gone a moment later.
typedef struct LanesInfinite {
    atomic_flag lock;
    int64_t at; // -1: nothing yet
    int64_t step;
    const char *field; // NULL: the reward
} LanesInfinite;

// A batch as the drivers see it; the same buffers as KernBatchView.
typedef struct LanesBatch {
    KernBatchView view;
    uint32_t *params;  // [block][param][lane], NULL unless sim.any_random
    uint32_t *episode; // [block][lane] episodes begun
    KernSim sim;
    uint32_t seed_low, seed_high;
    KernAutoreset autoreset;
    int64_t step;           // calls of batch_step
    LanesInfinite infinite; // the lowest env of this call
} LanesBatch;

struct Thread;
struct Gang;

typedef struct LanesOps {
    int lanes;
    size_t state_words, param_words;
    // Evaluation: begins an episode in one lane; steps all lanes once.
    void (*start)(KernLanes *lanes, int lane);
    void (*step)(KernLanes *lanes);
    // pipeline_steps for blocks of one lane and the common policy (kernels/cpu/pipeline.h); NULL for other blocks.
    void (*pipeline)(const struct Thread *t, struct Gang *a, struct Gang *b, int steps);
    // Batches: blocks [begin, end).
    void (*batch_step)(LanesBatch *batch, int64_t begin, int64_t end);
    void (*batch_reset)(LanesBatch *batch, const uint8_t *mask, int64_t begin, int64_t end);
} LanesOps;

// Keeps the lowest `at`; `state` is its block [word][lanes]. Thread-safe.
void lanes_infinite_record(LanesInfinite *infinite, const SimSpec *spec, const uint32_t *state, int lanes, int lane,
                           int64_t at, int64_t step);

#endif
