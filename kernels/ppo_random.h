// PPO's random numbers, in one place for every backend: the noise of actions, and the order of a shard's samples, a
// bijection of their numbers that each thread can evaluate where it stands (Mitchell et al., "Bandwidth-optimal random
// shuffling for GPUs", 2022): a Feistel network over the smallest power of two that holds them, walked along until it
// comes back into range.
#ifndef SHOAL_KERNELS_PPO_RANDOM_H
#define SHOAL_KERNELS_PPO_RANDOM_H

#include "sim/sim_rng.h"

enum { PPO_PERMUTATION_ROUNDS = 8 };

// Four words of noise of one env's step: block `block` of it. Discrete action k has the uniform number of word k % 4 of
// block k / 4; continuous action k has normal k % 4 of block k / 4 behind those.
SIM_FN SimWords4 ppo_noise(uint64_t seed, uint32_t update, uint32_t env, uint32_t step, uint32_t block) {
    return sim_philox(step << 8 | block, env, 0, SIM_RNG_PPO | update, (uint32_t)seed, (uint32_t)(seed >> 32));
}

typedef struct PpoPermutation {
    uint32_t count;
    uint32_t half_bits; // of the low half; the high half has as many or one less
    uint32_t low_mask, high_mask;
    uint32_t key[PPO_PERMUTATION_ROUNDS];
} PpoPermutation;

SIM_FN PpoPermutation ppo_permutation(uint64_t seed, uint32_t update, uint32_t epoch, uint32_t shard, uint32_t count) {
    PpoPermutation p;
    uint32_t bits = 6; // networks of fewer do not reach every order
    while (bits < 32 && (1u << bits) < count)
        bits++;
    p.count = count;
    p.half_bits = (bits + 1) / 2;
    p.low_mask = (1u << p.half_bits) - 1;
    p.high_mask = (1u << (bits - p.half_bits)) - 1;
    for (uint32_t block = 0; block < PPO_PERMUTATION_ROUNDS / 4; block++) {
        SimWords4 w =
            sim_philox(block, epoch, shard, SIM_RNG_PERMUTATION | update, (uint32_t)seed, (uint32_t)(seed >> 32));
        p.key[4 * block] = w.x0;
        p.key[4 * block + 1] = w.x1;
        p.key[4 * block + 2] = w.x2;
        p.key[4 * block + 3] = w.x3;
    }
    return p;
}

// Mixes a half with a round's key; the constants are MurmurHash3's finaliser's.
SIM_FN uint32_t ppo_permutation_hash(uint32_t half, uint32_t key) {
    uint32_t h = half ^ key;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

// One pass through the network.
SIM_FN uint32_t ppo_permutation_pass(const PpoPermutation *p, uint32_t x) {
    uint32_t low = x & p->low_mask, high = x >> p->half_bits;
    for (int round = 0; round < PPO_PERMUTATION_ROUNDS; round += 2) {
        high = high ^ (ppo_permutation_hash(low, p->key[round]) & p->high_mask);
        low = low ^ (ppo_permutation_hash(high, p->key[round + 1]) & p->low_mask);
    }
    return high << p->half_bits | low;
}

// The number that stands at place `x` < count.
SIM_FN uint32_t ppo_permutation_at(const PpoPermutation *p, uint32_t x) {
    do
        x = ppo_permutation_pass(p, x);
    while (x >= p->count);
    return x;
}

#endif
