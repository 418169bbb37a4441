// The ground of BipedalWalker: uneven in both simulators, with stumps, pits and stairs in the hardcore one. It is made
// point by point, as Gymnasium's box2d/bipedal_walker.py does it, oddities included: each stretch of grass begins with
// a flat edge, and all stairs are four points wide.
#ifndef SHOAL_SIM_BIPEDAL_WALKER_TERRAIN_H
#define SHOAL_SIM_BIPEDAL_WALKER_TERRAIN_H

#include "sim/sim.h"
#include "sim/sim_math.h"
#include "sim/sim_rng.h"

#define BIPEDAL_WALKER_POINTS   200 // of the terrain, 14/30 m apart
#define BIPEDAL_WALKER_BLOCKS   40  // boxes; at most 39 have room: 17 pits, a stump and stairs of four
#define BIPEDAL_WALKER_START    20  // points that are flat
#define BIPEDAL_WALKER_GRASS    10  // points between obstacles, at most
#define BIPEDAL_WALKER_HEIGHT_M R(3.3333333333333335)
#define BIPEDAL_WALKER_STEP_M   R(0.46666666666666667)

enum {
    BIPEDAL_WALKER_ON_GRASS,
    BIPEDAL_WALKER_ON_STUMP,
    BIPEDAL_WALKER_ON_STAIRS,
    BIPEDAL_WALKER_ON_PIT,
    BIPEDAL_WALKER_OBSTACLES = 3
};

// A box from a point of the terrain on: its size in steps of the terrain, and the height of its lower side.
// BIPEDAL_WALKER_BLOCK(F, block0_): the fields block0_place, ..., of which place is point | width << 8 | height << 16.
#define BIPEDAL_WALKER_BLOCK(F, p) F(int32_t, p##place) F(real, p##low_m)

typedef struct BipedalWalkerBlock {
    BIPEDAL_WALKER_BLOCK(SIM_STATE_FIELD, )
} BipedalWalkerBlock;

typedef struct BipedalWalkerGround {
    real *terrain_m;           // [BIPEDAL_WALKER_POINTS]
    BipedalWalkerBlock *block; // [BIPEDAL_WALKER_BLOCKS]
    int32_t blocks;
} BipedalWalkerGround;

// What is remembered from point to point.
typedef struct BipedalWalkerBuilder {
    int32_t stretch;     // what stands here, BIPEDAL_WALKER_ON_...
    int32_t is_first;    // of its stretch
    int32_t left;        // points, this one included
    real slope, y_m;     // of the grass
    real foot_m;         // where an obstacle began
    int32_t steps, rise; // of stairs: how many, and 1 up or -1 down
} BipedalWalkerBuilder;

SIM_FN BipedalWalkerBuilder bipedal_walker_builder(void) {
    BipedalWalkerBuilder b = {
        BIPEDAL_WALKER_ON_GRASS, 0, BIPEDAL_WALKER_START, R(0.0), BIPEDAL_WALKER_HEIGHT_M, R(0.0), 0, 0};
    return b;
}

// low to high - 1 from a draw of [0, 1).
SIM_FN int32_t bipedal_walker_pick(real u, int32_t low, int32_t high) {
    return low + (int32_t)(u * (real)(high - low));
}

SIM_FN void bipedal_walker_add_block(BipedalWalkerGround *g, int32_t point, int32_t width, int32_t height, real low_m) {
    if (g->blocks == BIPEDAL_WALKER_BLOCKS) return; // cannot be
    g->block[g->blocks].place = point | width << 8 | height << 16;
    g->block[g->blocks++].low_m = low_m;
}

// An obstacle begins.
SIM_FN void bipedal_walker_obstacle(BipedalWalkerBuilder *b, BipedalWalkerGround *g, int32_t point, SimUniform4 u) {
    b->foot_m = b->y_m;
    if (b->stretch == BIPEDAL_WALKER_ON_PIT) {
        int32_t width = bipedal_walker_pick(u.x1, 3, 5);
        bipedal_walker_add_block(g, point, 1, 4, b->y_m - R(4.0) * BIPEDAL_WALKER_STEP_M);
        bipedal_walker_add_block(g, point + width, 1, 4, b->y_m - R(4.0) * BIPEDAL_WALKER_STEP_M);
        b->left = width + 2;
    } else if (b->stretch == BIPEDAL_WALKER_ON_STUMP) {
        b->left = bipedal_walker_pick(u.x1, 1, 3);
        bipedal_walker_add_block(g, point, b->left, b->left, b->y_m);
    } else {
        b->rise = u.x0 > R(0.5) ? 1 : -1;
        b->steps = bipedal_walker_pick(u.x1, 3, 5);
        for (int32_t s = 0; s < b->steps; s++)
            bipedal_walker_add_block(g, point + 4 * s, 4, 1, b->y_m + (real)(s * b->rise - 1) * BIPEDAL_WALKER_STEP_M);
        b->left = 4 * b->steps;
    }
}

// The terrain's next point. Of u, x0 is the roughness or the direction of stairs, x1 an obstacle's size, x2 the length
// of the grass that comes, x3 the obstacle that comes.
SIM_FN void bipedal_walker_point(BipedalWalkerBuilder *b, BipedalWalkerGround *g, int32_t point, SimUniform4 u,
                                 real roughness, int32_t is_hardcore) {
    if (b->stretch != BIPEDAL_WALKER_ON_GRASS && b->is_first) {
        bipedal_walker_obstacle(b, g, point, u);
    } else if (b->stretch == BIPEDAL_WALKER_ON_GRASS && !b->is_first) {
        real below = BIPEDAL_WALKER_HEIGHT_M - b->y_m;
        real pull = below > R(0.0) ? R(0.01) : below < R(0.0) ? R(-0.01) : R(0.0);
        b->slope = R(0.8) * b->slope + pull;
        if (point > BIPEDAL_WALKER_START) b->slope += roughness * sim_lerp(u.x0, R(-1.0), R(1.0)) / R(30.0);
        b->y_m += b->slope;
    } else if (b->stretch == BIPEDAL_WALKER_ON_PIT) {
        b->y_m = b->left > 1 ? b->foot_m - R(4.0) * BIPEDAL_WALKER_STEP_M : b->foot_m;
    } else if (b->stretch == BIPEDAL_WALKER_ON_STAIRS) {
        real stairs = (real)(4 * b->steps - b->left - b->rise) / R(4.0);
        b->y_m = b->foot_m + stairs * (real)b->rise * BIPEDAL_WALKER_STEP_M;
    }
    g->terrain_m[point] = b->y_m;
    b->is_first = 0;
    if (--b->left > 0) return;
    b->left = bipedal_walker_pick(u.x2, BIPEDAL_WALKER_GRASS / 2, BIPEDAL_WALKER_GRASS);
    b->is_first = 1;
    int32_t comes = is_hardcore && b->stretch == BIPEDAL_WALKER_ON_GRASS;
    b->stretch = comes ? bipedal_walker_pick(u.x3, 1, BIPEDAL_WALKER_OBSTACLES + 1) : BIPEDAL_WALKER_ON_GRASS;
}

// All of it, with a block of random numbers for each point.
SIM_BIG_FN void bipedal_walker_build(BipedalWalkerGround *g, SimRng *rng, real roughness, int32_t is_hardcore) {
    BipedalWalkerBuilder b = bipedal_walker_builder();
    g->blocks = 0;
    for (int32_t i = 0; i < BIPEDAL_WALKER_POINTS; i++)
        bipedal_walker_point(&b, g, i, sim_rng_uniform4(rng), roughness, is_hardcore);
}

#endif
