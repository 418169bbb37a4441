// One simulator for one instruction set, at every number of lanes. The build compiles this file once for each pair,
// with SIM_NAME, SIM_TYPE, SIM_CONST, ISA and SIM_HEADER defined (kernels/CMakeLists.txt).
#include <string.h>

#include "kernels/cpu/islands.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/pipeline.h"
#include "kernels/sim_param.h"
#include SIM_HEADER

// BODY(step): cartpole_v4_16_step. The arguments are expanded before they are joined.
#define BODY_JOIN_(a, b, c, d) a##_##b##_##c##_##d
#define BODY_JOIN(a, b, c, d)  BODY_JOIN_(a, b, c, d)
#define BODY(what)             BODY_JOIN(SIM_NAME, ISA, LANES, what)
#define ISLANDS_JOIN_(isa)     cpu_islands_iterate_##isa
#define ISLANDS_JOIN(isa)      ISLANDS_JOIN_(isa)
#define ISLANDS_ITERATE        ISLANDS_JOIN(ISA)
#define SIM_CAT_(a, b)         a##b
#define SIM_CAT(a, b)          SIM_CAT_(a, b)
#define STATE                  SIM_CAT(SIM_TYPE, State)
#define PARAMS                 SIM_CAT(SIM_TYPE, Params)
#define OBS                    SIM_CAT(SIM_CONST, _OBS)
#define ACTIONS                SIM_CAT(SIM_CONST, _CONTINUOUS)
#define DISCRETE               SIM_DISCRETE_COUNT(SIM_CAT(SIM_CONST, _DISCRETE))
#define CHOICES                SIM_DISCRETE_SUM(SIM_CAT(SIM_CONST, _DISCRETE)) // of all discrete actions
#define OUTPUTS                (CHOICES + ACTIONS)
#define DISCRETE_SIZE          (DISCRETE + (DISCRETE == 0)) // no empty array
#define ACTIONS_SIZE           (ACTIONS + (ACTIONS == 0))
#define STATE_WORDS            ((int)(sizeof(STATE) / 4))
#define PARAM_WORDS            ((int)(sizeof(PARAMS) / 4))

#define BLOCK_FIELD(type, name)              type name[LANES];
#define BLOCK_LOAD(type, name)               s.name = block->name[l];
#define BLOCK_STORE(type, name)              block->name[l] = s.name;
#define BLOCK_PARAM(name, value, unit, help) float name[LANES];
#define PARAM_LOAD(name, value, unit, help)  p.name = block->name[l];
#define FINITE_real(name)                    finite = sim_fmaf(s.name, 0.0f, finite);
#define FINITE_int32_t(name)
#define FINITE(type, name)         FINITE_##type(name)
#define FIELD_EXPONENT_real        0x7f800000u,
#define FIELD_EXPONENT_int32_t     0u,
#define FIELD_EXPONENT(type, name) FIELD_EXPONENT_##type

_Static_assert(OBS <= LANES_OBS_MAX, "raise LANES_OBS_MAX");
_Static_assert(ACTIONS <= LANES_ACTIONS_MAX, "raise LANES_ACTIONS_MAX");
_Static_assert(DISCRETE <= LANES_DISCRETE_MAX && DISCRETE <= SIM_DISCRETE_MAX, "raise LANES_DISCRETE_MAX");
_Static_assert(OUTPUTS <= POLICY_OUTPUTS_MAX, "raise POLICY_OUTPUTS_MAX");
_Static_assert(sizeof(PARAMS) / 4 <= KERN_SIM_PARAMS_MAX, "raise KERN_SIM_PARAMS_MAX");

// States of many words are moved by loops: a line for each field would take gcc minutes, and nothing vectorises.
#define STATE_IS_LARGE (STATE_WORDS > 64)

typedef uint32_t __attribute__((may_alias)) Word;

static __attribute__((noinline, unused)) void load_words(STATE *to, const void *from, int stride) {
    Word *words = (Word *)to;
    for (int k = 0; k < STATE_WORDS; k++)
        words[k] = ((const Word *)from)[k * stride];
}

static __attribute__((noinline, unused)) void store_words(void *to, const STATE *from, int stride) {
    const Word *words = (const Word *)from;
    for (int k = 0; k < STATE_WORDS; k++)
        ((Word *)to)[k * stride] = words[k];
}

// gcc compiles simulators on rigid bodies without vectors (kernels/CMakeLists.txt), which is about floating point.
#ifdef __clang__
#define VECTORISED
#else
#define VECTORISED __attribute__((optimize("tree-vectorize")))
#endif

// Whether a word that is a real is NaN or infinite.
static VECTORISED __attribute__((noinline, unused)) int32_t has_infinite_word(const STATE *state) {
    static const uint32_t exponent[] = {SIM_CAT(SIM_CONST, _STATE)(FIELD_EXPONENT)};
    const Word *words = (const Word *)state;
    uint32_t found = 0;
    for (int k = 0; k < STATE_WORDS; k++)
        found |= (words[k] & exponent[k]) == 0x7f800000u;
    return (int32_t)found;
}

#define LANES 1
#include "kernels/cpu/lanes_body.inc"
#define LANES 8
#include "kernels/cpu/lanes_body.inc"
#define LANES 16
#include "kernels/cpu/lanes_body.inc"
