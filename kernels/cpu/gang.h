// What one thread works on while it evaluates: gangs of lanes, their members, and what each step of a gang has in
// common however its policy is computed. Compiled for each instruction set.
#ifndef SHOAL_KERNELS_CPU_GANG_H
#define SHOAL_KERNELS_CPU_GANG_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dense.h"
#include "kernels/policy_math.h"

// One slot's task: episodes [next, end) of one member are still to be begun.
typedef struct Slot {
    int32_t member; // -1: idle
    int32_t next, end;
    int32_t running; // lanes
    int32_t packed;  // the member whose weights it holds; -1: none
} Slot;

// Lanes that go through the policy together; `shared`: they belong to one slot.
typedef struct Group {
    uint8_t count, shared, lane[DENSE_SAMPLES_MAX];
} Group;

typedef struct Gang {
    KernLanes *lanes;
    float *packed; // [slot][es->packed]
    Slot slot[LANES_MAX];
    int32_t episode[LANES_MAX]; // of each lane; -1: idle
    int groups;                 // made anew when a lane begins or ends
    Group group[LANES_MAX];
} Gang;

typedef struct Thread {
    CpuEvaluation *evaluation;
    CpuEs *es;
    CpuScratch *scratch;
    const LanesOps *sim; // no wider than this evaluation has use for
    int slots, lanes_per_slot;
    int64_t task, task_end; // taken but not begun
    CpuPair pair;           // that was perturbed last
    Gang gang[CPU_GANGS];
    uint32_t round_steps; // of both gangs, in the last round
    KernNormalizer normalizer;
} Thread;

// row[lane] = x, written as whole vectors: the simulator loads the row as vectors, and a processor makes a load wait
// for a narrower store that it overlaps until that has left the pipeline, which would end the overlap of the gangs.
// A gang of one lane has no such rows.
WIDE_FN void put_lane(float *restrict row, int lane, int lanes, float x) {
    if (lanes == 1) {
        row[0] = x;
        return;
    }
    float *aligned = __builtin_assume_aligned(row, 64);
    for (int l = 0; l < LANES_MAX; l++)
        aligned[l] = l == lane ? x : aligned[l];
}

WIDE_FN void put_lane_int(int32_t *restrict row, int lane, int lanes, int32_t x) {
    if (lanes == 1) {
        row[0] = x;
        return;
    }
    int32_t *aligned = __builtin_assume_aligned(row, 64);
    for (int l = 0; l < LANES_MAX; l++)
        aligned[l] = l == lane ? x : aligned[l];
}

// policy_normalize for a row of lanes.
WIDE_FN void normalize_row(const float *obs, float *input, float mean, float scale) {
    for (int l = 0; l < LANES_MAX; l += WIDE) {
        Wide x = (wide_load(obs + l) - wide_set(mean)) * wide_set(scale);
        wide_store(input + l, wide_clamp(x, -POLICY_CLIP, POLICY_CLIP));
    }
}

// The policy's inputs, `count` for each of all `width` lanes.
WIDE_FN void gang_normalize(const Thread *t, Gang *gang, int count, int width) {
    KernLanes *lanes = gang->lanes;
    if (width == 1) {
        for (int k = 0; k < count; k++)
            lanes->input[k][0] = policy_normalize(lanes->obs[k][0], t->normalizer.mean[k], t->normalizer.scale[k]);
        return;
    }
    for (int k = 0; k < count; k++) {
        normalize_row(lanes->obs[k], lanes->input[k], t->normalizer.mean[k], t->normalizer.scale[k]);
    }
}

// The action of one lane of `width` from its policy's outputs.
// All counts are constants where this is inlined for one simulator.
WIDE_FN void gang_act(const Thread *t, Gang *gang, int lane, int width, const float *outputs, int count, int discrete,
                      int continuous) {
    int32_t choice[LANES_DISCRETE_MAX];
    float action[LANES_ACTIONS_MAX];
    policy_act(&t->es->spec.policy, outputs, count - continuous, discrete, continuous, choice, action);
    for (int k = 0; k < discrete; k++)
        put_lane_int(gang->lanes->discrete[k], lane, width, choice[k]);
    for (int k = 0; k < continuous; k++)
        put_lane(gang->lanes->continuous[k], lane, width, action[k]);
}

// Whether an episode of a running lane has ended.
WIDE_FN int32_t gang_is_done(const Gang *gang) {
    int32_t done = 0;
    for (int l = 0; l < LANES_MAX; l++)
        done |= gang->lanes->done[l] & ~(gang->episode[l] >> 31);
    return done;
}

#endif
