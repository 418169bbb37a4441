// A simulator's parameters in an episode, in one place for every backend.
#ifndef SHOAL_KERNELS_SIM_PARAM_H
#define SHOAL_KERNELS_SIM_PARAM_H

#include "kernels/kern.h"
#include "sim/sim_rng.h"

// Parameter `index`: as set, or drawn for the episode that `rng` belongs to, from the counters next to its own
// (sim/sim_rng.h).
SIM_FN float kern_sim_param(const KernSim *sim, SimRng rng, int index) {
    if (!sim->random[index]) return sim->value[index];
    return sim_lerp(sim_rng_param(rng, (uint32_t)index), sim->low[index], sim->high[index]);
}

#endif
