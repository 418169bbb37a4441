// LunarLander's steps against Gymnasium's, whose world is loaded word by word: bodies, impulses, boxes and the order of
// contacts (record_lunar_lander.py). Compiled twice: with float, as shipped, which is also what Box2D computes in, and
// with SIM_REAL_DOUBLE, where what remains is the original's rounding.
#include "rigid2d_recording.h"
#include "sim_traits.h"

namespace {

// The flags that Gymnasium has: awake, the lander has touched, the legs are in contact.
int flags(const LunarLanderWords &w) {
    return w.body[0].awake | (w.body[0].touch != 0) << 1 | (w.body[1].touch & RIGID2D_IN_CONTACT) << 2 |
           (w.body[2].touch & RIGID2D_IN_CONTACT) << 3;
}

struct Row : ComparedStep {
    LunarLanderWords before = {}, after = {};
};

class Recording {
  public:
    Recording() : data_("lunar_lander.parity"), states_(data_) {}
    int steps() const { return data_.number("steps"); }
    const ParityData &data() const { return data_; }

    Row at(size_t i) const {
        Row row;
        const size_t state = states_.integer("step", i);
        states_.read(state, &row.before);
        states_.read(state + 1, &row.after);
        const float *terrain = data_.values<float>("terrain") + LUNAR_LANDER_CHUNKS * states_.integer("episode", i);
        for (int k = 0; k < LUNAR_LANDER_CHUNKS; k++)
            row.before.terrain_m[k] = static_cast<real>(terrain[k]);
        row.before.wind_step = data_.values<int32_t>("wind")[2 * i];
        row.before.turbulence_step = data_.values<int32_t>("wind")[2 * i + 1];
        row.before.shaping = static_cast<real>(data_.values<double>("shaping")[i]);
        row.policy = data_.values<int32_t>("policy")[i];
        row.want_impacts = data_.values<uint8_t>("impacts")[i];
        row.happened = Happened(row.after, row.want_impacts);
        return stepped(i, row, row.before);
    }

    // The row with a step from `start` in it.
    Row stepped(size_t i, Row row, const LunarLanderWords &start) const {
        LunarLanderParams p = Traits<LunarLanderState>::defaults();
        p.wind = row.policy & 16 ? R(1.0) : R(0.0);
        const LunarLanderThrust thrust = choose(i, row.policy);
        float obs[LUNAR_LANDER_OBS];
        LunarLanderWorld l;
        l.words = start;
        lunar_lander_start(&l, nullptr, &p, &thrust);
        rigid2d_island_iterate(&l.world);
        SimStep out = lunar_lander_finish(&l, obs);
        const LunarLanderWords &got = l.words;
        row.impacts = impacts_of(l.world);
        row.error = motion_error(got.body, row.after.body);
        row.obs_error = 0;
        for (size_t k = 0; k < LUNAR_LANDER_OBS; k++) {
            real want = static_cast<real>(data_.values<float>("observation")[i * LUNAR_LANDER_OBS + k]);
            row.obs_error = std::max(row.obs_error, relative(static_cast<real>(obs[k]), want));
        }
        row.reward_error = relative(out.reward, static_cast<real>(data_.values<double>("reward")[i]));
        row.same_flags = flags(got) == flags(row.after) && out.terminated == data_.values<uint8_t>("terminated")[i];
        row.same_pairs = same_contacts(got.contact, got.contacts, row.after.contact, row.after.contacts);
        return row;
    }

  private:
    LunarLanderThrust choose(size_t i, int policy) const {
        SimRng rng = {};
        const float *action = data_.values<float>("action") + 2 * i, *draws = data_.values<float>("draws") + 2 * i;
        LunarLanderThrust thrust = policy & 8 ? lunar_lander_continuous_choose(action, &rng)
                                              : lunar_lander_choose(static_cast<int32_t>(action[0]), &rng);
        thrust.spread0 = static_cast<real>(draws[0]), thrust.spread1 = static_cast<real>(draws[1]);
        return thrust;
    }

    ParityData data_;
    RecordedStates states_;
};

const char *category(const Row &row) {
    if (row.happened.asleep) return "asleep";
    if (!row.happened.touching) return row.after.contacts > 0 ? "near the ground" : "in the air";
    return row.policy & 8 ? "touching, continuous" : row.policy & 16 ? "touching, wind" : "touching";
}

const char *counted_as(int policy) {
    return policy == 0 ? "heuristic" : policy == 1 ? "random" : policy == 5 || policy == 6 ? "trained" : nullptr;
}

TEST(LunarLanderParityTest, OneStepMatchesGymnasium) {
    const Recording recording;
    Comparison comparison;
    Coverage coverage;
    for (int i = 0; i < recording.steps(); i++) {
        const auto at = static_cast<size_t>(i);
        const Row row = recording.at(at);
        coverage.add(row.happened, counted_as(row.policy));
        comparison.add(i, row, category(row), [&] {
            return is_explained(row, row.before,
                                [&](const LunarLanderWords &start) { return recording.stepped(at, row, start); });
        });
    }
    comparison.expect({"in the air", "near the ground", "asleep"});
    coverage.expect(recording.data());
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
        EXPECT_LE(motion_error(l.words.body, want.body), 1e-4) << i;
        EXPECT_LE(relative(l.words.shaping, static_cast<real>(data.values<double>("reset_shaping")[i])), 1e-5) << i;
        for (int k = 0; k < 3; k++) {
            EXPECT_NEAR(l.words.body[k].low_x_m, want.body[k].low_x_m, 1e-5) << "the fattened box";
            EXPECT_NEAR(l.words.body[k].high_y_m, want.body[k].high_y_m, 1e-5);
        }
    }
}

} // namespace
