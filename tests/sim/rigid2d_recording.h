// Recordings of Box2D's worlds, which box2d_recording.py describes: states word by word, and what has to be in them.
// For tests of simulators against their originals.
#ifndef SHOAL_TESTS_SIM_RIGID2D_RECORDING_H
#define SHOAL_TESTS_SIM_RIGID2D_RECORDING_H

#include "parity_data.h"
#include "rigid2d_words.h"

#include <cstdio>
#include <map>
#include <random>
#include <string>

// The states of a recording. Words: a simulator's bodies, joints and contacts as arrays.
class RecordedStates {
  public:
    explicit RecordedStates(const ParityData &data) : data_(data) {
        first_contact_.push_back(0), first_point_.push_back(0);
        for (size_t i = 0; i < data_.extent("contacts", 0); i++) {
            size_t at = first_contact_.back(), points = first_point_.back(), end = at + integer("contacts", i);
            for (size_t k = at; k < end; k++)
                points += integer("contact", k) >> 24 > 0;
            first_contact_.push_back(end), first_point_.push_back(points);
        }
    }

    size_t integer(const char *name, size_t i) const { return static_cast<size_t>(data_.values<int32_t>(name)[i]); }

    template <typename Words> void read(size_t i, Words *words) const {
        read_fixed(data_.values<int32_t>("state") + i * fixed_words(*words), words);
        words->contacts = static_cast<int32_t>(integer("contacts", i));
        const int32_t *point = data_.values<int32_t>("contact_point") + 6 * first_point_[i];
        for (int32_t k = 0; k < words->contacts; k++) {
            int32_t pair = data_.values<int32_t>("contact")[first_contact_[i] + static_cast<size_t>(k)];
            int32_t contact[8] = {pair & 0xffffff, pair >> 24};
            if (contact[1] > 0) {
                std::memcpy(contact + 2, point, 6 * sizeof *point);
                point += 6;
            }
            WordReader{contact}.contact(&words->contact[k]);
        }
    }

  private:
    const ParityData &data_;
    std::vector<size_t> first_contact_, first_point_;
};

// What happened in a step, by the original's state after it.
struct Happened {
    bool touching = false, at_limit = false, impacts = false, asleep = false;

    Happened() = default;
    template <typename Words> Happened(const Words &after, int impacts_of_step) : impacts(impacts_of_step > 0) {
        for (int32_t k = 0; k < after.contacts; k++)
            touching |= after.contact[k].points > 0;
        for (const Rigid2dJoint &joint : after.joint)
            at_limit |= joint.limit_nms != R(0.0);
        for (const Rigid2dBody &body : after.body)
            asleep |= !body.awake;
    }
};

// How many steps of a recording had what, beside what its header says.
class Coverage {
  public:
    // policy: "heuristic", "random" or "trained", or NULL for others.
    void add(const Happened &happened, const char *policy) {
        count_["touching"] += happened.touching, count_["at_limit"] += happened.at_limit;
        count_["impacts"] += happened.impacts, count_["asleep"] += happened.asleep;
        if (policy != nullptr) count_[policy]++;
    }

    // Hundreds of each, as many as the recorder counted.
    void expect(const ParityData &data) const {
        for (const char *name : {"touching", "at_limit", "impacts", "asleep", "heuristic", "random", "trained"}) {
            auto found = count_.find(name);
            const int count = found == count_.end() ? 0 : found->second;
            EXPECT_EQ(count, data.number(name)) << name;
            EXPECT_GE(count, 200) << name;
            std::printf("%s %d%s", name, count, std::strcmp(name, "trained") == 0 ? "\n" : ", ");
        }
    }

  private:
    std::map<std::string, int> count_;
};

// A step beside the recorded one; errors are of max(1, |original|).
struct ComparedStep {
    Happened happened;
    double error = 0, obs_error = 0, lidar_error = 0, reward_error = 0; // error: of bodies
    int policy = 0, impacts = 0, want_impacts = 0;
    bool same_pairs = false, same_flags = false;

    bool good() const { return std::max({error, obs_error, lidar_error, reward_error}) <= 1e-4 && same_flags; }
};

// A start that differs from the recorded one by up to 1e-6 of max(1, |value|), as rounding would make it, in each of
// the bodies' positions, angles and velocities.
template <typename Words> Words shaken(Words words, std::mt19937_64 *random) {
    std::uniform_real_distribution<double> share(-1e-6, 1e-6);
    for (Rigid2dBody &b : words.body) {
        for (real *x : {&b.x_m, &b.y_m, &b.angle_rad, &b.vx_mps, &b.vy_mps, &b.spin_radps})
            *x += static_cast<real>(share(*random) * std::max(1.0, std::fabs(static_cast<double>(*x))));
    }
    return words;
}

// Whether rounding explains how far a step is from the original's: from shaken starts, which step(start) tries, ours
// differs from ours by half as much or more. Then a contact or an impact is made or missed at its threshold, or the
// solver amplifies what it is given.
template <typename Words, typename Step> bool is_explained(const ComparedStep &row, const Words &start, Step step) {
    using Error = double ComparedStep::*;
    const Error kinds[] = {&ComparedStep::error, &ComparedStep::obs_error, &ComparedStep::lidar_error,
                           &ComparedStep::reward_error};
    double moved[4] = {};
    bool flags = row.same_flags;
    std::mt19937_64 random(1);
    for (int i = 0; i < 500; i++) {
        const ComparedStep other = step(shaken(start, &random));
        for (int k = 0; k < 4; k++)
            moved[k] = std::max(moved[k], std::fabs(other.*kinds[k] - row.*kinds[k]));
        flags |= other.same_flags;
    }
    for (int k = 0; k < 4; k++)
        flags &= row.*kinds[k] <= 1e-4 || moved[k] >= 0.5 * row.*kinds[k];
    return flags;
}

// All steps of a recording.
class Comparison {
  public:
    // explained: asked of a step that is not good.
    template <typename Explained>
    void add(int i, const ComparedStep &step, const std::string &category, Explained explained) {
        steps_++;
        flags_differ_ += !step.same_flags, pairs_differ_ += !step.same_pairs;
        impacts_differ_ += step.impacts != step.want_impacts;
        errors_[category].push_back(step.error);
        lidar_.push_back(step.lidar_error), reward_.push_back(step.reward_error);
        if (step.good()) return;
        bad_[category]++, bad_of_all_++;
        std::printf("step %d, policy %d, %s: errors of bodies %.1e, observation %.1e, lidar %.1e, reward %.1e%s%s; "
                    "impacts %d and %d\n",
                    i, step.policy, category.c_str(), step.error, step.obs_error, step.lidar_error, step.reward_error,
                    step.same_flags ? "" : ", flags", step.same_pairs ? "" : ", contacts", step.impacts,
                    step.want_impacts);
        // In double ours lacks the rounding that the solver itself adds in the original, which is in float.
        const bool is_double = sizeof(real) == 8;
        EXPECT_TRUE(is_double || explained()) << i;
    }

    // exact: categories in which bodies have to be within 1e-4 throughout.
    void expect(std::initializer_list<const char *> exact) {
        for (auto &item : errors_) {
            std::printf("%s %-22s %5zu steps: error median %.1e p99 %.1e max %.1e; %d beyond\n",
                        sizeof(real) == 8 ? "double" : "float ", item.first.c_str(), item.second.size(),
                        quantile(item.second, 0.5), quantile(item.second, 0.99), quantile(item.second, 1),
                        bad_[item.first]);
        }
        std::printf(
            "%d of %d beyond 1e-4; flags differ in %d, contacts in %d, impacts in %d; lidar max %.1e, reward max "
            "%.1e\n",
            bad_of_all_, steps_, flags_differ_, pairs_differ_, impacts_differ_, quantile(lidar_, 1),
            quantile(reward_, 1));
        EXPECT_GE(steps_, 5000);
        // The double build lacks the original's rounding, which far from the origin and at rest tells.
        const bool is_float = sizeof(real) == 4;
        EXPECT_LE(bad_of_all_, (is_float ? 0.01 : 0.02) * steps_);
        for (int differ : {flags_differ_, pairs_differ_, impacts_differ_})
            EXPECT_LE(differ, (is_float ? 0.001 : 0.01) * steps_);
        for (const char *category : exact)
            EXPECT_LE(quantile(errors_[category], 1), 1e-4) << category;
    }

    size_t steps_of(const char *category) { return errors_[category].size(); }

  private:
    std::map<std::string, std::vector<double>> errors_;
    std::map<std::string, int> bad_;
    std::vector<double> lidar_, reward_;
    int steps_ = 0, bad_of_all_ = 0, flags_differ_ = 0, pairs_differ_ = 0, impacts_differ_ = 0;
};

#endif
