// A simulator as tests of backends take it, and how many steps of it.
#ifndef SHOAL_TESTS_KERNELS_TEST_SIM_H
#define SHOAL_TESTS_KERNELS_TEST_SIM_H

#include <vector>

#include "kernels/kern.h"
#include "tests/kernels/sanitized.h"

// Simulators on rigid bodies take thousands of instructions a step: tests of every simulator make fewer of theirs.
inline bool is_heavy(const SimSpec *sim) { return sim->state_words > 100; }
inline bool is_very_heavy(const SimSpec *sim) { return sim->state_words > 500; }
inline int test_steps(const SimSpec *sim, int steps) {
    const int share = is_very_heavy(sim) ? 24 : is_heavy(sim) ? 8 : 1;
    return (steps + share - 1) / share;
}

// The numbers of the simulators that a suite of tests is about. What threads share is the same for all: where only
// races are looked for, the first of the heavy ones stands for them.
inline std::vector<int> test_sims() {
    std::vector<int> sims;
    bool has_heavy = false;
    for (int i = 0; i < sim_spec_count(); i++) {
        if (is_for_threads && has_heavy && is_heavy(sim_spec_at(i))) continue;
        has_heavy = has_heavy || is_heavy(sim_spec_at(i));
        sims.push_back(i);
    }
    return sims;
}

// The simulator with its time limit set; randomised: most of its parameters drawn, by up to a tenth either way.
inline KernSim test_sim(const SimSpec *spec, int time_limit, bool randomised) {
    KernSim sim;
    kern_sim_default(&sim, spec);
    sim.time_limit = time_limit;
    sim.any_random = randomised;
    for (int k = 0; k < spec->param_count; k++) {
        sim.random[k] = randomised && k % 3 != 2; // some stay as set
        sim.low[k] = 0.9f * sim.value[k];
        sim.high[k] = 1.1f * sim.value[k];
    }
    return sim;
}

#endif
