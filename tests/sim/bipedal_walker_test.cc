// BipedalWalker's steps against Gymnasium's, whose world is loaded word by word: bodies, impulses, boxes and the order
// of contacts (record_bipedal_walker.py); its terrain and resets from the original's draws; and how far the original's
// heuristic walks. Compiled twice: with float, as shipped, which is also what Box2D computes in, and with
// SIM_REAL_DOUBLE, where what remains is the original's rounding.
#include "parity_data.h"
#include "rigid2d_words.h"
#include "sim_traits.h"

#include <cstdio>
#include <map>

#include "perf/walker_pilot.h"
#include "tests/kernels/sanitized.h"

namespace {

constexpr bool is_double = sizeof(real) == 8;
constexpr double bound = 1e-4; // of max(1, |original|)

struct Plain {
    using State = BipedalWalkerState;
    static constexpr int is_hardcore = 0;
};
struct Hardcore {
    using State = BipedalWalkerHardcoreState;
    static constexpr int is_hardcore = 1;
};

void read_fixed(const int32_t *at, BipedalWalkerWords *words) {
    WordReader reader{at};
    for (Rigid2dBody &body : words->body)
        reader.body(&body);
    for (Rigid2dJoint &joint : words->joint)
        reader.joint(&joint);
}

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

struct Row {
    BipedalWalkerWords before = {}, after = {}, got = {};
    double error = 0, obs_error = 0, lidar_error = 0, reward_error = 0;
    int policy = 0;
    bool touching = false, at_limit = false, falls_asleep = false, has_slept = false, hits_block = false;
    bool good = false, same_pairs = false, same_flags = false;
};

template <typename Sim> class Recording {
  public:
    using T = Traits<typename Sim::State>;
    Recording() : data_(std::string(T::name()) + ".parity") {
        const size_t states = data_.extent("contacts", 0), episodes = data_.extent("boxes", 0);
        first_contact_.push_back(0), first_point_.push_back(0), first_box_.push_back(0);
        for (size_t i = 0; i < states; i++) {
            size_t at = first_contact_.back(), points = first_point_.back(), count = at_int("contacts", i);
            for (size_t k = at; k < at + count; k++)
                points += data_.template values<int32_t>("contact")[k] >> 24 > 0;
            first_contact_.push_back(at + count), first_point_.push_back(points);
        }
        for (size_t i = 0; i < episodes; i++)
            first_box_.push_back(first_box_.back() + at_int("boxes", i));
    }
    int steps() const { return data_.number("steps"); }
    const ParityData &data() const { return data_; }

    Row at(size_t i) const {
        Row row;
        const size_t state = at_int("step", i), episode = at_int("episode", i);
        read_state(state, episode, &row.before);
        read_state(state + 1, episode, &row.after);
        row.policy = data_.template values<int32_t>("policy")[i];
        step(i, &row);
        return row;
    }

  private:
    size_t at_int(const char *name, size_t i) const {
        return static_cast<size_t>(data_.template values<int32_t>(name)[i]);
    }

    void read_state(size_t i, size_t episode, BipedalWalkerWords *words) const {
        read_fixed(data_.template values<int32_t>("state") + i * (5 * 13 + 4 * 4), words);
        words->contacts = static_cast<int32_t>(at_int("contacts", i));
        const int32_t *point = data_.template values<int32_t>("contact_point") + 6 * first_point_[i];
        for (int32_t k = 0; k < words->contacts; k++) {
            int32_t pair = data_.template values<int32_t>("contact")[first_contact_[i] + static_cast<size_t>(k)];
            int32_t contact[8] = {pair & 0xffffff, pair >> 24};
            if (contact[1] > 0) {
                std::memcpy(contact + 2, point, 6 * sizeof *point);
                point += 6;
            }
            WordReader{contact}.contact(&words->contact[k]);
        }
        for (size_t k = 0; k < BIPEDAL_WALKER_POINTS; k++)
            words->terrain_m[k] = static_cast<real>(data_.template values<float>("terrain")[200 * episode + k]);
        words->blocks = static_cast<int32_t>(at_int("boxes", episode));
        for (size_t k = 0; k < at_int("boxes", episode); k++)
            words->block[k] = block_of(data_.template values<float>("box") + 4 * (first_box_[episode] + k));
    }

    void step(size_t i, Row *row) const {
        const BipedalWalkerParams p = Traits<BipedalWalkerState>::defaults();
        const float *want = data_.template values<float>("observation") + 24 * i;
        row->got = row->before;
        SimStep out = bipedal_walker_go(&row->got, &p, data_.template values<float>("action") + 4 * i, 1);
        row->error = motion_error(row->got.body, row->after.body);
        float obs[BIPEDAL_WALKER_OBS];
        bipedal_walker_show(&row->got, obs, 1);
        for (size_t k = 0; k < BIPEDAL_WALKER_OBS; k++) {
            double error = relative(static_cast<real>(obs[k]), static_cast<real>(want[k]));
            (k < 14 ? row->obs_error : row->lidar_error) = std::max(k < 14 ? row->obs_error : row->lidar_error, error);
        }
        row->reward_error = relative(out.reward, static_cast<real>(data_.template values<double>("reward")[i]));
        row->same_flags =
            flags(row->got) == flags(row->after) && out.terminated == data_.template values<uint8_t>("terminated")[i];
        row->same_pairs = same_contacts(row->got.contact, row->got.contacts, row->after.contact, row->after.contacts);
        row->good = row->error <= bound && row->obs_error <= bound && row->lidar_error <= bound &&
                    row->reward_error <= bound && row->same_flags;
        classify(row);
    }

    static void classify(Row *row) {
        for (int32_t k = 0; k < row->after.contacts; k++) {
            row->touching |= row->after.contact[k].points > 0;
            row->hits_block |= row->after.contact[k].points > 0 &&
                               row->after.contact[k].pair / BIPEDAL_WALKER_BODIES < row->after.blocks;
        }
        for (const Rigid2dJoint &joint : row->after.joint)
            row->at_limit |= joint.limit_nms != R(0.0);
        for (int i = 0; i < BIPEDAL_WALKER_BODIES; i++) {
            row->falls_asleep |= !row->after.body[i].awake;
            row->has_slept |= row->before.body[i].still_s > R(0.0) || !row->before.body[i].awake;
        }
    }

    ParityData data_;
    std::vector<size_t> first_contact_, first_point_, first_box_;
};

template <typename Sim> class BipedalWalkerParityTest : public testing::Test {};
using Sims = testing::Types<Plain, Hardcore>;
TYPED_TEST_SUITE(BipedalWalkerParityTest, Sims);

const char *category(const Row &row) {
    if (row.hits_block) return "touching a box";
    if (!row.touching) return row.after.contacts > 0 ? "near the ground" : "in the air";
    return row.at_limit ? "touching, at a limit" : "touching";
}

TYPED_TEST(BipedalWalkerParityTest, OneStepMatchesGymnasium) {
    Recording<TypeParam> recording;
    std::map<std::string, std::vector<double>> errors;
    std::map<std::string, int> bad;
    int good = 0, flags_differ = 0, pairs_differ = 0, touching = 0, limits = 0, asleep = 0, resting = 0;
    std::vector<double> lidar, reward;
    ASSERT_GE(recording.steps(), 5000);
    for (int i = 0; i < recording.steps(); i++) {
        Row row = recording.at(static_cast<size_t>(i));
        good += row.good, flags_differ += !row.same_flags, pairs_differ += !row.same_pairs;
        touching += row.touching, limits += row.at_limit, asleep += row.falls_asleep, resting += row.has_slept;
        bad[category(row)] += !row.good;
        errors[category(row)].push_back(row.error);
        lidar.push_back(row.lidar_error), reward.push_back(row.reward_error);
        if (row.good) continue;
        std::printf("step %d, policy %d, %s: errors of bodies %.1e, observation %.1e, lidar %.1e, reward %.1e%s\n", i,
                    row.policy, category(row), row.error, row.obs_error, row.lidar_error, row.reward_error,
                    row.same_flags ? "" : ", flags");
    }
    for (auto &item : errors) {
        std::printf("%s %-22s %5zu steps: error median %.1e p99 %.1e max %.1e; %d beyond\n",
                    is_double ? "double" : "float ", item.first.c_str(), item.second.size(), quantile(item.second, 0.5),
                    quantile(item.second, 0.99), quantile(item.second, 1), bad[item.first]);
    }
    std::printf("%d of %d within %.0e; flags differ in %d, contacts in %d; lidar max %.1e, reward max %.1e; touching "
                "%d, at a limit %d, asleep %d, at rest before %d\n",
                good, recording.steps(), bound, flags_differ, pairs_differ, quantile(lidar, 1), quantile(reward, 1),
                touching, limits, asleep, resting);
    EXPECT_GE(good, 0.99 * recording.steps());
    EXPECT_LE(flags_differ, 0.002 * recording.steps());
    EXPECT_LE(pairs_differ, 0.002 * recording.steps());
    EXPECT_GE(touching, 2000);
    EXPECT_GE(limits, 1000);
    EXPECT_GE(resting, 200);
    // Beyond the bound are impacts, which amplify rounding.
    EXPECT_LE(quantile(errors["in the air"], 1), bound);
    EXPECT_GE(errors["touching a box"].size(), TypeParam::is_hardcore ? 300u : 0u);
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
        EXPECT_LE(motion_error(b.words.body, want.body), bound) << i;
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
