// One simulator as plain functions on the host, one env at a time: for whoever looks at single steps, where speed is of
// no concern. Batches, evaluation and rollouts compile the simulators into their own loops.
//
// The same source as theirs, and so the same bits. Pointers are to <Name>State, zeroed before the first reset, and
// <Name>Params; sizes and order of the fields are in SimSpec.
//
// Ownership: the caller's. Errors: none. Thread safety: as plain data.
#ifndef SHOAL_SIM_SIM_PLAY_H
#define SHOAL_SIM_SIM_PLAY_H

#include "sim/sim_draw.h"
#include "sim/sim_rng.h"

typedef struct SimPlay {
    void (*reset)(void *state, const void *params, SimRng *rng);
    SimStep (*step)(void *state, const void *params, const int32_t *discrete, const float *continuous, SimRng *rng);
    void (*observe)(const void *state, const void *params, float *obs);
    // NULL: the simulator has no drawing. sim/sim_draw.h says what the arguments are.
    void (*draw)(const void *state, const void *params, const int32_t *discrete, const float *continuous,
                 SimFrame *frame);
} SimPlay;

#endif
