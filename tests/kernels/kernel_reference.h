// What the kernel tests share: a backend for each (threads, isa, lanes), and plain scalar references for whole
// episodes, written over the simulators' headers, a struct per env and policy_forward(), without lanes, blocks or
// threads.
#ifndef SHOAL_TESTS_KERNELS_KERNEL_REFERENCE_H
#define SHOAL_TESTS_KERNELS_KERNEL_REFERENCE_H

#include <gtest/gtest.h> // before sim.h: its macro R() meets a template parameter of that name

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "host/signals.h"
#include "kernels/es_math.h"
#include "kernels/kern.h"
#include "kernels/policy_math.h"
#include "sim/sim_list.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/kernels/sanitized.h"

#define ASSERT_STATUS(expr) ASSERT_EQ(expr, STATUS_OK) << host_message()
#define EXPECT_STATUS(expr) EXPECT_EQ(expr, STATUS_OK) << host_message()

inline uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return bits;
}

inline float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, 4);
    return x;
}

// The bits of both, with every NaN the same.
inline bool same_bits(float a, float b) { return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b)); }

// The bfloat16 nearest to x, the even one of two: 8 significant bits, 7 and fewer below the smallest normal number.
inline float ref_bf16(float x) {
    if (!std::isfinite(x) || x == 0.0f) return x;
    int exponent;
    std::frexp(x, &exponent);
    double unit = std::ldexp(1.0, std::max(exponent, -125) - 8);
    return static_cast<float>(std::nearbyint(static_cast<double>(x) / unit) * unit);
}

// ---- backends ------------------------------------------------------------------------------------------------------

struct CpuWay {
    int threads;
    const char *isa;
    int lanes;
    std::string text() const {
        return std::to_string(threads) + " threads, " + isa + ", " + std::to_string(lanes) + " lanes";
    }
};

class CpuKernels {
  public:
    explicit CpuKernels(const CpuWay &way) {
        status_ = host_pool_create(way.threads, HOST_BIND_NONE, &pool_);
        KernCpuOptions options = {pool_, way.isa, way.lanes};
        if (status_ == STATUS_OK) status_ = kern_cpu_open(&options, &backend_);
    }
    CpuKernels(const CpuKernels &) = delete;
    CpuKernels &operator=(const CpuKernels &) = delete;
    ~CpuKernels() {
        if (backend_ != nullptr) backend_->ops->close(backend_);
        host_pool_free(pool_);
    }
    Status status() const { return status_; }
    KernBackend *backend() const { return backend_; }
    const KernOps *operator->() const { return backend_->ops; }

  private:
    HostPool *pool_ = nullptr;
    KernBackend *backend_ = nullptr;
    Status status_ = STATUS_OK;
};

inline bool has_isa(const char *isa) { return CpuKernels(CpuWay{1, isa, 1}).status() == STATUS_OK; }

// Every combination that this processor can run; under a sanitizer, which is slow, a third of them.
inline std::vector<CpuWay> cpu_ways() {
    std::vector<CpuWay> ways;
    for (const char *isa : {"baseline", "v3", "v4"}) {
        if (!has_isa(isa)) {
            std::printf("not on this processor: %s\n", isa);
            continue;
        }
        for (int threads : {1, 2, 3}) {
            for (int lanes : {1, 8, 16}) {
                bool in_turn = lanes == (threads == 1 ? 1 : threads == 2 ? 8 : 16);
                if (!is_sanitized || in_turn) ways.push_back(CpuWay{threads, isa, lanes});
            }
        }
    }
    return ways;
}

#if defined(__x86_64__)
inline bool has_avx_and_xgetbv1() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx) && (eax & 4) != 0;
}
#endif

// 1 if the upper halves of the vector registers are in use, 0 if not, -1 if this processor does not say. Code compiled
// for AVX must clear them before it returns: SSE code then runs up to 60 times slower on some processors.
inline int upper_halves_in_use() {
#if defined(__x86_64__)
    auto in_use = [] {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
        return (low & 4) != 0;
    };
    if (!has_avx_and_xgetbv1()) return -1;
    bool before = in_use();
    // Does clearing show?
    __asm__ volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    bool dirty = in_use();
    __asm__ volatile("vzeroupper" :::);
    if (!dirty || in_use()) return -1;
    return before;
#else
    return -1;
#endif
}

// ---- simulators ----------------------------------------------------------------------------------------------------

// A simulator's functions over an untyped state of 4-byte words.
struct RefSim {
    size_t state_words, param_words;
    void (*reset)(uint32_t *state, const float *params, SimRng *rng);
    SimStep (*step)(uint32_t *state, const float *params, const int32_t *discrete, const float *continuous,
                    SimRng *rng);
    void (*observe)(const uint32_t *state, const float *params, float *obs);
};

#define REF_SIM(name, Name, NAME)                                                                             \
    inline RefSim ref_sim_##name() {                                                                          \
        RefSim sim;                                                                                           \
        sim.state_words = sizeof(Name##State) / 4;                                                            \
        sim.param_words = sizeof(Name##Params) / 4;                                                           \
        sim.reset = [](uint32_t *state, const float *params, SimRng *rng) {                                   \
            Name##State s;                                                                                    \
            Name##Params p;                                                                                   \
            std::memset(&s, 0, sizeof s);                                                                     \
            std::memcpy(&p, params, sizeof p);                                                                \
            name##_reset(&s, &p, rng);                                                                        \
            std::memcpy(state, &s, sizeof s);                                                                 \
        };                                                                                                    \
        sim.step = [](uint32_t *state, const float *params, const int32_t *discrete, const float *continuous, \
                      SimRng *rng) {                                                                          \
            Name##State s;                                                                                    \
            Name##Params p;                                                                                   \
            std::memcpy(&s, state, sizeof s);                                                                 \
            std::memcpy(&p, params, sizeof p);                                                                \
            SimStep out = name##_step(&s, &p, discrete, continuous, rng);                                     \
            std::memcpy(state, &s, sizeof s);                                                                 \
            return out;                                                                                       \
        };                                                                                                    \
        sim.observe = [](const uint32_t *state, const float *params, float *obs) {                            \
            Name##State s;                                                                                    \
            Name##Params p;                                                                                   \
            std::memcpy(&s, state, sizeof s);                                                                 \
            std::memcpy(&p, params, sizeof p);                                                                \
            name##_observe(&s, &p, obs);                                                                      \
        };                                                                                                    \
        return sim;                                                                                           \
    }
SIM_LIST(REF_SIM)

inline RefSim ref_sim(const SimSpec *spec) {
#define REF_SIM_FIND(sim, Name, NAME) \
    if (std::string(spec->name) == #sim) return ref_sim_##sim();
    SIM_LIST(REF_SIM_FIND)
    ADD_FAILURE() << "no simulator " << spec->name;
    return ref_sim_cartpole();
}

// The parameters of one episode: as set, or drawn from the counters next to the episode's own (sim/sim_rng.h).
inline std::vector<float> ref_params(const KernSim &sim, const SimRng &rng) {
    std::vector<float> params(sim.value, sim.value + sim.spec->param_count);
    for (size_t k = 0; k < params.size(); k++) {
        if (!sim.any_random || !sim.random[k]) continue;
        SimWords4 w =
            sim_philox(0x80000000u | static_cast<uint32_t>(k), rng.c1, rng.c2, rng.c3, rng.seed_low, rng.seed_high);
        float u = static_cast<float>(w.x0 >> 8) / 16777216.0f;
        params[k] = sim.low[k] + (sim.high[k] - sim.low[k]) * u;
    }
    return params;
}

// The first real field of a state that is NaN or infinite; "" if there is none.
inline std::string ref_infinite_field(const SimSpec *spec, const uint32_t *state) {
    for (int w = 0; w < spec->state_words; w++) {
        float x;
        std::memcpy(&x, state + w, 4);
        if (spec->state[w].is_real && !std::isfinite(x)) return spec->state[w].name;
    }
    return "";
}

// ---- evaluation ----------------------------------------------------------------------------------------------------

struct RefEpisode {
    KernEpisode result = {0.0f, 0};
    std::vector<float> sum, square;
    std::string infinite; // the field at fault, "" if all stayed finite
};

inline void ref_act(const PolicyShape &shape, const float *params, const KernNormalizer &normalizer,
                    const std::vector<float> &obs, std::vector<float> *memory, int32_t *discrete, float *continuous) {
    std::vector<float> input(obs.size());
    float outputs[POLICY_OUTPUTS_MAX];
    for (size_t k = 0; k < obs.size(); k++)
        input[k] = policy_normalize(obs[k], normalizer.mean[k], normalizer.scale[k]);
    policy_forward(&shape, params, input.data(), memory->data(), outputs);
    const float *y = outputs;
    for (int32_t k = 0; k < shape.discrete; y += shape.choices[k++])
        discrete[k] = policy_argmax(y, shape.choices[k]);
    for (int32_t k = 0; k < shape.continuous; k++)
        continuous[k] = policy_action(y[k], shape.action_low, shape.action_high, shape.squash);
}

// One whole episode, in plain order.
inline RefEpisode ref_episode(const KernSim &sim, const PolicyShape &shape, const float *params,
                              const KernNormalizer &normalizer, SimRng rng) {
    RefSim ref = ref_sim(sim.spec);
    size_t obs_count = static_cast<size_t>(sim.spec->obs);
    RefEpisode episode;
    episode.sum.assign(obs_count, 0.0f);
    episode.square.assign(obs_count, 0.0f);
    std::vector<float> p = ref_params(sim, rng), obs(obs_count), memory(static_cast<size_t>(shape.recurrent));
    std::vector<uint32_t> state(ref.state_words);
    SimRng drawing = rng;
    ref.reset(state.data(), p.data(), &drawing);
    ref.observe(state.data(), p.data(), obs.data());
    for (bool done = false; !done;) {
        for (size_t k = 0; k < obs_count; k++) {
            episode.sum[k] = episode.sum[k] + obs[k];
            episode.square[k] = std::fma(obs[k], obs[k], episode.square[k]);
        }
        int32_t discrete[SIM_DISCRETE_MAX] = {0};
        float continuous[POLICY_OUTPUTS_MAX] = {0};
        ref_act(shape, params, normalizer, obs, &memory, discrete, continuous);
        drawing = rng;
        drawing.c0 = static_cast<uint32_t>(++episode.result.length) << 8;
        SimStep out = ref.step(state.data(), p.data(), discrete, continuous, &drawing);
        ref.observe(state.data(), p.data(), obs.data());
        episode.result.episode_return = episode.result.episode_return + out.reward;
        episode.infinite = ref_infinite_field(sim.spec, state.data());
        if (episode.infinite.empty() && !std::isfinite(out.reward)) episode.infinite = "the reward";
        done = out.terminated || episode.result.length >= sim.time_limit || !episode.infinite.empty();
    }
    return episode;
}

// Number i of a seed's normals of one purpose, straight from the table in sim/sim_rng.h.
inline float ref_normal(uint64_t seed, uint32_t purpose, uint32_t pair, uint64_t i) {
    uint32_t block = static_cast<uint32_t>(i / 64 * 16 + i % 16), word = static_cast<uint32_t>(i / 16 % 4);
    SimNormal4 n = sim_normal4_from(
        sim_philox(block, pair, 0, purpose, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)));
    return word == 0 ? n.x0 : word == 1 ? n.x1 : word == 2 ? n.x2 : n.x3;
}

inline float ref_table(uint64_t seed, uint64_t i) { return ref_normal(seed, 0x80000000u, 0, i); }

// Where in the table a pair's noise begins: a number below 2^64 scaled to the places there are, 16 elements apart.
inline uint64_t ref_slice(const KernEsSpec &spec, uint32_t generation, uint32_t pair) {
    uint64_t params = (static_cast<uint64_t>(spec.policy.params) + 63) / 64 * 64;
    uint64_t places = (static_cast<uint64_t>(spec.table) - params) / 16 + 1;
    SimWords4 w = sim_philox(0, pair, 0, 0x90000000u | generation, static_cast<uint32_t>(spec.seed),
                             static_cast<uint32_t>(spec.seed >> 32));
    unsigned __int128 random = static_cast<unsigned __int128>(w.x0) << 32 | w.x1;
    return 16 * static_cast<uint64_t>(random * places >> 64);
}

// Noise for one parameter of a pair.
inline float ref_noise(const KernEsSpec &spec, uint32_t generation, uint32_t pair, uint64_t i) {
    if (spec.table == 0) return ref_normal(spec.seed, 0x10000000u | generation, pair, i);
    return ref_table(spec.seed, ref_slice(spec, generation, pair) + i);
}

// A member's parameters.
inline std::vector<float> ref_member(const std::vector<float> &params, const KernEsSpec &spec, uint32_t generation,
                                     float sigma, int32_t member) {
    std::vector<float> out(params);
    if (sigma == 0.0f) return out;
    float signed_sigma = member % 2 == 0 ? sigma : -sigma;
    for (size_t i = 0; i < out.size(); i++)
        out[i] = std::fma(signed_sigma, ref_noise(spec, generation, static_cast<uint32_t>(member / 2), i), params[i]);
    return out;
}

#endif
