// Worlds of sim/rigid2d that were recorded word by word, and how far ours are from them. For tests of simulators
// against their originals.
#ifndef SHOAL_TESTS_SIM_RIGID2D_WORDS_H
#define SHOAL_TESTS_SIM_RIGID2D_WORDS_H

#include <gtest/gtest.h> // before sim.h, see sim_traits.h

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "sim/rigid2d/rigid2d.h"

// The recorded words, one after the other; floats and int32 alike in 4 bytes.
struct WordReader {
    const int32_t *at;
    void field(real &x) {
        float value;
        std::memcpy(&value, at++, 4);
        x = static_cast<real>(value);
    }
    void field(int32_t &x) { x = *at++; }
#define READ_FIELD(type, name) field(to->name);
    void body(Rigid2dBody *to) { RIGID2D_BODY(READ_FIELD, ) }
    void joint(Rigid2dJoint *to) { RIGID2D_JOINT(READ_FIELD, ) }
    void contact(Rigid2dContact *to) { RIGID2D_CONTACT(READ_FIELD, ) }
#undef READ_FIELD
};

// Words: a simulator's bodies and joints as arrays, which come first in its recorded words.
template <typename Words> void read_fixed(const int32_t *at, Words *words) {
    WordReader reader{at};
    for (Rigid2dBody &body : words->body)
        reader.body(&body);
    for (Rigid2dJoint &joint : words->joint)
        reader.joint(&joint);
}

template <typename Words> size_t fixed_words(const Words &words) {
    return std::size(words.body) * 13 + std::size(words.joint) * 4;
}

// Impacts of continuous collision in the step that the world has made.
inline int impacts_of(const Rigid2dWorld &w) {
    int impacts = 0;
    for (int32_t i = 0; i < w.contacts; i++)
        impacts += w.touch[i].toi_count;
    return impacts;
}

inline double relative(real got, real want) {
    return static_cast<double>(std::fabs(got - want)) / std::max(1.0, std::fabs(static_cast<double>(want)));
}

// The largest difference of the bodies' positions, angles and velocities.
template <size_t bodies> double motion_error(const Rigid2dBody (&got)[bodies], const Rigid2dBody (&want)[bodies]) {
    double error = 0;
    for (size_t i = 0; i < bodies; i++) {
        const Rigid2dBody &a = got[i], &b = want[i];
        for (double e :
             {relative(a.x_m, b.x_m), relative(a.y_m, b.y_m), relative(a.angle_rad, b.angle_rad),
              relative(a.vx_mps, b.vx_mps), relative(a.vy_mps, b.vy_mps), relative(a.spin_radps, b.spin_radps)})
            error = std::isnan(e) ? 1e30 : std::max(error, e);
    }
    return error;
}

// Pairs, points and their names, in the order of the solver.
inline bool same_contacts(const Rigid2dContact *a, int32_t count_a, const Rigid2dContact *b, int32_t count_b) {
    bool same = count_a == count_b;
    for (int32_t i = 0; i < count_a && same; i++) {
        same = a[i].pair == b[i].pair && a[i].points == b[i].points && a[i].key0 == b[i].key0 && a[i].key1 == b[i].key1;
    }
    return same;
}

inline double quantile(std::vector<double> v, double q) {
    std::sort(v.begin(), v.end());
    return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1))];
}

#endif
