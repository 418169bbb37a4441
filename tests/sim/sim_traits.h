// The simulators' functions behind one set of names, for tests written as templates: Traits<CartpoleState>::step(...).
#ifndef SHOAL_TESTS_SIM_SIM_TRAITS_H
#define SHOAL_TESTS_SIM_SIM_TRAITS_H

#include <gtest/gtest.h> // before sim.h: its macro R() meets a template parameter of that name

#include <vector>

#include "sim/sim_list.h"

// A state's fields as doubles, and back; integer fields stay out and are set to 0.
struct FieldReader {
    std::vector<double> values;
    void field(const real &x) { values.push_back(static_cast<double>(x)); }
    void field(const int32_t &) {}
};
struct FieldWriter {
    const float *next;
    void field(real &x) { x = static_cast<real>(*next++); }
    void field(int32_t &x) { x = 0; }
};

template <typename State> struct Traits;

#define TRAITS_PARAM(param, value, unit, help) p.param = static_cast<real>(value);
#define TRAITS_FIELD(type, field_name)         visitor.field(s.field_name);
#define TRAITS(sim, Name, NAME)                                                                         \
    template <> struct Traits<Name##State> {                                                            \
        using State = Name##State;                                                                      \
        using Params = Name##Params;                                                                    \
        static constexpr int obs = NAME##_OBS, continuous = NAME##_CONTINUOUS;                          \
        static std::vector<int> choices() { return {NAME##_DISCRETE(SIM_DISCRETE_ITEM)}; }              \
        static constexpr int time_limit = NAME##_TIME_LIMIT;                                            \
        static constexpr float low = NAME##_ACTION_LOW, high = NAME##_ACTION_HIGH;                      \
        static const char *name() { return #sim; }                                                      \
        static Params defaults() {                                                                      \
            Params p;                                                                                   \
            NAME##_PARAMS(TRAITS_PARAM) return p;                                                       \
        }                                                                                               \
        static void reset(State *s, const Params *p, SimRng *rng) { sim##_reset(s, p, rng); }           \
        static SimStep step(State *s, const Params *p, const int32_t *d, const float *c, SimRng *rng) { \
            return sim##_step(s, p, d, c, rng);                                                         \
        }                                                                                               \
        static void observe(const State *s, const Params *p, float *o) { sim##_observe(s, p, o); }      \
        static std::vector<double> read(const State &s) {                                               \
            FieldReader visitor;                                                                        \
            NAME##_STATE(TRAITS_FIELD) return visitor.values;                                           \
        }                                                                                               \
        static State write(const float *values) {                                                       \
            State s;                                                                                    \
            FieldWriter visitor{values};                                                                \
            NAME##_STATE(TRAITS_FIELD) return s;                                                        \
        }                                                                                               \
    };
SIM_LIST(TRAITS)

#endif
