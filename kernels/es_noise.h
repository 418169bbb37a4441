// The noise of an ES population, in one place for every backend: a pair's standard normals, one a parameter.
//
//   counters  made wherever they are needed, from (generation, pair, parameter)
//   table     consecutive elements of one long table of normals, from a place on that is drawn for (generation, pair);
//             after Salimans et al., 2017, whose workers share a table of 250 million
//
// Both follow from the seed by sim/sim_rng.h, so that anybody can make any part of either. Evaluation and update read
// the same numbers. A table is a multiple of KERN_ES_UNIT long, and no shorter than the parameters, rounded up to one.
//
// Ownership: plain data; the table is borrowed. Errors: none. Thread safety: any thread.
#ifndef SHOAL_KERNELS_ES_NOISE_H
#define SHOAL_KERNELS_ES_NOISE_H

#include "kernels/kern.h"
#include "sim/sim_rng.h"

enum { ES_SLICE_ALIGN = 16 }; // floats: a pair's slice of the table begins at a multiple, for the widest vector loads

typedef struct EsNoise {
    uint64_t seed;
    const float *table; // in the device's own memory; NULL: counters
    uint32_t places;    // that a slice may begin at
} EsNoise;

static inline EsNoise es_noise(const KernEsSpec *spec, const float *table) {
    int64_t slice = ((int64_t)spec->policy.params + KERN_ES_UNIT - 1) / KERN_ES_UNIT * KERN_ES_UNIT;
    EsNoise noise = {spec->seed, table, table != NULL ? (uint32_t)((spec->table - slice) / ES_SLICE_ALIGN + 1) : 0};
    return noise;
}

// Four normals of a block of NOISE or TABLE, which is the purpose (with the generation); the counter table in
// sim/sim_rng.h says which parameters or elements they are.
SIM_FN SimNormal4 es_normal4(uint64_t seed, uint32_t block, uint32_t pair, uint32_t purpose) {
    return sim_normal4_from(sim_philox(block, pair, 0, purpose, (uint32_t)seed, (uint32_t)(seed >> 32)));
}

SIM_FN SimNormal4 es_noise4(uint64_t seed, uint32_t generation, uint32_t pair, uint32_t block) {
    return es_normal4(seed, block, pair, SIM_RNG_NOISE | generation);
}

// Where in the table a pair's noise begins. 64 bits choose between at most 2^28 places.
SIM_FN int64_t es_slice(const EsNoise *noise, uint32_t generation, uint32_t pair) {
    SimWords4 w =
        sim_philox(0, pair, 0, SIM_RNG_SLICE | generation, (uint32_t)noise->seed, (uint32_t)(noise->seed >> 32));
    uint64_t low = (uint64_t)w.x1 * noise->places >> 32;
    return (int64_t)(((uint64_t)w.x0 * noise->places + low) >> 32) * ES_SLICE_ALIGN;
}

#endif
