// One step of each simulator against 10,000 steps of the Gymnasium original. Compiled twice: with float, as shipped,
// and with SIM_REAL_DOUBLE, where what remains is the difference between equations.
#include "parity_data.h"
#include "sim_traits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

constexpr bool is_double = sizeof(real) == 8;
constexpr double pi = 3.14159265358979323846;

// How far the original's next state is from a place where the dynamics jump: a flag, a wall. Differences closer than
// 1e-6 to one are counted, not compared.
template <typename State> double threshold_distance(const double *next);
template <> double threshold_distance<CartpoleState>(const double *next) {
    return std::min(std::fabs(std::fabs(next[0]) - 2.4), std::fabs(std::fabs(next[2]) - 12 * pi / 180));
}
double car_distance(const double *next, double goal) {
    return std::min(
        {std::fabs(next[0] - goal), std::fabs(next[1]) + (next[0] < goal ? 1.0 : 0.0), std::fabs(next[0] + 1.2)});
}
template <> double threshold_distance<MountainCarState>(const double *next) { return car_distance(next, 0.5); }
template <> double threshold_distance<MountainCarContinuousState>(const double *next) {
    return car_distance(next, 0.45);
}
template <> double threshold_distance<AcrobotState>(const double *next) {
    return std::fabs(-std::cos(next[0]) - std::cos(next[0] + next[1]) - 1.0);
}
template <> double threshold_distance<PendulumState>(const double *) { return 1.0; }

// Acrobot's angles are wrapped: pi and -pi are the same place.
template <typename State> double difference(double a, double b, size_t, bool *wrapped) {
    *wrapped = false;
    return a - b;
}
template <> double difference<AcrobotState>(double a, double b, size_t field, bool *wrapped) {
    *wrapped = field < 2 && std::fabs(a - b) > pi;
    return *wrapped ? std::remainder(a - b, 2 * pi) : a - b;
}

// The error of a pendulum's observation is that of its angle, which is never wrapped: it grows with the angle's size.
template <typename State> double obs_scale(const double *) { return 1.0; }
template <> double obs_scale<PendulumState>(const double *next) { return std::max(1.0, std::fabs(next[0])); }

struct Errors {
    std::vector<double> state, obs, reward; // the first half of them from rollouts
    int at_threshold = 0, wrapped = 0, flag_mismatches = 0;
};

double relative(double difference, double reference) {
    return std::fabs(difference) / std::max(1.0, std::fabs(reference));
}

std::vector<double> first_half(const std::vector<double> &v) {
    return std::vector<double>(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2));
}

double quantile(std::vector<double> v, double q) {
    std::sort(v.begin(), v.end());
    return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1))];
}

template <typename State> void compare_step(const ParityData &data, size_t i, Errors *errors) {
    using T = Traits<State>;
    const size_t fields = data.extent("state", 1);
    const typename T::Params params = T::defaults();
    State s = T::write(data.values<float>("state") + i * fields);
    int32_t discrete = !T::choices().empty() ? data.values<int32_t>("action")[i] : 0;
    float continuous = T::continuous ? data.values<float>("action")[i] : 0.0f;
    SimRng rng = {};
    SimStep out = T::step(&s, &params, &discrete, &continuous, &rng);
    float obs[T::obs];
    T::observe(&s, &params, obs);

    const double *next = data.values<double>("next_state") + i * fields;
    std::vector<double> got = T::read(s);
    double state_error = 0, obs_error = 0;
    bool wrapped = false;
    for (size_t k = 0; k < fields; k++) {
        bool field_wrapped;
        state_error = std::max(state_error, relative(difference<State>(got[k], next[k], k, &field_wrapped), next[k]));
        wrapped |= field_wrapped;
    }
    for (size_t k = 0; k < T::obs; k++) {
        double want = static_cast<double>(data.values<float>("observation")[i * T::obs + k]);
        obs_error = std::max(obs_error, relative(static_cast<double>(obs[k]) - want, want) / obs_scale<State>(next));
    }
    double want_reward = data.values<double>("reward")[i];
    double reward_error = relative(static_cast<double>(out.reward) - want_reward, want_reward);
    bool flag_differs = out.terminated != data.values<uint8_t>("terminated")[i];
    bool differs = flag_differs || reward_error > 1e-3 || state_error > 1e-3;
    if (differs && threshold_distance<State>(next) <= 1e-6) {
        errors->at_threshold++;
        return;
    }
    errors->flag_mismatches += flag_differs;
    errors->wrapped += wrapped;
    errors->state.push_back(state_error);
    errors->obs.push_back(obs_error);
    errors->reward.push_back(reward_error);
}

template <typename State> Errors compare() {
    ParityData data(std::string(Traits<State>::name()) + ".parity");
    Errors errors;
    const size_t steps = static_cast<size_t>(data.number("steps"));
    EXPECT_EQ(steps, 10000u);
    for (size_t i = 0; i < steps; i++)
        compare_step<State>(data, i, &errors);
    std::printf(
        "%-24s %s state max %.2e p99 %.2e obs max %.2e p99 %.2e reward max %.2e; at a threshold %d, wrapped %d\n",
        Traits<State>::name(), is_double ? "double" : "float ", quantile(errors.state, 1), quantile(errors.state, 0.99),
        quantile(errors.obs, 1), quantile(errors.obs, 0.99), quantile(errors.reward, 1), errors.at_threshold,
        errors.wrapped);
    return errors;
}

template <typename State> class ParityTest : public testing::Test {};
using States = testing::Types<CartpoleState, MountainCarState, MountainCarContinuousState, AcrobotState, PendulumState>;
TYPED_TEST_SUITE(ParityTest, States);

TYPED_TEST(ParityTest, OneStepMatchesGymnasium) {
    Errors errors = compare<TypeParam>();
    // Acrobot's states at tens of radians per second are chaotic within its one step of 0.2 s: rounding nothing but the
    // four accelerations of the exact step to float moves 1% of them by more than 2e-6.
    const bool chaotic = std::is_same<TypeParam, AcrobotState>::value && !is_double;
    const double bound = is_double ? 1e-12 : 1e-6;
    const double obs_bound = is_double ? 1.2e-7 : 1e-6; // observations are floats in the original, too
    EXPECT_EQ(errors.flag_mismatches, 0);
    EXPECT_LE(errors.at_threshold, is_double ? 0 : 100);
    EXPECT_LE(quantile(first_half(errors.state), 1), bound);
    EXPECT_LE(quantile(first_half(errors.obs), 1), obs_bound);
    EXPECT_LE(quantile(errors.state, 0.95), bound);
    EXPECT_LE(quantile(errors.state, 1), chaotic ? 2e-3 : bound);
    EXPECT_LE(quantile(errors.obs, 1), chaotic ? 2e-3 : obs_bound);
    EXPECT_LE(quantile(errors.reward, 1), bound);
}

} // namespace
