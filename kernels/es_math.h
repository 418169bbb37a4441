// The scalar arithmetic of one ES update, in one place for every backend.
//
// The gradient estimate of Salimans et al., "Evolution strategies as a scalable alternative to reinforcement learning",
// 2017, with antithetic pairs: g = sum over pairs of (shaped[2p] - shaped[2p + 1]) noise(p) / (2 pairs sigma).
#ifndef SHOAL_KERNELS_ES_MATH_H
#define SHOAL_KERNELS_ES_MATH_H

#include "kernels/es_noise.h"
#include "kernels/kern.h"
#include "sim/sim_math.h"

// Pairs are summed in chunks of this many, each from zero by fmaf in ascending order; the chunks are added in order.
enum { ES_PAIR_CHUNK = 256 };

// The shaped fitness of a member with `less` members below it and `equal` others tied with it, of n: the mean of the
// tied ranks, scaled to [-0.5, 0.5]. Whole numbers until the division, so the order of counting does not matter.
SIM_FN float es_centred_rank(int32_t less, int32_t equal, int32_t n) {
    return (float)(2 * less + equal) / (float)(2 * (n - 1)) - 0.5f;
}

typedef struct EsAdam {
    float param, first, second;
} EsAdam;

// One Adam step upwards (Kingma & Ba, 2015) for one parameter whose gradient estimate, before scaling, is `sum`.
SIM_FN EsAdam es_adam(EsAdam a, float sum, const KernEsStep *step) {
    float gradient = sim_fmaf(-step->weight_decay, a.param, sum * step->gradient_scale);
    a.first = sim_fmaf(step->beta1, a.first, (1.0f - step->beta1) * gradient);
    a.second = sim_fmaf(step->beta2, a.second, (1.0f - step->beta2) * (gradient * gradient));
    float change = step->learning_rate * a.first / (sim_sqrtf(a.second * step->second_scale) + step->epsilon);
    a.param = a.param + change;
    return a;
}

#endif
