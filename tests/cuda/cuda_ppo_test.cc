// PPO's updates on the GPU against the CPU: the complete state and the report, bit for bit.
#include "tests/cuda/cuda_test_util.h"

#include <cmath>
#include <random>

#include "tests/kernels/fresh_seed.h"
#include "tests/kernels/ppo_run.h"

namespace {

void expect_equal(const KernPpoReport &a, const KernPpoReport &b) {
    EXPECT_EQ(a.policy_loss, b.policy_loss);
    EXPECT_EQ(a.value_loss, b.value_loss);
    EXPECT_EQ(a.entropy, b.entropy);
    EXPECT_EQ(a.kl, b.kl);
    EXPECT_EQ(a.clip_fraction, b.clip_fraction);
    EXPECT_EQ(a.explained_variance, b.explained_variance);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
    EXPECT_EQ(a.epochs, b.epochs);
    EXPECT_EQ(a.episodes, b.episodes);
    EXPECT_EQ(a.episode_steps, b.episode_steps);
    EXPECT_EQ(a.episode_return, b.episode_return);
}

class CudaPpoTest : public CudaTest {
  protected:
    void compare(const PpoSetting &s, uint64_t seed, int updates = 2) {
        SCOPED_TRACE(std::string(s.sim) + ", " + std::to_string(s.envs) + " envs, " + std::to_string(s.shards) +
                     " shards, " + std::to_string(s.rollout) + " steps, " + std::to_string(s.minibatches) +
                     " minibatches, " + std::to_string(s.hidden.size()) + " hidden layers, " +
                     std::to_string(s.recurrent) + " recurrent units");
        KernPpoSpec spec = make_spec(s, seed);
        PpoRun a(cpu, spec), b(cuda, spec);
        PpoState x(spec), y(spec);
        if (HasFailure()) return;
        a.begin(&x);
        b.begin(&y);
        ASSERT_TRUE(ppo_bytes(spec, x) == ppo_bytes(spec, y)) << "first episodes";
        std::string before = ppo_bytes(spec, x);
        for (int update = 0; update < updates; update++) {
            KernPpoReport p, q;
            ASSERT_OK(a.update(make_step(s, static_cast<uint32_t>(update)), &p));
            ASSERT_OK(b.update(make_step(s, static_cast<uint32_t>(update)), &q));
            expect_equal(p, q);
            ASSERT_OK(a.read(&x));
            ASSERT_OK(b.read(&y));
            EXPECT_TRUE(x.envs == y.envs) << "envs, update " << update;
            EXPECT_EQ(memcmp(x.params.data(), y.params.data(), x.params.size() * 4), 0) << "params, update " << update;
            ASSERT_TRUE(ppo_bytes(spec, x) == ppo_bytes(spec, y)) << "update " << update;
        }
        EXPECT_FALSE(ppo_bytes(spec, x) == before);
    }
};

const PpoSetting SETTINGS[] = {
    // Envs per shard that are no multiple of the lanes; episodes that end and are cut off.
    {"cartpole", {17, 33}, POLICY_TANH, false, 12, 4, 24, 1, 2, true, true, 11, false},
    {"pendulum", {64}, POLICY_RELU, true, 5, 1, 16, 8, 2, true, false, 9, true},
    {"acrobot", {9}, POLICY_TANH, true, 20, 2, 12, 3, 2, false, true, 7, true},
    {"mountain_car_continuous", {}, POLICY_TANH, false, 16, 16, 6, 2, 3, true, false, 4, false},
    {"mountain_car", {80, 16}, POLICY_RELU, false, 2, 2, 32, 2, 1, false, false, 20, false},
    // Several actions of both kinds.
    {"parking", {20}, POLICY_TANH, false, 12, 4, 60, 1, 2, true, true, 25, true},
    {"parking", {}, POLICY_TANH, true, 6, 2, 9, 3, 2, false, false, 4, false},
    // On rigid bodies.
    {"lunar_lander", {9}, POLICY_TANH, false, 6, 2, 8, 1, 2, true, true, 6, true},
    {"lunar_lander_continuous", {17}, POLICY_RELU, true, 5, 1, 8, 2, 2, true, false, 5, false},
};

// Wide and narrow layers, shared and separate, tanh and relu, recurrent and not.
const PpoSetting BF16[] = {
    {"cartpole", {17, 9}, POLICY_TANH, false, 12, 4, 24, 1, 2, true, true, 11, false, 0, POLICY_BF16},
    {"parking", {20, 33}, POLICY_RELU, true, 6, 2, 9, 3, 2, true, false, 4, false, 0, POLICY_BF16},
    {"pendulum", {20}, POLICY_TANH, false, 8, 2, 12, 2, 2, true, true, 7, false, 18, POLICY_BF16},
    {"mountain_car", {}, POLICY_TANH, true, 4, 2, 10, 1, 2, true, true, 6, false, 5, POLICY_BF16},
    {"lunar_lander", {20}, POLICY_TANH, false, 4, 1, 6, 1, 2, true, true, 4, false, 0, POLICY_BF16},
};

// Wide and narrow recurrent layers, behind hidden layers and none, shared and separate; episodes that end within the
// rollout; several sequences in a part, sequences of several tiles and of one step.
const PpoSetting RECURRENT[] = {
    {"cartpole", {17, 33}, POLICY_TANH, false, 12, 2, 40, 3, 2, true, true, 13, false, 18},
    {"pendulum", {64}, POLICY_RELU, true, 10, 1, 20, 2, 2, true, false, 8, true, 5},
    {"position_only_cartpole", {}, POLICY_TANH, false, 20, 2, 15, 5, 2, false, true, 7, false, 7},
    {"mountain_car_continuous", {}, POLICY_TANH, true, 4, 4, 70, 1, 2, true, true, 9, false, 70},
    {"acrobot", {9}, POLICY_RELU, true, 6, 2, 1, 3, 2, false, true, 3, true, 16},
    {"parking", {9}, POLICY_TANH, true, 10, 1, 20, 2, 2, true, false, 8, true, 18},
    {"parking", {}, POLICY_TANH, false, 4, 4, 30, 1, 2, false, true, 11, false, 6},
    {"lunar_lander_continuous", {9}, POLICY_TANH, false, 4, 1, 6, 1, 2, true, true, 4, false, 5},
};

TEST_F(CudaPpoTest, EverySimulatorMatchesTheCpu) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : SETTINGS) {
        compare(s, seed);
        if (HasFailure()) return;
    }
}

TEST_F(CudaPpoTest, RecurrentPoliciesMatchTheCpu) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : RECURRENT) {
        compare(s, seed, 3);
        if (HasFailure()) return;
    }
}

TEST_F(CudaPpoTest, Bf16MatchesTheCpu) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : BF16) {
        compare(s, seed, 3);
        if (HasFailure()) return;
    }
}

TEST_F(CudaPpoTest, RandomSettingsMatchTheCpu) {
    std::mt19937_64 random(fresh_seed());
    auto below = [&](int count) { return static_cast<int32_t>(random() % static_cast<uint64_t>(count)); };
    for (int i = 0; i < 12; i++) {
        PpoSetting s = {};
        const SimSpec *sim = sim_spec_at(below(sim_spec_count()));
        s.sim = sim->name;
        for (int layer = below(4); layer > 0; layer--)
            s.hidden.push_back(1 + below(below(2) ? 70 : 20));
        s.activation = below(2) ? POLICY_TANH : POLICY_RELU;
        s.shared = below(2);
        s.shards = 1 << below(4);
        s.envs = s.shards * (1 + below(5));
        s.minibatches = 1 + below(3);
        s.rollout = s.minibatches * (1 + below(12));
        if (below(2)) {
            s.recurrent = 1 + below(40);
            s.envs *= s.minibatches;
        }
        s.epochs = 1 + below(2);
        s.normalize = below(2);
        s.clip_value = below(2);
        s.time_limit = 2 + below(20);
        s.randomised = below(2);
        compare(s, random());
        if (HasFailure()) return;
    }
}

// Parts of several chunks, whose partial sums are in memory one at a time or all; rollouts in one launch or many.
TEST_F(CudaPpoTest, SlicesAndRoundsChangeNothing) {
    uint64_t seed = fresh_seed();
    for (int slice_steps : {0, 1, 7}) {
        open_backends(slice_steps);
        compare({"cartpole", {8}, POLICY_TANH, false, 12, 2, 90, 1, 1, true, true, 30, false}, seed);
        if (HasFailure()) return;
        compare({"cartpole", {8}, POLICY_TANH, false, 12, 2, 10, 1, 1, true, true, 4, false, 6}, seed);
        if (HasFailure()) return;
    }
}

// A number of envs that takes the largest blocks, and more shards than one launch folds.
TEST_F(CudaPpoTest, ManyEnvsAndShardsMatchTheCpu) {
    compare({"pendulum", {}, POLICY_TANH, false, 132 * 32, 32, 2, 1, 1, true, true, 30, false}, fresh_seed(), 1);
    compare({"cartpole", {16}, POLICY_TANH, true, 256, 256, 2, 2, 1, true, true, 2, false}, fresh_seed(), 1);
}

// Layers of several tiles; and activations that do not fit a block's shared memory.
TEST_F(CudaPpoTest, WideAndManyLayersMatchTheCpu) {
    compare({"cartpole", {1024}, POLICY_RELU, true, 2, 1, 4, 1, 1, true, true, 30, false}, fresh_seed(), 1);
    std::vector<int32_t> many(8, 180);
    compare({"pendulum", many, POLICY_TANH, false, 2, 2, 2, 1, 1, true, true, 2, false}, fresh_seed(), 1);
    compare({"pendulum", {40}, POLICY_TANH, false, 2, 1, 300, 1, 1, true, true, 200, false, 70}, fresh_seed(), 1);
}

TEST_F(CudaPpoTest, GoesOnFromTheOtherDevicesState) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : {SETTINGS[1], SETTINGS[2], SETTINGS[5], RECURRENT[0], RECURRENT[1], RECURRENT[5]}) {
        KernPpoSpec spec = make_spec(s, seed);
        PpoState straight(spec), middle(spec), resumed(spec);
        KernPpoReport report;
        for (bool to_cuda : {false, true}) {
            PpoRun one(to_cuda ? cpu : cuda, spec), other(to_cuda ? cuda : cpu, spec);
            one.begin(&middle);
            ASSERT_OK(one.update(make_step(s, 0), &report));
            ASSERT_OK(one.read(&middle));
            ASSERT_OK(one.update(make_step(s, 1), &report));
            ASSERT_OK(one.read(&straight));
            ASSERT_OK(other.write(middle));
            ASSERT_OK(other.update(make_step(s, 1), &report));
            ASSERT_OK(other.read(&resumed));
            EXPECT_TRUE(ppo_bytes(spec, straight) == ppo_bytes(spec, resumed)) << s.sim;
        }
    }
}

TEST_F(CudaPpoTest, StopsAtTheTargetKl) {
    PpoSetting s = SETTINGS[0];
    s.epochs = 8;
    s.minibatches = 2;
    KernPpoSpec spec = make_spec(s, fresh_seed());
    PpoRun a(cpu, spec), b(cuda, spec);
    PpoState x(spec), y(spec);
    a.begin(&x);
    b.begin(&y);
    KernPpoStep step = make_step(s, 0);
    step.target_kl = 1e-5f;
    for (step.update = 0; step.update < 2; step.update++) {
        KernPpoReport p, q;
        ASSERT_OK(a.update(step, &p));
        ASSERT_OK(b.update(step, &q));
        EXPECT_LT(p.epochs, 8);
        expect_equal(p, q);
        ASSERT_OK(a.read(&x));
        ASSERT_OK(b.read(&y));
        EXPECT_TRUE(ppo_bytes(spec, x) == ppo_bytes(spec, y));
    }
}

// What both backends say of a state and a step that end in NaN or infinity.
std::string failure(KernBackend *backend, const KernPpoSpec &spec, const PpoState &state, const KernPpoStep &step) {
    PpoRun ppo(backend, spec);
    KernPpoReport report;
    EXPECT_EQ(ppo.write(state), STATUS_OK) << host_message();
    EXPECT_EQ(ppo.update(step, &report), STATUS_NUMERIC);
    return host_message();
}

TEST_F(CudaPpoTest, NamesWhatIsNotFinite) {
    PpoSetting s = SETTINGS[1];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    PpoState state(spec);
    {
        PpoRun ppo(cpu, spec);
        ppo.begin(&state);
    }
    KernPpoStep step = make_step(s, 7);
    step.value_weight = 3e38f; // the critic's gradient overflows, and so does what comes before it
    std::string expected = failure(cpu, spec, state, step);
    EXPECT_NE(expected.find("epoch 0, minibatch 0: the gradient of"), std::string::npos) << expected;
    EXPECT_EQ(failure(cuda, spec, state, step), expected);

    step = make_step(s, 5);
    step.value_weight = 1e22f;
    step.max_grad_norm = 0.0f; // squares that Adam's second moment cannot hold
    expected = failure(cpu, spec, state, step);
    EXPECT_NE(expected.find("epoch 0, minibatch 0: the gradient of"), std::string::npos) << expected;
    EXPECT_EQ(failure(cuda, spec, state, step), expected);

    step = make_step(s, 3);
    step.learning_rate = 1e30f; // the parameters are finite, and what comes of them is not
    expected = failure(cpu, spec, state, step);
    EXPECT_NE(expected.find("epoch 0, minibatch 1"), std::string::npos) << expected;
    EXPECT_EQ(failure(cuda, spec, state, step), expected);

    // No gradient goes through a value beyond its clip, and the square of its error overflows.
    step = make_step(s, 4);
    step.value_weight = 0.0f;
    state.params[static_cast<size_t>(spec.policy.actor_params + spec.policy.critic_params - 1)] = 1e25f;
    expected = failure(cpu, spec, state, step);
    EXPECT_NE(expected.find("the loss's part value"), std::string::npos) << expected;
    EXPECT_EQ(failure(cuda, spec, state, step), expected);

    float bad = std::nanf("");
    size_t words = static_cast<size_t>(ppo_env_words(&spec));
    memcpy(&state.envs[3 * words], &bad, 4); // the first field of env 3, and of env 2
    memcpy(&state.envs[2 * words], &bad, 4);
    expected = failure(cpu, spec, state, step);
    EXPECT_EQ(expected, "pendulum: update 4, env 2, step 0: theta_rad is NaN or infinite");
    EXPECT_EQ(failure(cuda, spec, state, step), expected);
}

TEST_F(CudaPpoTest, NamesADiscountedReturnThatOverflows) {
    PpoSetting s = {"mountain_car_continuous", {8}, POLICY_TANH, false, 4, 2, 64, 1, 1, true, true, 0, false};
    KernPpoSpec spec = make_spec(s, fresh_seed());
    spec.sim.value[sim_spec_param(spec.sim.spec, "action_cost")] = 3e38f;
    PpoState state(spec);
    {
        PpoRun ppo(cpu, spec);
        ppo.begin(&state);
    }
    std::string expected = failure(cpu, spec, state, make_step(s, 3));
    EXPECT_EQ(expected, "mountain_car_continuous: update 3: the variance of the discounted return is NaN or infinite");
    EXPECT_EQ(failure(cuda, spec, state, make_step(s, 3)), expected);
}

TEST_F(CudaPpoTest, EndsAtAStop) {
    open_backends(1);
    for (const auto &[s, part] : endless_updates()) {
        SCOPED_TRACE(part);
        KernPpoSpec spec = make_spec(s, 1);
        PpoState state(spec);
        KernPpoReport report;
        PpoRun ppo(cuda, spec);
        ppo.begin(&state);
        StopLater stop;
        EXPECT_EQ(ppo.update(make_step(s, 0), &report), STATUS_STOPPED) << host_message();
    }
}

// They share kernels, and what a kernel's launch may have.
TEST_F(CudaPpoTest, SeveralRunsAtOnce) {
    PpoSetting large = {"cartpole", {64, 64}, POLICY_TANH, false, 8, 2, 8, 2, 1, true, true, 0, false}, small = large;
    small.hidden = {8};
    KernPpoSpec large_spec = make_spec(large, 1), small_spec = make_spec(small, 1);
    PpoState large_state(large_spec), small_state(small_spec);
    PpoRun first(cuda, large_spec), second(cuda, small_spec);
    first.begin(&large_state);
    second.begin(&small_state);
    KernPpoReport report;
    ASSERT_OK(first.update(make_step(large, 0), &report));
    ASSERT_OK(second.update(make_step(small, 0), &report));
    ASSERT_OK(first.update(make_step(large, 1), &report));
}

TEST_F(CudaPpoTest, RefusesWhatTheCpuRefuses) {
    for (int which = 0; which < 6; which++) {
        PpoSetting s = SETTINGS[0];
        if (which == 0) s.shards = 3;
        if (which == 1) s.envs = 13;
        if (which == 2) s.minibatches = 7;
        if (which == 3) s.rollout = 0;
        if (which >= 4) s.recurrent = 4; // three envs in a shard
        if (which == 4) s.minibatches = 2;
        if (which == 5) s.rollout = PPO_SEQUENCE_MAX + 1;
        KernPpoSpec spec = make_spec(s, 1);
        KernPpo *ppo = nullptr;
        ASSERT_EQ(cpu->ops->ppo_open(cpu, &spec, &ppo), STATUS_USAGE) << which;
        std::string expected = host_message();
        ASSERT_EQ(cuda->ops->ppo_open(cuda, &spec, &ppo), STATUS_USAGE) << which;
        EXPECT_EQ(host_message(), expected);
    }
}

} // namespace
