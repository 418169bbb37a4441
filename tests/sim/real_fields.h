// Names and places of a state's real fields, for tests of simulators with many of them.
#ifndef SHOAL_TESTS_SIM_REAL_FIELDS_H
#define SHOAL_TESTS_SIM_REAL_FIELDS_H

#include "tests/sim/sim_traits.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

// <NAME>_STATE(COLLECT_FIELD) collects those of the state `s` into `fields`.
struct RealFields {
    std::vector<std::pair<std::string, real *>> found;
    void field(const char *name, real *at) { found.emplace_back(name, at); }
    void field(const char *, int32_t *) {}
};
#define COLLECT_FIELD(type, name) fields.field(#name, &s->name);

inline bool has_nan(const std::vector<double> &values) {
    return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
}

#endif
