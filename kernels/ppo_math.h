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

#include <stddef.h>

#include "kernels/policy.h"
#include "sim/sim_math.h"

#define PPO_HALF_LOG_TWO_PI  R(0.9189385332046727)
#define PPO_REWARD_CLIP      10.0f // normalised rewards are clamped to +-this
#define PPO_ADVANTAGE_OFFSET R(1e-8)

// ---- distributions of actions --------------------------------------------------------------------------------------

typedef struct PpoLikelihood {
    real log_prob, entropy;
} PpoLikelihood;

// Categorical, from logits that are `stride` apart. Fills in each action's probability and its logarithm, [count];
// returns the entropy.
SIM_FN real ppo_categorical(const real *logits, int stride, int count, real *prob, real *log_prob) {
    real largest = logits[0];
    for (int k = 1; k < count; k++)
        largest = logits[k * stride] > largest ? logits[k * stride] : largest;
    real sum = R(0.0);
    for (int k = 0; k < count; k++) {
        log_prob[k] = logits[k * stride] - largest;
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

// ---- policies of one sample ----------------------------------------------------------------------------------------

// What the discrete actions need twice: probabilities and their logarithms, [choices of all actions]; [discrete].
typedef struct PpoChoices {
    real *prob, *log_prob, *entropy;
} PpoChoices;

// The likelihood of the actions `words` of a policy's outputs y, `stride` apart, and its entropy; those of the actions
// add up. words: [discrete] int32_t, [continuous] floats before they are clamped. Fills in `choices`.
SIM_FN PpoLikelihood ppo_likelihood(const PolicyShape *actor, const real *y, int stride, const real *log_std,
                                    const uint32_t *words, PpoChoices choices) {
    PpoLikelihood now = {R(0.0), R(0.0)};
    real *prob = choices.prob, *log_prob = choices.log_prob;
    for (int k = 0; k < actor->discrete; k++) {
        int count = actor->choices[k];
        choices.entropy[k] = ppo_categorical(y, stride, count, prob, log_prob);
        now.entropy = now.entropy + choices.entropy[k];
        now.log_prob = now.log_prob + log_prob[(int32_t)words[k]];
        prob += count, log_prob += count, y += count * stride;
    }
    for (int k = 0; k < actor->continuous; k++)
        now = ppo_gaussian_add(now, y[k * stride], log_std[k], (real)sim_float_from_bits(words[actor->discrete + k]));
    return now;
}

// After that: the derivatives of by_log_prob x log prob(actions) + by_entropy x entropy, by the outputs to `delta` and
// by log_std to `by_log_std` [continuous], `stride` apart as well.
SIM_FN void ppo_likelihood_gradient(const PolicyShape *actor, const real *y, int stride, const real *log_std,
                                    const uint32_t *words, PpoChoices choices, real by_log_prob, real by_entropy,
                                    real *delta, real *by_log_std) {
    const real *prob = choices.prob, *log_prob = choices.log_prob;
    for (int k = 0; k < actor->discrete; k++) {
        int count = actor->choices[k];
        for (int i = 0; i < count; i++)
            delta[i * stride] = ppo_categorical_gradient(prob, log_prob, choices.entropy[k], (int32_t)words[k], i,
                                                         by_log_prob, by_entropy);
        prob += count, log_prob += count, y += count * stride, delta += count * stride;
    }
    for (int k = 0; k < actor->continuous; k++) {
        real action = (real)sim_float_from_bits(words[actor->discrete + k]);
        PpoGaussianGradient g = ppo_gaussian_gradient(y[k * stride], log_std[k], action, by_log_prob, by_entropy);
        delta[k * stride] = g.mean;
        by_log_std[k * stride] = g.log_std;
    }
}

// ---- activations ---------------------------------------------------------------------------------------------------

// From the loss by an activation `y` to the loss by the sum that it is of.
SIM_FN real ppo_tanh_gradient(real by_output, real y) { return by_output * sim_fma(-y, y, R(1.0)); }
SIM_FN real ppo_relu_gradient(real by_output, real y) { return y > R(0.0) ? by_output : R(0.0); }
SIM_FN real ppo_sigmoid_gradient(real by_output, real y) { return by_output * sim_fma(-y, y, y); }

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
// the final observation, read where truncated; last_value: of the observation after the last step. All [steps], their
// elements `stride` apart.
SIM_FN void ppo_advantages(const real *reward, const real *value, const int32_t *ended, const real *final_value,
                           real last_value, int steps, int64_t stride, real gamma, real lambda, real *advantage,
                           real *target) {
    real next_value = last_value, next_advantage = R(0.0);
    for (int64_t t = (steps - 1) * stride; t >= 0; t -= stride) {
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

// ---- sums over samples ---------------------------------------------------------------------------------------------

// The pieces in which sums are made, on every backend (design rule 5).
enum {
    PPO_CHUNK = 256, // samples whose gradients, losses and advantages are one sum; chunks are folded in order
    PPO_TILE = 256,  // parameters in one piece of the gradient's norm
};

typedef struct PpoLosses {
    double policy, value, entropy, kl, clipped;
} PpoLosses;

SIM_FN PpoLosses ppo_losses_fold(PpoLosses a, PpoLosses b) {
    PpoLosses sum = {a.policy + b.policy, a.value + b.value, a.entropy + b.entropy, a.kl + b.kl, a.clipped + b.clipped};
    return sum;
}

// The part that is NaN or infinite, the first in their order; NULL where none is.
SIM_FN const char *ppo_infinite_loss(PpoLosses l) {
    if (!(l.policy * 0.0 == 0.0)) return "policy";
    if (!(l.value * 0.0 == 0.0)) return "value";
    if (!(l.entropy * 0.0 == 0.0)) return "entropy";
    if (!(l.kl * 0.0 == 0.0)) return "KL";
    return NULL;
}

// Sums that have an order for many threads or vector lanes: number i of a piece goes to partial sum i % 16, and those
// are folded by halves.
SIM_FN double ppo_fold16(double partial[16]) {
    for (int half = 8; half > 0; half /= 2) {
        for (int k = 0; k < half; k++)
            partial[k] = partial[k] + partial[k + half];
    }
    return partial[0];
}

// Correctly rounded.
SIM_FN double ppo_sqrt(double x) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(x);
#else
    return __builtin_sqrt(x);
#endif
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

// Of `count` floats, `stride` apart: the mean first, then the deviations from it.
SIM_FN PpoMoments ppo_moments_of(const float *x, int count, int64_t stride) {
    PpoMoments m = {(double)count, 0.0, 0.0};
    for (int i = 0; i < count; i++)
        m.mean = m.mean + (double)x[i * stride];
    m.mean = m.mean / m.count;
    for (int i = 0; i < count; i++) {
        double apart = (double)x[i * stride] - m.mean;
        m.square = m.square + apart * apart;
    }
    return m;
}

// The variance; 0 where nothing was seen.
SIM_FN double ppo_moments_variance(PpoMoments m) { return m.count > 0.0 ? m.square / m.count : 0.0; }

// What rewards are multiplied by, from the moments of the discounted return; 1 before anything was seen.
SIM_FN float ppo_reward_scale(PpoMoments discounted) {
    double variance = discounted.count > 0.0 ? ppo_moments_variance(discounted) : 1.0;
    return (float)(1.0 / ppo_sqrt(variance > 1e-8 ? variance : 1e-8));
}

// What a rollout adds up to: of one env, or of many.
typedef struct PpoOutcome {
    PpoMoments discounted;       // of the discounted return, after each step
    PpoMoments target, residual; // of the value's target, and of what the value lacks of it
    int64_t episodes, episode_steps;
    double episode_return;
} PpoOutcome;

SIM_FN PpoOutcome ppo_outcome_fold(PpoOutcome a, PpoOutcome b) {
    a.discounted = ppo_moments_fold(a.discounted, b.discounted);
    a.target = ppo_moments_fold(a.target, b.target);
    a.residual = ppo_moments_fold(a.residual, b.residual);
    a.episodes += b.episodes;
    a.episode_steps += b.episode_steps;
    a.episode_return = a.episode_return + b.episode_return;
    return a;
}

// How much of the targets' variance the values explain, before learning.
SIM_FN double ppo_explained_variance(PpoOutcome o) {
    return o.target.square > 0.0 ? 1.0 - o.residual.square / o.target.square : 0.0;
}

// How a minibatch's advantages are normalised: (advantage - mean) * scale.
typedef struct PpoAdvantageScale {
    float mean, scale;
} PpoAdvantageScale;

SIM_FN PpoAdvantageScale ppo_advantage_scale(PpoMoments advantages, int32_t normalize) {
    PpoAdvantageScale out = {0.0f, 1.0f};
    if (!normalize || advantages.count <= 1.0) return out; // one alone has no deviation
    out.mean = (float)advantages.mean;
    out.scale = (float)(1.0 / (ppo_sqrt(advantages.square / (advantages.count - 1.0)) + 1e-8));
    return out;
}

// ---- Adam ----------------------------------------------------------------------------------------------------------

typedef struct PpoAdamStep {
    float learning_rate; // with the first bias correction folded in: rate / (1 - beta1^t)
    float second_scale;  // 1 / (1 - beta2^t)
    float beta1, beta2, epsilon;
    float gradient_scale; // of the gradient-norm limit
} PpoAdamStep;

// What does not change from step to step. max_norm: 0 for no limit.
typedef struct PpoAdamRates {
    float learning_rate, beta1, beta2, epsilon, max_norm;
} PpoAdamRates;

// base^n by squaring: the same bits everywhere, as libm's pow() is not.
SIM_FN double ppo_power(double base, int64_t n) {
    double result = 1.0;
    for (; n > 0; n /= 2) {
        if (n % 2 != 0) result = result * base;
        base = base * base;
    }
    return result;
}

// Step `t`, counted from 1, for a gradient of that norm.
SIM_FN PpoAdamStep ppo_adam_step(PpoAdamRates rates, int64_t t, double norm) {
    int32_t is_limited = rates.max_norm > 0.0f && norm > (double)rates.max_norm;
    PpoAdamStep step = {(float)((double)rates.learning_rate / (1.0 - ppo_power((double)rates.beta1, t))),
                        (float)(1.0 / (1.0 - ppo_power((double)rates.beta2, t))),
                        rates.beta1,
                        rates.beta2,
                        rates.epsilon,
                        is_limited ? (float)((double)rates.max_norm / norm) : 1.0f};
    return step;
}

typedef struct PpoAdam {
    float param, first, second;
} PpoAdam;

// Whether a part of the gradient is NaN or infinite, or will be in Adam's second moment. Where the gradient is limited
// to `max_norm`, as 0 does not, it is not larger than that there.
SIM_FN int32_t ppo_is_infinite(float gradient, float max_norm) {
    float part = max_norm > 0.0f ? gradient : gradient * gradient;
    return !(part * 0.0f == 0.0f);
}

// The smallest norm of a gradient with such a part: what squares to infinity.
#define PPO_NORM_INFINITE 1.8e19

// One step down the gradient.
SIM_FN PpoAdam ppo_adam(PpoAdam a, float gradient, PpoAdamStep step) {
    float g = gradient * step.gradient_scale;
    a.first = sim_fmaf(step.beta1, a.first, (1.0f - step.beta1) * g);
    a.second = sim_fmaf(step.beta2, a.second, (1.0f - step.beta2) * (g * g));
    a.param = a.param - step.learning_rate * a.first / (sim_sqrtf(a.second * step.second_scale) + step.epsilon);
    return a;
}

#endif
