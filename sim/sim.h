// The vocabulary that every simulator header is written in, and nothing else: it compiles as C, under nvcc and under
// NVRTC, which has no system headers.
//
// A simulator is one header, sim/<name>.h, with one line in sim/sim_list.h. See sim/cartpole.h for the pattern.
#ifndef SHOAL_SIM_SIM_H
#define SHOAL_SIM_SIM_H

#if defined(__CUDACC_RTC__)
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

// Functions of simulators are copied into the loops that call them, so that these vectorise. SIM_BIG_FN is for those
// that are too large for that, and which no loop over lanes could vectorise: they stay calls.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SIM_FN     static __host__ __device__ __forceinline__
#define SIM_BIG_FN static __host__ __device__ __noinline__
#else
#define SIM_FN     static inline __attribute__((always_inline, unused))
#define SIM_BIG_FN static __attribute__((noinline, unused))
#endif

// Physics is written over `real`: float in every product; double in the test build that is compared with the public
// originals. R(0.02) is a literal of that type.
#ifdef SIM_REAL_DOUBLE
typedef double real;
#define R(literal) literal
#else
typedef float real;
#define R(literal) literal##f
#endif

// What one step of a simulator yields. `terminated` is 0 or 1; a time limit is the batch's business, not the
// simulator's.
typedef struct SimStep {
    real reward;
    int32_t terminated;
} SimStep;

// Selects without a branch; `if_true` and `if_false` are both evaluated.
SIM_FN real sim_select(int32_t condition, real if_true, real if_false) { return condition ? if_true : if_false; }

// Clamps x into [low, high]; NaN stays NaN. Written with comparisons: fminf and fmaxf differ between processors on
// signed zeros and NaN.
SIM_FN real sim_clamp(real x, real low, real high) {
    real y = x < low ? low : x;
    return y > high ? high : y;
}

// The point between low and high at fraction u.
SIM_FN real sim_lerp(real u, real low, real high) { return low + (high - low) * u; }

// Discrete actions are listed as <NAME>_DISCRETE(D): D(choices) for each. SIM_DISCRETE_COUNT and SIM_DISCRETE_SUM of a
// list: how many there are, and the choices of all together.
// NOLINTBEGIN(bugprone-macro-parentheses): terms of a sum
#define SIM_DISCRETE_ONE(choices) 1 +
#define SIM_DISCRETE_ADD(choices) (choices) +
// NOLINTEND(bugprone-macro-parentheses)
#define SIM_DISCRETE_ITEM(choices)   choices,
#define SIM_DISCRETE_COUNT(DISCRETE) (DISCRETE(SIM_DISCRETE_ONE) 0)
#define SIM_DISCRETE_SUM(DISCRETE)   (DISCRETE(SIM_DISCRETE_ADD) 0)

// SIM_DECLARE(Cartpole, CARTPOLE) makes the structs CartpoleParams and CartpoleState from the two X-macro lists
// CARTPOLE_PARAMS and CARTPOLE_STATE.
#define SIM_PARAM_FIELD(name, value, unit, help) real name;
#define SIM_STATE_FIELD(type, name)              type name;
#define SIM_DECLARE(Name, NAME)        \
    typedef struct Name##Params {      \
        NAME##_PARAMS(SIM_PARAM_FIELD) \
    } Name##Params;                    \
    typedef struct Name##State {       \
        NAME##_STATE(SIM_STATE_FIELD)  \
    } Name##State;

#endif
