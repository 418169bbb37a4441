// Batches against a struct per env stepped one after the other, bit for bit: every auto-reset mode, size, lane count,
// instruction set and number of threads.
#include "kernel_reference.h"
#include "test_sim.h"

#include <algorithm>
#include <memory>

namespace {

// One env of the reference.
struct RefEnv {
    std::vector<uint32_t> state;
    std::vector<float> params, obs, final_obs;
    uint32_t episode = 0; // begun
    int32_t length = 0, final_length = 0, terminated = 0, truncated = 0;
    float reward = 0, episode_return = 0, final_return = 0;
};

class RefBatch {
  public:
    explicit RefBatch(const KernBatchSpec &spec) : spec_(spec), sim_(ref_sim(spec.sim.spec)) {
        envs.resize(static_cast<size_t>(spec.envs));
        for (size_t i = 0; i < envs.size(); i++) {
            envs[i].state.resize(sim_.state_words);
            envs[i].obs.resize(static_cast<size_t>(spec.sim.spec->obs));
            envs[i].final_obs.resize(envs[i].obs.size());
            reset(i);
        }
    }

    void reset(size_t i) {
        begin(i);
        envs[i].reward = 0.0f;
        envs[i].terminated = envs[i].truncated = 0;
    }

    void step(size_t i, const int32_t *discrete, const float *continuous) {
        RefEnv &env = envs[i];
        if (spec_.autoreset == KERN_AUTORESET_NEXT_STEP && (env.terminated || env.truncated)) {
            reset(i);
            return;
        }
        SimRng rng = random_numbers(i);
        env.length++;
        rng.c0 = static_cast<uint32_t>(env.length) << 8;
        SimStep out = sim_.step(env.state.data(), env.params.data(), discrete, continuous, &rng);
        sim_.observe(env.state.data(), env.params.data(), env.obs.data());
        env.reward = out.reward;
        env.terminated = out.terminated;
        env.truncated = env.length >= spec_.sim.time_limit;
        env.episode_return = env.episode_return + out.reward;
        if (!env.terminated && !env.truncated) return;
        env.final_length = env.length;
        env.final_return = env.episode_return;
        if (spec_.autoreset != KERN_AUTORESET_SAME_STEP) return;
        env.final_obs = env.obs;
        begin(i);
    }

    std::vector<RefEnv> envs;

  private:
    SimRng random_numbers(size_t i) const {
        return {static_cast<uint32_t>(spec_.seed),
                static_cast<uint32_t>(spec_.seed >> 32),
                0,
                envs[i].episode - 1,
                static_cast<uint32_t>(i),
                SIM_RNG_BATCH};
    }
    void begin(size_t i) {
        RefEnv &env = envs[i];
        env.episode++;
        SimRng rng = random_numbers(i);
        env.params = ref_params(spec_.sim, rng);
        sim_.reset(env.state.data(), env.params.data(), &rng);
        sim_.observe(env.state.data(), env.params.data(), env.obs.data());
        env.length = 0;
        env.episode_return = 0.0f;
    }

    KernBatchSpec spec_;
    RefSim sim_;
};

// A batch of the backend, read and written env by env.
class Batch {
  public:
    Batch(const CpuWay &way, const KernBatchSpec &spec) : kernels(way) {
        EXPECT_STATUS(kernels.status());
        EXPECT_STATUS(kernels->batch_open(kernels.backend(), &spec, &batch));
        view = kernels->batch_view(batch);
    }
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;
    ~Batch() { kernels->batch_close(batch); }

    template <typename T> T &at(T *buffer, size_t env, size_t row = 0, size_t rows = 1) const {
        size_t lanes = static_cast<size_t>(view.lanes);
        return buffer[(env / lanes * rows + row) * lanes + env % lanes];
    }
    Status step() { return kernels->batch_step(batch); }
    Status reset(const uint8_t *mask) { return kernels->batch_reset(batch, mask); }

    CpuKernels kernels;
    KernBatch *batch = nullptr;
    KernBatchView view;
};

struct Actions {
    size_t envs, discrete_count, continuous_count; // the latter two of an env
    std::vector<int32_t> discrete;
    std::vector<float> continuous; // beyond the bounds too

    const int32_t *discrete_of(size_t env) const { return &discrete[env * discrete_count]; }
    const float *continuous_of(size_t env) const { return &continuous[env * continuous_count]; }
};

Actions random_actions(const SimSpec *sim, size_t envs, std::mt19937_64 *random) {
    size_t count = 0;
    while (sim->choices[count] > 0)
        count++;
    size_t continuous = static_cast<size_t>(sim->continuous);
    Actions a = {envs, count, continuous, std::vector<int32_t>(envs * count + 1),
                 std::vector<float>(envs * continuous + 1)};
    std::uniform_real_distribution<float> uniform(1.5f * sim->action_low, 1.5f * sim->action_high + 1e-6f);
    for (size_t i = 0; i < envs; i++) {
        for (size_t k = 0; k < count; k++)
            a.discrete[i * count + k] = static_cast<int32_t>((*random)() % static_cast<unsigned>(sim->choices[k]));
        for (size_t k = 0; k < continuous; k++)
            a.continuous[i * continuous + k] = uniform(*random);
    }
    return a;
}

void write_actions(const Batch &batch, const Actions &a) {
    for (size_t i = 0; i < a.envs; i++) {
        for (size_t k = 0; k < a.discrete_count; k++)
            batch.at(batch.view.discrete, i, k, a.discrete_count) = a.discrete_of(i)[k];
        for (size_t k = 0; k < a.continuous_count; k++)
            batch.at(batch.view.continuous, i, k, a.continuous_count) = a.continuous_of(i)[k];
    }
}

// Everything of one env; false at the first difference.
bool same_env(const Batch &batch, const RefEnv &env, size_t i, bool with_final_obs) {
    const KernBatchView &v = batch.view;
    size_t obs = env.obs.size(), words = env.state.size();
    bool same = batch.at(v.reward, i) == env.reward && batch.at(v.terminated, i) == env.terminated &&
                batch.at(v.truncated, i) == env.truncated && batch.at(v.length, i) == env.length &&
                bits_of(batch.at(v.episode_return, i)) == bits_of(env.episode_return) &&
                batch.at(v.final_length, i) == env.final_length &&
                bits_of(batch.at(v.final_return, i)) == bits_of(env.final_return);
    for (size_t k = 0; k < obs; k++) {
        same &= bits_of(batch.at(v.obs, i, k, obs)) == bits_of(env.obs[k]);
        if (with_final_obs) same &= bits_of(batch.at(v.final_obs, i, k, obs)) == bits_of(env.final_obs[k]);
    }
    for (size_t w = 0; w < words; w++)
        same &= batch.at(v.state, i, w, words) == env.state[w];
    return same;
}

std::string show(const Batch &b, const RefEnv &e, size_t i) {
    const KernBatchView &v = b.view;
    char text[400];
    std::snprintf(text, sizeof text,
                  "got obs %g reward %g terminated %d truncated %d length %d return %g final %d %g, "
                  "want obs %g reward %g terminated %d truncated %d length %d return %g final %d %g",
                  static_cast<double>(b.at(v.obs, i, 0, e.obs.size())), static_cast<double>(b.at(v.reward, i)),
                  b.at(v.terminated, i), b.at(v.truncated, i), b.at(v.length, i),
                  static_cast<double>(b.at(v.episode_return, i)), b.at(v.final_length, i),
                  static_cast<double>(b.at(v.final_return, i)), static_cast<double>(e.obs[0]),
                  static_cast<double>(e.reward), e.terminated, e.truncated, e.length,
                  static_cast<double>(e.episode_return), e.final_length, static_cast<double>(e.final_return));
    return text;
}

KernBatchSpec make_spec(const SimSpec *sim, int64_t envs, KernAutoreset mode, std::mt19937_64 *random) {
    KernBatchSpec spec = {};
    kern_sim_default(&spec.sim, sim);
    spec.envs = envs;
    spec.seed = (*random)();
    spec.autoreset = mode;
    spec.sim.time_limit = test_steps(sim, 20 + static_cast<int>((*random)() % 30));
    return spec;
}

// Goals within reach, and every second parameter drawn for each episode.
void randomize(KernSim *sim) {
    sim->any_random = true;
    for (int k = 0; k < sim->spec->param_count; k++) {
        float a = 0.8f * sim->value[k], b = 1.2f * sim->value[k];
        std::string name = sim->spec->params[k].name;
        if (name == "goal_position") a = -0.49f, b = 0.5f;
        if (name == "goal_height") a = -1.9f, b = 1.0f;
        sim->random[k] = k % 2 == 0 || name.rfind("goal_", 0) == 0;
        sim->low[k] = std::min(a, b);
        sim->high[k] = std::max(a, b);
    }
}

const KernAutoreset modes[] = {KERN_AUTORESET_NEXT_STEP, KERN_AUTORESET_SAME_STEP, KERN_AUTORESET_DISABLED};
const char *const mode_names[] = {"next_step", "same_step", "disabled"};

constexpr int MASKED_STEPS = 6; // after so many run() has reset some envs by mask

// Steps all batches and the reference together; masks now and then, and in DISABLED mode wherever an episode ended.
void run(const KernBatchSpec &spec, const std::vector<CpuWay> &ways, int steps, std::mt19937_64 *random) {
    size_t envs = static_cast<size_t>(spec.envs);
    RefBatch ref(spec);
    std::vector<std::unique_ptr<Batch>> batches;
    for (const CpuWay &way : ways)
        batches.push_back(std::make_unique<Batch>(way, spec));
    bool same_step = spec.autoreset == KERN_AUTORESET_SAME_STEP;
    int64_t resets = 0;
    for (int step = 0; step <= steps; step++) {
        for (size_t b = 0; b < batches.size(); b++) {
            for (size_t i = 0; i < envs; i++) {
                ASSERT_TRUE(same_env(*batches[b], ref.envs[i], i, same_step))
                    << ways[b].text() << ", step " << step << ", env " << i << ": "
                    << show(*batches[b], ref.envs[i], i);
            }
        }
        if (step == steps) break;
        std::vector<uint8_t> mask(envs, 0);
        for (size_t i = 0; i < envs; i++) {
            bool ended = ref.envs[i].terminated || ref.envs[i].truncated;
            mask[i] = (spec.autoreset == KERN_AUTORESET_DISABLED && ended) ||
                      (step % 17 == 5 && (i + static_cast<size_t>(step)) % 5 == 0);
            if (!mask[i]) continue;
            ref.reset(i);
            resets++;
        }
        Actions actions = random_actions(spec.sim.spec, envs, random);
        for (size_t i = 0; i < envs; i++)
            ref.step(i, actions.discrete_of(i), actions.continuous_of(i));
        for (const auto &batch : batches) {
            if (std::count(mask.begin(), mask.end(), 0) != static_cast<std::ptrdiff_t>(envs)) {
                ASSERT_STATUS(batch->reset(mask.data()));
            }
            write_actions(*batch, actions);
            Status status = batch->step();
            int in_use = upper_halves_in_use();
            ASSERT_STATUS(status);
            ASSERT_NE(in_use, 1);
        }
    }
    EXPECT_GT(resets, 0);
}

class BatchTest : public testing::TestWithParam<int> {};

TEST_P(BatchTest, MatchesTheScalarReference) {
    std::mt19937_64 random(fresh_seed());
    std::vector<CpuWay> ways = cpu_ways();
    for (KernAutoreset mode : modes) {
        for (int64_t envs : {1, 5, 16, 17, 1000}) {
            if (envs == 1000 && is_heavy(sim_spec_at(GetParam()))) continue; // MatchesInSeveralPieces has more
            for (bool drawn : {false, true}) {
                KernBatchSpec spec = make_spec(sim_spec_at(GetParam()), envs, mode, &random);
                if (drawn) randomize(&spec.sim);
                SCOPED_TRACE(std::string(mode_names[mode]) + ", " + std::to_string(envs) + " envs, random " +
                             std::to_string(drawn));
                int steps = test_steps(spec.sim.spec, envs == 1000 ? 60 : 300);
                run(spec, ways, std::max(steps / (is_sanitized ? 3 : 1), MASKED_STEPS), &random);
                if (HasFatalFailure()) return;
            }
        }
    }
}

// Two threads and more pieces than threads: BATCH_GRAIN_ENVS is 2,048.
TEST_P(BatchTest, MatchesInSeveralPieces) {
    std::mt19937_64 random(fresh_seed());
    for (KernAutoreset mode : modes) {
        if (is_heavy(sim_spec_at(GetParam())) && mode != KERN_AUTORESET_SAME_STEP) continue;
        const bool few = is_sanitized ? is_heavy(sim_spec_at(GetParam())) : is_very_heavy(sim_spec_at(GetParam()));
        int64_t envs = few ? 4100 : 10001;
        KernBatchSpec spec = make_spec(sim_spec_at(GetParam()), envs, mode, &random);
        spec.sim.time_limit = test_steps(spec.sim.spec, 9);
        int steps = test_steps(spec.sim.spec, is_sanitized ? 12 : 40);
        run(spec, {{1, "auto", 0}, {2, "auto", 8}, {3, "auto", 16}}, std::max(steps, MASKED_STEPS), &random);
        if (HasFatalFailure()) return;
    }
}

TEST_P(BatchTest, EveryResetDrawsAFreshState) {
    std::mt19937_64 random(fresh_seed());
    for (KernAutoreset mode : modes) {
        KernBatchSpec spec = make_spec(sim_spec_at(GetParam()), 20, mode, &random);
        Batch batch({1, "auto", 0}, spec);
        std::vector<std::vector<float>> starts;
        size_t obs = static_cast<size_t>(spec.sim.spec->obs);
        for (int round = 0; round < 30; round++) {
            if (round > 0) {
                ASSERT_STATUS(batch.reset(nullptr));
            }
            for (size_t i = 0; i < 20; i++) {
                std::vector<float> start;
                for (size_t k = 0; k < obs; k++)
                    start.push_back(batch.at(batch.view.obs, i, k, obs));
                starts.push_back(start);
            }
        }
        // Mountain cars draw one number of 24 bits: two of 600 agree once in a hundred runs, four never.
        std::sort(starts.begin(), starts.end());
        EXPECT_GE(std::unique(starts.begin(), starts.end()) - starts.begin(), 597);
    }
}

// What the padded lanes of the last block hold changes nothing, and no failure is reported for them.
TEST_P(BatchTest, PaddingDoesNotMatter) {
    std::mt19937_64 random(fresh_seed());
    for (KernAutoreset mode : modes) {
        KernBatchSpec spec = make_spec(sim_spec_at(GetParam()), 5, mode, &random);
        Batch batch({1, "auto", 16}, spec);
        RefBatch ref(spec);
        size_t words = ref.envs[0].state.size();
        const float nan = std::nanf("");
        for (int step = 0; step < 100; step++) {
            Actions actions = random_actions(spec.sim.spec, 5, &random);
            write_actions(batch, actions);
            for (size_t i = 5; i < 16; i++) {
                for (size_t w = 0; w < words; w++)
                    std::memcpy(&batch.at(batch.view.state, i, w, words), &nan, 4);
                batch.at(batch.view.discrete, i) = 12345;
                if (spec.sim.spec->continuous > 0) batch.at(batch.view.continuous, i) = nan;
            }
            for (size_t i = 0; i < 5; i++)
                ref.step(i, actions.discrete_of(i), actions.continuous_of(i));
            ASSERT_STATUS(batch.step());
            for (size_t i = 0; i < 5; i++)
                ASSERT_TRUE(same_env(batch, ref.envs[i], i, mode == KERN_AUTORESET_SAME_STEP)) << step << " " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Sims, BatchTest, testing::ValuesIn(test_sims()),
                         [](const auto &of) { return std::string(sim_spec_at(of.param)->name); });

// ---- NaN and infinity ----------------------------------------------------------------------------------------------

TEST(BatchNumeric, NamesTheFirstEnvStepAndField) {
    std::mt19937_64 random(fresh_seed());
    const SimSpec *sim = sim_spec_find("cartpole");
    for (KernAutoreset mode : modes) {
        KernBatchSpec spec = make_spec(sim, 9000, mode, &random);
        for (const CpuWay &way : cpu_ways()) {
            Batch batch(way, spec);
            size_t words = static_cast<size_t>(sim->state_words);
            ASSERT_STATUS(batch.step());
            ASSERT_STATUS(batch.step());
            const float infinity = INFINITY;
            for (size_t env : {8999u, 4321u, 7000u})
                std::memcpy(&batch.at(batch.view.state, env, 2, words), &infinity, 4); // theta
            std::string want = "cartpole: env 4321, step 3: x_dot_mps is NaN or infinite";
            EXPECT_EQ(batch.step(), STATUS_NUMERIC);
            EXPECT_EQ(std::string(host_message()), want) << way.text() << ", " << mode_names[mode];
            // Once reset, all is well.
            ASSERT_STATUS(batch.reset(nullptr));
            ASSERT_STATUS(batch.step());
        }
    }
}

TEST(BatchNumeric, NamesTheReward) {
    std::mt19937_64 random(fresh_seed());
    const SimSpec *sim = sim_spec_find("mountain_car_continuous");
    KernBatchSpec spec = make_spec(sim, 40, KERN_AUTORESET_SAME_STEP, &random);
    Batch batch({2, "auto", 0}, spec);
    batch.at(batch.view.continuous, 37) = 1e30f;
    EXPECT_EQ(batch.step(), STATUS_NUMERIC);
    EXPECT_EQ(std::string(host_message()), "mountain_car_continuous: env 37, step 1: the reward is NaN or infinite");
}

// ---- opening, reading and writing ----------------------------------------------------------------------------------

TEST(BatchOpen, RefusesSizesOutOfRange) {
    std::mt19937_64 random(1);
    CpuKernels kernels(CpuWay{1, "auto", 0});
    for (int64_t envs : {int64_t{0}, int64_t{-1}, int64_t{1} << 32}) {
        KernBatchSpec spec = make_spec(sim_spec_at(0), envs, KERN_AUTORESET_SAME_STEP, &random);
        KernBatch *batch = nullptr;
        EXPECT_EQ(kernels->batch_open(kernels.backend(), &spec, &batch), STATUS_USAGE) << envs;
        EXPECT_NE(std::string(host_message()).find(std::to_string(envs)), std::string::npos) << host_message();
    }
}

TEST(BackendOpen, RefusesWhatItDoesNotHave) {
    EXPECT_EQ(CpuKernels(CpuWay{1, "v9", 0}).status(), STATUS_DEVICE);
    EXPECT_NE(std::string(host_message()).find("v9"), std::string::npos) << host_message();
    for (int lanes : {-1, 2, 4, 32}) {
        EXPECT_EQ(CpuKernels(CpuWay{1, "auto", lanes}).status(), STATUS_USAGE);
        EXPECT_NE(std::string(host_message()).find("--lanes " + std::to_string(lanes)), std::string::npos);
    }
    CpuKernels kernels(CpuWay{3, "baseline", 8});
    char text[100];
    kernels->describe(kernels.backend(), text, sizeof text);
    EXPECT_EQ(std::string(text), "cpu: 3 threads, baseline, 8 lanes");
}

TEST(BatchOpen, ReadsAndWritesBuffers) {
    std::mt19937_64 random(fresh_seed());
    KernBatchSpec spec = make_spec(sim_spec_find("pendulum"), 20, KERN_AUTORESET_SAME_STEP, &random);
    Batch batch({1, "auto", 8}, spec);
    ASSERT_EQ(batch.view.blocks, 3);
    std::vector<float> actions(24), back(24);
    for (float &a : actions)
        a = static_cast<float>(random() % 100);
    ASSERT_STATUS(batch.kernels->batch_write(batch.batch, batch.view.continuous, actions.data(), 24 * 4));
    ASSERT_STATUS(batch.kernels->batch_read(batch.batch, back.data(), batch.view.continuous, 24 * 4));
    EXPECT_EQ(actions, back);
    EXPECT_EQ(batch.at(batch.view.continuous, 19), actions[19]);
}

} // namespace
