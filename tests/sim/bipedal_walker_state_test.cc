// What BipedalWalker, on grass and hardcore, makes of input that no episode has: actions and states that are NaN, fast,
// damaged, or need more contacts than there is room for. All of it ends in a defined state, or in a NaN that the batch
// reports. And the bits of whole episodes.
#include "real_fields.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace {

SimRng episode_rng(uint32_t episode) { return SimRng{1234, 0, 0, episode, 0, SIM_RNG_EPISODE}; }

template <typename State> State a_start(uint32_t episode) {
    const typename Traits<State>::Params p = Traits<State>::defaults();
    State s;
    SimRng rng = episode_rng(episode);
    Traits<State>::reset(&s, &p, &rng);
    return s;
}

template <typename State> SimStep walk(State *s, const float *action, int steps) {
    const typename Traits<State>::Params p = Traits<State>::defaults();
    SimRng rng = episode_rng(0);
    SimStep out = {R(0.0), 0};
    for (int step = 1; step <= steps; step++)
        out = Traits<State>::step(s, &p, nullptr, action, &rng);
    return out;
}

std::vector<std::pair<std::string, real *>> real_fields(BipedalWalkerState *s) {
    RealFields fields;
    BIPEDAL_WALKER_STATE(COLLECT_FIELD) return fields.found;
}
std::vector<std::pair<std::string, real *>> real_fields(BipedalWalkerHardcoreState *s) {
    RealFields fields;
    BIPEDAL_WALKER_HARDCORE_STATE(COLLECT_FIELD) return fields.found;
}

template <typename State> class BipedalWalkerStateTest : public testing::Test {};
using States = testing::Types<BipedalWalkerState, BipedalWalkerHardcoreState>;
TYPED_TEST_SUITE(BipedalWalkerStateTest, States);

TYPED_TEST(BipedalWalkerStateTest, ANanActionIsFound) {
    for (int k = 0; k < 4; k++) {
        TypeParam s = a_start<TypeParam>(1);
        float action[4] = {0.5f, 0, -0.5f, 1};
        action[k] = NAN;
        SimStep out = walk(&s, action, 1);
        EXPECT_TRUE(std::isnan(out.reward)) << k;
        EXPECT_TRUE(std::isnan(s.hull_x_m)) << k;
        walk(&s, action, 100);
    }
}

TYPED_TEST(BipedalWalkerStateTest, ActionsAreClippedToTheMotorsTorque) {
    TypeParam s = a_start<TypeParam>(1), t = s;
    const float full[4] = {1, -1, 1, -1}, more[4] = {7, -1e30f, INFINITY, -1.5f};
    for (int i = 0; i < 20; i++) {
        SimStep a = walk(&s, full, 1), b = walk(&t, more, 1);
        ASSERT_EQ(a.reward, b.reward);
        ASSERT_EQ(0, std::memcmp(&s, &t, sizeof s));
    }
}

// Boxes, the time at rest, impulses of contacts that do not touch and of a limit that is not reached are made anew.
TYPED_TEST(BipedalWalkerStateTest, ANanInAnyFieldIsFound) {
    const char *const remade[] = {"_still_s", "_low_x_m", "_low_y_m", "_high_x_m", "_high_y_m", "_limit_nms"};
    const float action[4] = {1, 1, 1, 1};
    TypeParam s = a_start<TypeParam>(1);
    const size_t fields = real_fields(&s).size();
    for (size_t k = 0; k < fields; k++) {
        s = a_start<TypeParam>(1);
        auto [name, value] = real_fields(&s)[k];
        *value = static_cast<real>(NAN);
        SimStep out = walk(&s, action, 1);
        bool is_found = std::isnan(out.reward) || has_nan(Traits<TypeParam>::read(s));
        bool is_remade = std::any_of(std::begin(remade), std::end(remade), [&name = name](const char *end) {
            return name.size() > strlen(end) && name.compare(name.size() - strlen(end), strlen(end), end) == 0;
        });
        bool is_impulse = name.rfind("contact", 0) == 0 && name != "contact_overflow";
        EXPECT_TRUE(is_found || is_remade || is_impulse) << name;
    }
}

TYPED_TEST(BipedalWalkerStateTest, ANanImpulseOfATouchingContactIsFound) {
    const float action[4] = {};
    TypeParam s = a_start<TypeParam>(1);
    walk(&s, action, 60);
    BipedalWalkerWords words;
    int touching = 0;
    for (int32_t i = 0; i < s.contacts; i++) {
        TypeParam t = s;
        std::memcpy(&words, &t, sizeof t);
        if (words.contact[i].points == 0) continue;
        touching++;
        words.contact[i].normal0_ns = static_cast<real>(NAN);
        std::memcpy(&t, &words, sizeof t);
        SimStep out = walk(&t, action, 1);
        EXPECT_TRUE(std::isnan(out.reward) || has_nan(Traits<TypeParam>::read(t))) << i;
    }
    EXPECT_GE(touching, 1);
}

TYPED_TEST(BipedalWalkerStateTest, AFastWalkerIsSlowedDown) {
    const float action[4] = {};
    for (double vx : {-1e6, 0.0, 1e6}) {
        for (double vy : {-1e6, 0.0, 1e6}) {
            for (double spin : {0.0, 1e6}) {
                TypeParam s = a_start<TypeParam>(2);
                s.hull_vx_mps = s.upper0_vx_mps = s.lower1_vx_mps = static_cast<real>(vx);
                s.hull_vy_mps = s.upper0_vy_mps = s.lower1_vy_mps = static_cast<real>(vy);
                s.hull_spin_radps = static_cast<real>(spin);
                for (int i = 0; i < 60; i++) {
                    SimStep out = walk(&s, action, 1);
                    // Many pieces of the ground at once are an overflow, which is an error.
                    if (std::isnan(s.contact_overflow)) break;
                    for (double x : Traits<TypeParam>::read(s))
                        ASSERT_TRUE(std::isfinite(x)) << vx << " " << vy << " " << spin << " step " << i;
                    ASSERT_TRUE(std::isfinite(out.reward));
                    ASSERT_LE(std::hypot(s.hull_vx_mps, s.hull_vy_mps), 100.01) << "2 m a step at most";
                }
            }
        }
    }
}

// Motors that push against their limits for ever: joints hold, nothing grows.
TYPED_TEST(BipedalWalkerStateTest, MotorsAtTheirLimitsHoldForTenThousandSteps) {
    const float action[4] = {1, -1, -1, 1};
    TypeParam s = a_start<TypeParam>(3);
    for (int i = 0; i < 10000; i++) {
        walk(&s, action, 1);
        ASSERT_EQ(s.contact_overflow, R(0.0)) << i;
        ASSERT_TRUE(std::isfinite(s.hull_x_m) && std::isfinite(s.lower1_y_m)) << i;
        ASSERT_LT(std::hypot(s.hull_x_m - s.lower0_x_m, s.hull_y_m - s.lower0_y_m), 3) << i;
        ASSERT_LT(std::hypot(s.hull_x_m - s.lower1_x_m, s.hull_y_m - s.lower1_y_m), 3) << i;
    }
}

TYPED_TEST(BipedalWalkerStateTest, AnOverflowBecomesANanInTheState) {
    TypeParam s = a_start<TypeParam>(1);
    const float action[4] = {};
    EXPECT_EQ(s.contact_overflow, R(0.0));
    s.hull_low_x_m = s.hull_low_y_m = R(-100.0), s.hull_high_x_m = s.hull_high_y_m = R(100.0);
    walk(&s, action, 1);
    EXPECT_TRUE(std::isnan(s.contact_overflow));
    EXPECT_EQ(s.contacts, BIPEDAL_WALKER_CONTACTS);
}

TYPED_TEST(BipedalWalkerStateTest, ADamagedStateIsReportedAndReadsNothingOutside) {
    const float action[4] = {};
    for (uint32_t seed = 0; seed < 200; seed++) {
        TypeParam s;
        uint32_t words[sizeof s / 4];
        for (uint32_t i = 0; i < sizeof s / 4; i++)
            words[i] = sim_philox(i, seed, 0, 0, 5, 0).x0;
        std::memcpy(&s, words, sizeof s);
        if (seed % 2 == 0) s.contacts = 1 + static_cast<int32_t>(seed % BIPEDAL_WALKER_CONTACTS);
        float obs[BIPEDAL_WALKER_OBS];
        const typename Traits<TypeParam>::Params p = Traits<TypeParam>::defaults();
        Traits<TypeParam>::observe(&s, &p, obs);
        walk(&s, action, 1);
        EXPECT_TRUE(std::isnan(s.contact_overflow)) << seed;
    }
}

TEST(BipedalWalkerHardcoreTest, ObstaclesAreOfEveryKindAndHaveRoom) {
    int most = 0, kinds[256] = {};
    for (uint32_t episode = 0; episode < 2000; episode++) {
        real terrain[BIPEDAL_WALKER_POINTS];
        BipedalWalkerBlock block[BIPEDAL_WALKER_BLOCKS];
        BipedalWalkerGround ground = {terrain, block, 0};
        SimRng rng = episode_rng(episode);
        bipedal_walker_build(&ground, &rng, R(1.0), 1);
        most = std::max(most, ground.blocks);
        for (int32_t i = 0; i < ground.blocks; i++)
            kinds[(block[i].place >> 8 & 15) << 4 | (block[i].place >> 16 & 15)]++;
    }
    EXPECT_GE(most, 30);
    EXPECT_LT(most, BIPEDAL_WALKER_BLOCKS);
    const int stump1 = kinds[0x11], stump2 = kinds[0x22], stair = kinds[0x41], pit = kinds[0x14];
    EXPECT_NEAR(stump1, stump2, 0.05 * stump1);
    EXPECT_NEAR(2.0 * (stump1 + stump2), pit, 0.05 * pit) << "two boxes each";
    EXPECT_NEAR(3.5 * (stump1 + stump2), stair, 0.08 * stair) << "three or four steps each";
}

// The bits of 20 episodes of random actions, which fall, and lie on their hulls for a while: see
// AThousandStepsKeepTheirBits in invariants_test.cc.
template <typename State> uint64_t hash_of_episodes() {
    const typename Traits<State>::Params p = Traits<State>::defaults();
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t episode = 0; episode < 20; episode++) {
        State s = a_start<State>(episode);
        SimRng rng = episode_rng(episode);
        for (uint32_t step = 1; step <= 150; step++) {
            SimWords4 w = sim_philox(step, episode, 0, 0, 77, 0);
            const float action[4] = {sim_uniform_from(w.x0) * 2 - 1, sim_uniform_from(w.x1) * 2 - 1,
                                     sim_uniform_from(w.x2) * 2 - 1, sim_uniform_from(w.x3) * 2 - 1};
            SimStep out = Traits<State>::step(&s, &p, nullptr, action, &rng);
            uint32_t words[sizeof s / 4], obs[BIPEDAL_WALKER_OBS];
            std::memcpy(words, &s, sizeof s);
            for (uint32_t word : words)
                hash = (hash ^ word) * 0x100000001b3u;
            float seen[BIPEDAL_WALKER_OBS];
            Traits<State>::observe(&s, &p, seen);
            std::memcpy(obs, seen, sizeof obs);
            for (uint32_t word : obs)
                hash = (hash ^ word) * 0x100000001b3u;
            hash = (hash ^ sim_bits_from_float(out.reward)) * 0x100000001b3u;
        }
    }
    return hash;
}

TEST(BipedalWalkerBitsTest, EpisodesKeepTheirBits) {
    const uint64_t plain = hash_of_episodes<BipedalWalkerState>(),
                   hardcore = hash_of_episodes<BipedalWalkerHardcoreState>();
    EXPECT_EQ(plain, 0x7b885dc3bef1554eu) << std::hex << plain;
    EXPECT_EQ(hardcore, 0x222ad302a0528ad6u) << std::hex << hardcore;
}

} // namespace
