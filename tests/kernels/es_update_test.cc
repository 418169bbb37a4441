// Perturbation noise, rank shaping and the ES update against plain references.
#include "kernel_reference.h"

#include <algorithm>
#include <memory>

extern "C" {
using NoiseFunction = const float *(const EsNoise *noise, uint32_t generation, uint32_t pair, int first, int count,
                                    float *buffer);
NoiseFunction cpu_noise_baseline, cpu_noise_v3, cpu_noise_v4;
using TableFunction = void(uint64_t seed, int64_t first, int64_t count, float *table);
TableFunction cpu_table_baseline, cpu_table_v3, cpu_table_v4;
}

namespace {

struct NoiseFunctions {
    const char *isa;
    NoiseFunction *noise;
    TableFunction *table;
};
std::vector<NoiseFunctions> noise_functions() {
    std::vector<NoiseFunctions> found = {{"baseline", cpu_noise_baseline, cpu_table_baseline}};
#if defined(__x86_64__)
    if (has_isa("v3")) found.push_back({"v3", cpu_noise_v3, cpu_table_v3});
    if (has_isa("v4")) found.push_back({"v4", cpu_noise_v4, cpu_table_v4});
#endif
    return found;
}

// Floats as the functions want them: aligned to 64 bytes, a multiple of 64.
struct Aligned {
    explicit Aligned(size_t count) : at(static_cast<float *>(std::aligned_alloc(64, (count + 63) / 64 * 256))) {}
    ~Aligned() { std::free(at); }
    Aligned(const Aligned &) = delete;
    Aligned &operator=(const Aligned &) = delete;
    float *at;
};

std::vector<float> noise_of(NoiseFunction *function, uint64_t seed, uint32_t generation, uint32_t pair, int first,
                            int count) {
    Aligned buffer(static_cast<size_t>(count));
    EsNoise noise = {seed, nullptr, 0};
    const float *made = function(&noise, generation, pair, first, count, buffer.at);
    EXPECT_EQ(made, buffer.at);
    return std::vector<float>(made, made + count);
}

// A problem that there is no more of than its noise.
KernEsSpec noise_spec(uint64_t seed, int32_t params, int64_t table) {
    KernEsSpec spec = {};
    spec.seed = seed;
    spec.policy.params = params;
    spec.table = table;
    return spec;
}

TEST(Noise, MapsParametersToCountersAsTheTableSays) {
    std::mt19937_64 random(fresh_seed());
    for (const NoiseFunctions &f : noise_functions()) {
        for (int trial = 0; trial < 10; trial++) {
            KernEsSpec spec = noise_spec(random(), 1, 0);
            uint32_t generation = static_cast<uint32_t>(random()) >> 4, pair = static_cast<uint32_t>(random());
            int first = static_cast<int>(random() % 50) * 64, count = 1 + static_cast<int>(random() % 700);
            std::vector<float> got = noise_of(f.noise, spec.seed, generation, pair, first, count);
            for (int i = 0; i < count; i++) {
                ASSERT_EQ(bits_of(got[static_cast<size_t>(i)]),
                          bits_of(ref_noise(spec, generation, pair, static_cast<uint64_t>(first + i))))
                    << f.isa << ", parameter " << first + i;
            }
        }
    }
}

// Any part of a table is what the counters say, wherever it begins, up to the end of the longest one.
TEST(NoiseTable, IsMadeInAnyParts) {
    std::mt19937_64 random(fresh_seed());
    for (const NoiseFunctions &f : noise_functions()) {
        for (uint64_t first : {uint64_t{0}, uint64_t{64}, random() % 1000 * 64, (UINT64_C(1) << 32) - 1024}) {
            uint64_t seed = random();
            Aligned made(1024);
            f.table(seed, static_cast<int64_t>(first), 1024, made.at);
            for (uint64_t i = 0; i < 1024; i++)
                ASSERT_EQ(bits_of(made.at[i]), bits_of(ref_table(seed, first + i))) << f.isa << ", " << first + i;
        }
    }
}

TEST(NoiseTable, SlicesAreWhereTheCountersSay) {
    std::mt19937_64 random(fresh_seed());
    const int32_t floats = 1 << 16;
    Aligned table(floats);
    for (const NoiseFunctions &f : noise_functions()) {
        uint64_t seed = random();
        f.table(seed, 0, floats, table.at);
        for (int trial = 0; trial < 200; trial++) {
            // Policies from one parameter to as many as the table has, which leaves one place.
            int32_t params = trial % 4 == 0 ? floats - trial % 3 : 1 + static_cast<int32_t>(random() % floats);
            KernEsSpec spec = noise_spec(seed, params, floats);
            EsNoise noise = es_noise(&spec, table.at);
            uint32_t generation = static_cast<uint32_t>(random()) >> 4, pair = static_cast<uint32_t>(random());
            int first = static_cast<int>(random() % static_cast<uint32_t>(params)) / 64 * 64;
            const float *got = f.noise(&noise, generation, pair, first, params - first, nullptr);
            ASSERT_EQ(0u, reinterpret_cast<uintptr_t>(got) % 64);
            ASSERT_GE(got, table.at + first);
            ASSERT_LE(got - first + (params + 63) / 64 * 64, table.at + floats);
            for (int i = 0; i < params - first; i += 1 + i / 8) {
                ASSERT_EQ(bits_of(got[i]), bits_of(ref_noise(spec, generation, pair, static_cast<uint64_t>(first + i))))
                    << f.isa << ", " << params << " parameters, parameter " << first + i;
            }
        }
    }
}

// Every place of a small table comes up as often as the others; pairs, generations and seeds have places of their own.
TEST(NoiseTable, PlacesAreUniform) {
    std::mt19937_64 random(fresh_seed());
    KernEsSpec spec = noise_spec(random(), 64, 64 + 100 * 16);
    const float somewhere = 0.0f;
    EsNoise noise = es_noise(&spec, &somewhere);
    ASSERT_EQ(101u, noise.places);
    const int draws = 101 * 400;
    std::vector<int> count(101);
    for (int i = 0; i < draws; i++)
        count[static_cast<size_t>(es_slice(&noise, static_cast<uint32_t>(i / 7), static_cast<uint32_t>(i % 7)) / 16)]++;
    double chi = 0;
    for (int c : count)
        chi += (c - 400.0) * (c - 400.0) / 400.0;
    EXPECT_LT(chi, 100 + 5.5 * std::sqrt(200.0)); // of 100 degrees of freedom
    EXPECT_GT(chi, 100 - 5.5 * std::sqrt(200.0));
    spec.table = KERN_ES_TABLE_MAX;
    noise = es_noise(&spec, &somewhere);
    ASSERT_EQ((1u << 28) - 3, noise.places);
    EsNoise other = noise;
    other.seed++;
    int64_t at = es_slice(&noise, 5, 9), highest = 0;
    EXPECT_NE(at, es_slice(&noise, 6, 9));
    EXPECT_NE(at, es_slice(&noise, 5, 10));
    EXPECT_NE(at, es_slice(&other, 5, 9));
    for (uint32_t pair = 0; pair < 2000; pair++) {
        int64_t place = es_slice(&noise, 5, pair);
        ASSERT_EQ(static_cast<uint64_t>(place), ref_slice(spec, 5, pair));
        highest = std::max(highest, place);
    }
    EXPECT_LE(highest, KERN_ES_TABLE_MAX - 64);
    EXPECT_GT(highest, KERN_ES_TABLE_MAX / 100 * 98);
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

void expect_standard_normal(std::vector<double> x) {
    double n = static_cast<double>(x.size()), m1 = 0, m2 = 0, m3 = 0, m4 = 0;
    for (double v : x)
        m1 += v / n, m2 += v * v / n, m3 += v * v * v / n, m4 += v * v * v * v / n;
    // Five standard errors each: the moments of a normal are 0, 1, 0, 3 with variances 1, 2, 15, 96.
    EXPECT_NEAR(m1, 0.0, 5 * std::sqrt(1 / n));
    EXPECT_NEAR(m2, 1.0, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(m3, 0.0, 5 * std::sqrt(15 / n));
    EXPECT_NEAR(m4, 3.0, 5 * std::sqrt(96 / n));
    std::sort(x.begin(), x.end());
    double distance = 0;
    for (size_t i = 0; i < x.size(); i++) {
        double p = normal_cdf(x[i]), at = static_cast<double>(i) / n;
        distance = std::max({distance, std::fabs(p - at), std::fabs(p - at - 1 / n)});
    }
    // Kolmogorov and Smirnov: beyond 2.5 / sqrt(n) once in 130,000 runs.
    EXPECT_LT(distance, 2.5 / std::sqrt(n));
    EXPECT_EQ(std::adjacent_find(x.begin(), x.end(), [](double a, double b) { return !(a <= b); }), x.end());
}

TEST(Noise, IsStandardNormal) {
    uint64_t seed = fresh_seed();
    std::vector<double> x;
    for (uint32_t generation = 0; generation < 4; generation++) {
        for (uint32_t pair = 0; pair < 8; pair++) {
            for (float v : noise_of(cpu_noise_baseline, seed, generation, pair, 0, 6400))
                x.push_back(static_cast<double>(v));
        }
    }
    expect_standard_normal(x);
}

TEST(NoiseTable, IsStandardNormal) {
    const int64_t floats = 1 << 18;
    Aligned table(floats);
    noise_functions().back().table(fresh_seed(), 0, floats, table.at);
    expect_standard_normal(std::vector<double>(table.at, table.at + floats));
}

double correlation(const std::vector<float> &a, const std::vector<float> &b) {
    double sum = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); i++)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum / static_cast<double>(std::min(a.size(), b.size()));
}

TEST(Noise, StreamsAreUncorrelated) {
    uint64_t seed = fresh_seed();
    const int n = 20000;
    const double bound = 5.5 / std::sqrt(n);
    std::vector<std::vector<float>> streams;
    for (uint32_t pair = 0; pair < 6; pair++)
        streams.push_back(noise_of(cpu_noise_baseline, seed, 3, pair, 0, n));
    streams.push_back(noise_of(cpu_noise_baseline, seed, 4, 0, 0, n));
    streams.push_back(noise_of(cpu_noise_baseline, seed + 1, 3, 0, 0, n));
    streams.push_back(noise_of(cpu_noise_baseline, seed ^ (1ull << 32), 3, 0, 0, n));
    streams.push_back(noise_of(cpu_noise_baseline, seed, 3, 0, 20032, n));
    Aligned table(2 * n);
    cpu_table_baseline(seed, 0, 40000, table.at);
    streams.emplace_back(table.at, table.at + n);
    streams.emplace_back(table.at + n, table.at + 2 * n);
    for (size_t i = 0; i < streams.size(); i++) {
        for (size_t j = 0; j < i; j++)
            EXPECT_LT(std::fabs(correlation(streams[i], streams[j])), bound) << i << " and " << j;
    }
    for (int lag : {1, 2, 3, 4, 15, 16, 17, 32, 48, 64}) {
        std::vector<float> later(streams[0].begin() + lag, streams[0].end());
        EXPECT_LT(std::fabs(correlation(streams[0], later)), bound * 1.01) << "lag " << lag;
    }
}

// ---- ranks ---------------------------------------------------------------------------------------------------------

class EsTest : public testing::Test {
  protected:
    // table: elements beyond those that the policy needs; -1: counters.
    void open(const CpuWay &way, int32_t members, const std::vector<int32_t> &hidden, uint64_t seed,
              int64_t table = -1) {
        close();
        kernels = std::make_unique<CpuKernels>(way);
        ASSERT_STATUS(kernels->status());
        std::memset(&spec, 0, sizeof spec);
        kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
        ASSERT_STATUS(
            policy_shape(&spec.policy, spec.sim.spec, hidden.data(), static_cast<int>(hidden.size()), POLICY_TANH));
        spec.seed = seed;
        spec.members = members;
        spec.episodes = 1;
        if (table >= 0) spec.table = (spec.policy.params + 63) / 64 * 64 + table;
        ASSERT_STATUS((*kernels)->es_open(kernels->backend(), &spec, &es));
    }
    void close() {
        if (es != nullptr) (*kernels)->es_close(es);
        es = nullptr;
        kernels.reset();
    }
    void TearDown() override { close(); }
    void expect_sums_in_chunks(int64_t table);

    std::unique_ptr<CpuKernels> kernels;
    KernEsSpec spec;
    KernEs *es = nullptr;
};

std::vector<double> centred_ranks(const std::vector<float> &fitness) {
    size_t n = fitness.size();
    std::vector<double> out(n);
    for (size_t i = 0; i < n; i++) {
        double rank = 0;
        for (size_t j = 0; j < n; j++) {
            if (j == i) continue;
            rank += fitness[j] < fitness[i] ? 1.0 : fitness[j] == fitness[i] ? 0.5 : 0.0;
        }
        out[i] = rank / static_cast<double>(n - 1) - 0.5;
    }
    return out;
}

TEST_F(EsTest, CentredRanks) {
    std::mt19937_64 random(fresh_seed());
    const float inf = INFINITY;
    std::vector<std::vector<float>> cases = {{1, 2},
                                             {2, 1},
                                             {3, 3},
                                             {0.0f, -0.0f},
                                             {5, 5, 5, 5},
                                             {1, 2, 2, 3},
                                             {-inf, 0, -inf, inf},
                                             {-1, -2, -3, -4, -5, -6}};
    for (size_t n : {10u, 64u, 1000u}) {
        for (int distinct : {1, 2, 7, 1000000}) {
            std::vector<float> fitness(n);
            for (float &f : fitness)
                f = static_cast<float>(random() % static_cast<unsigned>(distinct)) - 3.0f;
            cases.push_back(fitness);
        }
    }
    for (const std::vector<float> &fitness : cases) {
        open({1, "auto", 0}, static_cast<int32_t>(fitness.size()), {}, 1);
        std::vector<float> shaped(fitness.size());
        ASSERT_STATUS((*kernels)->es_shape(es, fitness.data(), shaped.data()));
        std::vector<double> want = centred_ranks(fitness);
        double sum = 0;
        for (size_t i = 0; i < fitness.size(); i++) {
            EXPECT_NEAR(static_cast<double>(shaped[i]), want[i], 6e-8) << fitness.size() << " members, member " << i;
            sum += static_cast<double>(shaped[i]);
        }
        EXPECT_NEAR(sum, 0.0, 6e-8 * static_cast<double>(fitness.size()));
    }
}

TEST_F(EsTest, EqualFitnessIsExactlyZero) {
    open({1, "auto", 0}, 1000, {}, 1);
    std::vector<float> fitness(1000, 9.5f), shaped(1000, 7.0f);
    ASSERT_STATUS((*kernels)->es_shape(es, fitness.data(), shaped.data()));
    for (float s : shaped)
        EXPECT_EQ(s, 0.0f);
}

// ---- update --------------------------------------------------------------------------------------------------------

struct Adam {
    std::vector<float> params, first, second;
};

Adam random_adam(size_t count, std::mt19937_64 *random) {
    std::normal_distribution<float> normal;
    Adam a = {std::vector<float>(count), std::vector<float>(count), std::vector<float>(count)};
    for (size_t i = 0; i < count; i++) {
        a.params[i] = normal(*random);
        a.first[i] = 0.01f * normal(*random);
        a.second[i] = 1e-4f * std::fabs(normal(*random));
    }
    return a;
}

KernEsStep ordinary_step(int32_t members, uint32_t generation) {
    KernEsStep step = {};
    step.generation = generation;
    step.gradient_scale = 1.0f / (static_cast<float>(members) * 0.05f);
    step.learning_rate = 0.02f;
    step.beta1 = 0.9f;
    step.beta2 = 0.999f;
    step.second_scale = 7.0f;
    step.epsilon = 1e-8f;
    step.weight_decay = 0.01f;
    return step;
}

// The formulas in double. Also the size of the terms that the gradient's error is relative to.
void update_double(const KernEsSpec &spec, const KernEsStep &step, const std::vector<float> &shaped, const Adam &before,
                   size_t i, double *param, double *first, double *second, double *slack) {
    double sum = 0, size = 0;
    for (uint32_t pair = 0; pair < static_cast<uint32_t>(spec.members) / 2; pair++) {
        double weight = static_cast<double>(shaped[2 * pair]) - static_cast<double>(shaped[2 * pair + 1]);
        double term = weight * static_cast<double>(ref_noise(spec, step.generation, pair, i));
        sum += term;
        size += std::fabs(term);
    }
    double p = static_cast<double>(before.params[i]), m = static_cast<double>(before.first[i]);
    double v = static_cast<double>(before.second[i]);
    double scale = static_cast<double>(step.gradient_scale);
    double gradient = sum * scale - static_cast<double>(step.weight_decay) * p;
    double beta1 = static_cast<double>(step.beta1), beta2 = static_cast<double>(step.beta2);
    *first = beta1 * m + (1 - beta1) * gradient;
    *second = beta2 * v + (1 - beta2) * gradient * gradient;
    double root = std::sqrt(*second * static_cast<double>(step.second_scale));
    *param = p + static_cast<double>(step.learning_rate) * *first / (root + static_cast<double>(step.epsilon));
    // Float sums of n terms of random sign err by far less than n/2 ulp of the sum of magnitudes.
    *slack = 2e-6 * size * scale + 1e-6 * std::fabs(gradient);
}

TEST_F(EsTest, UpdateMatchesDouble) {
    std::mt19937_64 random(fresh_seed());
    // Pairs on both sides of the chunk of 256 and several of them; parameters on both sides of the tile of 256.
    const int32_t pair_counts[] = {1, 2, 255, 256, 257, 700};
    const std::vector<int32_t> hiddens[] = {{}, {16}, {36}, {64}, {16, 16}};
    for (int32_t pairs : pair_counts) {
        const std::vector<int32_t> &hidden = hiddens[random() % 5];
        open({2, "auto", 0}, 2 * pairs, hidden, random(), pairs % 2 == 0 ? -1 : 6400);
        size_t count = static_cast<size_t>(spec.policy.params);
        Adam before = random_adam(count, &random), after = before;
        KernEsStep step = ordinary_step(spec.members, static_cast<uint32_t>(random() % 1000));
        std::vector<float> shaped(static_cast<size_t>(spec.members));
        for (float &s : shaped)
            s = static_cast<float>(random() % 10001) / 10000.0f - 0.5f;
        ASSERT_STATUS((*kernels)->es_write(es, before.params.data(), before.first.data(), before.second.data()));
        ASSERT_STATUS((*kernels)->es_update(es, &step, shaped.data(), 0, spec.policy.params));
        ASSERT_STATUS((*kernels)->es_read(es, after.params.data(), after.first.data(), after.second.data()));
        for (size_t i = 0; i < count; i++) {
            double param, first, second, slack;
            update_double(spec, step, shaped, before, i, &param, &first, &second, &slack);
            SCOPED_TRACE(std::to_string(pairs) + " pairs, parameter " + std::to_string(i) + " of " +
                         std::to_string(count));
            double gradient = (first - 0.9 * static_cast<double>(before.first[i])) / 0.1;
            EXPECT_NEAR(static_cast<double>(after.first[i]), first, 0.1 * slack + 1e-6 * std::fabs(first) + 1e-9);
            EXPECT_NEAR(static_cast<double>(after.second[i]), second,
                        2e-3 * std::fabs(gradient) * slack + 2e-6 * second + 1e-12);
            double root = std::sqrt(second * 7.0);
            double change = std::fabs(param - static_cast<double>(before.params[i]));
            EXPECT_NEAR(static_cast<double>(after.params[i]), param,
                        0.02 * 0.1 * slack / root + 1e-4 * change + 2e-7 * std::fabs(param));
        }
    }
}

// What the update does bit for bit: chunks of 256 pairs from zero, folded in order; then es_adam().
void EsTest::expect_sums_in_chunks(int64_t table) {
    std::mt19937_64 random(fresh_seed());
    uint64_t seed = random();
    const int32_t pairs = 600;
    std::vector<float> shaped(2 * pairs);
    for (float &s : shaped)
        s = static_cast<float>(random() % 10001) / 10000.0f - 0.5f;
    KernEsStep step = ordinary_step(2 * pairs, 77);
    Adam before, want;
    for (const CpuWay &way : cpu_ways()) {
        open(way, 2 * pairs, {40}, seed, table); // 282 parameters: two tiles, the second ragged
        size_t count = static_cast<size_t>(spec.policy.params);
        if (before.params.empty()) {
            before = want = random_adam(count, &random);
            for (size_t i = 0; i < count; i++) {
                float sum = 0.0f;
                for (uint32_t chunk = 0; chunk < pairs; chunk += 256) {
                    float partial = 0.0f;
                    for (uint32_t pair = chunk; pair < std::min<uint32_t>(chunk + 256, pairs); pair++) {
                        partial =
                            std::fma(shaped[2 * pair] - shaped[2 * pair + 1], ref_noise(spec, 77, pair, i), partial);
                    }
                    sum = sum + partial;
                }
                EsAdam a = es_adam({before.params[i], before.first[i], before.second[i]}, sum, &step);
                want.params[i] = a.param, want.first[i] = a.first, want.second[i] = a.second;
            }
        }
        Adam got = before;
        ASSERT_STATUS((*kernels)->es_write(es, before.params.data(), before.first.data(), before.second.data()));
        Status status = (*kernels)->es_update(es, &step, shaped.data(), 0, spec.policy.params);
        int in_use = upper_halves_in_use();
        ASSERT_STATUS(status);
        EXPECT_NE(in_use, 1) << way.text();
        ASSERT_STATUS((*kernels)->es_read(es, got.params.data(), got.first.data(), got.second.data()));
        for (size_t i = 0; i < count; i++) {
            ASSERT_EQ(bits_of(got.params[i]), bits_of(want.params[i])) << way.text() << ", parameter " << i;
            ASSERT_EQ(bits_of(got.first[i]), bits_of(want.first[i])) << way.text() << ", parameter " << i;
            ASSERT_EQ(bits_of(got.second[i]), bits_of(want.second[i])) << way.text() << ", parameter " << i;
        }
    }
}

TEST_F(EsTest, UpdateSumsInChunks) { expect_sums_in_chunks(-1); }

TEST_F(EsTest, UpdateSumsTheTablesNoiseInChunks) { expect_sums_in_chunks(3200); }

// Ranges that are cut anywhere between units of 64, in any order, give the whole update's bits and touch nothing else.
TEST_F(EsTest, UpdateByRanges) {
    std::mt19937_64 random(fresh_seed());
    const std::vector<int32_t> hiddens[] = {{}, {16}, {36}, {40}, {64}, {16, 16}};
    const int32_t pairs = 300;
    for (const CpuWay &way : cpu_ways()) {
        for (const std::vector<int32_t> &hidden : hiddens) {
            open(way, 2 * pairs, hidden, random(), hidden.size() == 1 ? 640 : -1);
            int32_t params = spec.policy.params;
            Adam before = random_adam(static_cast<size_t>(params), &random), whole = before, parts = before;
            KernEsStep step = ordinary_step(spec.members, 9);
            std::vector<float> shaped(2 * pairs);
            for (float &s : shaped)
                s = static_cast<float>(random() % 10001) / 10000.0f - 0.5f;
            ASSERT_STATUS((*kernels)->es_write(es, before.params.data(), before.first.data(), before.second.data()));
            ASSERT_STATUS((*kernels)->es_update(es, &step, shaped.data(), 0, params));
            ASSERT_STATUS((*kernels)->es_read(es, whole.params.data(), whole.first.data(), whole.second.data()));
            std::vector<std::pair<int32_t, int32_t>> ranges; // (first, count)
            for (int32_t first = 0, end; first < params; first = end) {
                end = std::min(params, first + KERN_ES_UNIT * (1 + static_cast<int32_t>(random() % 7)));
                ranges.emplace_back(first, end - first);
            }
            ranges.emplace_back(0, 0);
            std::shuffle(ranges.begin(), ranges.end(), random);
            ASSERT_STATUS((*kernels)->es_write(es, before.params.data(), before.first.data(), before.second.data()));
            std::vector<bool> done(static_cast<size_t>(params));
            for (auto [first, count] : ranges) {
                ASSERT_STATUS((*kernels)->es_update(es, &step, shaped.data(), first, count));
                ASSERT_STATUS((*kernels)->es_read(es, parts.params.data(), parts.first.data(), parts.second.data()));
                for (int32_t i = first; i < first + count; i++)
                    done[static_cast<size_t>(i)] = true;
                for (size_t i = 0; i < done.size(); i++) {
                    const Adam &want = done[i] ? whole : before;
                    ASSERT_EQ(bits_of(want.params[i]), bits_of(parts.params[i])) << way.text() << ", parameter " << i;
                    ASSERT_EQ(bits_of(want.first[i]), bits_of(parts.first[i])) << way.text() << ", parameter " << i;
                    ASSERT_EQ(bits_of(want.second[i]), bits_of(parts.second[i])) << way.text() << ", parameter " << i;
                }
            }
        }
    }
}

// The step goes up the fitness: it climbs a quadratic whose gradient is known.
TEST_F(EsTest, UpdateAscends) {
    uint64_t seed = fresh_seed();
    open({2, "auto", 0}, 2000, {}, seed, seed % 2 == 0 ? -1 : 1 << 20);
    size_t count = static_cast<size_t>(spec.policy.params);
    std::vector<float> params(count, 1.0f), zero(count, 0.0f), first(count), second(count), fitness(2000), shaped(2000);
    for (int32_t member = 0; member < 2000; member++) {
        std::vector<float> p = ref_member(params, spec, 5, 0.1f, member);
        float f = 0;
        for (size_t i = 0; i < count; i++)
            f += (i % 2 == 0 ? 1.0f : -1.0f) * p[i];
        fitness[static_cast<size_t>(member)] = f;
    }
    ASSERT_STATUS((*kernels)->es_shape(es, fitness.data(), shaped.data()));
    KernEsStep step = ordinary_step(2000, 5);
    step.weight_decay = 0.0f;
    ASSERT_STATUS((*kernels)->es_write(es, params.data(), zero.data(), zero.data()));
    ASSERT_STATUS((*kernels)->es_update(es, &step, shaped.data(), 0, spec.policy.params));
    ASSERT_STATUS((*kernels)->es_read(es, params.data(), first.data(), second.data()));
    for (size_t i = 0; i < count; i++) {
        if (i % 2 == 0) {
            EXPECT_GT(params[i], 1.0f);
        } else {
            EXPECT_LT(params[i], 1.0f);
        }
    }
}

} // namespace
