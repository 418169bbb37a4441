// Objectives without a simulator: the built-in functions against their formulas in double precision, the same bits for
// any threads and instruction set, members, names, and where the search begins.
#include "host/hash.h"
#include "kernel_reference.h"

#include <atomic>
#include <memory>
#include <thread>

namespace {

// -f(x) as the formulas have it; `scale` receives the sum of the terms' magnitudes.
double ref_objective(KernObjectiveKind kind, const std::vector<float> &x, double *scale) {
    const double pi = 3.14159265358979323846;
    double sum = 0.0;
    *scale = 0.0;
    for (size_t i = 0; i < x.size(); i++) {
        double at = static_cast<double>(x[i]), term = 0.0;
        if (kind == KERN_OBJECTIVE_SPHERE) term = at * at;
        if (kind == KERN_OBJECTIVE_RASTRIGIN) term = at * at + 10.0 - 10.0 * std::cos(2.0 * pi * at);
        if (kind == KERN_OBJECTIVE_ROSENBROCK && i + 1 < x.size()) {
            double next = static_cast<double>(x[i + 1]);
            term = 100.0 * std::pow(next - at * at, 2.0) + std::pow(1.0 - at, 2.0);
        }
        sum += term;
        *scale += std::fabs(term);
    }
    return -sum;
}

class ObjectiveTest : public testing::Test {
  protected:
    void open(const CpuWay &way, const char *name, int32_t dim, int32_t members, uint64_t seed) {
        close();
        kernels = std::make_unique<CpuKernels>(way);
        ASSERT_STATUS(kernels->status());
        std::memset(&spec, 0, sizeof spec);
        ASSERT_STATUS(kern_objective_parse(name, &spec.objective));
        spec.policy.params = dim;
        spec.seed = seed;
        spec.members = members;
        spec.episodes = 1;
        ASSERT_STATUS((*kernels)->es_open(kernels->backend(), &spec, &es));
    }
    void write(const std::vector<float> &params) {
        std::vector<float> zeros(params.size(), 0.0f);
        ASSERT_STATUS((*kernels)->es_write(es, params.data(), zeros.data(), zeros.data()));
    }
    KernEsJob job(uint32_t generation, float sigma) const {
        return {SIM_RNG_EPISODE, generation, sigma, 0, spec.members, 1};
    }
    Status evaluate(const KernEsJob &of) {
        results.assign(static_cast<size_t>(of.count) * static_cast<size_t>(of.episodes), {-1.0f, -1});
        KernNormalizer none = {};
        return (*kernels)->es_evaluate(es, &of, &none, results.data(), nullptr);
    }
    void close() {
        if (es != nullptr) (*kernels)->es_close(es);
        es = nullptr;
        kernels.reset();
    }
    void TearDown() override { close(); }

    std::unique_ptr<CpuKernels> kernels;
    KernEsSpec spec;
    KernEs *es = nullptr;
    std::vector<KernEpisode> results;
};

const CpuWay one_thread = {1, "auto", 0};

TEST_F(ObjectiveTest, FunctionsAreTheirFormulas) {
    std::mt19937_64 random(fresh_seed());
    for (const char *name : {"objective:sphere", "objective:rastrigin", "objective:rosenbrock"}) {
        for (int32_t dim : {2, 3, 15, 16, 17, 33, 100, 1000}) {
            open(one_thread, name, dim, 2, 1);
            for (int trial = 0; trial < 20; trial++) {
                float width = std::ldexp(1.0f, static_cast<int>(random() % 24) - 12); // 1/4096 to 2048
                std::uniform_real_distribution<float> uniform(-width, width);
                std::vector<float> x(static_cast<size_t>(dim));
                for (float &v : x)
                    v = uniform(random);
                write(x);
                KernEsJob test = {SIM_RNG_EVALUATE, 7, 0.0f, 0, 1, 1};
                ASSERT_STATUS(evaluate(test));
                double scale, expected = ref_objective(spec.objective.kind, x, &scale);
                // A float's rounding, and that of the sine's argument.
                EXPECT_NEAR(expected, static_cast<double>(results[0].episode_return), 1e-6 * scale + 1e-12 * dim)
                    << name << ", dim " << dim << ", width " << width;
                EXPECT_EQ(1, results[0].length);
            }
        }
    }
}

TEST_F(ObjectiveTest, FunctionsAreZeroAtTheirMaximum) {
    for (const char *name : {"objective:sphere", "objective:rastrigin", "objective:rosenbrock"}) {
        open(one_thread, name, 40, 2, 1);
        write(std::vector<float>(40, spec.objective.kind == KERN_OBJECTIVE_ROSENBROCK ? 1.0f : 0.0f));
        ASSERT_STATUS(evaluate({SIM_RNG_EVALUATE, 0, 0.0f, 0, 1, 1}));
        EXPECT_EQ(0.0f, results[0].episode_return) << name;
    }
}

// Members are params +- sigma noise, and what es_member gives is what was evaluated.
TEST_F(ObjectiveTest, MembersAreAsTheirNoiseSays) {
    std::mt19937_64 random(fresh_seed());
    const int32_t dim = 71, members = 10;
    uint64_t seed = random();
    uint32_t generation = static_cast<uint32_t>(random() % 1000);
    open(CpuWay{2, "auto", 0}, "objective:rastrigin", dim, members, seed);
    std::vector<float> params(dim), member(dim);
    kern_objective_start(&spec.objective, seed, dim, params.data());
    write(params);
    KernEsJob whole = job(generation, 0.25f);
    ASSERT_STATUS(evaluate(whole));
    for (int32_t m = 0; m < members; m++) {
        ASSERT_STATUS((*kernels)->es_member(es, &whole, m, member.data()));
        for (int32_t i = 0; i < dim; i++) {
            float noise = ref_noise(spec, generation, static_cast<uint32_t>(m / 2), static_cast<uint32_t>(i));
            float expected = std::fmaf(m % 2 == 0 ? 0.25f : -0.25f, noise, params[static_cast<size_t>(i)]);
            ASSERT_EQ(bits_of(expected), bits_of(member[static_cast<size_t>(i)])) << "member " << m << ", " << i;
        }
        double scale, expected = ref_objective(spec.objective.kind, member, &scale);
        EXPECT_NEAR(expected, static_cast<double>(results[static_cast<size_t>(m)].episode_return), 1e-6 * scale);
    }
}

TEST_F(ObjectiveTest, TheSameBitsForAnyThreadsAndInstructionSet) {
    std::mt19937_64 random(fresh_seed());
    for (const char *name : {"objective:sphere", "objective:rastrigin", "objective:rosenbrock", "objective:sleep:0"}) {
        int32_t dim = 2 + static_cast<int32_t>(random() % 300);
        uint64_t seed = random();
        std::vector<float> params(static_cast<size_t>(dim)), first;
        for (float &v : params)
            v = std::uniform_real_distribution<float>(-6.0f, 6.0f)(random);
        for (const CpuWay &way : cpu_ways()) {
            open(way, name, dim, 24, seed);
            write(params);
            ASSERT_STATUS(evaluate(job(3, 0.5f)));
            std::vector<float> found;
            for (const KernEpisode &e : results)
                found.push_back(e.episode_return);
            // A lease: some members of the population.
            KernEsJob lease = job(3, 0.5f);
            lease.first = 6;
            lease.count = 4;
            ASSERT_STATUS(evaluate(lease));
            for (size_t i = 0; i < 4; i++)
                ASSERT_EQ(bits_of(found[6 + i]), bits_of(results[i].episode_return)) << name << ", " << way.text();
            if (first.empty()) first = found;
            for (size_t i = 0; i < found.size(); i++)
                ASSERT_EQ(bits_of(first[i]), bits_of(found[i])) << name << ", " << way.text() << ", member " << i;
        }
    }
}

// The same everywhere: compilers, instruction sets, versions of this repository.
TEST_F(ObjectiveTest, Golden) {
    struct {
        const char *name, *hash;
    } golden[] = {{"objective:sphere", "a9649af00f53c3f0"},
                  {"objective:rastrigin", "705b1121a90f4746"},
                  {"objective:rosenbrock", "f7e7a0abfece3d20"}};
    for (const auto &g : golden) {
        for (const char *isa : {"baseline", "auto"}) {
            open(CpuWay{2, isa, 0}, g.name, 77, 64, 12345);
            std::vector<float> params(77);
            kern_objective_start(&spec.objective, 12345, 77, params.data());
            write(params);
            ASSERT_STATUS(evaluate(job(2, 0.3f)));
            HostHash hash = host_hash_start();
            host_hash_add(&hash, results.data(), results.size() * sizeof results[0]);
            char text[17];
            EXPECT_STREQ(g.hash, host_hash_text(hash, text)) << g.name << ", " << isa;
        }
    }
}

TEST_F(ObjectiveTest, TheLowestMemberThatOverflowsIsNamed) {
    for (int threads : {1, 3}) {
        open(CpuWay{threads, "auto", 0}, "objective:sphere", 5, 16, 9);
        write(std::vector<float>(5, 1.5e19f));
        KernEsJob sphere = job(4, 1.0f);
        sphere.first = 6;
        sphere.count = 10;
        ASSERT_EQ(STATUS_NUMERIC, evaluate(sphere));
        EXPECT_NE(nullptr,
                  std::strstr(host_message(), "objective:sphere: generation 4, member 6: the fitness is -1.125e+39"))
            << host_message();
        ASSERT_EQ(STATUS_NUMERIC, evaluate({SIM_RNG_EVALUATE, 4, 0.0f, 0, 1, 1}));
        EXPECT_NE(nullptr, std::strstr(host_message(), "objective:sphere: the tested parameters")) << host_message();
    }
}

TEST_F(ObjectiveTest, AStopEndsASleep) {
    open(CpuWay{2, "auto", 0}, "objective:sleep:600000", 1, 8, 1);
    write({0.0f});
    std::thread stopper([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        host_stop_request();
    });
    EXPECT_EQ(STATUS_STOPPED, evaluate(job(0, 0.1f)));
    stopper.join();
    host_stop_clear();
}

TEST(Objective, SearchBeginsWhereItIsToldTo) {
    KernObjective o;
    ASSERT_STATUS(kern_objective_parse("objective:rastrigin", &o));
    std::vector<float> a(1000), b(1000);
    kern_objective_start(&o, 5, 1000, a.data());
    EXPECT_GE(*std::min_element(a.begin(), a.end()), -5.12f);
    EXPECT_LE(*std::max_element(a.begin(), a.end()), 5.12f);
    EXPECT_LT(*std::min_element(a.begin(), a.end()), -5.0f);
    EXPECT_GT(*std::max_element(a.begin(), a.end()), 5.0f);
    kern_objective_start(&o, 6, 1000, b.data());
    EXPECT_NE(a, b);
    kern_objective_start(&o, 5, 10, b.data()); // the same ones, however many there are
    EXPECT_TRUE(std::equal(b.begin(), b.begin() + 10, a.begin()));
    ASSERT_STATUS(kern_objective_set_start(&o, "1:3"));
    kern_objective_start(&o, 5, 1000, a.data());
    EXPECT_GE(*std::min_element(a.begin(), a.end()), 1.0f);
    EXPECT_LE(*std::max_element(a.begin(), a.end()), 3.0f);
    ASSERT_STATUS(kern_objective_set_start(&o, "-0.5"));
    kern_objective_start(&o, 5, 1000, a.data());
    EXPECT_EQ(1000, std::count(a.begin(), a.end(), -0.5f));
    for (const char *bad : {"3:1", "x", "1:", ":1", "1:x", "nan", "1e31"})
        EXPECT_EQ(STATUS_USAGE, kern_objective_set_start(&o, bad)) << bad;
}

TEST(Objective, Names) {
    KernObjective o;
    ASSERT_STATUS(kern_objective_parse("objective:sleep", &o));
    EXPECT_EQ(1.0, o.sleep_low_ms);
    ASSERT_STATUS(kern_objective_parse("objective:sleep:2.5:40", &o));
    EXPECT_EQ(2.5, o.sleep_low_ms);
    EXPECT_EQ(40.0, o.sleep_high_ms);
    ASSERT_STATUS(kern_objective_parse("objective:exec:awk '{print $1}' -", &o));
    EXPECT_STREQ("awk '{print $1}' -", kern_objective_argument(&o));
    EXPECT_STREQ("objective:exec:awk '{print $1}' -", o.name);
    struct {
        const char *name, *message;
    } bad[] = {
        {"objective:rastrgin", "unknown objective 'rastrgin'; did you mean 'objective:rastrigin'?"},
        {"objective:", "unknown objective ''"},
        {"objective:sphere:3", "takes nothing more"},
        {"objective:sleep:x", "objective:sleep"},
        {"objective:sleep:-1", "0 to 1000000 ms"},
        {"objective:sleep:5:4", "5 to 1000000 ms"},
        {"objective:exec:  ", "which command?"},
        {"objective:exec", "which command?"},
        {"objective:lib:", "which library?"},
    };
    for (const auto &b : bad) {
        EXPECT_EQ(STATUS_USAGE, kern_objective_parse(b.name, &o)) << b.name;
        EXPECT_NE(nullptr, std::strstr(host_message(), b.message)) << b.name << ": " << host_message();
    }
    for (const char *missing : {"objective:lib:nothing", "objective:nothing.so", "objective:./nothing"}) {
        EXPECT_EQ(STATUS_USAGE, kern_objective_parse(missing, &o));
        EXPECT_NE(nullptr, std::strstr(host_message(), "No such file")) << host_message();
    }
    std::string longest = "objective:exec:" + std::string(496, 'x');
    EXPECT_STATUS(kern_objective_parse(longest.c_str(), &o));
    EXPECT_EQ(STATUS_USAGE, kern_objective_parse((longest + "x").c_str(), &o));
}

} // namespace
