// Gymnasium's own heuristic for BipedalWalker, which walks most of the time and falls at the end: for benchmarks and
// tests.
#ifndef SHOAL_PERF_WALKER_PILOT_H
#define SHOAL_PERF_WALKER_PILOT_H

#include <stdint.h>

typedef struct WalkerPilot {
    int phase;      // 0 on one leg, 1 puts the other down, 2 pushes off
    int moving_leg; // 0 or 1
    double knee;    // the supporting leg's
} WalkerPilot;

#define WALKER_PILOT_SPEED 0.29
#define WALKER_PILOT_KNEE  0.1

static inline void walker_pilot_start(WalkerPilot *w) { w->phase = 0, w->moving_leg = 0, w->knee = WALKER_PILOT_KNEE; }

static inline double walker_pilot_least(double a, double b) { return b < a ? b : a; }

// What hips and knees are to go for; 0 for nothing in particular.
static inline void walker_pilot_plan(WalkerPilot *w, const double s[24], double hip[2], double knee[2]) {
    int moving = w->moving_leg, supporting = 1 - moving;
    const double *of_moving = s + 4 + 5 * moving, *of_supporting = s + 4 + 5 * supporting;
    if (w->phase == 0) {
        hip[moving] = 1.1, knee[moving] = -0.6;
        w->knee += s[2] > WALKER_PILOT_SPEED ? 0.06 : 0.03;
        w->knee = walker_pilot_least(w->knee, WALKER_PILOT_KNEE);
        knee[supporting] = w->knee;
        if (of_supporting[0] < 0.10) w->phase = 1;
    }
    if (w->phase == 1) {
        hip[moving] = 0.1, knee[moving] = WALKER_PILOT_KNEE, knee[supporting] = w->knee;
        if (of_moving[4] != 0.0) w->phase = 2, w->knee = walker_pilot_least(of_moving[2], WALKER_PILOT_KNEE);
    }
    if (w->phase == 2) {
        knee[moving] = w->knee, knee[supporting] = 1.0;
        if (of_supporting[2] > 0.88 || s[2] > 1.2 * WALKER_PILOT_SPEED) w->phase = 0, w->moving_leg = 1 - moving;
    }
}

// obs: of one env, `stride` floats apart.
static inline void walker_pilot_act(WalkerPilot *w, const float *obs, int stride, float action[4]) {
    double s[24], hip[2] = {0, 0}, knee[2] = {0, 0};
    for (int k = 0; k < 24; k++)
        s[k] = (double)obs[k * stride];
    walker_pilot_plan(w, s, hip, knee);
    for (int leg = 0; leg < 2; leg++) {
        const double *of = s + 4 + 5 * leg;
        double turn[2];
        turn[0] = hip[leg] != 0.0 ? 0.9 * (hip[leg] - of[0]) - 0.25 * of[1] : 0.0;
        turn[1] = knee[leg] != 0.0 ? 4.0 * (knee[leg] - of[2]) - 0.25 * of[3] : 0.0;
        turn[0] -= 0.9 * (0 - s[0]) - 1.5 * s[1]; // upright
        turn[1] -= 15.0 * s[3];                   // damps jumps
        for (int k = 0; k < 2; k++) {
            double half = 0.5 * turn[k];
            action[2 * leg + k] = (float)(half < -1.0 ? -1.0 : half > 1.0 ? 1.0 : half);
        }
    }
}

#endif
