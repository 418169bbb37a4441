// The scalar arithmetic of the policy, in one place for every backend.
#ifndef SHOAL_KERNELS_POLICY_MATH_H
#define SHOAL_KERNELS_POLICY_MATH_H

#include <stdbool.h>

#include "kernels/policy.h"
#include "sim/sim_math.h"

// The bfloat16 nearest to x, the even one of two; NaN stays.
SIM_FN float policy_bf16(float x) {
    uint32_t bits = sim_bits_from_float(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    return x == x ? sim_float_from_bits(rounded) : x;
}

// Whether weights, and what goes on to the next layer, are rounded to bfloat16 in a layer of that kind.
SIM_FN bool policy_rounds(PolicyPrecision precision, PolicyLayerKind kind) {
    return precision == POLICY_BF16 && kind != POLICY_HEAD;
}

// An observation as the policy takes it.
SIM_FN float policy_normalize(float obs, float mean, float scale) {
    return sim_clamp((obs - mean) * scale, -POLICY_CLIP, POLICY_CLIP);
}

SIM_FN float policy_input(float obs, float mean, float scale, PolicyPrecision precision) {
    float input = policy_normalize(obs, mean, scale);
    return precision == POLICY_BF16 ? policy_bf16(input) : input;
}

SIM_FN float policy_activate(float x, PolicyActivation activation) {
    return activation == POLICY_TANH ? sim_tanhf(x) : (x < 0.0f ? 0.0f : x);
}

// What a dense layer makes of a sum; a gate's sigmoid has the others' tanh in it.
SIM_FN float policy_finish(float sum, PolicyLayerKind kind, PolicyActivation activation) {
    if (kind == POLICY_HEAD) return sum;
    float y = policy_activate(kind == POLICY_GATE ? 0.5f * sum : sum, kind == POLICY_HIDDEN ? activation : POLICY_TANH);
    return kind == POLICY_GATE ? sim_fmaf(0.5f, y, 0.5f) : y;
}

// The recurrent layer's next state.
SIM_FN float policy_state(float gate, float candidate, float state) { return sim_fmaf(gate, candidate - state, state); }

// The index of the largest output, the first of equals. Masks, not selects: a compiler makes branches of those, and
// which action is best is what a branch predictor cannot know.
SIM_FN int32_t policy_argmax(const float *outputs, int count) {
    uint32_t best = 0, best_bits = sim_bits_from_float(outputs[0]);
    for (int i = 1; i < count; i++) {
        uint32_t larger = 0u - (uint32_t)(outputs[i] > sim_float_from_bits(best_bits));
        best = ((uint32_t)i & larger) | (best & ~larger);
        best_bits = (sim_bits_from_float(outputs[i]) & larger) | (best_bits & ~larger);
    }
    return (int32_t)best;
}

// A continuous action from an output, by tanh and by clamping.
SIM_FN float policy_bounded(float output, float low, float high) {
    return sim_fmaf(sim_tanhf(output) + 1.0f, (high - low) * 0.5f, low);
}

SIM_FN float policy_clamped(float output, float low, float high) {
    return sim_fmaf(sim_clamp(output, -1.0f, 1.0f) + 1.0f, (high - low) * 0.5f, low);
}

SIM_FN float policy_action(float output, float low, float high, PolicySquash squash) {
    return squash == POLICY_SQUASH_TANH ? policy_bounded(output, low, high) : policy_clamped(output, low, high);
}

// The actions of a policy of that shape from its outputs. The shape's counts are given as well, as constants where a
// simulator is compiled: choices of all discrete actions together, discrete actions and continuous ones.
// choice: [discrete], action: [continuous]
SIM_FN void policy_act(const PolicyShape *shape, const float *outputs, int choices, int discrete, int continuous,
                       int32_t *choice, float *action) {
    for (int k = 0; k < discrete; k++) {
        int count = discrete == 1 ? choices : shape->choices[k];
        choice[k] = policy_argmax(outputs, count);
        outputs += count;
    }
    for (int k = 0; k < continuous; k++)
        action[k] = policy_action(outputs[k], shape->action_low, shape->action_high, shape->squash);
}

#endif
