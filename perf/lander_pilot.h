// Gymnasium's own heuristic for LunarLander, which lands most of the time: for benchmarks and tests.
#ifndef SHOAL_PERF_LANDER_PILOT_H
#define SHOAL_PERF_LANDER_PILOT_H

#include <math.h>
#include <stdint.h>

// The discrete action: towards the pad, upright, slowing down. obs: of one env, `stride` floats apart.
static inline int32_t lander_pilot(const float *obs, int stride) {
    double s[8];
    for (int k = 0; k < 8; k++)
        s[k] = (double)obs[k * stride];
    double tilt = s[0] * 0.5 + s[2];
    tilt = tilt > 0.4 ? 0.4 : tilt < -0.4 ? -0.4 : tilt;
    double turn = (tilt - s[4]) * 0.5 - s[5], lift = (0.55 * fabs(s[0]) - s[1]) * 0.5 - s[3] * 0.5;
    if (s[6] != 0.0 || s[7] != 0.0) turn = 0.0, lift = -s[3] * 0.5;
    if (lift > fabs(turn) && lift > 0.05) return 2;
    return turn < -0.05 ? 3 : turn > 0.05 ? 1 : 0;
}

#endif
