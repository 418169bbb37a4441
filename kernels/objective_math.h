// The built-in objectives' arithmetic, in one place for every instruction set. Terms and sums are doubles of + - *
// alone; the sine is a float's (sim/sim_math.h). Sums are of 16 partial ones: partial k takes terms k, k + 16, ...
// ascending; then partial k += partial k + 8, + 4, + 2, + 1.
#ifndef SHOAL_KERNELS_OBJECTIVE_MATH_H
#define SHOAL_KERNELS_OBJECTIVE_MATH_H

#include "sim/sim_math.h"

enum { OBJECTIVE_PARTIALS = 16 };

// Terms take x + i; Rosenbrock's looks at the next one, too.
SIM_FN double objective_sphere(const float *x) { return (double)x[0] * (double)x[0]; }

// x^2 + 10 - 10 cos(2 pi x) = x^2 + 20 sin^2(pi x), which loses nothing near its minimum. Beyond 2^22, where the sine's
// part is less than 2^-39 of the whole, it is left out.
SIM_FN double objective_rastrigin(const float *x) {
    float nearest = (x[0] + SIM_ROUND_MAGICF) - SIM_ROUND_MAGICF;
    float turn = sim_fabsf(x[0]) <= 0x1p22f ? x[0] - nearest : 0.0f;
    double sine = (double)sim_sinf(3.14159265f * turn);
    return (double)x[0] * (double)x[0] + 20.0 * (sine * sine);
}

SIM_FN double objective_rosenbrock(const float *x) {
    double bend = (double)x[1] - (double)x[0] * (double)x[0], off = 1.0 - (double)x[0];
    return 100.0 * (bend * bend) + off * off;
}

SIM_FN double objective_fold(double partial[OBJECTIVE_PARTIALS]) {
    for (int half = OBJECTIVE_PARTIALS / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; k++)
            partial[k] = partial[k] + partial[k + half];
    }
    return partial[0];
}

#endif
