// ppo/ as a library: settings and what follows from them, annealing, the report, the test of the frozen actor against a
// plain loop, saving and loading. What an update computes is tested with the kernels.
#include "tests/host/host_test.h" // before sim.h: its macro R() meets a template parameter of that name

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "host/checkpoint.h"
#include "host/signals.h"
#include "ppo/ppo.h"
#include "sim/pendulum.h"

namespace {

const char *const SIMULATORS[] = {"cartpole",
                                  "mountain_car",
                                  "mountain_car_continuous",
                                  "acrobot",
                                  "pendulum",
                                  "position_only_cartpole",
                                  "parking",
                                  "lunar_lander",
                                  "lunar_lander_continuous",
                                  "bipedal_walker",
                                  "bipedal_walker_hardcore"};

// The settings of a tiny problem, with the simulator's defaults; more are set by the caller.
PpoConfig settings(const char *env) {
    PpoConfig values;
    HostConfig config;
    host_config_init(&config, ppo_config_table(), &values);
    const char *const tiny[][2] = {
        {"env", env},    {"envs", "8"},          {"rollout", "16"},  {"minibatches", "4"},  {"epochs", "2"},
        {"hidden", "5"}, {"time_limit", "12"},   {"lr", "0.01"},     {"steps", "1280"},     {"log_std", "0"},
        {"seed", "11"},  {"test_episodes", "9"}, {"target_kl", "0"}, {"activation", "tanh"}};
    for (const auto &row : tiny)
        EXPECT_OK(host_config_set(&config, CONFIG_ARGS, row[0], row[1]));
    EXPECT_OK(ppo_config_simulator_defaults(&config, sim_spec_find(env)));
    return values;
}

// ---- settings ------------------------------------------------------------------------------------------------------

TEST(PpoConfig, EverySimulatorsDefaultsFit) {
    for (const char *env : SIMULATORS) {
        PpoConfig values;
        HostConfig config;
        host_config_init(&config, ppo_config_table(), &values);
        EXPECT_OK(host_config_set(&config, CONFIG_ARGS, "env", env));
        EXPECT_OK(ppo_config_simulator_defaults(&config, sim_spec_find(env)));
        KernPpoSpec spec;
        EXPECT_OK(ppo_config_spec(&values, &spec));
        EXPECT_EQ(sim_spec_find(env)->time_limit, spec.sim.time_limit);
        EXPECT_GE(values.target, sim_spec_find(env)->reward_threshold);
    }
}

TEST(PpoConfig, ShardsThatAreGivenAreKept) {
    PpoConfig values;
    HostConfig config;
    host_config_init(&config, ppo_config_table(), &values);
    EXPECT_OK(host_config_set(&config, CONFIG_ARGS, "envs", "96"));
    EXPECT_OK(ppo_config_simulator_defaults(&config, sim_spec_find("pendulum")));
    EXPECT_EQ(32, values.shards);
    EXPECT_OK(host_config_set(&config, CONFIG_FILE, "shards", "4"));
    EXPECT_OK(ppo_config_simulator_defaults(&config, sim_spec_find("pendulum")));
    EXPECT_EQ(4, values.shards);
}

TEST(PpoConfig, BecomesTheKernelsSpecification) {
    PpoConfig values = settings("pendulum");
    values.gamma = 0.9;
    values.lambda = 0.8;
    values.normalize_reward = false;
    values.shared = true;
    values.activation = 1;
    KernPpoSpec spec;
    ASSERT_OK(ppo_config_spec(&values, &spec));
    EXPECT_EQ(8, spec.envs);
    EXPECT_EQ(8, spec.shards);
    EXPECT_EQ(16, spec.rollout);
    EXPECT_EQ(4, spec.minibatches);
    EXPECT_EQ(11u, spec.seed);
    EXPECT_EQ(0.9f, spec.gamma);
    EXPECT_EQ(0.8f, spec.lambda);
    EXPECT_TRUE(spec.normalize_obs);
    EXPECT_FALSE(spec.normalize_reward);
    EXPECT_TRUE(spec.policy.is_shared);
    EXPECT_EQ(POLICY_RELU, spec.policy.actor.activation);
    EXPECT_EQ(3 * 5 + 5 + 5 + 1 + 5 + 1 + 1, spec.policy.params); // hidden layer, mean, value, log_std
    EXPECT_EQ(12, spec.sim.time_limit);
    EXPECT_EQ(128, ppo_config_update_steps(&values));
    EXPECT_EQ(10, ppo_config_updates(&values));
    values.steps = 1279;
    EXPECT_EQ(9, ppo_config_updates(&values)); // never more steps than asked for
}

TEST(PpoConfig, RefusesSizesThatDoNotFit) {
    KernPpoSpec spec;
    PpoConfig values = settings("cartpole");
    values.shards = 3;
    EXPECT_FAILS(STATUS_USAGE, "--shards 3", ppo_config_spec(&values, &spec));
    values.shards = 16;
    EXPECT_FAILS(STATUS_USAGE, "--envs 8: must be a multiple of --shards 16", ppo_config_spec(&values, &spec));
    values.shards = 8;
    values.minibatches = 3;
    EXPECT_FAILS(STATUS_USAGE, "--minibatches 3", ppo_config_spec(&values, &spec));
    values.minibatches = 16;
    values.steps = 127;
    EXPECT_FAILS(STATUS_USAGE, "--steps 127", ppo_config_spec(&values, &spec));
    values.steps = 128;
    EXPECT_OK(ppo_config_spec(&values, &spec));
    values.recurrent = 5;
    values.minibatches = 2; // there is one env in a shard
    EXPECT_FAILS(STATUS_USAGE, "--minibatches 2: must divide a shard's 1 envs", ppo_config_spec(&values, &spec));
    values.shards = 4;
    EXPECT_OK(ppo_config_spec(&values, &spec));
}

TEST(PpoConfig, AnnealsLinearlyToTheLastUpdate) {
    PpoConfig values = settings("cartpole");
    values.lr_anneal = values.clip_anneal = true;
    values.lr = 0.01;
    values.clip = 0.3;
    for (int64_t update = 0; update < 10; update++) {
        KernPpoStep step;
        ppo_config_step(&values, update, &step);
        double left = 1.0 - static_cast<double>(update) / 10.0;
        EXPECT_EQ(update, static_cast<int64_t>(step.update));
        EXPECT_FLOAT_EQ(static_cast<float>(0.01 * left), step.learning_rate);
        EXPECT_FLOAT_EQ(static_cast<float>(0.3 * left), step.clip);
    }
    values.lr_anneal = values.clip_anneal = false;
    KernPpoStep step;
    ppo_config_step(&values, 9, &step);
    EXPECT_EQ(0.01f, step.learning_rate);
    EXPECT_EQ(0.3f, step.clip);
}

TEST(PpoConfig, ARunThatAnnealsKeepsItsLength) {
    PpoConfig then = settings("cartpole"), now = then;
    then.lr_anneal = now.lr_anneal = true;
    EXPECT_OK(ppo_config_check_resume(&now, &then));
    now.steps += 127; // as many updates
    EXPECT_OK(ppo_config_check_resume(&now, &then));
    now.steps += 1;
    EXPECT_FAILS(STATUS_USAGE, "learning rate over 1280 steps", ppo_config_check_resume(&now, &then));
    then.lr_anneal = now.lr_anneal = false;
    EXPECT_OK(ppo_config_check_resume(&now, &then));
    then.clip_anneal = now.clip_anneal = true;
    EXPECT_FAILS(STATUS_USAGE, "clip over", ppo_config_check_resume(&now, &then));
}

// ---- training ------------------------------------------------------------------------------------------------------

class PpoTestBase : public testing::Test {
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

    HostPool *pool = nullptr;
    KernBackend *backend = nullptr;
    TempFolder folder;
};

// Everything that a run's future depends on.
struct Snapshot {
    std::vector<float> vectors;
    std::vector<uint32_t> envs;
    std::vector<double> moments;
    int64_t adam_steps, update, env_steps;

    explicit Snapshot(const Ppo &ppo)
        : envs(ppo.state.envs, ppo.state.envs + ppo.spec.envs * ppo_env_words(&ppo.spec)),
          moments({ppo.state.obs_count, ppo.state.return_count, ppo.state.return_mean, ppo.state.return_square}),
          adam_steps(ppo.state.adam_steps), update(ppo.update), env_steps(ppo.env_steps) {
        for (const float *vector : {ppo.state.params, ppo.state.first, ppo.state.second})
            vectors.insert(vectors.end(), vector, vector + ppo.spec.policy.params);
        int obs = ppo.spec.sim.spec->obs;
        moments.insert(moments.end(), ppo.state.obs_mean, ppo.state.obs_mean + obs);
        moments.insert(moments.end(), ppo.state.obs_square, ppo.state.obs_square + obs);
    }
    bool operator==(const Snapshot &other) const {
        return vectors == other.vectors && envs == other.envs && moments == other.moments &&
               adam_steps == other.adam_steps && update == other.update && env_steps == other.env_steps;
    }
};

// A Ppo that closes itself.
struct OpenPpo : Ppo {
    OpenPpo(KernBackend *on, const PpoConfig &values) { EXPECT_OK(ppo_open(on, &values, this)); }
    ~OpenPpo() { ppo_close(this); }
    OpenPpo(const OpenPpo &) = delete;
    OpenPpo &operator=(const OpenPpo &) = delete;
    PpoReport run(int updates) {
        PpoReport report = {};
        for (int i = 0; i < updates; i++)
            EXPECT_OK(ppo_update(this, &report));
        return report;
    }
};

using PpoUpdate = PpoTestBase;

TEST_F(PpoUpdate, AdvancesAndReports) {
    PpoConfig values = settings("pendulum");
    values.lr_anneal = true;
    OpenPpo ppo(backend, values);
    Snapshot first(ppo);
    for (int update = 0; update < 3; update++) {
        PpoReport report = ppo.run(1);
        EXPECT_EQ(update + 1, report.update);
        EXPECT_EQ(128, report.env_steps);
        EXPECT_FLOAT_EQ(0.01f * (1.0f - static_cast<float>(update) / 10.0f), static_cast<float>(report.learning_rate));
        EXPECT_EQ(2, report.kern.epochs);
        EXPECT_EQ(12.0, report.length_mean); // each episode is cut off
        EXPECT_GT(0.0, report.return_mean);
        EXPECT_GT(report.kern.grad_norm, 0.0);
    }
    EXPECT_EQ(3, ppo.update);
    EXPECT_EQ(384, ppo.env_steps);
    EXPECT_EQ(3 * 2 * 4, ppo.state.adam_steps);
    EXPECT_EQ(384.0, ppo.state.obs_count);
    EXPECT_FALSE(first == Snapshot(ppo));
}

TEST_F(PpoUpdate, WithoutAFinishedEpisodeHasNoMean) {
    PpoConfig values = settings("pendulum");
    values.time_limit = 200;
    OpenPpo ppo(backend, values);
    PpoReport report = ppo.run(1);
    EXPECT_TRUE(std::isnan(report.return_mean));
    EXPECT_TRUE(std::isnan(report.length_mean));
}

TEST_F(PpoUpdate, ThatFailsLeavesTheState) {
    PpoConfig wild = settings("pendulum");
    std::snprintf(wild.set.at[0], sizeof wild.set.at[0], "dt_s=3e38");
    std::snprintf(wild.set.at[1], sizeof wild.set.at[1], "max_speed_radps=3e38");
    wild.set.count = 2;
    OpenPpo ppo(backend, wild);
    Snapshot before(ppo);
    PpoReport report;
    EXPECT_FAILS(STATUS_NUMERIC, "pendulum", ppo_update(&ppo, &report));
    EXPECT_TRUE(before == Snapshot(ppo));
}

using PpoTests = PpoTestBase;

// One episode of pendulum on the EVALUATE counters, with the actor's mean clamped.
float frozen_return(const Ppo &ppo, uint32_t round, uint32_t episode) {
    const PpoConfig &config = ppo.config;
    PendulumParams params;
    std::memcpy(&params, ppo.spec.sim.value, sizeof params);
    SimRng rng = {static_cast<uint32_t>(config.seed), 0, 0, episode, 0, SIM_RNG_EVALUATE | round};
    PendulumState state;
    pendulum_reset(&state, &params, &rng);
    KernNormalizer normalizer;
    ppo_normalizer(&ppo.spec, &ppo.state, &normalizer);
    float total = 0;
    for (int64_t step = 0; step < config.time_limit; step++) {
        float obs[3], mean;
        pendulum_observe(&state, &params, obs);
        for (int k = 0; k < 3; k++)
            obs[k] = std::clamp((obs[k] - normalizer.mean[k]) * normalizer.scale[k], -POLICY_CLIP, POLICY_CLIP);
        policy_forward(&ppo.spec.policy.actor, ppo.state.params, obs, nullptr, &mean);
        float torque = std::fma(std::clamp(mean, -1.0f, 1.0f) + 1.0f, 2.0f, -2.0f); // [-1, 1] to [-2, 2]
        rng.c0 = static_cast<uint32_t>(step + 1) << 8;
        total += pendulum_step(&state, &params, nullptr, &torque, &rng).reward;
    }
    return total;
}

TEST_F(PpoTests, RunTheMeanOfTheActor) {
    PpoConfig values = settings("pendulum");
    values.lr = 0.1; // so that the means leave [-1, 1] now and then
    OpenPpo ppo(backend, values);
    ppo.run(6);
    KernTest test;
    for (uint32_t round : {0u, 7u}) {
        ASSERT_OK(ppo_test(&ppo, round, 9, &test));
        double sum = 0;
        for (uint32_t episode = 0; episode < 9; episode++) {
            float expected = frozen_return(ppo, round, episode);
            EXPECT_EQ(expected, ppo.episodes[episode].episode_return) << "round " << round << ", episode " << episode;
            sum += static_cast<double>(expected);
        }
        EXPECT_DOUBLE_EQ(sum / 9, test.return_mean);
        EXPECT_EQ(9 * 12, test.env_steps);
    }
}

TEST_F(PpoTests, ChangeNothingAndRepeat) {
    for (const char *env : SIMULATORS) {
        OpenPpo ppo(backend, settings(env));
        ppo.run(3);
        Snapshot before(ppo);
        KernTest one, again, other;
        ASSERT_OK(ppo_test(&ppo, 7, 9, &one));
        ASSERT_OK(ppo_test(&ppo, 8, 9, &other));
        ASSERT_OK(ppo_test(&ppo, 7, 9, &again));
        EXPECT_EQ(one.return_mean, again.return_mean) << env;
        EXPECT_EQ(one.return_std, again.return_std) << env;
        EXPECT_TRUE(before == Snapshot(ppo)) << env;
        EXPECT_TRUE(std::strcmp(env, "pendulum") != 0 || one.return_mean != other.return_mean);
    }
}

// ---- saving and loading --------------------------------------------------------------------------------------------

class PpoCheckpoint : public PpoTestBase {
  protected:
    // Loading must fail and leave everything as it was.
    void refused(Ppo *ppo, const std::string &path, const std::string &words) {
        Snapshot before(*ppo);
        Status status = ppo_load(ppo, path.c_str());
        EXPECT_EQ(STATUS_CORRUPT, status) << host_message();
        EXPECT_NE(std::string::npos, std::string(host_message()).find(words)) << host_message();
        EXPECT_TRUE(before == Snapshot(*ppo));
    }
};

TEST_F(PpoCheckpoint, BringsEverythingBack) {
    for (const char *env : SIMULATORS) {
        PpoConfig values = settings(env);
        values.lr_anneal = values.clip_anneal = true;
        values.shared = std::strcmp(env, "acrobot") == 0;
        OpenPpo unbroken(backend, values), saved(backend, values), loaded(backend, values);
        unbroken.run(7);
        saved.run(3);
        std::string path = folder / "state";
        ASSERT_OK(ppo_save(&saved, path.c_str()));
        loaded.run(1); // a state that has run on can be brought back as well
        ASSERT_OK(ppo_load(&loaded, path.c_str()));
        EXPECT_TRUE(Snapshot(saved) == Snapshot(loaded)) << env;
        EXPECT_EQ(saved.train_s, loaded.train_s);
        loaded.run(4);
        EXPECT_TRUE(Snapshot(unbroken) == Snapshot(loaded)) << env;
        EXPECT_EQ(ppo_params_hash(&unbroken).state, ppo_params_hash(&loaded).state) << env;
        EXPECT_NE(ppo_params_hash(&saved).state, ppo_params_hash(&loaded).state) << env;
    }
}

TEST_F(PpoCheckpoint, OfAnotherPolicyOrSimulatorIsRefused) {
    OpenPpo ppo(backend, settings("pendulum"));
    ppo.run(2);
    std::string path = folder / "state";
    PpoConfig values = settings("pendulum");
    values.hidden = {1, {6}};
    OpenPpo wider(backend, values);
    ASSERT_OK(ppo_save(&wider, path.c_str()));
    refused(
        &ppo, path,
        "holds a policy 'pendulum 3-6-1 tanh, separate critic', this run has 'pendulum 3-5-1 tanh, separate critic'");
    values = settings("pendulum");
    values.shared = true;
    OpenPpo shared(backend, values);
    ASSERT_OK(ppo_save(&shared, path.c_str()));
    refused(&ppo, path, "'pendulum 3-5-1 tanh, shared critic'");
    values = settings("pendulum");
    values.recurrent = 4;
    values.shards = 1;
    OpenPpo recurrent(backend, values);
    ASSERT_OK(ppo_save(&recurrent, path.c_str()));
    refused(&ppo, path, "'pendulum 3-5-r4-1 tanh, separate critic'");
    values = settings("pendulum");
    values.envs = 16;
    OpenPpo more(backend, values);
    ASSERT_OK(ppo_save(&more, path.c_str()));
    refused(&ppo, path, "envs: U32 [16,");
    EXPECT_FAILS(STATUS_IO, "missing", ppo_load(&ppo, (folder / "missing").c_str()));
}

TEST_F(PpoCheckpoint, DamagedIsRefused) {
    OpenPpo ppo(backend, settings("pendulum"));
    ppo.run(2);
    std::string path = folder / "state", good;
    ASSERT_OK(ppo_save(&ppo, path.c_str()));
    good = read_file(path);
    ppo.run(1);
    for (size_t at = 0; at < good.size(); at += 131) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 4);
        write_file(path, bad);
        refused(&ppo, path, "state");
        write_file(path, good.substr(0, at));
        refused(&ppo, path, "state");
    }
    write_file(path, good);
    EXPECT_OK(ppo_load(&ppo, path.c_str()));
    EXPECT_EQ(2, ppo.update);
}

} // namespace
