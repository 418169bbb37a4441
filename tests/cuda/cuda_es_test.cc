// Evaluation and update of an ES population on the GPU against the CPU, bit for bit.
#include <cmath>

#include "host/signals.h"
#include "tests/cuda/cuda_test_util.h"

namespace {

struct Es {
    KernEs *es = nullptr;
    const KernOps *ops = nullptr;

    void open(KernBackend *backend, const KernEsSpec &spec) {
        ops = backend->ops;
        ASSERT_OK(ops->es_open(backend, &spec, &es));
    }
    ~Es() {
        if (ops != nullptr) ops->es_close(es);
    }
};

struct Results {
    std::vector<KernEpisode> episodes;
    std::vector<float> sums;
};

void expect_equal(const Results &a, const Results &b) {
    ASSERT_EQ(a.episodes.size(), b.episodes.size());
    for (size_t i = 0; i < a.episodes.size(); i++) {
        ASSERT_EQ(a.episodes[i].length, b.episodes[i].length) << "pair " << i;
        ASSERT_EQ(sim_bits_from_float(a.episodes[i].episode_return), sim_bits_from_float(b.episodes[i].episode_return))
            << "pair " << i;
    }
    ASSERT_EQ(memcmp(a.sums.data(), b.sums.data(), a.sums.size() * sizeof(float)), 0) << "normaliser sums";
}

// Parameters as they are after some training: no layer is near zero.
std::vector<float> random_params(const PolicyShape &policy) {
    std::vector<float> params(static_cast<size_t>(policy.params));
    policy_init(&policy, 99, params.data());
    for (size_t i = 0; i < params.size(); i++) {
        params[i] = params[i] * 2.0f + 0.3f * (test_uniform(5, static_cast<uint32_t>(i)) - 0.5f);
    }
    return params;
}

KernNormalizer random_normalizer() {
    KernNormalizer normalizer = {};
    for (int k = 0; k < POLICY_OBS_MAX; k++) {
        normalizer.mean[k] = 0.2f * (test_uniform(6, static_cast<uint32_t>(k)) - 0.5f);
        normalizer.scale[k] = 0.5f + 3.0f * test_uniform(7, static_cast<uint32_t>(k));
    }
    return normalizer;
}

KernEsStep test_step(uint32_t generation) {
    return KernEsStep{generation, 0.03f, 0.02f, 0.9f, 0.999f, 1000.0f, 1e-8f, 0.005f};
}

class CudaEsTest : public CudaTest {
  protected:
    KernEsSpec make_spec(const SimSpec *sim, const std::vector<int32_t> &hidden, int32_t members, int32_t episodes,
                         int32_t recurrent = 0) {
        KernEsSpec spec = {};
        spec.sim = test_sim(sim, test_steps(sim, 60), false);
        EXPECT_EQ(policy_shape(&spec.policy, sim, hidden.data(), static_cast<int>(hidden.size()), POLICY_TANH),
                  STATUS_OK);
        EXPECT_EQ(policy_set_recurrent(&spec.policy, recurrent), STATUS_OK);
        spec.seed = UINT64_C(0xfedcba9876543210);
        spec.members = members;
        spec.episodes = episodes;
        return spec;
    }

    static KernEsJob whole_job(const KernEsSpec &spec) {
        return KernEsJob{SIM_RNG_EPISODE, 3, 0.1f, 0, spec.members, spec.episodes};
    }

    static void write(const Es &es, const KernEsSpec &spec) {
        std::vector<float> params = random_params(spec.policy), zeros(params.size());
        ASSERT_OK(es.ops->es_write(es.es, params.data(), zeros.data(), zeros.data()));
    }

    static Status evaluate(const Es &es, const KernEsSpec &spec, const KernEsJob &job, bool sums, Results *results) {
        KernNormalizer normalizer = random_normalizer();
        size_t pairs = static_cast<size_t>(job.count) * static_cast<size_t>(job.episodes);
        results->episodes.assign(pairs, KernEpisode{-1.0f, -1});
        results->sums.assign(sums ? pairs * 2 * static_cast<size_t>(spec.sim.spec->obs) : 0, -1.0f);
        return es.ops->es_evaluate(es.es, &job, &normalizer, results->episodes.data(),
                                   sums ? results->sums.data() : nullptr);
    }

    void compare(const KernEsSpec &spec, const KernEsJob &job, bool sums = true) {
        Es a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        write(a, spec);
        write(b, spec);
        Results x, y;
        ASSERT_OK(evaluate(a, spec, job, sums, &x));
        ASSERT_OK(evaluate(b, spec, job, sums, &y));
        expect_equal(x, y);
    }
};

TEST_F(CudaEsTest, EverySimulatorAndShapeMatchesTheCpu) {
    // Recurrent layers are narrow, wide, and wider than there are threads.
    const std::vector<std::pair<std::vector<int32_t>, int32_t>> shapes = {
        {{}, 0}, {{8}, 0}, {{16, 16}, 0}, {{64, 64}, 0}, {{100, 20}, 0}, {{}, 5}, {{8}, 20}, {{70, 16}, 33}, {{}, 100}};
    for (int i = 0; i < sim_spec_count(); i++) {
        for (size_t k = 0; k < shapes.size(); k++) {
            if (is_heavy(sim_spec_at(i)) && k % 4 != 2) continue; // two are enough
            SCOPED_TRACE(std::string(sim_spec_at(i)->name) + ", shape " + std::to_string(k));
            KernEsSpec spec = make_spec(sim_spec_at(i), shapes[k].first, 6, 2, shapes[k].second);
            spec.common = k % 2 == 0;
            compare(spec, whole_job(spec));
            if (HasFailure()) return;
        }
    }
}

TEST_F(CudaEsTest, RandomisedParametersAndReluMatchTheCpu) {
    for (int i = 0; i < sim_spec_count(); i++) {
        for (int32_t recurrent : {0, 18}) {
            SCOPED_TRACE(std::string(sim_spec_at(i)->name) + ", recurrent " + std::to_string(recurrent));
            KernEsSpec spec = make_spec(sim_spec_at(i), {20}, 6, 3, recurrent);
            spec.sim = test_sim(sim_spec_at(i), test_steps(sim_spec_at(i), 40), true);
            spec.policy.activation = POLICY_RELU;
            compare(spec, whole_job(spec));
            if (HasFailure()) return;
        }
    }
}

TEST_F(CudaEsTest, TheWholeTimeLimitMatchesTheCpu) {
    for (int i = 0; i < sim_spec_count(); i++) {
        for (int32_t recurrent : {0, 10}) {
            if (is_heavy(sim_spec_at(i)) && recurrent != 0) continue; // as many steps once more
            SCOPED_TRACE(std::string(sim_spec_at(i)->name) + ", recurrent " + std::to_string(recurrent));
            KernEsSpec spec = make_spec(sim_spec_at(i), {16}, 2, 1, recurrent);
            spec.sim.time_limit = test_steps(sim_spec_at(i), sim_spec_at(i)->time_limit);
            compare(spec, whole_job(spec));
            if (HasFailure()) return;
        }
    }
}

// As PPO's policies act.
TEST_F(CudaEsTest, ClampedActionsMatchTheCpu) {
    for (const char *name : {"pendulum", "parking"}) {
        SCOPED_TRACE(name);
        KernEsSpec spec = make_spec(sim_spec_find(name), {16}, 6, 2, 6), clamped = spec;
        clamped.policy.squash = POLICY_SQUASH_CLAMP;
        compare(clamped, whole_job(spec));
        Es es[2];
        Results results[2];
        for (int which = 0; which < 2; which++) {
            es[which].open(cuda, which == 0 ? spec : clamped);
            write(es[which], spec);
            ASSERT_OK(evaluate(es[which], spec, whole_job(spec), true, &results[which]));
        }
        EXPECT_NE(results[0].sums, results[1].sums);
    }
}

// On the virtual GPU and on small ones these weights do not fit a block's shared memory.
TEST_F(CudaEsTest, WeightsInGlobalMemoryMatchTheCpu) {
    KernEsSpec spec = make_spec(sim_spec_find("cartpole"), {136, 128}, 6, 1);
    spec.sim.time_limit = 20;
    compare(spec, whole_job(spec));
    spec = make_spec(sim_spec_find("pendulum"), {300, 200}, 2, 1);
    spec.sim.time_limit = 4;
    compare(spec, whole_job(spec));
    spec = make_spec(sim_spec_find("parking"), {136}, 6, 1, 128);
    spec.sim.time_limit = 12;
    compare(spec, whole_job(spec));
}

// In shared memory and, the last, in global memory; without noise and with it.
TEST_F(CudaEsTest, Bf16MatchesTheCpu) {
    const std::pair<std::vector<int32_t>, int32_t> shapes[] = {{{}, 0}, {{20, 7}, 0}, {{9}, 18}, {{136, 128}, 5}};
    for (const auto &[hidden, recurrent] : shapes) {
        for (const char *name : {"cartpole", "parking", "lunar_lander_continuous"}) {
            SCOPED_TRACE(std::string(name) + ", recurrent " + std::to_string(recurrent));
            KernEsSpec spec = make_spec(sim_spec_find(name), hidden, 6, 2, recurrent);
            spec.policy.precision = POLICY_BF16;
            spec.sim.time_limit = test_steps(spec.sim.spec, 15);
            compare(spec, whole_job(spec));
            compare(spec, KernEsJob{SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 3});
            if (HasFailure()) return;
        }
    }
}

// In shared memory and in global memory; tables with one place and with many, made in one launch and not in whole
// blocks.
TEST_F(CudaEsTest, NoiseTableMatchesTheCpu) {
    const std::pair<std::vector<int32_t>, int32_t> shapes[] = {{{}, 0}, {{20, 7}, 9}, {{136, 128}, 0}};
    for (const auto &[hidden, recurrent] : shapes) {
        for (int64_t more : {0, 64, 6400}) {
            SCOPED_TRACE("shape with " + std::to_string(hidden.size()) + " layers, " + std::to_string(more) + " more");
            KernEsSpec spec = make_spec(sim_spec_find("parking"), hidden, 6, 2, recurrent);
            spec.table = (spec.policy.params + 63) / 64 * 64 + more;
            spec.sim.time_limit = 12;
            if (more == 64) spec.policy.precision = POLICY_BF16;
            compare(spec, whole_job(spec));
            compare(spec, KernEsJob{SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 3});
            if (HasFailure()) return;
        }
    }
}

// How a wave is cut into slices, and more pairs than slots, change nothing.
TEST_F(CudaEsTest, SlicesChangeNothing) {
    for (int slice_steps : {1, 7, 64}) {
        open_backends(slice_steps);
        const std::pair<const char *, int32_t> policies[] = {{"cartpole", 0},
                                                             {"acrobot", 0},
                                                             {"mountain_car_continuous", 0},
                                                             {"parking", 20},
                                                             {"position_only_cartpole", 6}};
        for (auto [name, recurrent] : policies) {
            SCOPED_TRACE(name + std::string(", slices of ") + std::to_string(slice_steps));
            KernEsSpec spec = make_spec(sim_spec_find(name), {16}, 100, 7, recurrent);
            spec.sim = test_sim(sim_spec_find(name), 9, slice_steps == 7);
            compare(spec, whole_job(spec), slice_steps != 64);
            if (HasFailure()) return;
        }
    }
    open_backends(3);
    for (int32_t recurrent : {0, 128}) {
        KernEsSpec spec = make_spec(sim_spec_find("cartpole"), {136, 128}, 4, 1, recurrent); // in global memory
        spec.sim.time_limit = 10;
        compare(spec, whole_job(spec));
    }
}

// A range of members, an evaluation without noise, and more pairs than there is room for results at once.
TEST_F(CudaEsTest, OtherJobsMatchTheCpu) {
    KernEsSpec spec = {};
    for (auto [name, recurrent] : {std::pair{"pendulum", 0}, {"parking", 9}, {"position_only_cartpole", 17}}) {
        spec = make_spec(sim_spec_find(name), {8}, 20, 2, recurrent);
        spec.sim.time_limit = 12;
        compare(spec, KernEsJob{SIM_RNG_EPISODE, 1000, 0.05f, 3, 9, 2});
        compare(spec, KernEsJob{SIM_RNG_EPISODE, 0, 0.05f, 19, 1, 1});
        compare(spec, KernEsJob{SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 100});
        spec.common = true;
        compare(spec, KernEsJob{SIM_RNG_EVALUATE, 0, 0.0f, 0, 2, 30});
    }
    spec = make_spec(sim_spec_find("mountain_car"), {}, 2, 1);
    spec.sim.time_limit = 2;
    compare(spec, KernEsJob{SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 2500});
    compare(spec, KernEsJob{SIM_RNG_EPISODE, 5, 0.3f, 0, 2, 700});
}

TEST_F(CudaEsTest, NamesTheLowestInfiniteEpisode) {
    KernEsSpec spec = make_spec(sim_spec_find("cartpole"), {8}, 40, 3);
    // Beyond sine's range, so that the first NaN comes after a few steps, and not in every episode.
    spec.sim.any_random = true;
    int k = sim_spec_param(spec.sim.spec, "force_n");
    spec.sim.random[k] = true;
    spec.sim.low[k] = 0.0f;
    spec.sim.high[k] = 3e10f;
    int angle = sim_spec_param(spec.sim.spec, "max_theta_rad"), position = sim_spec_param(spec.sim.spec, "max_x_m");
    spec.sim.value[angle] = spec.sim.value[position] = 3e8f;
    for (int slice_steps : {0, 1}) {
        open_backends(slice_steps);
        Es a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        write(a, spec);
        write(b, spec);
        Results x, y;
        ASSERT_EQ(evaluate(a, spec, whole_job(spec), true, &x), STATUS_NUMERIC);
        std::string message = host_message();
        ASSERT_EQ(evaluate(b, spec, whole_job(spec), true, &y), STATUS_NUMERIC);
        EXPECT_EQ(host_message(), message);
        EXPECT_NE(message.find("step 3: x_dot_mps is NaN or infinite"), std::string::npos) << message;
    }
}

TEST_F(CudaEsTest, StopsAndGoesOn) {
    open_backends(1);
    KernEsSpec spec = make_spec(sim_spec_find("cartpole"), {8}, 4, 2);
    Es b;
    b.open(cuda, spec);
    write(b, spec);
    Results first, stopped, again;
    ASSERT_OK(evaluate(b, spec, whole_job(spec), true, &first));
    host_stop_request();
    EXPECT_EQ(evaluate(b, spec, whole_job(spec), true, &stopped), STATUS_STOPPED);
    host_stop_clear();
    ASSERT_OK(evaluate(b, spec, whole_job(spec), true, &again));
    expect_equal(first, again);
}

TEST_F(CudaEsTest, RanksMatchTheCpu) {
    for (int32_t members : {2, 6, 256, 1000}) {
        KernEsSpec spec = make_spec(sim_spec_find("pendulum"), {}, members, 1);
        Es a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        size_t n = static_cast<size_t>(members);
        std::vector<float> fitness(n), x(n), y(n);
        for (size_t i = 0; i < n; i++)
            fitness[i] = std::floor(test_uniform(8, static_cast<uint32_t>(i)) * 50.0f) - 25.0f;
        fitness[0] = -0.0f;
        fitness[1] = -INFINITY;
        ASSERT_OK(a.ops->es_shape(a.es, fitness.data(), x.data()));
        ASSERT_OK(b.ops->es_shape(b.es, fitness.data(), y.data()));
        EXPECT_EQ(memcmp(x.data(), y.data(), n * sizeof(float)), 0) << members;
    }
}

class CudaUpdateTest : public CudaEsTest {
  protected:
    static std::vector<float> read(const Es &es, const KernEsSpec &spec) {
        size_t n = static_cast<size_t>(spec.policy.params);
        std::vector<float> all(3 * n);
        EXPECT_EQ(es.ops->es_read(es.es, &all[0], &all[n], &all[2 * n]), STATUS_OK) << host_message();
        return all;
    }

    // table: elements beyond those that the policy needs; -1: counters.
    void compare_updates(const std::vector<int32_t> &hidden, int32_t members, int64_t table = -1) {
        KernEsSpec spec = make_spec(sim_spec_find("cartpole"), hidden, members, 1);
        if (table >= 0) spec.table = (spec.policy.params + 63) / 64 * 64 + table;
        Es a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        write(a, spec);
        write(b, spec);
        std::vector<float> shaped(static_cast<size_t>(members)), before = read(a, spec);
        for (uint32_t generation = 0; generation < 2; generation++) {
            for (size_t i = 0; i < shaped.size(); i++) {
                shaped[i] = test_uniform(20 + generation, static_cast<uint32_t>(i)) - 0.5f;
            }
            KernEsStep step = test_step(generation);
            ASSERT_OK(a.ops->es_update(a.es, &step, shaped.data(), 0, spec.policy.params));
            ASSERT_OK(b.ops->es_update(b.es, &step, shaped.data(), 0, spec.policy.params));
        }
        std::vector<float> x = read(a, spec), y = read(b, spec);
        EXPECT_EQ(memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0) << members << " members";
        EXPECT_NE(memcmp(x.data(), before.data(), x.size() * sizeof(float)), 0);
    }
};

TEST_F(CudaUpdateTest, MatchesTheCpu) {
    compare_updates({}, 2);
    compare_updates({8}, 20);
    compare_updates({64, 64}, 30);
    compare_updates({100, 20}, 12);
    compare_updates({8}, 512);
    compare_updates({8}, 1100); // three chunks, the last a part
}

TEST_F(CudaUpdateTest, NoiseTableMatchesTheCpu) {
    compare_updates({}, 2, 0);
    compare_updates({64, 64}, 30, 12800);
    compare_updates({8}, 1100, 640);
    open_backends(1); // one chunk a round
    compare_updates({8}, 1500, 6400);
}

TEST_F(CudaUpdateTest, RoundsChangeNothing) {
    open_backends(1); // one chunk a round
    compare_updates({8}, 1500);
}

// Ranges, cut between units of 64 parameters, on alternating backends: the whole update's bits, and nothing else
// changes.
TEST_F(CudaUpdateTest, Ranges) {
    for (int32_t chunks_a_round : {0, 1}) {
        open_backends(chunks_a_round);
        KernEsSpec spec = make_spec(sim_spec_find("cartpole"), {36}, 1100, 1);
        spec.table = chunks_a_round == 0 ? 0 : 6400;
        int32_t params = spec.policy.params; // 254
        Es whole, parts;
        whole.open(cpu, spec);
        parts.open(cuda, spec);
        write(whole, spec);
        write(parts, spec);
        std::vector<float> shaped(1100), before = read(whole, spec);
        for (size_t i = 0; i < shaped.size(); i++)
            shaped[i] = test_uniform(30, static_cast<uint32_t>(i)) - 0.5f;
        KernEsStep step = test_step(3);
        ASSERT_OK(whole.ops->es_update(whole.es, &step, shaped.data(), 0, params));
        std::vector<float> after = read(whole, spec);
        std::vector<bool> done(static_cast<size_t>(params));
        for (auto [first, count] : {std::pair{64, 128}, {0, 0}, {192, params - 192}, {0, 64}}) {
            ASSERT_OK(parts.ops->es_update(parts.es, &step, shaped.data(), first, count));
            for (int32_t i = first; i < first + count; i++)
                done[static_cast<size_t>(i)] = true;
            std::vector<float> now = read(parts, spec);
            for (size_t i = 0; i < now.size(); i++) {
                const std::vector<float> &want = done[i % static_cast<size_t>(params)] ? after : before;
                ASSERT_EQ(sim_bits_from_float(want[i]), sim_bits_from_float(now[i])) << i;
            }
        }
    }
}

// Whole generations: whatever one operation leaves to the next is the same.
TEST_F(CudaUpdateTest, GenerationsMatchTheCpu) {
    for (auto [name, recurrent] : {std::pair{"cartpole", 0}, {"pendulum", 0}, {"parking", 12}}) {
        KernEsSpec spec = make_spec(sim_spec_find(name), {16, 16}, 20, 2, recurrent);
        spec.sim.time_limit = 30;
        std::vector<float> params[2];
        for (int which = 0; which < 2; which++) {
            Es es;
            es.open(which == 0 ? cpu : cuda, spec);
            write(es, spec);
            for (uint32_t generation = 0; generation < 3; generation++) {
                KernEsJob job = {SIM_RNG_EPISODE, generation, 0.1f, 0, spec.members, spec.episodes};
                Results results;
                ASSERT_OK(evaluate(es, spec, job, true, &results));
                std::vector<float> fitness(20), shaped(20);
                for (size_t i = 0; i < 20; i++) {
                    fitness[i] = results.episodes[2 * i].episode_return + results.episodes[2 * i + 1].episode_return;
                }
                ASSERT_OK(es.ops->es_shape(es.es, fitness.data(), shaped.data()));
                KernEsStep step = test_step(generation);
                ASSERT_OK(es.ops->es_update(es.es, &step, shaped.data(), 0, spec.policy.params));
            }
            params[which] = read(es, spec);
        }
        EXPECT_EQ(memcmp(params[0].data(), params[1].data(), params[0].size() * sizeof(float)), 0) << name;
    }
}

} // namespace
