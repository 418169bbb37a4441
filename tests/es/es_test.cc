// es/ as a library: a generation against the published formulas in double precision, the schedules, the normaliser,
// saving and loading, and what a run's settings may not be.
#include "tests/host/host_test.h" // before sim.h: its macro R() meets a template parameter of that name

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "es/es.h"
#include "host/checkpoint.h"
#include "host/signals.h"
#include "kernels/es_math.h"
#include "sim/pendulum.h"

namespace {

// ---- the reference -------------------------------------------------------------------------------------------------

// Everything in double with libm: pendulum, a policy with tanh layers, the ES step. Shared with Shoal are only the
// random numbers, the counters they come from, and the first parameters.
struct Reference {
    EsConfig config;
    KernEsSpec spec;
    PolicyShape shape;
    std::vector<double> params, first, second;
    double count = 0, sum[3] = {}, square[3] = {};

    explicit Reference(const Es &es)
        : config(es.config), spec(es.spec), shape(es.spec.policy), params(es.params, es.params + es.spec.policy.params),
          first(params.size(), 0.0), second(params.size(), 0.0) {}

    // Element i of a pair's noise, made or out of the table: the counter table of sim/sim_rng.h.
    double noise(int64_t generation, uint32_t pair, size_t i) const {
        uint32_t purpose = SIM_RNG_NOISE | static_cast<uint32_t>(generation);
        if (config.noise != 0) {
            const float somewhere = 0.0f;
            EsNoise table = es_noise(&spec, &somewhere);
            i += static_cast<size_t>(es_slice(&table, static_cast<uint32_t>(generation), pair));
            pair = 0;
            purpose = SIM_RNG_TABLE;
        }
        uint32_t block = static_cast<uint32_t>(i / 64 * 16 + i % 16);
        SimNormal4 n = es_normal4(static_cast<uint64_t>(config.seed), block, pair, purpose);
        const float four[4] = {n.x0, n.x1, n.x2, n.x3};
        return static_cast<double>(four[i % 64 / 16]);
    }

    double action(const std::vector<double> &weights, std::vector<double> x) const {
        size_t at = 0;
        for (int layer = 0; layer < shape.layers; layer++) {
            size_t in = x.size(), out = static_cast<size_t>(shape.size[layer + 1]);
            std::vector<double> y(weights.begin() + static_cast<long>(at + in * out),
                                  weights.begin() + static_cast<long>(at + in * out + out));
            for (size_t o = 0; o < out; o++) {
                for (size_t i = 0; i < in; i++)
                    y[o] += weights[at + i * out + o] * x[i];
                if (layer + 1 < shape.layers) y[o] = std::tanh(y[o]);
            }
            at += (in + 1) * out;
            x = y;
        }
        return 2.0 * std::tanh(x[0]);
    }

    // The return; adds the observations that the policy saw to `seen` [2][3].
    double episode(const std::vector<double> &weights, SimRng rng, double seen[2][3]) const {
        PendulumState start;
        PendulumParams defaults = {};
        pendulum_reset(&start, &defaults, &rng);
        double theta = static_cast<double>(start.theta_rad), dot = static_cast<double>(start.theta_dot_radps);
        double total = 0;
        for (int64_t step = 0; step < config.time_limit; step++) {
            const double obs[3] = {std::cos(theta), std::sin(theta), dot};
            std::vector<double> x(3);
            for (size_t k = 0; k < 3; k++) {
                seen[0][k] += obs[k];
                seen[1][k] += obs[k] * obs[k];
                double mean = count > 0 ? sum[k] / count : 0.0;
                double variance = count > 0 ? square[k] / count - mean * mean : 1.0;
                x[k] = std::clamp((obs[k] - mean) / std::sqrt(std::max(variance, 1e-6)), -5.0, 5.0);
            }
            double torque = action(weights, x), angle = std::remainder(theta, 2 * M_PI);
            total -= angle * angle + 0.1 * dot * dot + 0.001 * torque * torque;
            dot = std::clamp(dot + (15.0 * std::sin(theta) + 3.0 * torque) * 0.05, -8.0, 8.0);
            theta += dot * 0.05;
        }
        return total;
    }

    std::vector<double> evaluate(int64_t generation, double sigma, double seen[2][3]) const {
        std::vector<double> fitness(static_cast<size_t>(config.pop));
        for (size_t m = 0; m < fitness.size(); m++) {
            std::vector<double> weights = params;
            for (size_t i = 0; i < weights.size(); i++)
                weights[i] += (m % 2 == 0 ? sigma : -sigma) * noise(generation, static_cast<uint32_t>(m / 2), i);
            for (int64_t e = 0; e < config.episodes; e++) {
                SimRng rng = {static_cast<uint32_t>(config.seed),
                              0,
                              0,
                              static_cast<uint32_t>(e),
                              config.common_random ? 0 : static_cast<uint32_t>(m),
                              SIM_RNG_EPISODE | static_cast<uint32_t>(generation)};
                fitness[m] += episode(weights, rng, seen) / static_cast<double>(config.episodes);
            }
        }
        return fitness;
    }

    void generation(int64_t g) {
        double seen[2][3] = {}, n = static_cast<double>(config.pop), t = static_cast<double>(g);
        double sigma = std::max(config.sigma * std::pow(config.sigma_decay, t), config.sigma_min);
        double lr = std::max(config.lr * std::pow(config.lr_decay, t), config.lr_min);
        std::vector<double> fitness = evaluate(g, sigma, seen), rank(fitness.size());
        for (size_t m = 0; m < rank.size(); m++) {
            for (double other : fitness)
                rank[m] += other < fitness[m] ? 1.0 : other == fitness[m] ? 0.5 : 0.0;
            rank[m] = (rank[m] - 0.5) / (n - 1) - 0.5;
        }
        for (size_t i = 0; i < params.size(); i++) {
            double gradient = -config.weight_decay * params[i];
            for (size_t m = 0; m < rank.size(); m++) {
                double direction = (m % 2 == 0 ? 1.0 : -1.0) * noise(g, static_cast<uint32_t>(m / 2), i);
                gradient += rank[m] * direction / (n * sigma);
            }
            first[i] = config.beta1 * first[i] + (1 - config.beta1) * gradient;
            second[i] = config.beta2 * second[i] + (1 - config.beta2) * gradient * gradient;
            double mean = first[i] / (1 - std::pow(config.beta1, t + 1));
            double square_mean = second[i] / (1 - std::pow(config.beta2, t + 1));
            params[i] += lr * mean / (std::sqrt(square_mean) + 1e-8);
        }
        if (!config.normalize) return;
        count += n * static_cast<double>(config.episodes * config.time_limit);
        for (int k = 0; k < 3; k++) {
            sum[k] += seen[0][k];
            square[k] += seen[1][k];
        }
    }
};

// ---- what the tests run --------------------------------------------------------------------------------------------

class EsTestBase : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(host_pool_create(2, HOST_BIND_NONE, &pool));
        KernCpuOptions options = {pool, "auto", 0};
        ASSERT_OK(kern_cpu_open(&options, &backend));
    }
    void TearDown() override {
        if (backend != nullptr) backend->ops->close(backend);
        host_pool_free(pool);
    }

    // Settings of a tiny problem; more are set by the caller.
    static EsConfig settings(const char *env) {
        EsConfig values;
        HostConfig config;
        host_config_init(&config, es_config_table(), &values);
        const char *const tiny[][2] = {{"env", env},         {"pop", "8"},      {"episodes", "2"},     {"hidden", "5"},
                                       {"time_limit", "12"}, {"sigma", "0.1"},  {"lr", "0.05"},        {"seed", "11"},
                                       {"beta1", "0.9"},     {"beta2", "0.99"}, {"test_episodes", "9"}};
        for (const auto &row : tiny)
            EXPECT_OK(host_config_set(&config, CONFIG_ARGS, row[0], row[1]));
        return values;
    }

    HostPool *pool = nullptr;
    KernBackend *backend = nullptr;
    TempFolder folder;
};

// An Es that closes itself.
struct OpenEs : Es {
    OpenEs(KernBackend *on, const EsConfig &values) { EXPECT_OK(es_open(on, &values, this)); }
    ~OpenEs() { es_close(this); }
    OpenEs(const OpenEs &) = delete;
    OpenEs &operator=(const OpenEs &) = delete;
    EsReport run(int generations) {
        EsReport report = {};
        for (int i = 0; i < generations; i++)
            EXPECT_OK(es_generation(this, &report));
        return report;
    }
    std::string hash() const {
        char text[17];
        return host_hash_text(es_params_hash(this), text);
    }
    std::vector<float> vectors() const {
        std::vector<float> all(params, params + spec.policy.params);
        all.insert(all.end(), first, first + spec.policy.params);
        all.insert(all.end(), second, second + spec.policy.params);
        return all;
    }
};

class EsGeneration : public EsTestBase {
  protected:
    void compare(const EsConfig &values) {
        OpenEs es(backend, values);
        Reference reference(es);
        std::vector<float> before = es.vectors();
        for (int64_t g = 0; g < 4; g++) {
            EsReport report = es.run(1);
            reference.generation(g);
            EXPECT_EQ(g + 1, report.generation);
            EXPECT_EQ(values.pop * values.episodes * values.time_limit, report.env_steps);
            for (size_t i = 0; i < reference.params.size(); i++) {
                // A step of Adam is about lr; single precision and other sines make it differ by far less.
                ASSERT_NEAR(reference.params[i], static_cast<double>(es.params[i]), 2e-4 * values.lr)
                    << "parameter " << i << " of generation " << g;
                ASSERT_NEAR(reference.first[i], static_cast<double>(es.first[i]), 1e-5);
                ASSERT_NEAR(reference.second[i], static_cast<double>(es.second[i]), 1e-5);
            }
            EXPECT_EQ(reference.count, es.normalizer.count);
            for (int k = 0; k < 3; k++) {
                EXPECT_NEAR(reference.sum[k], es.normalizer.sum[k], 1e-5 * (1 + std::abs(reference.sum[k])));
                EXPECT_NEAR(reference.square[k], es.normalizer.square[k], 1e-5 * (1 + reference.square[k]));
            }
        }
        EXPECT_NE(before, es.vectors());
    }
};

TEST_F(EsGeneration, FollowsTheFormulas) { compare(settings("pendulum")); }

TEST_F(EsGeneration, FollowsTheFormulasWithATable) {
    EsConfig values = settings("pendulum");
    values.noise = 1;
    values.noise_table = 1024;
    compare(values);
}

TEST_F(EsGeneration, FollowsTheFormulasWithEverySettingChanged) {
    EsConfig values = settings("pendulum");
    values.common_random = false;
    values.normalize = false;
    values.weight_decay = 0.1;
    values.sigma_decay = 0.7;
    values.sigma_min = 0.06;
    values.lr_decay = 0.6;
    values.lr_min = 0.02;
    values.hidden = {2, {7, 18}};
    values.pop = 6;
    values.episodes = 3;
    compare(values);
}

TEST_F(EsGeneration, ReportsTheMembersReturns) {
    OpenEs es(backend, settings("pendulum"));
    EsReport report = es.run(1);
    std::vector<double> means;
    for (int m = 0; m < 8; m++) {
        double total = 0;
        for (int e = 0; e < 2; e++)
            total += static_cast<double>(es.episodes[m * 2 + e].episode_return);
        means.push_back(total / 2);
    }
    EXPECT_EQ(*std::min_element(means.begin(), means.end()), report.return_min);
    EXPECT_EQ(*std::max_element(means.begin(), means.end()), report.return_max);
    EXPECT_NEAR(std::accumulate(means.begin(), means.end(), 0.0) / 8, report.return_mean, 1e-9);
    EXPECT_EQ(12.0, report.length_mean);
    EXPECT_EQ(0.1, report.sigma);
    EXPECT_EQ(0.05, report.lr);
}

TEST_F(EsGeneration, ThatIsStoppedOrFailsChangesNothing) {
    OpenEs es(backend, settings("pendulum"));
    es.run(2);
    std::vector<float> before = es.vectors();
    EsNormalizer normalizer = es.normalizer;
    std::string hash = es.hash();
    EsReport report;
    host_stop_request();
    EXPECT_EQ(STATUS_STOPPED, es_generation(&es, &report));
    host_stop_clear();
    EXPECT_EQ(before, es.vectors());
    EXPECT_EQ(0, std::memcmp(&normalizer, &es.normalizer, sizeof normalizer));
    EXPECT_EQ(2, es.generation);
    OpenEs other(backend, settings("pendulum"));
    other.run(5);
    es.run(3);
    EXPECT_EQ(other.hash(), es.hash());

    EsConfig wild = settings("pendulum");
    std::snprintf(wild.set.at[0], sizeof wild.set.at[0], "dt_s=3e38");
    std::snprintf(wild.set.at[1], sizeof wild.set.at[1], "max_speed_radps=3e38");
    wild.set.count = 2;
    OpenEs failing(backend, wild);
    hash = failing.hash();
    EXPECT_FAILS(STATUS_NUMERIC, "pendulum: generation 0, env 0 (member 0, episode 0)",
                 es_generation(&failing, &report));
    EXPECT_EQ(0, failing.generation);
    EXPECT_EQ(hash, failing.hash());
}

using EsSchedule = EsTestBase;

TEST_F(EsSchedule, DecaysToItsMinimumAndNoFurther) {
    EsConfig values = settings("pendulum");
    values.sigma_decay = 0.5;
    values.sigma_min = 0.03;
    values.lr_decay = 0.9;
    values.lr_min = 0.0;
    OpenEs es(backend, values);
    const double sigma[] = {0.1, 0.05, 0.03, 0.03};
    double lr = 0.05;
    for (double wanted : sigma) {
        EsReport report = es.run(1);
        EXPECT_EQ(wanted, report.sigma);
        EXPECT_EQ(lr, report.lr);
        lr *= 0.9;
    }
    double found[4] = {es.sigma, es.lr, es.beta1_power, es.beta2_power};
    es_derive_schedule(&es);
    EXPECT_EQ(found[0], es.sigma);
    EXPECT_EQ(found[1], es.lr);
    EXPECT_EQ(found[2], es.beta1_power);
    EXPECT_EQ(found[3], es.beta2_power);
}

TEST_F(EsSchedule, AMinimumAboveTheStartOnlyCountsWithADecay) {
    EsConfig values = settings("pendulum");
    values.sigma = 0.001;
    values.sigma_min = 0.01;
    values.lr = 0.0001;
    values.lr_min = 0.001;
    OpenEs es(backend, values);
    es.run(2);
    EXPECT_EQ(0.001, es.sigma);
    EXPECT_EQ(0.0001, es.lr);
}

using EsTests = EsTestBase;

TEST_F(EsTests, ChangeNothingAndRepeat) {
    OpenEs es(backend, settings("cartpole"));
    es.run(3);
    std::vector<float> before = es.vectors();
    EsNormalizer normalizer = es.normalizer;
    KernTest one, again, other;
    ASSERT_OK(es_test(&es, 7, 9, &one));
    ASSERT_OK(es_test(&es, 8, 9, &other));
    ASSERT_OK(es_test(&es, 7, 9, &again));
    EXPECT_EQ(one.return_mean, again.return_mean);
    EXPECT_EQ(one.return_std, again.return_std);
    EXPECT_EQ(before, es.vectors());
    EXPECT_EQ(0, std::memcmp(&normalizer, &es.normalizer, sizeof normalizer));
    EXPECT_EQ(static_cast<double>(one.env_steps), one.length_mean * 9);

    OpenEs pendulum(backend, settings("pendulum")); // whose returns differ between any two episodes
    ASSERT_OK(es_test(&pendulum, 7, 9, &one));
    ASSERT_OK(es_test(&pendulum, 8, 9, &other));
    EXPECT_NE(one.return_mean, other.return_mean);
    ASSERT_OK(es_test(&pendulum, 7, 1, &one));
    EXPECT_EQ(0.0, one.return_std);
}

// ---- saving and loading --------------------------------------------------------------------------------------------

class EsCheckpoint : public EsTestBase {
  protected:
    // Loading must fail and leave everything as it was.
    void refused(Es *es, const std::string &path, const std::string &words) {
        std::vector<float> before(es->params, es->params + es->spec.policy.params);
        std::vector<float> moments(es->first, es->first + es->spec.policy.params);
        EsNormalizer normalizer = es->normalizer;
        int64_t generation = es->generation;
        Status status = es_load(es, path.c_str());
        EXPECT_EQ(STATUS_CORRUPT, status) << host_message();
        EXPECT_NE(std::string::npos, std::string(host_message()).find(words)) << host_message();
        EXPECT_EQ(before, std::vector<float>(es->params, es->params + es->spec.policy.params));
        EXPECT_EQ(moments, std::vector<float>(es->first, es->first + es->spec.policy.params));
        EXPECT_EQ(0, std::memcmp(&normalizer, &es->normalizer, sizeof normalizer));
        EXPECT_EQ(generation, es->generation);
    }
};

TEST_F(EsCheckpoint, BringsEverythingBack) {
    for (const char *env :
         {"cartpole", "mountain_car", "mountain_car_continuous", "acrobot", "pendulum", "position_only_cartpole",
          "parking", "lunar_lander", "lunar_lander_continuous", "bipedal_walker", "bipedal_walker_hardcore"}) {
        OpenEs unbroken(backend, settings(env)), saved(backend, settings(env)), loaded(backend, settings(env));
        unbroken.run(7);
        saved.run(3);
        ASSERT_OK(es_save(&saved, (folder / "state").c_str()));
        ASSERT_OK(es_load(&loaded, (folder / "state").c_str()));
        EXPECT_EQ(saved.vectors(), loaded.vectors());
        EXPECT_EQ(0, std::memcmp(&saved.normalizer, &loaded.normalizer, sizeof saved.normalizer));
        EXPECT_EQ(saved.generation, loaded.generation);
        EXPECT_EQ(saved.env_steps, loaded.env_steps);
        EXPECT_EQ(saved.train_s, loaded.train_s);
        EXPECT_EQ(saved.sigma, loaded.sigma);
        EXPECT_EQ(saved.beta2_power, loaded.beta2_power);
        loaded.run(4);
        EXPECT_EQ(unbroken.hash(), loaded.hash()) << env;
        EXPECT_EQ(unbroken.vectors(), loaded.vectors()) << env;
        // A state that has run on can be brought back as well.
        ASSERT_OK(es_load(&saved, (folder / "state").c_str()));
        saved.run(4);
        EXPECT_EQ(unbroken.hash(), saved.hash()) << env;
    }
}

TEST_F(EsCheckpoint, OfAnotherPolicyOrSimulatorIsRefused) {
    OpenEs es(backend, settings("pendulum"));
    es.run(2);
    std::string path = folder / "state";
    EsConfig values = settings("pendulum");
    values.hidden = {1, {6}};
    OpenEs wider(backend, values);
    ASSERT_OK(es_save(&wider, path.c_str()));
    refused(&es, path, "holds a policy 'pendulum 3-6-1 tanh', this run has 'pendulum 3-5-1 tanh'");
    values = settings("pendulum");
    values.activation = 1;
    OpenEs relu(backend, values);
    ASSERT_OK(es_save(&relu, path.c_str()));
    refused(&es, path, "'pendulum 3-5-1 relu'");
    OpenEs acrobot(backend, settings("acrobot"));
    ASSERT_OK(es_save(&acrobot, path.c_str()));
    refused(&es, path, "'acrobot 6-5-3 tanh'");
    EXPECT_FAILS(STATUS_IO, "missing", es_load(&es, (folder / "missing").c_str()));
}

TEST_F(EsCheckpoint, DamagedIsRefused) {
    OpenEs es(backend, settings("pendulum"));
    es.run(2);
    std::string path = folder / "state", good;
    ASSERT_OK(es_save(&es, path.c_str()));
    good = read_file(path);
    es.run(1);
    for (size_t at = 0; at < good.size(); at += 97) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 4);
        write_file(path, bad);
        refused(&es, path, "state");
        write_file(path, good.substr(0, at));
        refused(&es, path, "state");
    }
    size_t format = good.find("\"shoal_format\":\"1\"");
    ASSERT_NE(std::string::npos, format);
    std::string newer = good;
    newer[format + 16] = '9';
    write_file(path, newer);
    refused(&es, path, "9");
    write_file(path, good);
    EXPECT_OK(es_load(&es, path.c_str()));
    EXPECT_EQ(2, es.generation);
}

// Whole and well-formed, but not what a run of ES holds.
TEST_F(EsCheckpoint, OfOtherContentIsRefused) {
    OpenEs es(backend, settings("pendulum"));
    es.run(1);
    std::string path = folder / "state";
    float params[26] = {};
    double three[3] = {}, one = 0;
    int64_t progress[2] = {1, 1};
    ASSERT_EQ(26, es.spec.policy.params);
    HostTensor tensors[] = {
        {"params", HOST_DTYPE_F32, 1, {26}, params},       {"adam_first", HOST_DTYPE_F32, 1, {26}, params},
        {"adam_second", HOST_DTYPE_F32, 1, {26}, params},  {"normalizer_count", HOST_DTYPE_F64, 1, {1}, &one},
        {"normalizer_sum", HOST_DTYPE_F64, 1, {3}, three}, {"normalizer_square", HOST_DTYPE_F64, 1, {3}, three},
        {"progress", HOST_DTYPE_I64, 1, {2}, progress},    {"train_s", HOST_DTYPE_F64, 1, {1}, &one},
    };
    HostMeta meta[] = {{"algorithm", "es"}, {"policy", "pendulum 3-5-1 tanh"}};
    auto write = [&](int tensor_count, int meta_count) {
        EXPECT_OK(host_checkpoint_write(path.c_str(), tensors, tensor_count, meta, meta_count));
    };
    write(8, 2);
    EXPECT_OK(es_load(&es, path.c_str()));
    write(8, 0);
    refused(&es, path, "not a checkpoint of esrun");
    meta[0].value = "ppo";
    write(8, 2);
    refused(&es, path, "not a checkpoint of esrun");
    meta[0].value = "es";
    write(8, 1);
    refused(&es, path, "holds a policy '?'");
    write(7, 2);
    refused(&es, path, "train_s");
    tensors[0].shape[0] = 25;
    write(8, 2);
    refused(&es, path, "params: F32 [25]");
    tensors[0].shape[0] = 26;
    for (int64_t bad : {int64_t{-1}, int64_t{1} << 28, INT64_MAX, INT64_MIN}) {
        progress[0] = bad;
        write(8, 2);
        refused(&es, path, "out of range");
    }
}

TEST_F(EsCheckpoint, ThatCannotBeWrittenIsAnError) {
    OpenEs es(backend, settings("pendulum"));
    EXPECT_FAILS(STATUS_IO, "nowhere", es_save(&es, (folder / "nowhere/state").c_str()));
    EXPECT_EQ(0, count_entries(folder.path()));
}

// ---- settings ------------------------------------------------------------------------------------------------------

class EsSettings : public EsTestBase {
  protected:
    void refused(const EsConfig &values, const char *words) {
        KernEsSpec spec;
        EXPECT_FAILS(STATUS_USAGE, words, es_config_spec(&values, &spec));
        Es es;
        EXPECT_EQ(STATUS_USAGE, es_open(backend, &values, &es));
    }
};

TEST_F(EsSettings, ThatNoRangeCanCheck) {
    EsConfig values = settings("pendulum");
    std::snprintf(values.env, sizeof values.env, "pendulun");
    refused(values, "unknown simulator 'pendulun'");
    values = settings("pendulum");
    values.pop = 7;
    refused(values, "--pop 7: must be even");
    values = settings("pendulum");
    values.pop = 1048576;
    values.episodes = 65536;
    refused(values, "episodes in a generation");
    values = settings("pendulum");
    values.sigma_decay = 0.9;
    values.sigma_min = 0.5;
    refused(values, "--sigma-min 0.5 is above --sigma 0.1");
    values = settings("pendulum");
    values.set.count = 1;
    std::snprintf(values.set.at[0], sizeof values.set.at[0], "mas_kg=1");
    refused(values, "'mass_kg'");
    values = settings("pendulum");
    values.randomize.count = 1;
    std::snprintf(values.randomize.at[0], sizeof values.randomize.at[0], "mass_kg=2:1");
    refused(values, "2 is above 1");
}

TEST_F(EsSettings, MakeTheKernelsSpecification) {
    EsConfig values = settings("pendulum");
    values.set.count = 2;
    std::snprintf(values.set.at[0], sizeof values.set.at[0], "mass_kg=2");
    std::snprintf(values.set.at[1], sizeof values.set.at[1], "mass_kg=3"); // the later one wins
    values.randomize.count = 1;
    std::snprintf(values.randomize.at[0], sizeof values.randomize.at[0], "length_m=0.5:1.5");
    KernEsSpec spec;
    ASSERT_OK(es_config_spec(&values, &spec));
    int mass = sim_spec_param(spec.sim.spec, "mass_kg"), length = sim_spec_param(spec.sim.spec, "length_m");
    EXPECT_EQ(3.0f, spec.sim.value[mass]);
    EXPECT_TRUE(spec.sim.random[length] && spec.sim.any_random);
    EXPECT_EQ(0.5f, spec.sim.low[length]);
    EXPECT_EQ(1.5f, spec.sim.high[length]);
    EXPECT_EQ(12, spec.sim.time_limit);
    EXPECT_EQ(8, spec.members);
    EXPECT_EQ(2, spec.episodes);
    EXPECT_EQ(11u, spec.seed);
    EXPECT_EQ(26, spec.policy.params);
}

TEST_F(EsSettings, OfEachSimulatorAreSound) {
    for (int i = 0; i < sim_spec_count(); i++) {
        EsConfig values;
        HostConfig config;
        host_config_init(&config, es_config_table(), &values);
        ASSERT_OK(host_config_set(&config, CONFIG_ARGS, "lr", "0.125"));
        ASSERT_OK(host_config_set(&config, CONFIG_ARGS, "env", sim_spec_at(i)->name));
        ASSERT_OK(es_config_simulator_defaults(&config, sim_spec_at(i)));
        KernEsSpec spec;
        ASSERT_OK(es_config_spec(&values, &spec));
        EXPECT_EQ(sim_spec_at(i)->reward_threshold, values.target);
        EXPECT_EQ(sim_spec_at(i)->time_limit, values.time_limit);
        EXPECT_EQ(0.125, values.lr) << "a default must not replace what was given";
        HostPlan plan;
        host_plan_init(&plan);
        ASSERT_OK(es_plan(backend, &values, &plan));
        EXPECT_GT(host_plan_total(&plan), 0u);
    }
}

} // namespace
