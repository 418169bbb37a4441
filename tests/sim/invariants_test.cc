// What holds for every simulator whatever its original says: where episodes start, what stays in bounds, and the bits
// of a thousand steps.
#include "sim_traits.h"

#include <algorithm>
#include <cmath>

namespace {

struct Range {
    double low, high;
};

// Where each real field starts, uniformly, and the bounds it never leaves.
template <typename State> struct Documented;
template <> struct Documented<CartpoleState> {
    static std::vector<Range> start() { return {{-0.05, 0.05}, {-0.05, 0.05}, {-0.05, 0.05}, {-0.05, 0.05}}; }
    static std::vector<Range> bounds() { return {{-4.8, 4.8}, {-20, 20}, {-0.42, 0.42}, {-20, 20}}; }
};
template <> struct Documented<MountainCarState> {
    static std::vector<Range> start() { return {{-0.6, -0.4}, {0, 0}}; }
    static std::vector<Range> bounds() { return {{-1.2, 0.6}, {-0.07, 0.07}}; }
};
template <> struct Documented<MountainCarContinuousState> : Documented<MountainCarState> {};
template <> struct Documented<AcrobotState> {
    static std::vector<Range> start() { return {{-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}}; }
    static std::vector<Range> bounds() {
        return {{-3.1415930, 3.1415930}, {-3.1415930, 3.1415930}, {-12.566371, 12.566371}, {-28.274335, 28.274335}};
    }
};
template <> struct Documented<PendulumState> {
    static std::vector<Range> start() { return {{-3.1415928, 3.1415928}, {-1, 1}}; }
    static std::vector<Range> bounds() { return {{-1000, 1000}, {-8, 8}}; }
};

template <> struct Documented<PositionOnlyCartpoleState> : Documented<CartpoleState> {};

template <typename State> struct Golden;
template <> struct Golden<CartpoleState> { static constexpr uint64_t hash = 0x5ad11efec1ec86fcu; };
template <> struct Golden<MountainCarState> { static constexpr uint64_t hash = 0x0a9c75abd2155a1du; };
template <> struct Golden<MountainCarContinuousState> { static constexpr uint64_t hash = 0x7a8e97a2c3b74df6u; };
template <> struct Golden<AcrobotState> { static constexpr uint64_t hash = 0xb5c89338d91d6058u; };
template <> struct Golden<PositionOnlyCartpoleState> { static constexpr uint64_t hash = 0x9f347157d9507705u; };
template <> struct Golden<PendulumState> { static constexpr uint64_t hash = 0x78546ec084186bceu; };

// FNV-1a over the bits of floats.
void hash_float(uint64_t *hash, float x) {
    for (uint32_t bits = sim_bits_from_float(x), i = 0; i < 4; i++)
        *hash = (*hash ^ ((bits >> (8 * i)) & 255u)) * 0x100000001b3u;
}

SimRng episode_rng(uint32_t episode) { return SimRng{1234, 0, 0, episode, 0, SIM_RNG_EPISODE}; }

// Steps of uniformly random actions, each episode ended by termination or the time limit; visit(state, obs, step) after
// each one.
template <typename State, typename Visit> void random_steps(int steps, Visit visit) {
    using T = Traits<State>;
    const typename T::Params params = T::defaults();
    State s;
    uint32_t episode = 0;
    int age = 0;
    for (int i = 0; i < steps; i++) {
        SimRng rng = episode_rng(episode);
        if (age == 0) T::reset(&s, &params, &rng);
        rng.c0 = static_cast<uint32_t>(age + 1) << 8;
        SimWords4 w = sim_philox(static_cast<uint32_t>(i), 0, 0, 0, 77, 0);
        int32_t discrete =
            T::discrete ? static_cast<int32_t>(w.x0 % static_cast<uint32_t>(T::discrete + !T::discrete)) : 0;
        float continuous = T::low + 1.2f * (T::high - T::low) * (sim_uniform_from(w.x1) - 0.1f);
        SimStep out = T::step(&s, &params, &discrete, &continuous, &rng);
        float obs[T::obs];
        T::observe(&s, &params, obs);
        visit(s, obs, out);
        age++;
        if (out.terminated || age == T::time_limit) age = 0, episode++;
    }
}

template <typename State> class InvariantsTest : public testing::Test {};
using States = testing::Types<CartpoleState, MountainCarState, MountainCarContinuousState, AcrobotState, PendulumState,
                              PositionOnlyCartpoleState>;
TYPED_TEST_SUITE(InvariantsTest, States);

TYPED_TEST(InvariantsTest, ResetsFillTheDocumentedRange) {
    using T = Traits<TypeParam>;
    const int episodes = 20000;
    const typename T::Params params = T::defaults();
    const std::vector<Range> ranges = Documented<TypeParam>::start();
    std::vector<std::vector<double>> fields(ranges.size());
    for (int e = 0; e < episodes; e++) {
        TypeParam s;
        SimRng rng = episode_rng(static_cast<uint32_t>(e));
        T::reset(&s, &params, &rng);
        std::vector<double> values = T::read(s);
        ASSERT_EQ(values.size(), ranges.size());
        for (size_t k = 0; k < values.size(); k++)
            fields[k].push_back(values[k]);
    }
    for (size_t k = 0; k < ranges.size(); k++) {
        std::sort(fields[k].begin(), fields[k].end());
        EXPECT_GE(fields[k].front(), static_cast<double>(static_cast<float>(ranges[k].low)));
        EXPECT_LE(fields[k].back(), static_cast<double>(static_cast<float>(ranges[k].high)));
        if (ranges[k].low == ranges[k].high) continue;
        double distance = 0; // Kolmogorov and Smirnov's
        for (size_t i = 0; i < fields[k].size(); i++) {
            double p = (fields[k][i] - ranges[k].low) / (ranges[k].high - ranges[k].low);
            distance = std::max(distance, std::fabs(p - (static_cast<double>(i) + 0.5) / episodes));
        }
        EXPECT_LT(distance * std::sqrt(episodes), 1.95) << "field " << k;
    }
}

TYPED_TEST(InvariantsTest, StatesStayInBounds) {
    const std::vector<Range> bounds = Documented<TypeParam>::bounds();
    random_steps<TypeParam>(100000, [&](const TypeParam &s, const float *obs, SimStep out) {
        std::vector<double> values = Traits<TypeParam>::read(s);
        for (size_t k = 0; k < values.size(); k++) {
            ASSERT_GE(values[k], static_cast<double>(static_cast<float>(bounds[k].low))) << "field " << k;
            ASSERT_LE(values[k], static_cast<double>(static_cast<float>(bounds[k].high))) << "field " << k;
        }
        for (int k = 0; k < Traits<TypeParam>::obs; k++)
            ASSERT_TRUE(std::isfinite(obs[k]));
        ASSERT_TRUE(std::isfinite(out.reward));
        ASSERT_TRUE(out.terminated == 0 || out.terminated == 1);
    });
}

// The bits of 1,000 steps. They are the same for every compiler, processor and vector width; a change means that the
// physics, the mathematics or the random numbers changed, and with them every published result.
TYPED_TEST(InvariantsTest, AThousandStepsKeepTheirBits) {
    uint64_t hash = 0xcbf29ce484222325u;
    random_steps<TypeParam>(1000, [&](const TypeParam &s, const float *obs, SimStep out) {
        for (double value : Traits<TypeParam>::read(s))
            hash_float(&hash, static_cast<float>(value));
        for (int k = 0; k < Traits<TypeParam>::obs; k++)
            hash_float(&hash, obs[k]);
        hash_float(&hash, out.reward);
        hash_float(&hash, static_cast<float>(out.terminated));
    });
    EXPECT_EQ(hash, Golden<TypeParam>::hash) << std::hex << hash;
}

// A NaN must not be hidden: it has to reach the observation, where the batch finds it.
TYPED_TEST(InvariantsTest, NanReachesTheObservation) {
    using T = Traits<TypeParam>;
    const typename T::Params params = T::defaults();
    const size_t fields = Documented<TypeParam>::start().size();
    for (size_t k = 0; k < fields; k++) {
        float values[8] = {};
        values[k] = std::nanf("");
        TypeParam s = T::write(values);
        int32_t discrete = 0;
        float continuous = 0;
        SimRng rng = {};
        T::step(&s, &params, &discrete, &continuous, &rng);
        float obs[T::obs];
        T::observe(&s, &params, obs);
        EXPECT_TRUE(std::any_of(obs, obs + T::obs, [](float x) { return std::isnan(x); })) << "field " << k;
    }
}

TEST(CartpoleTest, AFallenPoleEarnsOnceThenNothing) {
    const CartpoleParams p = Traits<CartpoleState>::defaults();
    const float tilted[4] = {0, 0, 0.2f, 1.0f};
    CartpoleState s = Traits<CartpoleState>::write(tilted);
    int32_t right = 1;
    SimStep first = cartpole_step(&s, &p, &right, nullptr, nullptr);
    SimStep second = cartpole_step(&s, &p, &right, nullptr, nullptr);
    EXPECT_EQ(first.terminated, 1);
    EXPECT_EQ(first.reward, 1.0f);
    EXPECT_EQ(second.terminated, 1);
    EXPECT_EQ(second.reward, 0.0f);
}

TEST(PositionOnlyCartpoleTest, IsCartpoleSeenByItsPositions) {
    const CartpoleParams p = Traits<CartpoleState>::defaults();
    const PositionOnlyCartpoleParams q = Traits<PositionOnlyCartpoleState>::defaults();
    CartpoleState s;
    PositionOnlyCartpoleState t;
    SimRng rng = episode_rng(3), same = rng;
    cartpole_reset(&s, &p, &rng);
    position_only_cartpole_reset(&t, &q, &same);
    for (int step = 0; step < 100; step++) { // until long after the pole has fallen
        int32_t push = step % 3 == 0;
        SimStep want = cartpole_step(&s, &p, &push, nullptr, &rng);
        SimStep got = position_only_cartpole_step(&t, &q, &push, nullptr, &same);
        float whole[4], seen[2];
        cartpole_observe(&s, &p, whole);
        position_only_cartpole_observe(&t, &q, seen);
        ASSERT_EQ(Traits<CartpoleState>::read(s), Traits<PositionOnlyCartpoleState>::read(t));
        ASSERT_EQ(s.fallen, t.fallen);
        ASSERT_EQ(want.reward, got.reward);
        ASSERT_EQ(want.terminated, got.terminated);
        ASSERT_EQ(seen[0], whole[0]);
        ASSERT_EQ(seen[1], whole[2]);
    }
    EXPECT_EQ(s.fallen, 1);
}

TEST(MountainCarTest, TheLeftWallStopsTheCar) {
    const MountainCarParams p = Traits<MountainCarState>::defaults();
    const float start[2] = {-1.19f, -0.05f};
    MountainCarState s = Traits<MountainCarState>::write(start);
    int32_t left = 0;
    mountain_car_step(&s, &p, &left, nullptr, nullptr);
    EXPECT_EQ(s.position, p.min_position);
    EXPECT_EQ(s.velocity, 0.0f);
}

TEST(MountainCarContinuousTest, TheUnclippedActionIsCharged) {
    const MountainCarContinuousParams p = Traits<MountainCarContinuousState>::defaults();
    const float start[2] = {-0.5f, 0};
    MountainCarContinuousState at_bound = Traits<MountainCarContinuousState>::write(start), beyond = at_bound;
    float one = 1, three = 3;
    EXPECT_FLOAT_EQ(mountain_car_continuous_step(&at_bound, &p, nullptr, &one, nullptr).reward, -0.1f);
    EXPECT_FLOAT_EQ(mountain_car_continuous_step(&beyond, &p, nullptr, &three, nullptr).reward, -0.9f);
    EXPECT_EQ(at_bound.velocity, beyond.velocity);
}

} // namespace
