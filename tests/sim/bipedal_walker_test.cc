// BipedalWalker's steps against Gymnasium's, whose world is loaded word by word: bodies, impulses, boxes and the order
// of contacts (record_bipedal_walker.py); its terrain and resets from the original's draws; and how far the original's
// heuristic walks. Compiled twice: with float, as shipped, which is also what Box2D computes in, and with
// SIM_REAL_DOUBLE, where what remains is the original's rounding.
#include "rigid2d_recording.h"
#include "sim_traits.h"

#include "perf/walker_pilot.h"
#include "tests/kernels/sanitized.h"

namespace {

constexpr bool is_double = sizeof(real) == 8;

struct Plain {
    using State = BipedalWalkerState;
    static constexpr int is_hardcore = 0;
};
struct Hardcore {
    using State = BipedalWalkerHardcoreState;
    static constexpr int is_hardcore = 1;
};

// From corners: low x, low y, high x, high y.
BipedalWalkerBlock block_of(const float *box) {
    auto steps = [](float length) { return static_cast<int32_t>(std::lround(static_cast<double>(length) * 30 / 14)); };
    return {steps(box[0]) | steps(box[2] - box[0]) << 8 | steps(box[3] - box[1]) << 16, static_cast<real>(box[1])};
}

// The flags that Gymnasium has: the hull has touched, the lower legs are in contact; and which bodies are awake.
int flags(const BipedalWalkerWords &w) {
    int f = (w.body[0].touch != 0) | (w.body[2].touch & RIGID2D_IN_CONTACT) << 1 |
            (w.body[4].touch & RIGID2D_IN_CONTACT) << 2;
    for (int i = 0; i < BIPEDAL_WALKER_BODIES; i++)
        f |= w.body[i].awake << (3 + i);
    return f;
}

struct Row : ComparedStep {
    BipedalWalkerWords before = {}, after = {};
    bool hits_block = false;
};

template <typename Sim> class Recording {
  public:
    using T = Traits<typename Sim::State>;
    Recording() : data_(std::string(T::name()) + ".parity"), states_(data_) {
        first_box_.push_back(0);
        for (size_t i = 0; i < data_.extent("boxes", 0); i++)
            first_box_.push_back(first_box_.back() + states_.integer("boxes", i));
    }
    int steps() const { return data_.number("steps"); }
    const ParityData &data() const { return data_; }

    Row at(size_t i) const {
        Row row;
        const size_t state = states_.integer("step", i), episode = states_.integer("episode", i);
        read_state(state, episode, &row.before);
        read_state(state + 1, episode, &row.after);
        row.policy = data_.template values<int32_t>("policy")[i];
        row.want_impacts = data_.template values<uint8_t>("impacts")[i];
        row.happened = Happened(row.after, row.want_impacts);
        for (int32_t k = 0; k < row.after.contacts; k++) {
            row.hits_block |=
                row.after.contact[k].points > 0 && row.after.contact[k].pair / BIPEDAL_WALKER_BODIES < row.after.blocks;
        }
        return stepped(i, row, row.before);
    }

    // The row with a step from `start` in it.
    Row stepped(size_t i, Row row, const BipedalWalkerWords &start) const {
        const BipedalWalkerParams p = Traits<BipedalWalkerState>::defaults();
        const float *want = data_.template values<float>("observation") + 24 * i;
        float obs[BIPEDAL_WALKER_OBS];
        BipedalWalkerWorld b;
        b.words = start;
        bipedal_walker_start(&b, nullptr, &p, data_.template values<float>("action") + 4 * i);
        rigid2d_island_iterate(&b.world);
        SimStep out = bipedal_walker_finish(&b, obs);
        const BipedalWalkerWords &got = b.words;
        row.impacts = impacts_of(b.world);
        row.error = motion_error(got.body, row.after.body);
        row.obs_error = row.lidar_error = 0;
        for (size_t k = 0; k < BIPEDAL_WALKER_OBS; k++) {
            double error = relative(static_cast<real>(obs[k]), static_cast<real>(want[k]));
            (k < 14 ? row.obs_error : row.lidar_error) = std::max(k < 14 ? row.obs_error : row.lidar_error, error);
        }
        row.reward_error = relative(out.reward, static_cast<real>(data_.template values<double>("reward")[i]));
        row.same_flags =
            flags(got) == flags(row.after) && out.terminated == data_.template values<uint8_t>("terminated")[i];
        row.same_pairs = same_contacts(got.contact, got.contacts, row.after.contact, row.after.contacts);
        return row;
    }

  private:
    void read_state(size_t i, size_t episode, BipedalWalkerWords *words) const {
        states_.read(i, words);
        for (size_t k = 0; k < BIPEDAL_WALKER_POINTS; k++)
            words->terrain_m[k] = static_cast<real>(data_.template values<float>("terrain")[200 * episode + k]);
        words->blocks = static_cast<int32_t>(states_.integer("boxes", episode));
        for (size_t k = 0; k < states_.integer("boxes", episode); k++)
            words->block[k] = block_of(data_.template values<float>("box") + 4 * (first_box_[episode] + k));
    }

    ParityData data_;
    RecordedStates states_;
    std::vector<size_t> first_box_;
};

template <typename Sim> class BipedalWalkerParityTest : public testing::Test {};
using Sims = testing::Types<Plain, Hardcore>;
TYPED_TEST_SUITE(BipedalWalkerParityTest, Sims);

const char *category(const Row &row) {
    if (row.hits_block) return "touching a box";
    if (!row.happened.touching) return row.after.contacts > 0 ? "near the ground" : "in the air";
    return row.happened.at_limit ? "touching, at a limit" : "touching";
}

const char *counted_as(int policy) {
    return policy == 0 ? "heuristic" : policy == 1 ? "random" : policy == 6 ? "trained" : nullptr;
}

TYPED_TEST(BipedalWalkerParityTest, OneStepMatchesGymnasium) {
    const Recording<TypeParam> recording;
    Comparison comparison;
    Coverage coverage;
    for (int i = 0; i < recording.steps(); i++) {
        const auto at = static_cast<size_t>(i);
        const Row row = recording.at(at);
        coverage.add(row.happened, counted_as(row.policy));
        comparison.add(i, row, category(row), [&] {
            return is_explained(row, row.before,
                                [&](const BipedalWalkerWords &start) { return recording.stepped(at, row, start); });
        });
    }
    comparison.expect({"in the air"});
    coverage.expect(recording.data());
    EXPECT_GE(comparison.steps_of("touching a box"), TypeParam::is_hardcore ? 300u : 0u);
}

TYPED_TEST(BipedalWalkerParityTest, TerrainAndResetMatchGymnasium) {
    using T = Traits<typename TypeParam::State>;
    const ParityData data(std::string(T::name()) + ".parity");
    const int resets = data.number("resets");
    const BipedalWalkerParams p = Traits<BipedalWalkerState>::defaults();
    const real still[BIPEDAL_WALKER_JOINTS] = {};
    size_t boxes = 0;
    ASSERT_GE(resets, 40);
    for (size_t i = 0; i < static_cast<size_t>(resets); i++) {
        BipedalWalkerWorld b;
        std::memset(&b.words, 0, sizeof b.words);
        BipedalWalkerGround ground = {b.words.terrain_m, b.words.block, 0};
        BipedalWalkerBuilder builder = bipedal_walker_builder();
        for (size_t k = 0; k < BIPEDAL_WALKER_POINTS; k++) {
            const float *u = data.values<float>("reset_draws") + 4 * (BIPEDAL_WALKER_POINTS * i + k);
            const SimUniform4 drawn = {static_cast<real>(u[0]), static_cast<real>(u[1]), static_cast<real>(u[2]),
                                       static_cast<real>(u[3])};
            bipedal_walker_point(&builder, &ground, static_cast<int32_t>(k), drawn, R(1.0), TypeParam::is_hardcore);
            float want = data.values<float>("reset_terrain")[BIPEDAL_WALKER_POINTS * i + k];
            ASSERT_NEAR(b.words.terrain_m[k], want, 1e-5) << i << " " << k;
        }
        ASSERT_EQ(ground.blocks, data.values<int32_t>("reset_boxes")[i]) << i;
        for (int32_t k = 0; k < ground.blocks; k++) {
            BipedalWalkerBlock want = block_of(data.values<float>("reset_box") + 4 * boxes++);
            EXPECT_EQ(ground.block[k].place, want.place) << i << " " << k;
            EXPECT_NEAR(ground.block[k].low_m, want.low_m, 1e-5) << i << " " << k;
        }
        b.words.blocks = ground.blocks;
        bipedal_walker_place(&b, &p, still);
        bipedal_walker_advance(&b, rigid2d_vec(static_cast<real>(data.values<float>("reset_force")[i]), R(0.0)));
        BipedalWalkerWords want = {};
        read_fixed(data.values<int32_t>("reset_after") + (5 * 13 + 4 * 4) * i, &want);
        EXPECT_LE(motion_error(b.words.body, want.body), 1e-4) << i;
        float obs[BIPEDAL_WALKER_OBS];
        bipedal_walker_show(&b.words, obs, 1);
        for (size_t k = 0; k < BIPEDAL_WALKER_OBS; k++)
            EXPECT_NEAR(obs[k], data.values<float>("reset_observation")[BIPEDAL_WALKER_OBS * i + k], 1e-4)
                << i << " " << k;
    }
}

// The probability that two samples of one distribution differ as much (Kolmogorov and Smirnov).
double same_distribution(std::vector<double> a, std::vector<double> b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    auto share = [](const std::vector<double> &v, double x) {
        return static_cast<double>(std::upper_bound(v.begin(), v.end(), x) - v.begin()) / static_cast<double>(v.size());
    };
    double distance = 0, p = 0;
    for (const std::vector<double> *v : {&a, &b})
        for (double x : *v)
            distance = std::max(distance, std::fabs(share(a, x) - share(b, x)));
    const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
    const double root = std::sqrt(n * m / (n + m)), lambda = (root + 0.12 + 0.11 / root) * distance;
    for (int k = 1; k <= 100; k++)
        p += (k % 2 ? 2 : -2) * std::exp(-2.0 * k * k * lambda * lambda);
    return distance == 0 ? 1 : std::min(1.0, std::max(0.0, p));
}

double mean(const std::vector<double> &v) {
    double sum = 0;
    for (double x : v)
        sum += x;
    return sum / static_cast<double>(v.size());
}

// Other random numbers than Gymnasium's: the same distributions of returns and lengths.
TYPED_TEST(BipedalWalkerParityTest, TheHeuristicWalksAsFar) {
    using T = Traits<typename TypeParam::State>;
    const ParityData data(std::string(T::name()) + ".parity");
    const typename T::Params p = T::defaults();
    const uint32_t episodes = is_sanitized || is_double ? 20 : 200;
    std::vector<double> returns, lengths, want_returns, want_lengths;
    for (int i = 0; i < data.number("heuristic_episodes"); i++) {
        want_returns.push_back(static_cast<double>(data.values<float>("heuristic_return")[i]));
        want_lengths.push_back(data.values<int32_t>("heuristic_length")[i]);
    }
    for (uint32_t episode = 0; episode < episodes; episode++) {
        SimRng rng = {2026, 0, 0, episode, 0, SIM_RNG_EPISODE};
        typename TypeParam::State s;
        WalkerPilot pilot;
        SimStep out = {R(0.0), 0};
        double total = 0;
        int length = 0;
        T::reset(&s, &p, &rng);
        for (walker_pilot_start(&pilot); length < T::time_limit && !out.terminated; length++) {
            float obs[BIPEDAL_WALKER_OBS], action[4];
            T::observe(&s, &p, obs);
            walker_pilot_act(&pilot, obs, 1, action);
            out = T::step(&s, &p, nullptr, action, &rng);
            total += static_cast<double>(out.reward);
        }
        returns.push_back(total), lengths.push_back(length);
    }
    const double by_return = same_distribution(returns, want_returns),
                 by_length = same_distribution(lengths, want_lengths);
    std::printf("%s, heuristic, %u and %zu episodes: returns %.1f and %.1f, p %.3f; lengths %.0f and %.0f, p %.3f\n",
                T::name(), episodes, want_returns.size(), mean(returns), mean(want_returns), by_return, mean(lengths),
                mean(want_lengths), by_length);
    EXPECT_GT(by_return, 0.01);
    EXPECT_GT(by_length, 0.01);
}

} // namespace
