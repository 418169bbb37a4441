// The scalar arithmetic of PPO, in one place for every backend. Written over `real`, so that a test can compile it with
// double and compare gradients with finite differences.
//
// Losses are to be minimised. A gradient is the derivative of one sample's loss; the mean over a minibatch is the
// caller's.
//
// Sources: Schulman et al., "Proximal policy optimization algorithms", 2017; Schulman et al., "High-dimensional
// continuous control using generalized advantage estimation", 2016; Kingma & Ba, "Adam", 2015; Chan, Golub & LeVeque,
// "Algorithms for computing the sample variance", 1983. KL: Schulman, "Approximating KL divergence", 2020.
#ifndef SHOAL_KERNELS_PPO_MATH_H
#define SHOAL_KERNELS_PPO_MATH_H

#include "sim/sim_math.h"

#define PPO_HALF_LOG_TWO_PI  R(0.9189385332046727)
#define PPO_REWARD_CLIP      10.0f // normalised rewards are clamped to +-this
#define PPO_ADVANTAGE_OFFSET R(1e-8)

// ---- distributions of actions --------------------------------------------------------------------------------------

typedef struct PpoLikelihood {
    real log_prob, entropy;
} PpoLikelihood;

// Categorical. Fills in each action's probability and its logarithm, [count]; returns the entropy.
SIM_FN real ppo_categorical(const real *logits, int count, real *prob, real *log_prob) {
    real largest = logits[0];
    for (int k = 1; k < count; k++)
        largest = logits[k] > largest ? logits[k] : largest;
    real sum = R(0.0);
    for (int k = 0; k < count; k++) {
        log_prob[k] = logits[k] - largest;
        prob[k] = sim_exp(log_prob[k]);
        sum = sum + prob[k];
    }
    real log_sum = sim_log(sum), entropy = R(0.0);
    for (int k = 0; k < count; k++) {
        log_prob[k] = log_prob[k] - log_sum;
        prob[k] = prob[k] / sum;
        entropy = sim_fma(-prob[k], log_prob[k], entropy);
    }
    return entropy;
}

// The action at `uniform`, from [0, 1), of the cumulative distribution.
SIM_FN int32_t ppo_categorical_draw(const real *prob, int count, real uniform) {
    real cumulative = R(0.0);
    int32_t action = 0;
    for (int k = 0; k + 1 < count; k++) {
        cumulative = cumulative + prob[k];
        action += cumulative <= uniform;
    }
    return action;
}

// The derivative by logit k of by_log_prob x log prob(action) + by_entropy x entropy.
SIM_FN real ppo_categorical_gradient(const real *prob, const real *log_prob, real entropy, int32_t action, int k,
                                     real by_log_prob, real by_entropy) {
    real chosen = k == action ? R(1.0) : R(0.0);
    return sim_fma(by_log_prob, chosen - prob[k], -by_entropy * (prob[k] * (log_prob[k] + entropy)));
}

// One action of a diagonal Gaussian: adds its part to `sum`.
SIM_FN PpoLikelihood ppo_gaussian_add(PpoLikelihood sum, real mean, real log_std, real action) {
    real z = (action - mean) * sim_exp(-log_std);
    sum.log_prob = sum.log_prob + (sim_fma(R(-0.5) * z, z, -log_std) - PPO_HALF_LOG_TWO_PI);
    sum.entropy = sum.entropy + (log_std + R(0.5) + PPO_HALF_LOG_TWO_PI);
    return sum;
}

SIM_FN real ppo_gaussian_draw(real mean, real log_std, real normal) { return sim_fma(sim_exp(log_std), normal, mean); }

typedef struct PpoGaussianGradient {
    real mean, log_std;
} PpoGaussianGradient;

SIM_FN PpoGaussianGradient ppo_gaussian_gradient(real mean, real log_std, real action, real by_log_prob,
                                                 real by_entropy) {
    real per_std = sim_exp(-log_std), z = (action - mean) * per_std;
    PpoGaussianGradient out = {by_log_prob * (z * per_std), sim_fma(by_log_prob, z * z - R(1.0), by_entropy)};
    return out;
}

// ---- the recurrent state -------------------------------------------------------------------------------------------

typedef struct PpoStateGradient {
    real gate, candidate, before;
} PpoStateGradient;

// From the loss by the state before + gate (candidate - before), of kernels/policy.h, to the loss by what made it.
SIM_FN PpoStateGradient ppo_state_gradient(real gate, real candidate, real before, real by_state) {
    PpoStateGradient out = {by_state * (candidate - before), by_state * gate, by_state * (R(1.0) - gate)};
    return out;
}

// ---- losses --------------------------------------------------------------------------------------------------------

typedef struct PpoPolicyLoss {
    real loss, gradient; // the latter by log_prob
    real kl;             // estimate of KL(old, new): (ratio - 1) - log ratio
    int32_t clipped;     // the ratio is outside 1 +- clip
} PpoPolicyLoss;

SIM_FN PpoPolicyLoss ppo_policy_loss(real log_prob, real old_log_prob, real advantage, real clip) {
    real log_ratio = log_prob - old_log_prob, ratio = sim_exp(log_ratio);
    real plain = ratio * advantage, limited = sim_clamp(ratio, R(1.0) - clip, R(1.0) + clip) * advantage;
    PpoPolicyLoss out;
    out.loss = limited < plain ? -limited : -plain;
    out.gradient = limited < plain ? R(0.0) : -plain;
    out.kl = (ratio - R(1.0)) - log_ratio;
    out.clipped = (ratio < R(1.0) - clip) | (ratio > R(1.0) + clip);
    return out;
}

typedef struct PpoValueLoss {
    real loss, gradient; // the latter by value
} PpoValueLoss;

SIM_FN PpoValueLoss ppo_value_loss(real value, real old_value, real target, real clip, int32_t clip_value) {
    real error = value - target;
    PpoValueLoss out = {R(0.5) * error * error, error};
    real change = value - old_value;
    real limited = old_value + sim_clamp(change, -clip, clip) - target;
    real limited_loss = R(0.5) * limited * limited;
    // Only outside the clip, where it does not change with the value: inside, both are equal but for rounding.
    int32_t is_limited = clip_value & ((change < -clip) | (change > clip)) & (limited_loss > out.loss);
    out.loss = is_limited ? limited_loss : out.loss;
    out.gradient = is_limited ? R(0.0) : out.gradient;
    return out;
}

// ---- advantages ----------------------------------------------------------------------------------------------------

// One step of GAE, backwards. `next_value`: of the observation that follows, 0 after termination; `next_advantage`: of
// the step that follows, 0 where the episode ended.
SIM_FN real ppo_advantage(real reward, real value, real next_value, real next_advantage, real gamma, real lambda) {
    real delta = sim_fma(gamma, next_value, reward) - value;
    return sim_fma(gamma * lambda, next_advantage, delta);
}

enum { PPO_TERMINATED = 1, PPO_TRUNCATED = 2 };

// GAE of one env's rollout. ended: 0, PPO_TERMINATED (of a step that is both, too) or PPO_TRUNCATED; final_value: of
// the final observation, read where truncated; last_value: of the observation after the last step. All [steps].
SIM_FN void ppo_advantages(const real *reward, const real *value, const int32_t *ended, const real *final_value,
                           real last_value, int steps, real gamma, real lambda, real *advantage, real *target) {
    real next_value = last_value, next_advantage = R(0.0);
    for (int t = steps - 1; t >= 0; t--) {
        if (ended[t]) {
            next_value = ended[t] == PPO_TERMINATED ? R(0.0) : final_value[t];
            next_advantage = R(0.0);
        }
        next_advantage = ppo_advantage(reward[t], value[t], next_value, next_advantage, gamma, lambda);
        next_value = value[t];
        advantage[t] = next_advantage;
        target[t] = next_advantage + value[t];
    }
}

// ---- statistics ----------------------------------------------------------------------------------------------------

// Count, mean and sum of squared deviations. Always double: what is summed may be far from 0.
typedef struct PpoMoments {
    double count, mean, square;
} PpoMoments;

// The moments of both together.
SIM_FN PpoMoments ppo_moments_fold(PpoMoments a, PpoMoments b) {
    if (a.count == 0.0) return b;
    if (b.count == 0.0) return a;
    PpoMoments out;
    double apart = b.mean - a.mean;
    out.count = a.count + b.count;
    out.mean = a.mean + apart * (b.count / out.count);
    out.square = (a.square + b.square) + apart * apart * (a.count * b.count / out.count);
    return out;
}

// The variance; 0 where nothing was seen.
SIM_FN double ppo_moments_variance(PpoMoments m) { return m.count > 0.0 ? m.square / m.count : 0.0; }

// ---- Adam ----------------------------------------------------------------------------------------------------------

typedef struct PpoAdamStep {
    float learning_rate; // with the first bias correction folded in: rate / (1 - beta1^t)
    float second_scale;  // 1 / (1 - beta2^t)
    float beta1, beta2, epsilon;
    float gradient_scale; // of the gradient-norm limit
} PpoAdamStep;

typedef struct PpoAdam {
    float param, first, second;
} PpoAdam;

// One step down the gradient.
SIM_FN PpoAdam ppo_adam(PpoAdam a, float gradient, PpoAdamStep step) {
    float g = gradient * step.gradient_scale;
    a.first = sim_fmaf(step.beta1, a.first, (1.0f - step.beta1) * g);
    a.second = sim_fmaf(step.beta2, a.second, (1.0f - step.beta2) * (g * g));
    a.param = a.param - step.learning_rate * a.first / (sim_sqrtf(a.second * step.second_scale) + step.epsilon);
    return a;
}

#endif
