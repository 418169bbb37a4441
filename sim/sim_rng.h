// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A number is a pure function of (seed, counter), so it does not depend on who computes it, when,
// or how work is split.
//
// The counter's four words, by purpose (the purpose stands in the top four bits of c3):
//
//   purpose       c0                      c1         c2                   c3 (low 28 bits)
//   NOISE         block of 4 parameters   pair       0                    generation     ES perturbation
//   TABLE         block of 4 elements     0          0                    0              ES table of noise
//   SLICE         0                       pair       0                    generation     where in it a pair's noise is
//   INIT          parameter               0          0                    0              initial parameters
//   EPISODE       step << 8 | draw        episode    member, 0 if common  generation     ES evaluation
//   EVALUATE      step << 8 | draw        episode    0                    0              unused seeds, for reporting
//   BATCH         step << 8 | draw        episode    env                  0              a batch of envs
//   PPO           step << 8 | draw        env        0                    update         PPO's action noise
//   PERMUTATION   block                   epoch      shard                update         PPO's order of samples
//   (parameters)  2^31 | parameter        the same words as the episode they are drawn for
//
// Sixteen blocks of NOISE or TABLE make 64 parameters or elements, word by word: number i is word i / 16 % 4 of block
// i / 64 * 16 + i % 16. `draw` counts Philox blocks of four words within one step: at most 256 a step, 2^23 steps an
// episode. Step 0 is the reset.
#ifndef SHOAL_SIM_SIM_RNG_H
#define SHOAL_SIM_SIM_RNG_H

#include "sim/sim.h"
#include "sim/sim_math.h"

#define SIM_RNG_NOISE       0x10000000u
#define SIM_RNG_INIT        0x20000000u
#define SIM_RNG_EPISODE     0x30000000u
#define SIM_RNG_EVALUATE    0x40000000u
#define SIM_RNG_BATCH       0x50000000u
#define SIM_RNG_PPO         0x60000000u
#define SIM_RNG_PERMUTATION 0x70000000u
#define SIM_RNG_TABLE       0x80000000u
#define SIM_RNG_SLICE       0x90000000u

typedef struct SimWords4 {
    uint32_t x0, x1, x2, x3;
} SimWords4;

typedef struct SimUniform4 {
    real x0, x1, x2, x3;
} SimUniform4;

typedef struct SimNormal4 {
    float x0, x1, x2, x3;
} SimNormal4;

// Where one env's random numbers come from; a simulator only draws from it.
typedef struct SimRng {
    uint32_t seed_low, seed_high;
    uint32_t c0, c1, c2, c3;
} SimRng;

// Written over scalars, not arrays: gcc 12 vectorises this form eight times as fast.
#define SIM_PHILOX_ROUND                                                                   \
    {                                                                                      \
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;         \
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1; \
        c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;                            \
    }
#define SIM_PHILOX_BUMP (k0 += 0x9E3779B9u, k1 += 0xBB67AE85u);

// The block of counter (c0, c1, c2, c3) under key (k0, k1).
SIM_FN SimWords4 sim_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
    SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND
        SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND
            SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND SIM_PHILOX_BUMP SIM_PHILOX_ROUND SimWords4
                out = {c0, c1, c2, c3};
    return out;
}

// 24 random bits as a float in [0, 1).
SIM_FN float sim_uniform_from(uint32_t word) { return (float)(int32_t)(word >> 8) * 0x1p-24f; }

// The next four uniforms in [0, 1).
SIM_FN SimUniform4 sim_rng_uniform4(SimRng *rng) {
    SimWords4 w = sim_philox(rng->c0, rng->c1, rng->c2, rng->c3, rng->seed_low, rng->seed_high);
    rng->c0 += 1;
    SimUniform4 u = {(real)sim_uniform_from(w.x0), (real)sim_uniform_from(w.x1), (real)sim_uniform_from(w.x2),
                     (real)sim_uniform_from(w.x3)};
    return u;
}

// A uniform in [0, 1) for parameter `index` of the episode that `rng` belongs to.
SIM_FN float sim_rng_param(SimRng rng, uint32_t index) {
    return sim_uniform_from(sim_philox(0x80000000u | index, rng.c1, rng.c2, rng.c3, rng.seed_low, rng.seed_high).x0);
}

// Four standard normals from one block, by Box and Muller's transform; the largest magnitude is 5.8.
SIM_FN SimNormal4 sim_normal4_from(SimWords4 w) {
    float radius0 = sim_sqrtf(-2.0f * sim_logf((float)(int32_t)((w.x0 >> 8) + 1) * 0x1p-24f));
    float radius1 = sim_sqrtf(-2.0f * sim_logf((float)(int32_t)((w.x2 >> 8) + 1) * 0x1p-24f));
    SimSinCosf angle0 = sim_sincosf(6.283185307179586f * (sim_uniform_from(w.x1) - 0.5f));
    SimSinCosf angle1 = sim_sincosf(6.283185307179586f * (sim_uniform_from(w.x3) - 0.5f));
    SimNormal4 n = {radius0 * angle0.cos, radius0 * angle0.sin, radius1 * angle1.cos, radius1 * angle1.sin};
    return n;
}

#endif
