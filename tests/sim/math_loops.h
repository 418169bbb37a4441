// The functions of sim_math.h in loops over arrays; math_loops.c is compiled once for each of these functions, with
// other flags.
#ifndef SHOAL_TESTS_SIM_MATH_LOOPS_H
#define SHOAL_TESTS_SIM_MATH_LOOPS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// out: [MATH_LOOP_OUTPUTS][n], the bits of each function's result, every NaN as 0x7fc00000
#define MATH_LOOP_OUTPUTS 9
typedef void MathLoops(const float *x, const float *y, uint32_t *out, int n);

MathLoops math_loops_o0;
MathLoops math_loops_o3;
#ifdef __x86_64__
MathLoops math_loops_v3;
MathLoops math_loops_v4;
#endif

#ifdef __cplusplus
}
#endif

#endif
