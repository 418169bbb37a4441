// The scalar arithmetic of the policy, in one place for every backend.
#ifndef SHOAL_KERNELS_POLICY_MATH_H
#define SHOAL_KERNELS_POLICY_MATH_H

#include "kernels/policy.h"
#include "sim/sim_math.h"

// An observation as the policy takes it.
SIM_FN float policy_normalize(float obs, float mean, float scale) {
    return sim_clamp((obs - mean) * scale, -POLICY_CLIP, POLICY_CLIP);
}

SIM_FN float policy_activate(float x, PolicyActivation activation) {
    return activation == POLICY_TANH ? sim_tanhf(x) : (x < 0.0f ? 0.0f : x);
}

// The index of the largest output, the first of equals.
SIM_FN int32_t policy_argmax(const float *outputs, int count) {
    int32_t best = 0;
    float best_value = outputs[0];
    for (int i = 1; i < count; i++) {
        int32_t larger = outputs[i] > best_value;
        best = larger ? i : best;
        best_value = larger ? outputs[i] : best_value;
    }
    return best;
}

// A continuous action from an output.
SIM_FN float policy_bounded(float output, float low, float high) {
    return sim_fmaf(sim_tanhf(output) + 1.0f, (high - low) * 0.5f, low);
}

#endif
