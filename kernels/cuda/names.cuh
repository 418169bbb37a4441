// The words that the bodies of kernels are written in, and what every simulator's body shares. A body is a .cuh file
// that kernels/cuda_sims.inc (made by the build from sim/sim_list.h) includes once for each simulator, with these
// defined:
//   SIM_NAME       cartpole
//   STATE, PARAMS  CartpoleState, CartpoleParams; STATE_FIELDS and PARAM_FIELDS are their X-macro lists
//   OBS, DISCRETE, ACTIONS   sizes of the observation and of the discrete and continuous actions
//   CHOICES        of all discrete actions together
// Token pasting, no templates.
#ifndef SHOAL_KERNELS_CUDA_NAMES_CUH
#define SHOAL_KERNELS_CUDA_NAMES_CUH

#include "kernels/cuda/launch.h"
#include "kernels/sim_param.h"
#include "sim/sim_list.h"

#define DEVICE_FN static __device__ __forceinline__

// BODY(step): cartpole_step. The arguments are expanded before they are joined.
#define BODY_JOIN_(a, b) a##_##b
#define BODY_JOIN(a, b)  BODY_JOIN_(a, b)
#define BODY(what)       BODY_JOIN(SIM_NAME, what)
#define SIM_CAT_(a, b)   a##b
#define SIM_CAT(a, b)    SIM_CAT_(a, b)
#define DISCRETE_SIZE    (DISCRETE > 0 ? DISCRETE : 1)
#define ACTIONS_SIZE     (ACTIONS > 0 ? ACTIONS : 1)
#define STATE_WORDS      ((int)(sizeof(STATE) / 4))
#define PARAM_WORDS      ((int)(sizeof(PARAMS) / 4))

// Fields of a state or of parameters, one word each, `stride` words apart; `word` counts at compile time.
#define READ_real(from)                         __uint_as_float(from)
#define READ_int32_t(from)                      ((int32_t)(from))
#define WRITE_real(value)                       __float_as_uint(value)
#define WRITE_int32_t(value)                    ((uint32_t)(value))
#define FIELD_LOAD(type, name)                  s.name = READ_##type(at[word * stride]), word++;
#define FIELD_STORE(type, name)                 at[word * stride] = WRITE_##type(s.name), word++;
#define PARAM_LOAD(name, value, unit, help)     p.name = __uint_as_float(at[word * stride]), word++;
#define PARAM_FIXED(name, standard, unit, help) p.name = sim.value[word], word++;
#define FINITE_real(name)                       finite = sim_fmaf(s.name, 0.0f, finite);
#define FINITE_int32_t(name)
#define FINITE(type, name)        FINITE_##type(name)
#define FIELD_IS_REAL_real        1,
#define FIELD_IS_REAL_int32_t     0,
#define FIELD_IS_REAL(type, name) FIELD_IS_REAL_##type
#define INFINITE_real(name)       field = field < 0 && is_infinite(s.name) ? word : field;
#define INFINITE_int32_t(name)
#define INFINITE(type, name) INFINITE_##type(name) word++;
#define STATE_IS_LARGE       (STATE_WORDS > 64)

DEVICE_FN bool is_infinite(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

// States as bytes, since they are no arrays of words.
static __device__ __noinline__ void load_words(char *state, const uint32_t *from, int stride, int count) {
#pragma unroll 1
    for (int k = 0; k < count; k++)
        memcpy(__builtin_assume_aligned(state + 4 * k, 4), from + k * stride, 4);
}

static __device__ __noinline__ void store_words(uint32_t *to, const char *state, int stride, int count) {
#pragma unroll 1
    for (int k = 0; k < count; k++)
        memcpy(to + k * stride, __builtin_assume_aligned(state + 4 * k, 4), 4);
}

// The first word that is a float and NaN or infinite; -1 if none is.
static __device__ __noinline__ int infinite_word(const char *state, const unsigned char *is_real, int count) {
#pragma unroll 1
    for (int k = 0; k < count; k++) {
        float word;
        memcpy(&word, __builtin_assume_aligned(state + 4 * k, 4), 4);
        if (is_real[k] && is_infinite(word)) return k;
    }
    return -1;
}

// The episode's parameters, as set or drawn, into at[stride * k]. A loop, not unrolled: a generator for each parameter
// would be most of the kernel.
DEVICE_FN void draw_params(const KernSim &sim, int count, SimRng rng, uint32_t *at, int stride) {
#pragma unroll 1
    for (int k = 0; k < count; k++) {
        at[k * stride] = __float_as_uint(kern_sim_param(&sim, rng, k));
    }
}

#endif
