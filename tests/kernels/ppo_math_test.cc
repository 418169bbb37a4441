// The parts of PPO's arithmetic that can be checked alone: advantages, statistics, the order of samples, and initial
// parameters.
#include "kernel_reference.h"

#include <algorithm>
#include <set>

#include "kernels/ppo_kern.h"
#include "kernels/ppo_math.h"
#include "kernels/ppo_random.h"

namespace {

struct Rollout {
    std::vector<float> reward, value, final_value;
    std::vector<int32_t> ended;
    float last_value;
};

std::vector<float> advantages(const Rollout &r, float gamma, float lambda, std::vector<float> *target) {
    std::vector<float> out(r.reward.size());
    target->resize(out.size());
    ppo_advantages(r.reward.data(), r.value.data(), r.ended.data(), r.final_value.data(), r.last_value,
                   static_cast<int>(out.size()), 1, gamma, lambda, out.data(), target->data());
    return out;
}

void expect_golden(const Rollout &r, const std::vector<float> &golden) {
    std::vector<float> target, got = advantages(r, 0.5f, 0.5f, &target);
    ASSERT_EQ(got.size(), golden.size());
    for (size_t t = 0; t < golden.size(); t++) {
        EXPECT_EQ(got[t], golden[t]) << "step " << t;
        EXPECT_EQ(target[t], golden[t] + r.value[t]) << "step " << t;
    }
}

// By hand, with gamma = lambda = 1/2: delta = reward + next / 2 - value, advantage = delta + next advantage / 4.
TEST(PpoAdvantages, OfHandMadeEpisodes) {
    // Nothing ends: delta = 1 + 2/2 - 1 = 1; 2 + 4/2 - 2 = 2; 3 + 8/2 - 4 = 3.
    expect_golden({{1, 2, 3}, {1, 2, 4}, {0, 0, 0}, {0, 0, 0}, 8}, {1 + 2.75f / 4, 2 + 3.0f / 4, 3});
    // Terminated after step 1: delta = 1, 2 - 2 = 0 and 3; nothing comes from the episode after.
    expect_golden({{1, 2, 3}, {1, 2, 4}, {9, 9, 9}, {0, PPO_TERMINATED, 0}, 8}, {1, 0, 3});
    // Cut off after step 1, where the final observation is worth 6: delta = 2 + 6/2 - 2 = 3.
    expect_golden({{1, 2, 3}, {1, 2, 4}, {9, 6, 9}, {0, PPO_TRUNCATED, 0}, 8}, {1 + 3.0f / 4, 3, 3});
    // The same at the rollout's edge: the value that follows is of the next episode and does not count.
    expect_golden({{1, 2, 3}, {1, 2, 4}, {9, 9, 9}, {0, 0, PPO_TERMINATED}, 8}, {1 + 1.75f / 4, 2 - 1.0f / 4, -1});
    expect_golden({{1, 2, 3}, {1, 2, 4}, {9, 9, 2}, {0, 0, PPO_TRUNCATED}, 8}, {1 + 2.0f / 4, 2, 0});
    // Episodes of one step each, both ways.
    expect_golden({{1, 2}, {1, 2}, {0, 6}, {PPO_TERMINATED, PPO_TRUNCATED}, 8}, {0, 3});
}

TEST(PpoAdvantages, AreThoseOfThePlainSum) {
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<float> normal;
    for (int trial = 0; trial < 50; trial++) {
        size_t steps = 1 + random() % 200;
        double gamma = 0.9 + 0.1 * static_cast<double>(random() % 1000) / 1000;
        double lambda = static_cast<double>(random() % 1001) / 1000;
        Rollout r;
        r.last_value = normal(random);
        for (size_t t = 0; t < steps; t++) {
            r.reward.push_back(normal(random));
            r.value.push_back(normal(random));
            r.final_value.push_back(normal(random));
            uint64_t dice = random() % 10;
            r.ended.push_back(dice == 0 ? PPO_TERMINATED : dice == 1 ? PPO_TRUNCATED : 0);
        }
        std::vector<float> target, got = advantages(r, static_cast<float>(gamma), static_cast<float>(lambda), &target);
        for (size_t t = 0; t < steps; t++) {
            // The definition: the sum over the steps of this episode from t on of (gamma lambda)^k delta.
            double sum = 0, weight = 1;
            for (size_t k = t; k < steps; k++) {
                double following =
                    k + 1 < steps ? static_cast<double>(r.value[k + 1]) : static_cast<double>(r.last_value);
                double next = r.ended[k] == PPO_TERMINATED  ? 0
                              : r.ended[k] == PPO_TRUNCATED ? static_cast<double>(r.final_value[k])
                                                            : following;
                sum += weight * (static_cast<double>(r.reward[k]) + gamma * next - static_cast<double>(r.value[k]));
                weight *= gamma * lambda;
                if (r.ended[k] != 0) break;
            }
            ASSERT_NEAR(static_cast<double>(got[t]), sum, 2e-5 * (1 + std::fabs(sum))) << "step " << t;
        }
    }
}

// ---- statistics ----------------------------------------------------------------------------------------------------

TEST(PpoMoments, AreThoseOfTwoPasses) {
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<double> normal;
    for (double mean : {0.0, 1e6, -1e8}) {
        std::vector<float> x;
        PpoMoments folded = {};
        for (int part = 0; part < 100; part++) {
            PpoMoments m = {};
            for (size_t n = random() % 50; n > 0; n--) {
                x.push_back(static_cast<float>(mean + std::fabs(mean) * 1e-4 * normal(random) + normal(random)));
                m = ppo_moments_fold(m, PpoMoments{1, static_cast<double>(x.back()), 0});
            }
            folded = ppo_moments_fold(folded, m);
        }
        long double sum = 0, square = 0, n = static_cast<long double>(x.size());
        for (float v : x)
            sum += static_cast<long double>(v);
        for (float v : x)
            square += (static_cast<long double>(v) - sum / n) * (static_cast<long double>(v) - sum / n);
        EXPECT_EQ(folded.count, static_cast<double>(x.size()));
        EXPECT_NEAR(folded.mean, static_cast<double>(sum / n), 1e-13 * std::fabs(mean) + 1e-13);
        EXPECT_NEAR(folded.square / static_cast<double>(square), 1.0, 1e-9) << "mean " << mean;
    }
}

// ---- the order of samples ------------------------------------------------------------------------------------------

TEST(PpoPermutation, HasEachNumberOnce) {
    std::mt19937_64 random(fresh_seed());
    std::vector<uint32_t> counts = {1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 4096, 10007};
    for (int i = 0; i < 50; i++)
        counts.push_back(1 + static_cast<uint32_t>(random() % 3000));
    for (uint32_t count : counts) {
        PpoPermutation p = ppo_permutation(random(), static_cast<uint32_t>(random() % 1000), 3, 5, count);
        std::vector<int> seen(count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = ppo_permutation_at(&p, i);
            ASSERT_LT(at, count);
            seen[at]++;
        }
        ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(count)) << count;
    }
}

// What chi-squared with d degrees of freedom exceeds with a probability of 1e-9: Wilson and Hilferty's cube root.
double chi_squared_bound(double d) {
    double root = 1 - 2 / (9 * d) + 6 * std::sqrt(2 / (9 * d));
    return d * root * root * root;
}

double chi_squared(const std::vector<double> &seen, size_t first, double expected) {
    double sum = 0;
    for (size_t i = first; i < seen.size(); i++)
        sum += (seen[i] - expected) * (seen[i] - expected) / expected;
    return sum;
}

// Over many epochs each number comes to each place equally often, and the step from one place to the next, a place of
// each epoch in turn, is any but 0. A permutation ties the counts of a row and of a column, which leaves
// (count - 1)^2 degrees of freedom and a sum that is count / (count - 1) times theirs.
TEST(PpoPermutation, IsRandom) {
    uint64_t seed = fresh_seed();
    for (uint32_t count : {3u, 6u, 16u, 37u, 64u}) {
        const uint32_t epochs = 20000;
        std::vector<double> place(count * count), step(count);
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            PpoPermutation p = ppo_permutation(seed, 11, epoch, 2, count);
            for (uint32_t i = 0; i < count; i++)
                place[i * count + ppo_permutation_at(&p, i)]++;
            uint32_t i = epoch % (count - 1);
            step[(ppo_permutation_at(&p, i + 1) + count - ppo_permutation_at(&p, i)) % count]++;
        }
        double n = count;
        EXPECT_LE(chi_squared(place, 0, epochs / n) * (n - 1) / n, chi_squared_bound((n - 1) * (n - 1))) << count;
        EXPECT_LE(chi_squared(step, 1, epochs / (n - 1)), chi_squared_bound(n - 2)) << count;
    }
}

TEST(PpoPermutation, DiffersByUpdateEpochAndShard) {
    std::set<std::vector<uint32_t>> seen;
    for (uint32_t which = 0; which < 64; which++) {
        PpoPermutation p = ppo_permutation(9, which % 4, which / 4 % 4, which / 16, 100);
        std::vector<uint32_t> order;
        for (uint32_t i = 0; i < 100; i++)
            order.push_back(ppo_permutation_at(&p, i));
        seen.insert(order);
    }
    EXPECT_EQ(seen.size(), 64u);
}

// ---- actions -------------------------------------------------------------------------------------------------------

TEST(PpoActions, AreDrawnAsTheirProbabilitiesSay) {
    uint64_t seed = fresh_seed();
    const float logits[3] = {0.3f, -1.0f, 1.2f};
    float prob[3], log_prob[3];
    float entropy = ppo_categorical(logits, 1, 3, prob, log_prob);
    double counts[3] = {0}, n = 100000, sum = 0, expected_entropy = 0;
    for (int k = 0; k < 3; k++)
        sum += std::exp(static_cast<double>(logits[k]));
    for (uint32_t i = 0; i < 100000; i++) {
        float u = sim_uniform_from(ppo_noise(seed, 3, i % 1000, i / 1000, 0).x0);
        counts[ppo_categorical_draw(prob, 3, u)]++;
    }
    for (int k = 0; k < 3; k++) {
        double p = std::exp(static_cast<double>(logits[k])) / sum;
        expected_entropy -= p * std::log(p);
        EXPECT_NEAR(static_cast<double>(prob[k]), p, 1e-6);
        EXPECT_NEAR(static_cast<double>(log_prob[k]), std::log(p), 1e-6);
        EXPECT_NEAR(counts[k] / n, p, 6 * std::sqrt(p * (1 - p) / n));
    }
    EXPECT_NEAR(static_cast<double>(entropy), expected_entropy, 1e-6);
}

// ---- initial parameters --------------------------------------------------------------------------------------------

TEST(PpoInit, IsOrthogonalWithItsGains) {
    uint64_t seed = fresh_seed();
    for (bool shared : {true, false}) {
        for (const char *sim : {"cartpole", "pendulum"}) {
            int32_t recurrent = shared ? 12 : 30;
            PpoShape shape;
            const int32_t hidden[] = {64, 64, 20};
            ASSERT_STATUS(ppo_shape(&shape, sim_spec_find(sim), hidden, 3, recurrent, POLICY_TANH, shared));
            std::vector<float> params(static_cast<size_t>(shape.params));
            ppo_init(&shape, seed, -0.7f, params.data());
            PpoTensor t;
            int32_t covered = 0;
            std::vector<std::string> names;
            for (int i = 0; ppo_tensor(&shape, i, &t); i++) {
                names.push_back(t.name);
                ASSERT_EQ(t.offset, covered) << t.name;
                covered += t.count;
                std::string name = t.name;
                bool is_gate = name.find("gate biases") != std::string::npos;
                for (int32_t k = 0; t.in == 0 && k < t.count; k++) {
                    float want = name == "log_std" ? -0.7f : is_gate ? policy_gate_bias(k, recurrent) : 0.0f;
                    EXPECT_EQ(params[static_cast<size_t>(t.offset + k)], want) << name;
                }
                bool is_hidden = name.find("layer") != std::string::npos;
                double gain = name == "actor head weights" ? 0.01 : is_hidden ? std::sqrt(2.0) : 1.0;
                // Whichever are fewer, rows or columns: their products are gain^2 or 0.
                bool rows = t.in <= t.out;
                int32_t count = rows ? t.in : t.out, length = rows ? t.out : t.in;
                for (int32_t a = 0; t.in > 0 && a < count; a++) {
                    for (int32_t b = 0; b <= a; b++) {
                        double dot = 0;
                        for (int32_t k = 0; k < length; k++) {
                            auto x = [&](int32_t v) {
                                int32_t at = rows ? v * t.out + k : k * t.out + v;
                                return static_cast<double>(params[static_cast<size_t>(t.offset + at)]);
                            };
                            dot += x(a) * x(b);
                        }
                        ASSERT_NEAR(dot / (gain * gain), a == b ? 1.0 : 0.0, 1e-6) << name << " " << a << " " << b;
                    }
                }
            }
            EXPECT_EQ(covered, shape.params);
            EXPECT_EQ(names.front(), "actor layer 1 weights");
            EXPECT_EQ(std::count(names.begin(), names.end(), "log_std"), sim == std::string("pendulum"));
            EXPECT_EQ(std::count(names.begin(), names.end(), "critic layer 3 biases"), !shared);
            EXPECT_EQ(std::count(names.begin(), names.end(), "actor recurrent gate weights"), 1);
            EXPECT_EQ(std::count(names.begin(), names.end(), "critic recurrent candidate biases"), !shared);
        }
    }
}

} // namespace
