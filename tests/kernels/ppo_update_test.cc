// PPO's updates on the CPU against a plain reference, bit for bit, in every way that this processor can compute them;
// and whether they learn.
#include "ppo_reference.h"

namespace {

// A run on the CPU.
class Ppo : private CpuKernels, public PpoRun {
  public:
    Ppo(const CpuWay &way, const KernPpoSpec &spec) : CpuKernels(way), PpoRun(backend(), spec) {}
};

std::vector<PpoSetting> settings() {
    return {
        // Envs per shard that are no multiple of the lanes; episodes that end and are cut off; two chunks in a part.
        {"cartpole", {17, 33}, POLICY_TANH, false, 12, 4, 100, 1, 2, true, true, 25, false},
        {"pendulum", {64}, POLICY_RELU, true, 5, 1, 40, 8, 2, true, false, 16, true},
        {"acrobot", {9}, POLICY_TANH, true, 20, 2, 12, 3, 2, false, true, 7, false},
        {"mountain_car_continuous", {}, POLICY_TANH, false, 16, 16, 6, 2, 3, true, false, 4, false},
        {"mountain_car", {80, 16}, POLICY_RELU, false, 2, 2, 32, 2, 1, false, false, 0, false},
        // Recurrent: wide and narrow, behind hidden layers and none, shared and separate; sequences longer and shorter
        // than the rows that go through the layers together, with episodes that end within them.
        {"cartpole", {17}, POLICY_TANH, false, 12, 2, 100, 3, 2, true, true, 25, false, 18},
        {"pendulum", {64}, POLICY_RELU, true, 10, 1, 20, 2, 2, true, false, 16, true, 5},
        {"position_only_cartpole", {}, POLICY_TANH, false, 20, 2, 30, 5, 2, false, true, 7, false, 7},
        {"mountain_car_continuous", {}, POLICY_TANH, true, 4, 4, 60, 1, 2, true, true, 9, false, 70},
        // Several actions of both kinds.
        {"parking", {20}, POLICY_TANH, false, 12, 4, 100, 2, 2, true, true, 25, false},
        {"parking", {9}, POLICY_TANH, true, 10, 1, 20, 2, 2, true, false, 16, true, 18},
        // Rounded to bfloat16: wide and narrow layers, shared and separate, recurrent and not.
        {"cartpole", {17, 33}, POLICY_TANH, false, 12, 4, 100, 1, 2, true, true, 25, false, 0, POLICY_BF16},
        {"acrobot", {9}, POLICY_RELU, true, 20, 2, 12, 3, 2, false, true, 7, false, 0, POLICY_BF16},
        {"pendulum", {20}, POLICY_TANH, false, 10, 1, 20, 2, 2, true, false, 16, false, 18, POLICY_BF16},
    };
}

TEST(PpoUpdate, IsThePlainReferenceBitForBit) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : settings()) {
        KernPpoSpec spec = make_spec(s, seed);
        RefPpo reference(spec);
        reference.params.resize(index_of(spec.policy.params));
        ppo_init(&spec.policy, spec.seed, -0.5f, reference.params.data());
        reference.first = reference.second = std::vector<float>(reference.params.size(), 0.0f);
        std::vector<std::string> expected;
        std::vector<KernPpoReport> reports;
        PpoState wanted(spec);
        for (uint32_t update = 0; update < 2; update++) {
            reference.update(make_step(s, update));
            reference.store(&wanted);
            expected.push_back(ppo_bytes(spec, wanted));
            reports.push_back(reference.report);
        }
        for (const CpuWay &way : cpu_ways()) {
            SCOPED_TRACE(std::string(s.sim) + ", " + way.text());
            Ppo ppo(way, spec);
            PpoState state(spec);
            ppo.begin(&state);
            for (uint32_t update = 0; update < 2; update++) {
                KernPpoReport report;
                ASSERT_STATUS(ppo.update(make_step(s, update), &report));
                ASSERT_STATUS(ppo.read(&state));
                ASSERT_TRUE(ppo_bytes(spec, state) == expected[update]) << "update " << update;
                EXPECT_EQ(report.episodes, reports[update].episodes);
                EXPECT_EQ(report.episode_steps, reports[update].episode_steps);
                EXPECT_EQ(report.episode_return, reports[update].episode_return);
                EXPECT_EQ(report.grad_norm, reports[update].grad_norm);
            }
        }
    }
}

TEST(PpoUpdate, GoesOnFromAStateThatWasRead) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : settings()) {
        KernPpoSpec spec = make_spec(s, seed);
        PpoState middle(spec), straight(spec), resumed(spec);
        KernPpoReport report;
        Ppo one(CpuWay{1, "auto", 0}, spec), other(CpuWay{2, "auto", 1}, spec);
        one.begin(&middle);
        ASSERT_STATUS(one.update(make_step(s, 0), &report));
        ASSERT_STATUS(one.read(&middle));
        ASSERT_STATUS(one.update(make_step(s, 1), &report));
        ASSERT_STATUS(one.read(&straight));
        ASSERT_STATUS(other.write(middle));
        ASSERT_STATUS(other.update(make_step(s, 1), &report));
        ASSERT_STATUS(other.read(&resumed));
        EXPECT_TRUE(ppo_bytes(spec, straight) == ppo_bytes(spec, resumed)) << s.sim;
    }
}

TEST(PpoUpdate, LearnsCartPole) {
    PpoSetting s = {"cartpole", {64, 64}, POLICY_TANH, false, 8, 8, 32, 1, 20, false, false, 0, false};
    KernPpoSpec spec = make_spec(s, 1);
    spec.gamma = 0.98f, spec.lambda = 0.8f;
    Ppo ppo(CpuWay{2, "auto", 0}, spec);
    PpoState state(spec);
    ppo.begin(&state);
    const uint32_t updates = is_sanitized ? 100 : 390; // of 256 steps
    double last = 0, episodes = 0;
    for (uint32_t update = 0; update < updates; update++) {
        float left = 1.0f - static_cast<float>(update) / static_cast<float>(updates);
        KernPpoStep step = make_step(s, update);
        step.learning_rate = 0.001f * left;
        step.clip = 0.2f * left;
        step.entropy_weight = 0.0f;
        step.max_grad_norm = 0.5f;
        step.normalize_advantage = true;
        KernPpoReport report;
        ASSERT_STATUS(ppo.update(step, &report));
        if (update == 0) {
            EXPECT_LT(report.episode_return, 40.0 * static_cast<double>(report.episodes));
        }
        if (update < updates - 40) continue;
        last += report.episode_return;
        episodes += static_cast<double>(report.episodes);
    }
    ASSERT_GT(episodes, 0.0);
    EXPECT_GE(last / episodes, is_sanitized ? 100.0 : 475.0);
}

// Gear, brake and throttle at once; a car that stays where it is pays 12 an episode on average.
TEST(PpoUpdate, LearnsSeveralActionsAtOnce) {
    PpoSetting s = {"parking", {32}, POLICY_TANH, false, 16, 16, 64, 4, 10, true, true, 0, false};
    KernPpoSpec spec = make_spec(s, 1);
    Ppo ppo(CpuWay{2, "auto", 0}, spec);
    PpoState state(spec);
    ppo.begin(&state);
    const uint32_t updates = is_sanitized ? 30 : 150; // of 1,024 steps
    double first = 0, last = 0;
    for (uint32_t update = 0; update < updates; update++) {
        KernPpoStep step = make_step(s, update);
        step.clip = 0.2f;
        step.entropy_weight = 0.0f;
        step.learning_rate = 0.003f * (1.0f - static_cast<float>(update) / static_cast<float>(updates));
        KernPpoReport report;
        ASSERT_STATUS(ppo.update(step, &report));
        double episodes = static_cast<double>(report.episodes);
        if (update == 1) first = report.episode_return / episodes;
        if (report.episodes > 0) last = report.episode_return / episodes;
    }
    EXPECT_LT(first, -8.0);
    EXPECT_GT(last, is_sanitized ? -5.0 : -3.0) << "with the noise of its actions";
}

TEST(PpoUpdate, StopsAtTheTargetKl) {
    PpoSetting s = settings()[0];
    s.epochs = 30;
    KernPpoSpec spec = make_spec(s, fresh_seed());
    Ppo ppo(CpuWay{1, "auto", 0}, spec);
    PpoState state(spec);
    ppo.begin(&state);
    KernPpoStep step = make_step(s, 0);
    step.target_kl = 1e-4f;
    KernPpoReport report;
    ASSERT_STATUS(ppo.update(step, &report));
    EXPECT_LT(report.epochs, 30);
    EXPECT_GT(report.kl, 1e-4);
    ASSERT_STATUS(ppo.read(&state));
    EXPECT_EQ(state.state.adam_steps, report.epochs * s.minibatches);
}

TEST(PpoUpdate, NamesWhatIsNotFinite) {
    PpoSetting s = settings()[1];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    PpoState state(spec);
    KernPpoReport report;
    {
        Ppo ppo(CpuWay{2, "auto", 0}, spec);
        ppo.begin(&state);
        KernPpoStep step = make_step(s, 7);
        step.value_weight = 3e38f; // the critic's gradient overflows, and so does what comes before it
        EXPECT_EQ(ppo.update(step, &report), STATUS_NUMERIC);
        std::string message = host_message();
        EXPECT_NE(message.find("pendulum: update 7, epoch 0, minibatch 0: the gradient of actor layer 1 weights"),
                  std::string::npos)
            << message;
    }
    Ppo ppo(CpuWay{2, "auto", 0}, spec);
    ppo.begin(&state);
    float bad = std::nanf("");
    std::memcpy(&state.envs[index_of(3 * ppo_env_words(&spec))], &bad, 4); // env 3's first field
    ASSERT_STATUS(ppo.write(state));
    EXPECT_EQ(ppo.update(make_step(s, 2), &report), STATUS_NUMERIC);
    EXPECT_STREQ(host_message(), "pendulum: update 2, env 3, step 0: theta_rad is NaN or infinite");
}

// What is finite itself and not where it is summed or squared.
TEST(PpoUpdate, NamesWhatOverflows) {
    uint64_t seed = fresh_seed();
    PpoSetting s = {"mountain_car_continuous", {8}, POLICY_TANH, false, 4, 2, 64, 1, 1, true, true, 0, false};
    KernPpoSpec spec = make_spec(s, seed);
    spec.sim.value[sim_spec_param(spec.sim.spec, "action_cost")] = 3e38f;
    KernPpoReport report;
    {
        PpoState state(spec);
        Ppo ppo(CpuWay{1, "auto", 0}, spec);
        ppo.begin(&state);
        EXPECT_EQ(ppo.update(make_step(s, 3), &report), STATUS_NUMERIC);
        EXPECT_STREQ(host_message(),
                     "mountain_car_continuous: update 3: the variance of the discounted return is NaN or infinite");
    }
    s.sim = "pendulum";
    spec = make_spec(s, seed);
    KernPpoStep step = make_step(s, 3);
    step.value_weight = 1e22f; // gradients of 1e20, whose squares are too large for Adam's second moment
    for (float max_norm : {0.5f, 0.0f}) {
        PpoState state(spec);
        Ppo ppo(CpuWay{1, "auto", 0}, spec);
        ppo.begin(&state);
        step.max_grad_norm = max_norm;
        EXPECT_EQ(ppo.update(step, &report), max_norm > 0.0f ? STATUS_OK : STATUS_NUMERIC);
        if (max_norm > 0.0f) continue;
        EXPECT_NE(std::string(host_message()).find("the gradient of critic layer 1 weights"), std::string::npos)
            << host_message();
    }
}

TEST(PpoUpdate, EndsAtAStop) {
    for (const auto &[s, part] : endless_updates()) {
        SCOPED_TRACE(part);
        KernPpoSpec spec = make_spec(s, 1);
        for (int threads : {1, 2}) {
            PpoState state(spec);
            KernPpoReport report;
            Ppo ppo(CpuWay{threads, "auto", 0}, spec);
            ppo.begin(&state);
            StopLater stop;
            EXPECT_EQ(ppo.update(make_step(s, 0), &report), STATUS_STOPPED) << host_message();
        }
    }
}

TEST(PpoUpdate, RefusesCountsThatDoNotDivide) {
    CpuKernels kernels(CpuWay{1, "auto", 0});
    for (int which = 0; which < 6; which++) {
        PpoSetting s = settings()[0];
        if (which == 0) s.shards = 3;
        if (which == 1) s.envs = 13;
        if (which == 2) s.minibatches = 7;
        if (which == 3) s.rollout = 0;
        if (which >= 4) s.recurrent = 4; // three envs in a shard, of 100 samples each
        if (which == 4) s.minibatches = 2;
        if (which == 5) s.rollout = PPO_SEQUENCE_MAX + 1;
        KernPpoSpec spec = make_spec(s, 1);
        KernPpo *ppo = nullptr;
        EXPECT_EQ(kernels->ppo_open(kernels.backend(), &spec, &ppo), STATUS_USAGE) << which;
    }
}

// The frozen actor: es_evaluate() with the actor's shape acts by the means.
TEST(PpoActor, IsEvaluatedByItsMeans) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : settings()) {
        KernPpoSpec spec = make_spec(s, seed);
        KernEsSpec es_spec = {{}, spec.sim, spec.policy.actor, seed, 2, 3, true, 0};
        std::vector<float> params(index_of(spec.policy.params)), zeros(params.size());
        ppo_init(&spec.policy, seed, 0.0f, params.data());
        for (float &x : params)
            x *= 20.0f; // means beyond the bounds, too
        KernNormalizer normalizer = {};
        for (float &scale : normalizer.scale)
            scale = 1.0f;
        CpuKernels kernels(CpuWay{1, "auto", 0});
        KernEs *es = nullptr;
        ASSERT_STATUS(kernels->es_open(kernels.backend(), &es_spec, &es));
        ASSERT_STATUS(kernels->es_write(es, params.data(), zeros.data(), zeros.data()));
        KernEsJob job = {SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 3};
        KernEpisode episodes[3];
        EXPECT_STATUS(kernels->es_evaluate(es, &job, &normalizer, episodes, nullptr));
        kernels->es_close(es);
        for (uint32_t i = 0; i < 3; i++) {
            SimRng rng = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), 0, i, 0, SIM_RNG_EVALUATE};
            RefEpisode ref = ref_episode(spec.sim, spec.policy.actor, params.data(), normalizer, rng);
            EXPECT_EQ(episodes[i].length, ref.result.length) << s.sim;
            EXPECT_TRUE(same_bits(episodes[i].episode_return, ref.result.episode_return)) << s.sim;
        }
    }
}

TEST(PpoKernels, LeaveTheVectorRegistersClean) {
    PpoSetting s = settings()[0];
    for (const char *isa : {"v3", "v4"}) {
        if (!has_isa(isa) || upper_halves_in_use() < 0) continue;
        KernPpoSpec spec = make_spec(s, 1);
        Ppo ppo(CpuWay{1, isa, 0}, spec);
        PpoState state(spec);
        ppo.begin(&state);
        KernPpoReport report;
        ASSERT_STATUS(ppo.update(make_step(s, 0), &report));
        EXPECT_EQ(upper_halves_in_use(), 0) << isa;
    }
}

} // namespace
