// LunarLander's steps against Gymnasium's, whose world is loaded word by word: bodies, impulses, boxes and the order of
// contacts (record_lunar_lander.py). Compiled twice: with float, as shipped, which is also what Box2D computes in, and
// with SIM_REAL_DOUBLE, where what remains is the original's rounding.
#include "parity_data.h"
#include "rigid2d_words.h"
#include "sim_traits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace {

constexpr bool is_double = sizeof(real) == 8;
constexpr double bound = 1e-4; // of max(1, |original|)

void read_fixed(const int32_t *at, LunarLanderWords *words) {
    WordReader reader{at};
    for (Rigid2dBody &body : words->body)
        reader.body(&body);
    for (Rigid2dJoint &joint : words->joint)
        reader.joint(&joint);
}

void read_contacts(const int32_t *at, int32_t count, LunarLanderWords *words) {
    WordReader reader{at};
    words->contacts = count;
    for (int32_t i = 0; i < count; i++)
        reader.contact(&words->contact[i]);
}

// The flags that Gymnasium has: awake, the lander has touched, the legs are in contact.
int flags(const LunarLanderWords &w) {
    return w.body[0].awake | (w.body[0].touch != 0) << 1 | (w.body[1].touch & RIGID2D_IN_CONTACT) << 2 |
           (w.body[2].touch & RIGID2D_IN_CONTACT) << 3;
}

struct Row {
    LunarLanderWords before = {}, after = {}, got = {};
    LunarLanderThrust thrust = {};
    SimStep out = {};
    double error = 0, obs_error = 0, reward_error = 0;
    int policy = 0;
    bool touching = false, good = false, same_pairs = false, same_flags = false;
};

class Recording {
  public:
    Recording() : data_("lunar_lander.parity") {}
    int steps() const { return data_.number("steps"); }

    // Rows come in order: their contacts are found by counting.
    Row next() {
        const size_t i = at_++;
        Row row;
        read_fixed(data_.values<int32_t>("before") + i * fixed, &row.before);
        read_fixed(data_.values<int32_t>("after") + i * fixed, &row.after);
        read_contacts(data_.values<int32_t>("before_contacts") + 8 * contacts_before_, count("before_count", i),
                      &row.before);
        read_contacts(data_.values<int32_t>("after_contacts") + 8 * contacts_after_, count("after_count", i),
                      &row.after);
        contacts_before_ += static_cast<size_t>(row.before.contacts);
        contacts_after_ += static_cast<size_t>(row.after.contacts);
        const float *terrain = data_.values<float>("terrain") + 11 * data_.values<int32_t>("episode")[i];
        for (int k = 0; k < LUNAR_LANDER_CHUNKS; k++)
            row.before.terrain_m[k] = static_cast<real>(terrain[k]);
        row.before.wind_step = data_.values<int32_t>("wind")[2 * i];
        row.before.turbulence_step = data_.values<int32_t>("wind")[2 * i + 1];
        row.before.shaping = static_cast<real>(data_.values<double>("shaping")[2 * i]);
        row.policy = data_.values<int32_t>("policy")[i];
        choose(i, &row);
        step(i, &row);
        return row;
    }

  private:
    static constexpr size_t fixed = 3 * 13 + 2 * 4;

    int32_t count(const char *name, size_t i) const { return data_.values<int32_t>(name)[i]; }

    void choose(size_t i, Row *row) {
        SimRng rng = {};
        int32_t action = data_.values<int32_t>("discrete")[i];
        row->thrust = action < 0 ? lunar_lander_continuous_choose(data_.values<float>("continuous") + 2 * i, &rng)
                                 : lunar_lander_choose(action, &rng);
        row->thrust.spread0 = static_cast<real>(data_.values<float>("draws")[2 * i]);
        row->thrust.spread1 = static_cast<real>(data_.values<float>("draws")[2 * i + 1]);
    }

    void step(size_t i, Row *row) {
        LunarLanderParams p = Traits<LunarLanderState>::defaults();
        p.wind = row->policy & 16 ? R(1.0) : R(0.0);
        row->got = row->before;
        row->out = lunar_lander_go(&row->got, &p, &row->thrust);
        row->error = motion_error(row->got.body, row->after.body);
        float obs[LUNAR_LANDER_OBS];
        lunar_lander_show(&row->got, obs);
        for (int k = 0; k < LUNAR_LANDER_OBS; k++) {
            real want =
                static_cast<real>(data_.values<float>("observation")[i * LUNAR_LANDER_OBS + static_cast<size_t>(k)]);
            row->obs_error = std::max(row->obs_error, relative(static_cast<real>(obs[k]), want));
        }
        row->reward_error = relative(row->out.reward, static_cast<real>(data_.values<double>("reward")[i]));
        row->same_flags =
            flags(row->got) == flags(row->after) && row->out.terminated == data_.values<uint8_t>("terminated")[i];
        row->same_pairs = same_contacts(row->got.contact, row->got.contacts, row->after.contact, row->after.contacts);
        row->good = row->error <= bound && row->obs_error <= bound && row->reward_error <= bound && row->same_flags;
        for (int32_t k = 0; k < row->after.contacts; k++)
            row->touching |= row->after.contact[k].points > 0;
    }

    ParityData data_;
    size_t at_ = 0, contacts_before_ = 0, contacts_after_ = 0;
};

const char *category(const Row &row) {
    if (!row.touching) return row.after.contacts > 0 ? "near the ground" : "in the air";
    return row.policy & 8 ? "touching, continuous" : row.policy & 16 ? "touching, wind" : "touching";
}

TEST(LunarLanderParityTest, OneStepMatchesGymnasium) {
    Recording recording;
    std::map<std::string, std::vector<double>> errors;
    std::map<std::string, int> bad;
    int good = 0, flags_differ = 0, pairs_differ = 0;
    ASSERT_GE(recording.steps(), 5000);
    for (int i = 0; i < recording.steps(); i++) {
        Row row = recording.next();
        good += row.good, flags_differ += !row.same_flags, pairs_differ += !row.same_pairs;
        bad[category(row)] += !row.good;
        errors[category(row)].push_back(row.error);
        if (row.good) continue;
        std::printf("step %d, policy %d, %s: errors of bodies %.1e, observation %.1e, reward %.1e\n", i, row.policy,
                    category(row), row.error, row.obs_error, row.reward_error);
    }
    for (auto &item : errors) {
        std::printf("%s %-22s %5zu steps: error median %.1e p99 %.1e max %.1e; %d beyond\n",
                    is_double ? "double" : "float ", item.first.c_str(), item.second.size(), quantile(item.second, 0.5),
                    quantile(item.second, 0.99), quantile(item.second, 1), bad[item.first]);
    }
    std::printf("%d of %d within %.0e; flags differ in %d, contacts in %d\n", good, recording.steps(), bound,
                flags_differ, pairs_differ);
    EXPECT_GE(good, 0.99 * recording.steps());
    EXPECT_LE(flags_differ, 0.001 * recording.steps());
    EXPECT_LE(pairs_differ, 0.001 * recording.steps());
    // Beyond the bound are only hard impacts, which amplify rounding, and in double rewards, which are differences of
    // numbers in the hundreds that the original has rounded to float.
    EXPECT_LE(quantile(errors["in the air"], 1), bound);
    EXPECT_LE(quantile(errors["near the ground"], 1), bound);
}

TEST(LunarLanderParityTest, AResetMatchesGymnasium) {
    ParityData data("lunar_lander.parity");
    const int resets = data.number("resets");
    ASSERT_GE(resets, 40);
    const LunarLanderParams p = Traits<LunarLanderState>::defaults();
    for (int i = 0; i < resets; i++) {
        const double *drawn = data.values<double>("reset_heights") + 12 * i,
                     *force = data.values<double>("reset_force") + 2 * i;
        real height[12];
        for (int k = 0; k < 12; k++)
            height[k] = static_cast<real>(drawn[k] / (400.0 / 30 / 2));
        LunarLanderWorld l;
        std::memset(&l.words, 0, sizeof l.words);
        lunar_lander_smooth(&l.words, height);
        for (int k = 0; k < LUNAR_LANDER_CHUNKS; k++)
            EXPECT_NEAR(l.words.terrain_m[k], data.values<float>("reset_terrain")[11 * i + k], 2e-6) << i << " " << k;
        lunar_lander_place(&l, &p);
        const LunarLanderThrust none = {};
        lunar_lander_advance(&l, &p, &none, rigid2d_vec(static_cast<real>(force[0]), static_cast<real>(force[1])));
        LunarLanderWords want = {};
        read_fixed(data.values<int32_t>("reset_after") + 47 * i, &want);
        EXPECT_LE(motion_error(l.words.body, want.body), bound) << i;
        EXPECT_LE(relative(l.words.shaping, static_cast<real>(data.values<double>("reset_shaping")[i])), 1e-5) << i;
        for (int k = 0; k < 3; k++) {
            EXPECT_NEAR(l.words.body[k].low_x_m, want.body[k].low_x_m, 1e-5) << "the fattened box";
            EXPECT_NEAR(l.words.body[k].high_y_m, want.body[k].high_y_m, 1e-5);
        }
    }
}

} // namespace
