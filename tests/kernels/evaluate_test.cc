// The fused evaluation of whole episodes against a scalar reference, bit for bit, for every combination of threads,
// instruction set and lanes.
#include "kernel_reference.h"
#include "test_sim.h"

#include <algorithm>
#include <memory>
#include <thread>

namespace {

// An evaluation and everything it depends on.
struct Case {
    KernEsSpec spec;
    KernEsJob job;
    KernNormalizer normalizer;
    std::vector<float> params;
    std::string text;
};

struct Outcome {
    Status status = STATUS_OK;
    std::string message;
    std::vector<KernEpisode> episodes;
    std::vector<float> sums;
};

Outcome reference(const Case &c) {
    Outcome out;
    int32_t obs = c.spec.policy.size[0];
    for (int32_t member = c.job.first; member < c.job.first + c.job.count; member++) {
        std::vector<float> params = ref_member(c.params, c.spec, c.job.generation, c.job.sigma, member);
        for (int32_t e = 0; e < c.job.episodes; e++) {
            SimRng rng = {static_cast<uint32_t>(c.spec.seed),
                          static_cast<uint32_t>(c.spec.seed >> 32),
                          0,
                          static_cast<uint32_t>(e),
                          c.spec.common ? 0 : static_cast<uint32_t>(member),
                          c.job.purpose | c.job.generation};
            RefEpisode r = ref_episode(c.spec.sim, c.spec.policy, params.data(), c.normalizer, rng);
            if (!r.infinite.empty() && out.status == STATUS_OK) {
                out.status = STATUS_NUMERIC;
                out.message = std::string(c.spec.sim.spec->name) + ": generation " + std::to_string(c.job.generation) +
                              ", env " + std::to_string((member - c.job.first) * c.job.episodes + e) + " (member " +
                              std::to_string(member) + ", episode " + std::to_string(e) + "), step " +
                              std::to_string(r.result.length) + ": " + r.infinite + " is NaN or infinite";
            }
            out.episodes.push_back(r.result);
            out.sums.insert(out.sums.end(), r.sum.begin(), r.sum.begin() + obs);
            out.sums.insert(out.sums.end(), r.square.begin(), r.square.begin() + obs);
        }
    }
    return out;
}

Outcome evaluate(const Case &c, const CpuWay &way, bool with_sums = true) {
    Outcome out;
    CpuKernels kernels(way);
    EXPECT_STATUS(kernels.status());
    KernEs *es = nullptr;
    EXPECT_STATUS(kernels->es_open(kernels.backend(), &c.spec, &es));
    std::vector<float> zero(c.params.size(), 0.0f);
    EXPECT_STATUS(kernels->es_write(es, c.params.data(), zero.data(), zero.data()));
    size_t count = static_cast<size_t>(c.job.count) * static_cast<size_t>(c.job.episodes);
    out.episodes.assign(count, KernEpisode{-12345.0f, -1});
    out.sums.assign(with_sums ? count * 2 * static_cast<size_t>(c.spec.policy.size[0]) : 0, -12345.0f);
    // Twice: what the first run left in the scratch must not change the second.
    for (int run = 0; run < 2; run++) {
        out.status =
            kernels->es_evaluate(es, &c.job, &c.normalizer, out.episodes.data(), with_sums ? out.sums.data() : nullptr);
        EXPECT_NE(upper_halves_in_use(), 1) << c.text << "; " << way.text();
    }
    if (out.status != STATUS_OK) out.message = host_message();
    kernels->es_close(es);
    return out;
}

void expect_same(const Case &c, const Outcome &got, const Outcome &want, const std::string &way) {
    SCOPED_TRACE(c.text + "; " + way);
    ASSERT_EQ(got.status, want.status) << got.message << " / " << want.message;
    ASSERT_EQ(got.message, want.message);
    if (want.status != STATUS_OK) return;
    ASSERT_EQ(got.episodes.size(), want.episodes.size());
    for (size_t i = 0; i < want.episodes.size(); i++) {
        ASSERT_EQ(got.episodes[i].length, want.episodes[i].length) << "episode " << i;
        ASSERT_EQ(bits_of(got.episodes[i].episode_return), bits_of(want.episodes[i].episode_return))
            << "episode " << i << ": " << got.episodes[i].episode_return << " " << want.episodes[i].episode_return;
    }
    for (size_t i = 0; i < got.sums.size(); i++)
        ASSERT_EQ(bits_of(got.sums[i]), bits_of(want.sums[i])) << "sum " << i;
}

void check_everywhere(const Case &c) {
    Outcome want = reference(c);
    for (const CpuWay &way : cpu_ways()) {
        expect_same(c, evaluate(c, way), want, way.text());
        if (testing::Test::HasFatalFailure()) return;
    }
}

void set_random(KernSim *sim, int param, float low, float high) {
    sim->random[param] = true;
    sim->any_random = true;
    sim->low[param] = low;
    sim->high[param] = high;
}

void randomize(KernSim *sim, std::mt19937_64 *random) {
    for (int k = 0; k < sim->spec->param_count; k++) {
        if ((*random)() % 2 == 0) continue;
        float a = 0.8f * sim->value[k], b = 1.2f * sim->value[k];
        set_random(sim, k, std::min(a, b), std::max(a, b));
    }
    // Goals that some episodes reach.
    int goal = sim_spec_param(sim->spec, "goal_position");
    if (goal >= 0) set_random(sim, goal, -0.49f, 0.5f);
    int height = sim_spec_param(sim->spec, "goal_height");
    if (height >= 0) set_random(sim, height, -1.9f, 1.0f);
}

Case make_case(const SimSpec *sim, const std::vector<int32_t> &hidden, PolicyActivation activation,
               std::mt19937_64 *random) {
    Case c = {};
    std::normal_distribution<float> normal;
    kern_sim_default(&c.spec.sim, sim);
    EXPECT_STATUS(policy_shape(&c.spec.policy, sim, hidden.data(), static_cast<int>(hidden.size()), activation));
    c.spec.seed = (*random)();
    c.spec.members = 8;
    c.spec.episodes = 1;
    c.params.resize(static_cast<size_t>(c.spec.policy.params));
    for (float &p : c.params)
        p = 0.3f * normal(*random);
    for (int k = 0; k < POLICY_OBS_MAX; k++) {
        c.normalizer.mean[k] = 0.1f * normal(*random);
        c.normalizer.scale[k] = 0.5f + 10.0f * static_cast<float>((*random)() % 1000) / 1000.0f;
    }
    c.job.purpose = SIM_RNG_EPISODE;
    c.job.generation = static_cast<uint32_t>((*random)() % 100000);
    c.job.sigma = 0.3f;
    c.job.count = c.spec.members;
    c.job.episodes = 1;
    c.text = std::string(sim->name) + ", hidden";
    for (int32_t h : hidden)
        c.text += " " + std::to_string(h);
    c.text += activation == POLICY_TANH ? ", tanh" : ", relu";
    return c;
}

// Reference trajectories of the big policies are slow: short episodes there.
int short_limit(const KernEsSpec &spec) {
    return test_steps(spec.sim.spec, (spec.policy.params > 3000 ? 40 : 90) / (is_sanitized ? 3 : 1));
}

class EvaluateTest : public testing::TestWithParam<int> {};

TEST_P(EvaluateTest, MatchesTheScalarReference) {
    const SimSpec *sim = sim_spec_at(GetParam());
    std::mt19937_64 random(fresh_seed());
    const std::vector<std::vector<int32_t>> hiddens = {{}, {8}, {33}, {16, 16}, {64, 64}, {100, 20}};
    const int32_t episode_counts[] = {1, 2, 3, 7, 16};
    // Every hidden shape with both activations; the rest takes turns, so that each value meets every simulator.
    int turn = static_cast<int>(random() % 60), skipped = turn;
    for (const auto &hidden : hiddens) {
        for (PolicyActivation activation : {POLICY_TANH, POLICY_RELU}) {
            if (is_sanitized && is_heavy(sim) && ++skipped % 3 != 0) continue; // numbers are the release build's affair
            Case c = make_case(sim, hidden, activation, &random);
            c.job.episodes = episode_counts[turn % 5];
            c.spec.common = turn % 2 == 0;
            if (turn % 3 != 0) randomize(&c.spec.sim, &random);
            c.spec.sim.time_limit = short_limit(c.spec) + turn % 4;
            if (c.job.episodes > 7) c.job.first = 2, c.job.count = 4;
            if (turn % 4 == 1) c.job.first = 1, c.job.count = 5; // cuts pairs
            if (turn % 7 < 2) c.spec.policy.precision = POLICY_BF16, c.text += ", bf16";
            // From one that has room for one slice only.
            if (turn % 5 < 2) c.spec.table = (c.spec.policy.params + 63) / 64 * 64 + turn % 5 * 640;
            c.text += ", " + std::to_string(c.job.episodes) + " episodes, common " + std::to_string(c.spec.common) +
                      ", random " + std::to_string(c.spec.sim.any_random) + ", table " + std::to_string(c.spec.table);
            check_everywhere(c);
            if (HasFatalFailure()) return;
            turn++;
        }
    }
}

// Gates and candidates wide and narrow, with and without layers before them; slots whose lanes meet new episodes.
TEST_P(EvaluateTest, RecurrentPoliciesMatchTheScalarReference) {
    const SimSpec *sim = sim_spec_at(GetParam());
    std::mt19937_64 random(fresh_seed());
    const std::vector<std::vector<int32_t>> hiddens = {{}, {8}, {33}, {64, 64}};
    for (const auto &hidden : hiddens) {
        for (int32_t units : {7, 40}) {
            Case c = make_case(sim, hidden, POLICY_TANH, &random);
            EXPECT_STATUS(policy_set_recurrent(&c.spec.policy, units));
            std::normal_distribution<float> normal;
            c.params.resize(static_cast<size_t>(c.spec.policy.params));
            for (float &p : c.params)
                p = 0.3f * normal(random);
            c.job.episodes = units == 7 ? 3 : 1;
            c.job.count = c.spec.members = 8;
            c.spec.sim.time_limit = short_limit(c.spec);
            c.text += ", recurrent " + std::to_string(units);
            if (hidden.size() == 1) c.spec.policy.precision = POLICY_BF16, c.text += ", bf16";
            check_everywhere(c);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(EvaluateTest, OnePolicyOverManyEpisodes) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_at(GetParam()), {16}, POLICY_TANH, &random);
    c.job.purpose = SIM_RNG_EVALUATE;
    c.job.sigma = 0.0f;
    c.job.count = 1;
    c.job.episodes = is_heavy(c.spec.sim.spec) ? (is_sanitized ? 10 : 30) : 100;
    c.spec.sim.time_limit = is_very_heavy(c.spec.sim.spec) || is_sanitized ? 50 : 300;
    check_everywhere(c);
}

TEST_P(EvaluateTest, ManyMembersOfOneEpisode) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_at(GetParam()), {17}, POLICY_RELU, &random);
    c.spec.members = 300;
    c.job.first = 100;
    c.job.count = 171;
    c.spec.sim.time_limit = is_very_heavy(c.spec.sim.spec) ? 8 : is_sanitized ? 20 : 60;
    check_everywhere(c);
}

TEST_P(EvaluateTest, WithoutSums) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_at(GetParam()), {8}, POLICY_TANH, &random);
    c.job.episodes = 3;
    if (is_very_heavy(c.spec.sim.spec)) c.spec.sim.time_limit = is_sanitized ? 50 : 200;
    Outcome want = reference(c);
    expect_same(c, evaluate(c, {2, "auto", 0}, false), want, "no sums");
}

TEST_P(EvaluateTest, TimeLimitEndsEpisodes) {
    std::mt19937_64 random(fresh_seed());
    for (int limit : {1, 2, 5}) {
        Case c = make_case(sim_spec_at(GetParam()), {8}, POLICY_TANH, &random);
        c.spec.sim.time_limit = limit;
        c.job.episodes = 5;
        Outcome got = evaluate(c, {2, "auto", 0});
        ASSERT_EQ(got.status, STATUS_OK) << got.message;
        for (const KernEpisode &e : got.episodes)
            EXPECT_EQ(e.length, limit);
        expect_same(c, got, reference(c), "limit " + std::to_string(limit));
    }
}

// Unlike generations, members, episodes and seeds give unlike episodes; common random numbers give the same ones.
TEST_P(EvaluateTest, EpisodesDependOnWhatTheyShould) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_at(GetParam()), {}, POLICY_TANH, &random);
    size_t obs = static_cast<size_t>(c.spec.policy.size[0]);
    c.spec.sim.time_limit = 1; // the sums are the first observation
    c.job.episodes = 2;
    auto start = [&](const Outcome &o, size_t member, size_t episode) {
        auto at = o.sums.begin() + static_cast<std::ptrdiff_t>((member * 2 + episode) * 2 * obs);
        return std::vector<float>(at, at + static_cast<std::ptrdiff_t>(obs));
    };
    Outcome own = evaluate(c, {1, "auto", 0});
    EXPECT_NE(start(own, 0, 0), start(own, 0, 1));
    EXPECT_NE(start(own, 0, 0), start(own, 1, 0));
    c.spec.common = true;
    Outcome common = evaluate(c, {1, "auto", 0});
    EXPECT_EQ(start(common, 0, 0), start(common, 1, 0));
    EXPECT_EQ(start(common, 2, 1), start(common, 7, 1));
    EXPECT_NE(start(common, 0, 0), start(common, 0, 1));
    c.job.generation++;
    EXPECT_NE(start(common, 0, 0), start(evaluate(c, {1, "auto", 0}), 0, 0));
    c.job.generation--;
    c.job.purpose = SIM_RNG_EVALUATE;
    EXPECT_NE(start(common, 0, 0), start(evaluate(c, {1, "auto", 0}), 0, 0));
    c.job.purpose = SIM_RNG_EPISODE;
    c.spec.seed ^= 1ull << 50;
    EXPECT_NE(start(common, 0, 0), start(evaluate(c, {1, "auto", 0}), 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Sims, EvaluateTest, testing::ValuesIn(test_sims()),
                         [](const auto &of) { return std::string(sim_spec_at(of.param)->name); });

// ---- weights that overflow -----------------------------------------------------------------------------------------

// Hidden units that are infinite must not reach the padding next to a layer: 0 x infinity is NaN.
TEST(EvaluateOverflow, InfiniteUnitsStayWhereTheyAre) {
    std::mt19937_64 random(fresh_seed());
    const std::vector<std::vector<int32_t>> hiddens = {{33}, {33, 33}, {17, 20}};
    for (const auto &hidden : hiddens) {
        Case c = make_case(sim_spec_find("cartpole"), hidden, POLICY_RELU, &random);
        const PolicyShape &shape = c.spec.policy;
        c.job.sigma = 0.0f;
        c.job.count = 2;
        c.job.episodes = 9;
        c.spec.sim.time_limit = 100;
        // Every unit is infinite where theta > 0, else 0; the outputs then say which way it falls.
        std::fill(c.params.begin(), c.params.end(), 0.0f);
        std::fill(c.params.begin() + 2 * hidden[0], c.params.begin() + 3 * hidden[0], 3e38f);
        if (hidden.size() > 1)
            std::fill_n(c.params.begin() + policy_layer_offset(&shape, 1), hidden[0] * hidden[1], 1.0f);
        float *last = c.params.data() + policy_layer_offset(&shape, shape.layers - 1);
        for (int i = 0; i < hidden.back(); i++)
            last[2 * i] = -1.0f, last[2 * i + 1] = 1.0f;
        std::fill(c.normalizer.mean, c.normalizer.mean + POLICY_OBS_MAX, 0.0f);
        std::fill(c.normalizer.scale, c.normalizer.scale + POLICY_OBS_MAX, 1e6f);
        Outcome want = reference(c);
        int longest = 0; // pushing to where the pole falls keeps it up for long
        for (const KernEpisode &e : want.episodes)
            longest = std::max(longest, e.length);
        ASSERT_GT(longest, 20) << "the reference itself sees NaN";
        check_everywhere(c);
        if (HasFatalFailure()) return;
    }
}

// Nor may what a layer left in a thread's scratch reach the padding of a narrower layer in the next pass.
TEST(EvaluateOverflow, InfiniteUnitsDoNotOutliveTheirPass) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("cartpole"), {8, 4, 16}, POLICY_RELU, &random);
    const PolicyShape &shape = c.spec.policy;
    c.job.sigma = 0.0f;
    c.job.episodes = 9;
    for (float &p : c.params)
        p = std::fabs(p);
    float *third = c.params.data() + policy_layer_offset(&shape, 2);
    float *last = c.params.data() + policy_layer_offset(&shape, 3);
    for (int o = 0; o < 16; o++) {
        third[4 * 16 + o] = 3e38f; // biases
        for (int i = 0; i < 4; i++)
            third[i * 16 + o] = 3e38f;
        last[2 * o] = -1.0f;
        last[2 * o + 1] = 1.0f;
    }
    float *second_biases = c.params.data() + policy_layer_offset(&shape, 2) - 4;
    std::fill(second_biases, second_biases + 4, 1.0f);
    check_everywhere(c);
}

// ---- NaN and infinity ----------------------------------------------------------------------------------------------

TEST(EvaluateNumeric, NamesTheFirstEpisodeAtFault) {
    std::mt19937_64 random(fresh_seed());
    int faults = 0, later_faults = 0;
    for (int trial = 0; trial < 6; trial++) {
        Case c = make_case(sim_spec_find("cartpole"), {8}, POLICY_TANH, &random);
        // A push beyond 2.4e38 N overflows the pole's acceleration; about one episode in ten has that. (In the
        // second step all would fail.)
        c.spec.sim.time_limit = 1;
        set_random(&c.spec.sim, sim_spec_param(c.spec.sim.spec, "force_n"), 1e37f, 2.7e38f);
        c.job.episodes = 5;
        c.job.first = 2;
        c.job.count = 6;
        Outcome want = reference(c);
        faults += want.status == STATUS_NUMERIC;
        later_faults += want.status == STATUS_NUMERIC && want.message.find("env 0 ") == std::string::npos;
        check_everywhere(c);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(faults, 0);
    EXPECT_GT(later_faults, 0);
}

TEST(EvaluateNumeric, NamesStepAndField) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("pendulum"), {8}, POLICY_TANH, &random);
    // The angle passes the range of the sine after some steps.
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "dt_s")] = 100.0f;
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "max_speed_radps")] = 1e30f;
    Outcome want = reference(c);
    ASSERT_EQ(want.status, STATUS_NUMERIC);
    EXPECT_NE(want.message.find("theta"), std::string::npos) << want.message;
    EXPECT_EQ(want.message.find("step 1:"), std::string::npos) << want.message;
    check_everywhere(c);

    c = make_case(sim_spec_find("mountain_car_continuous"), {8}, POLICY_TANH, &random);
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "action_cost")] = INFINITY;
    want = reference(c);
    ASSERT_EQ(want.status, STATUS_NUMERIC);
    EXPECT_NE(want.message.find("the reward is NaN or infinite"), std::string::npos) << want.message;
    check_everywhere(c);
}

TEST(EvaluateNumeric, NotANumberInTheParameters) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("pendulum"), {16}, POLICY_TANH, &random);
    c.params[3] = std::nanf("");
    EXPECT_EQ(reference(c).status, STATUS_NUMERIC);
    check_everywhere(c);
}

// A failure leaves nothing behind: the next evaluation is as good as a fresh one.
TEST(EvaluateNumeric, IsForgottenAfterwards) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("pendulum"), {16}, POLICY_TANH, &random);
    CpuKernels kernels(CpuWay{2, "auto", 0});
    KernEs *es = nullptr;
    ASSERT_STATUS(kernels->es_open(kernels.backend(), &c.spec, &es));
    Outcome want = reference(c), got;
    got.episodes.resize(want.episodes.size());
    got.sums.resize(want.sums.size());
    std::vector<float> broken(c.params.size(), std::nanf("")), zero(c.params.size(), 0.0f);
    ASSERT_STATUS(kernels->es_write(es, broken.data(), zero.data(), zero.data()));
    EXPECT_EQ(kernels->es_evaluate(es, &c.job, &c.normalizer, got.episodes.data(), got.sums.data()), STATUS_NUMERIC);
    ASSERT_STATUS(kernels->es_write(es, c.params.data(), zero.data(), zero.data()));
    got.status = kernels->es_evaluate(es, &c.job, &c.normalizer, got.episodes.data(), got.sums.data());
    expect_same(c, got, want, "after a failure");
    kernels->es_close(es);
}

// ---- stop ----------------------------------------------------------------------------------------------------------

class EvaluateStop : public testing::Test {
  protected:
    void TearDown() override { host_stop_clear(); }
};

// Episodes that would run for days: the test ends only if the stop is seen.
TEST_F(EvaluateStop, EndsAnEvaluation) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("pendulum"), {8}, POLICY_TANH, &random);
    c.spec.sim.time_limit = INT32_MAX - 1;
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "gravity_mps2")] = 0.0f;
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "max_torque_nm")] = 0.0f;
    c.spec.sim.value[sim_spec_param(c.spec.sim.spec, "max_speed_radps")] = 1e-3f;
    for (int threads : {1, 2}) {
        host_stop_clear();
        std::thread stopper([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            host_stop_request();
        });
        Outcome got = evaluate(c, {threads, "auto", 0});
        stopper.join();
        EXPECT_EQ(got.status, STATUS_STOPPED) << got.message;
    }
}

TEST_F(EvaluateStop, IsOverOnceCleared) {
    std::mt19937_64 random(fresh_seed());
    Case c = make_case(sim_spec_find("cartpole"), {8}, POLICY_TANH, &random);
    host_stop_request();
    EXPECT_EQ(evaluate(c, {2, "auto", 0}).status, STATUS_STOPPED);
    host_stop_clear();
    expect_same(c, evaluate(c, {2, "auto", 0}), reference(c), "after a stop");
}

} // namespace
