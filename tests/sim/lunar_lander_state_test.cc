// What LunarLander makes of input that no episode has: actions and states that are NaN, fast, damaged, or need more
// contacts than there is room for. All of it ends in a defined state, or in a NaN that the batch reports. And the bits
// of whole episodes.
#include "real_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace {

using Discrete = Traits<LunarLanderState>;
using Continuous = Traits<LunarLanderContinuousState>;

SimRng episode_rng(uint32_t episode) { return SimRng{1234, 0, 0, episode, 0, SIM_RNG_EPISODE}; }

LunarLanderState a_start(uint32_t episode) {
    const LunarLanderParams p = Discrete::defaults();
    LunarLanderState s;
    SimRng rng = episode_rng(episode);
    lunar_lander_reset(&s, &p, &rng);
    return s;
}

// steps: of the action; the state is what they leave.
SimStep fly(LunarLanderState *s, int32_t action, int steps) {
    const LunarLanderParams p = Discrete::defaults();
    SimStep out = {R(0.0), 0};
    for (int step = 1; step <= steps; step++) {
        SimRng rng = episode_rng(0);
        rng.c0 = static_cast<uint32_t>(step) << 8;
        out = lunar_lander_step(s, &p, &action, nullptr, &rng);
    }
    return out;
}

std::vector<std::pair<std::string, real *>> real_fields(LunarLanderState *s) {
    RealFields fields;
    LUNAR_LANDER_STATE(COLLECT_FIELD) return fields.found;
}

const char *const REMADE[] = {"_still_s", "_low_x_m", "_low_y_m", "_high_x_m", "_high_y_m", "_limit_nms"};

TEST(LunarLanderStateTest, ANanActionIsFound) {
    const LunarLanderContinuousParams p = Continuous::defaults();
    for (int k = 0; k < 2; k++) {
        LunarLanderContinuousState s;
        SimRng rng = episode_rng(1);
        lunar_lander_continuous_reset(&s, &p, &rng);
        float action[2] = {0, 0};
        action[k] = NAN;
        SimStep out = lunar_lander_continuous_step(&s, &p, nullptr, action, &rng);
        EXPECT_TRUE(std::isnan(out.reward)) << k;
        EXPECT_TRUE(std::isnan(s.lander_x_m)) << k;
        for (int i = 0; i < 100; i++)
            lunar_lander_continuous_step(&s, &p, nullptr, action, &rng);
    }
}

TEST(LunarLanderStateTest, ANanInAnyFieldIsFound) {
    LunarLanderState s = a_start(1);
    const size_t fields = real_fields(&s).size();
    for (size_t k = 0; k < fields; k++) {
        s = a_start(1);
        auto [name, value] = real_fields(&s)[k];
        *value = static_cast<real>(NAN);
        SimStep out = fly(&s, 2, 1);
        bool is_found = std::isnan(out.reward) || has_nan(Discrete::read(s));
        // Boxes, the time at rest, the impulse of a limit that is not reached and contacts that do not exist are made
        // anew.
        bool is_remade = std::any_of(std::begin(REMADE), std::end(REMADE), [&name = name](const char *end) {
            return name.size() > strlen(end) && name.compare(name.size() - strlen(end), strlen(end), end) == 0;
        });
        bool is_contact = name.rfind("contact", 0) == 0 && name != "contact_overflow";
        EXPECT_TRUE(is_found || is_remade || is_contact) << name;
    }
}

// Where the same points touch in the next step: others begin without an impulse.
TEST(LunarLanderStateTest, ANanImpulseOfATouchingContactIsFound) {
    LunarLanderState s = a_start(1);
    int found = 0;
    for (int step = 0; step < 100 * LUNAR_LANDER_CONTACTS; step++) {
        const int i = step % LUNAR_LANDER_CONTACTS;
        if (i == 0) fly(&s, 0, 1);
        LunarLanderState t = s;
        LunarLanderWords words;
        std::memcpy(&words, &t, sizeof words);
        if (words.contact[i].points == 0) continue;
        words.contact[i].normal0_ns = static_cast<real>(NAN);
        std::memcpy(&t, &words, sizeof words);
        SimStep out = fly(&t, 0, 1);
        found += std::isnan(out.reward) || has_nan(Discrete::read(t));
    }
    EXPECT_GE(found, 1);
}

TEST(LunarLanderStateTest, AFastLanderIsSlowedDown) {
    for (double vx : {-1e6, 0.0, 1e6}) {
        for (double vy : {-1e6, 0.0, 1e6}) {
            for (double spin : {0.0, 1e6}) {
                LunarLanderState s = a_start(2);
                s.lander_vx_mps = s.leg0_vx_mps = s.leg1_vx_mps = static_cast<real>(vx);
                s.lander_vy_mps = s.leg0_vy_mps = s.leg1_vy_mps = static_cast<real>(vy);
                s.lander_spin_radps = static_cast<real>(spin);
                for (int i = 0; i < 200; i++) {
                    SimStep out = fly(&s, 0, 1);
                    for (double x : Discrete::read(s))
                        ASSERT_TRUE(std::isfinite(x)) << vx << " " << vy << " " << spin << " step " << i;
                    ASSERT_TRUE(std::isfinite(out.reward));
                    ASSERT_LE(std::hypot(s.lander_vx_mps, s.lander_vy_mps), 100.01) << "2 m a step at most";
                }
            }
        }
    }
}

TEST(LunarLanderStateTest, AnOverflowBecomesANanInTheState) {
    LunarLanderState s = a_start(1);
    EXPECT_EQ(s.contact_overflow, R(0.0));
    LunarLanderWords words;
    std::memcpy(&words, &s, sizeof words);
    for (Rigid2dBody &body : words.body) {
        body.low_x_m = body.low_y_m = R(-100.0);
        body.high_x_m = body.high_y_m = R(100.0);
    }
    std::memcpy(&s, &words, sizeof words);
    fly(&s, 0, 1);
    EXPECT_TRUE(std::isnan(s.contact_overflow));
    EXPECT_EQ(s.contacts, LUNAR_LANDER_CONTACTS);
}

TEST(LunarLanderStateTest, ADamagedStateIsReportedAndReadsNothingOutside) {
    for (uint32_t seed = 0; seed < 200; seed++) {
        LunarLanderState s;
        uint32_t words[sizeof s / 4];
        for (uint32_t i = 0; i < sizeof s / 4; i++)
            words[i] = sim_philox(i, seed, 0, 0, 5, 0).x0;
        std::memcpy(&s, words, sizeof s);
        s.wind_step = s.turbulence_step = 0;
        if (seed % 2 == 0) s.contacts = 1 + static_cast<int32_t>(seed % LUNAR_LANDER_CONTACTS);
        fly(&s, 0, 1);
        EXPECT_TRUE(std::isnan(s.contact_overflow)) << seed;
    }
}

// The bits of 40 episodes of random actions: see AThousandStepsKeepTheirBits in invariants_test.cc.
TEST(LunarLanderStateTest, EpisodesKeepTheirBits) {
    const LunarLanderParams p = Discrete::defaults();
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t episode = 0; episode < 40; episode++) {
        LunarLanderState s = a_start(episode);
        SimRng rng = episode_rng(episode);
        SimStep out = {R(0.0), 0};
        for (uint32_t step = 1; step <= 1000 && !out.terminated; step++) {
            rng.c0 = step << 8;
            int32_t action = static_cast<int32_t>(sim_philox(step, episode, 0, 0, 77, 0).x0 >> 30);
            out = lunar_lander_step(&s, &p, &action, nullptr, &rng);
            uint32_t words[sizeof s / 4];
            std::memcpy(words, &s, sizeof s);
            for (uint32_t word : words)
                hash = (hash ^ word) * 0x100000001b3u;
            hash = (hash ^ sim_bits_from_float(out.reward)) * 0x100000001b3u;
        }
    }
    EXPECT_EQ(hash, 0xa60a511a9ba4d548u) << std::hex << hash;
}

} // namespace
