// The solver's iterations of several worlds of rigid bodies at once, a world in a lane: they are one chain of dependent
// operations in each world, which takes most of a step. Bits are those of rigid2d_island_iterate().
//
// Worlds: those that rigid2d_step_begin() has prepared, whose velocities are not -0; velocities and rows are solved in
// place. Errors: none. Thread safety: of the caller's worlds. Compiled for each instruction set.
#ifndef SHOAL_KERNELS_CPU_ISLANDS_H
#define SHOAL_KERNELS_CPU_ISLANDS_H

#include "sim/rigid2d/rigid2d.h"

enum { CPU_ISLANDS_MAX = 32 };

// Returns a bit for each of the `count` worlds, up to CPU_ISLANDS_MAX, that is not like the first one that has rows, or
// has more contacts than there is room for: these are left for rigid2d_island_iterate().
uint32_t cpu_islands_iterate_baseline(Rigid2dWorld *const *worlds, int count);
uint32_t cpu_islands_iterate_v3(Rigid2dWorld *const *worlds, int count);
uint32_t cpu_islands_iterate_v4(Rigid2dWorld *const *worlds, int count);

#endif
