#include "math_loops.h"

#include "sim/sim_math.h"

static inline uint32_t bits(float x) { return x == x ? sim_bits_from_float(x) : 0x7fc00000u; }

void MATH_LOOPS(const float *x, const float *y, uint32_t *out, int n) {
    const float *restrict px = x, *restrict py = y;
    uint32_t *restrict o = out;
    for (int i = 0; i < n; i++) {
        SimSinCosf a = sim_sincosf(px[i]);
        o[i] = bits(a.sin);
        o[i + n] = bits(a.cos);
    }
    o += n;
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_expf(px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_logf(px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_tanhf(px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_atan2f(py[i], px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_sqrtf(px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_floorf(px[i]));
    o += n;
    for (int i = 0; i < n; i++)
        o[i] = bits(sim_wrap_pi(px[i]));
}
