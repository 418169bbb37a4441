// PPO's gradients: the arithmetic of kernels/ppo_math.h in double against central finite differences of the loss, and
// the CPU's kernels, which are floats, against that. The networks are written down here once more, in plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#define SIM_REAL_DOUBLE
#include "kernels/cpu/ppo_net.h"

namespace {

constexpr uint64_t SEED = 20240607;

struct Case {
    std::string name;
    bool discrete, shared;
    PolicyActivation activation;
    std::vector<int32_t> hidden;
    float entropy_weight, value_weight;
    bool policy; // whether the surrogate has a part in the loss: advantages that are not 0
    bool clip_value;
    float apart; // how far old log-probabilities and values are from the present ones
};

struct Problem {
    SimSpec sim = {};
    PpoShape shape = {};
    KernPpoStep step = {};
    size_t count = 0;
    std::vector<float> params, obs, log_prob, value, advantage, target;
    std::vector<uint32_t> action;
    size_t actions() const { return shape.actor.discrete ? 1 : static_cast<size_t>(sim.continuous); }
};

using Doubles = std::vector<double>;

size_t at(int32_t i) { return static_cast<size_t>(i); }

// A layer of the plain networks: y = activation(W x + b), with what the way back needs.
struct Layer {
    size_t params, in, out;
    bool is_head;
    Doubles x, y;
    double nearest_kink; // the smallest magnitude of a hidden unit's sum
};

double activate(double x, PolicyActivation a) { return a == POLICY_TANH ? std::tanh(x) : x > 0 ? x : 0.0; }

void forward(Layer *layer, const Doubles &params, PolicyActivation activation) {
    layer->y.assign(layer->out, 0.0);
    layer->nearest_kink = 1;
    for (size_t o = 0; o < layer->out; o++) {
        double sum = params[layer->params + layer->in * layer->out + o];
        for (size_t i = 0; i < layer->in; i++)
            sum += params[layer->params + i * layer->out + o] * layer->x[i];
        if (!layer->is_head) layer->nearest_kink = std::min(layer->nearest_kink, std::fabs(sum));
        layer->y[o] = layer->is_head ? sum : activate(sum, activation);
    }
}

// Adds to the gradient; returns the loss by the layer's input.
Doubles backward(const Layer &layer, const Doubles &params, Doubles by_output, PolicyActivation activation,
                 Doubles *gradient) {
    Doubles by_input(layer.in, 0.0);
    for (size_t o = 0; o < layer.out; o++) {
        double d = by_output[o];
        if (!layer.is_head) d *= activation == POLICY_TANH ? 1 - layer.y[o] * layer.y[o] : layer.y[o] > 0 ? 1 : 0;
        (*gradient)[layer.params + layer.in * layer.out + o] += d;
        for (size_t i = 0; i < layer.in; i++) {
            (*gradient)[layer.params + i * layer.out + o] += d * layer.x[i];
            by_input[i] += d * params[layer.params + i * layer.out + o];
        }
    }
    return by_input;
}

// The layers of one sample's pass, actor first; `first_critic` is where the critic's begin.
std::vector<Layer> forward_all(const Problem &p, const Doubles &params, const Doubles &obs, size_t *first_critic) {
    std::vector<Layer> layers;
    const PolicyShape &actor = p.shape.actor;
    size_t params_at = 0, hidden = at(actor.layers) - 1;
    for (int network = 0; network < 2; network++) {
        if (network == 1) *first_critic = layers.size();
        for (size_t i = network == 1 && p.shape.is_shared ? hidden : 0; i <= hidden; i++) {
            Layer layer = {};
            layer.params = params_at;
            layer.in = at(actor.size[i]);
            layer.out = network == 1 && i == hidden ? 1 : at(actor.size[i + 1]);
            layer.is_head = i == hidden;
            bool from_actor = network == 1 && p.shape.is_shared;
            layer.x = i == 0 ? obs : from_actor ? layers[hidden - 1].y : layers.back().y;
            forward(&layer, params, actor.activation);
            params_at += (layer.in + 1) * layer.out;
            layers.push_back(layer);
        }
    }
    return layers;
}

struct Heads {
    double loss;
    Doubles by_actor, by_log_std;
    double by_value;
};

// One sample's loss, and its gradient by what the heads give and by log_std.
Heads heads(const Problem &p, size_t s, const Doubles &y, double value, const double *log_std) {
    Heads h = {};
    size_t n = y.size();
    double entropy_weight = static_cast<double>(p.step.entropy_weight), clip = static_cast<double>(p.step.clip);
    double value_weight = static_cast<double>(p.step.value_weight);
    double old = static_cast<double>(p.log_prob[s]), advantage = static_cast<double>(p.advantage[s]);
    PpoLikelihood now = {0, 0};
    Doubles prob(n), log_prob(n), action(n);
    int count = static_cast<int>(n);
    int32_t chosen = static_cast<int32_t>(p.action[s * p.actions()]);
    if (p.shape.actor.discrete) {
        now.entropy = ppo_categorical(y.data(), count, prob.data(), log_prob.data());
        now.log_prob = log_prob[at(chosen)];
    }
    for (size_t k = 0; !p.shape.actor.discrete && k < n; k++) {
        action[k] = static_cast<double>(sim_float_from_bits(p.action[s * n + k]));
        now = ppo_gaussian_add(now, y[k], log_std[k], action[k]);
    }
    PpoPolicyLoss policy = ppo_policy_loss(now.log_prob, old, advantage, clip);
    PpoValueLoss of_value = ppo_value_loss(value, static_cast<double>(p.value[s]), static_cast<double>(p.target[s]),
                                           clip, p.step.clip_value);
    h.loss = policy.loss + value_weight * of_value.loss - entropy_weight * now.entropy;
    h.by_value = value_weight * of_value.gradient;
    for (size_t k = 0; k < n; k++) {
        if (p.shape.actor.discrete) {
            h.by_actor.push_back(ppo_categorical_gradient(prob.data(), log_prob.data(), now.entropy, chosen,
                                                          static_cast<int>(k), policy.gradient, -entropy_weight));
        } else {
            PpoGaussianGradient g =
                ppo_gaussian_gradient(y[k], log_std[k], action[k], policy.gradient, -entropy_weight);
            h.by_actor.push_back(g.mean);
            h.by_log_std.push_back(g.log_std);
        }
    }
    return h;
}

// The mean loss, and its gradient where that is not NULL.
double loss(const Problem &p, const Doubles &params, Doubles *gradient) {
    double sum = 0;
    size_t width = at(p.sim.obs), log_std = at(p.shape.actor_params + p.shape.critic_params);
    Doubles total(params.size(), 0.0);
    for (size_t s = 0; s < p.count; s++) {
        Doubles obs(p.obs.begin() + static_cast<std::ptrdiff_t>(s * width),
                    p.obs.begin() + static_cast<std::ptrdiff_t>((s + 1) * width));
        size_t first_critic = 0;
        std::vector<Layer> layers = forward_all(p, params, obs, &first_critic);
        Heads h = heads(p, s, layers[first_critic - 1].y, layers.back().y[0], params.data() + log_std);
        sum += h.loss;
        if (gradient == nullptr) continue;
        PolicyActivation activation = p.shape.actor.activation;
        Doubles by = {h.by_value};
        for (size_t i = layers.size(); i > first_critic; i--)
            by = backward(layers[i - 1], params, by, activation, &total);
        Doubles by_actor = h.by_actor;
        for (size_t i = first_critic; i > 0; i--) {
            by_actor = backward(layers[i - 1], params, by_actor, activation, &total);
            bool joins = p.shape.is_shared && i == first_critic;
            for (size_t k = 0; joins && k < by_actor.size(); k++)
                by_actor[k] += by[k];
        }
        for (size_t k = 0; k < h.by_log_std.size(); k++)
            total[log_std + k] += h.by_log_std[k];
    }
    double n = static_cast<double>(p.count);
    for (size_t i = 0; gradient != nullptr && i < total.size(); i++)
        total[i] /= n;
    if (gradient != nullptr) *gradient = total;
    return sum / n;
}

Problem make_problem(const Case &c, std::mt19937_64 *random, size_t count) {
    Problem p;
    std::normal_distribution<float> normal;
    auto draw = [&] { return normal(*random); };
    p.sim.obs = 5;
    p.sim.discrete = c.discrete ? 4 : 0;
    p.sim.continuous = c.discrete ? 0 : 3;
    EXPECT_EQ(ppo_shape(&p.shape, &p.sim, c.hidden.data(), static_cast<int>(c.hidden.size()), c.activation, c.shared),
              STATUS_OK);
    p.step.clip = 0.2f;
    p.step.entropy_weight = c.entropy_weight;
    p.step.value_weight = c.value_weight;
    p.step.clip_value = c.clip_value;
    p.count = count;
    for (int32_t i = 0; i < p.shape.params; i++)
        p.params.push_back(0.4f * draw());
    Doubles params(p.params.begin(), p.params.end());
    for (size_t s = 0; s < count; s++) {
        size_t first_critic = 0;
        std::vector<Layer> layers;
        Doubles obs(at(p.sim.obs));
        // Finite differences must not step over the edge of a relu.
        for (double nearest = 0; nearest < 1e-4;) {
            for (double &x : obs)
                x = static_cast<double>(draw());
            layers = forward_all(p, params, obs, &first_critic);
            nearest = 1;
            for (const Layer &layer : layers)
                nearest = std::min(nearest, layer.nearest_kink);
        }
        for (double x : obs)
            p.obs.push_back(static_cast<float>(x));
        const Doubles &y = layers[first_critic - 1].y;
        PpoLikelihood now = {0, 0};
        for (size_t k = 0; k < p.actions(); k++) {
            float action = static_cast<float>(y[k]) + draw();
            p.action.push_back(c.discrete ? static_cast<uint32_t>((*random)() % y.size())
                                          : sim_bits_from_float(action));
            if (c.discrete) continue;
            double log_std = params[at(p.shape.actor_params + p.shape.critic_params) + k];
            now = ppo_gaussian_add(now, y[k], log_std, static_cast<double>(action));
        }
        Doubles prob(y.size()), log_prob(y.size());
        if (c.discrete) {
            ppo_categorical(y.data(), static_cast<int>(y.size()), prob.data(), log_prob.data());
            now.log_prob = log_prob[p.action.back()];
        }
        p.log_prob.push_back(static_cast<float>(now.log_prob) + c.apart * draw());
        p.value.push_back(static_cast<float>(layers.back().y[0]) + c.apart * draw());
        p.advantage.push_back(c.policy ? draw() : 0.0f);
        p.target.push_back(draw());
    }
    return p;
}

std::vector<Case> cases() {
    const std::vector<int32_t> wide = {20, 37}, mixed = {7, 70}, none = {};
    std::vector<Case> all;
    for (bool discrete : {true, false}) {
        for (bool shared : {true, false}) {
            for (PolicyActivation activation : {POLICY_TANH, POLICY_RELU}) {
                std::string name = std::string(discrete ? "categorical" : "Gaussian") +
                                   (shared ? ", shared" : ", separate") + (activation ? ", relu" : ", tanh");
                auto add = [&](const char *what, const std::vector<int32_t> &hidden, float entropy, float value,
                               bool policy, bool clip_value, float apart) {
                    all.push_back({name + ": " + what, discrete, shared, activation, hidden, entropy, value, policy,
                                   clip_value, apart});
                };
                add("policy, no clip", wide, 0.0f, 0.0f, true, false, 0.01f);
                add("policy, clip", wide, 0.0f, 0.0f, true, false, 0.5f);
                add("value", wide, 0.0f, 0.7f, false, false, 0.5f);
                add("value, clip", wide, 0.0f, 0.7f, false, true, 0.5f);
                add("entropy", wide, 0.3f, 0.0f, false, false, 0.5f);
                add("all", wide, 0.1f, 0.5f, true, false, 0.01f);
                add("all, clip, narrow layer", mixed, 0.1f, 0.5f, true, true, 0.3f);
                add("all, no hidden layer", none, 0.1f, 0.5f, true, true, 0.3f);
            }
        }
    }
    return all;
}

// ||a - b|| / ||b|| over each tensor; where b is 0, a has to be.
void expect_close(const Problem &p, const Doubles &a, const Doubles &b, double limit, const std::string &what) {
    PpoTensor tensor;
    for (int i = 0; ppo_tensor(&p.shape, i, &tensor); i++) {
        double apart = 0, length = 0;
        for (size_t k = at(tensor.offset); k < at(tensor.offset + tensor.count); k++) {
            apart += (a[k] - b[k]) * (a[k] - b[k]);
            length += b[k] * b[k];
        }
        ASSERT_TRUE(std::isfinite(apart)) << what << ", " << tensor.name;
        EXPECT_LE(std::sqrt(apart), limit * std::sqrt(length) + 1e-9) << what << ", " << tensor.name;
    }
}

TEST(PpoGradient, IsTheLossesInDouble) {
    std::printf("seed: %llu\n", static_cast<unsigned long long>(SEED));
    std::mt19937_64 random(SEED);
    for (const Case &c : cases()) {
        Problem p = make_problem(c, &random, 12);
        Doubles params(p.params.begin(), p.params.end()), gradient, differences;
        loss(p, params, &gradient);
        for (double &x : params) {
            double kept = x, h = 2e-6;
            x = kept + h;
            double above = loss(p, params, nullptr);
            x = kept - h;
            double below = loss(p, params, nullptr);
            x = kept;
            differences.push_back((above - below) / (2 * h));
        }
        expect_close(p, gradient, differences, 1e-6, c.name);
    }
}

// ---- the kernels ---------------------------------------------------------------------------------------------------

struct NamedKernels {
    const char *isa;
    const PpoKernels *kernels;
};

std::vector<NamedKernels> all_kernels() {
    std::vector<NamedKernels> found = {{"baseline", &ppo_kernels_baseline}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back({"v3", &ppo_kernels_v3});
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
        found.push_back({"v4", &ppo_kernels_v4});
    }
#endif
    return found;
}

struct Aligned {
    explicit Aligned(int64_t count) : data(static_cast<float *>(std::aligned_alloc(64, at64(count)))) {
        std::fill(data, data + at64(count) / 4, 0.0f);
    }
    Aligned(const Aligned &) = delete;
    Aligned &operator=(const Aligned &) = delete;
    ~Aligned() { std::free(data); }
    static size_t at64(int64_t count) { return static_cast<size_t>((count + 15) / 16 * 16) * 4; }
    float *data;
};

// The gradient of the whole problem as one part, and its losses.
std::vector<float> kernel_gradient(Problem *p, const PpoKernels &kernels, PpoLosses *losses) {
    PpoNet net;
    ppo_net_make(&net, &p->shape);
    Aligned packed(net.packed), scratch_memory(net.rows + net.gradient), gradient(net.gradient);
    ppo_net_pack(&net, p->params.data(), packed.data);
    PpoScratch scratch;
    ppo_net_carve(&net, scratch_memory.data, &scratch);
    PpoSamples samples = {p->obs.data(),   p->action.data(),    p->log_prob.data(),
                          p->value.data(), p->advantage.data(), p->target.data()};
    KernNormalizer normalizer = {};
    for (float &scale : normalizer.scale)
        scale = 1.0f;
    std::vector<uint32_t> index;
    for (size_t i = 0; i < p->count; i++)
        index.push_back(static_cast<uint32_t>(i));
    PpoPart part = {};
    part.net = &net;
    part.packed = packed.data;
    part.log_std = p->params.data() + p->shape.actor_params + p->shape.critic_params;
    part.samples = &samples;
    part.normalizer = &normalizer;
    part.step = &p->step;
    part.index = index.data();
    part.count = static_cast<int32_t>(p->count);
    part.advantages.scale = 1.0f;
    part.per_sample = 1.0f / static_cast<float>(p->count);
    *losses = PpoLosses{};
    kernels.gradient(&part, &scratch, gradient.data, losses);
    std::vector<float> flat(at(p->shape.params));
    ppo_net_unpack(&net, gradient.data, flat.data());
    return flat;
}

TEST(PpoGradient, OfTheKernelsIsTheOneInDouble) {
    std::printf("seed: %llu\n", static_cast<unsigned long long>(SEED));
    std::mt19937_64 random(SEED);
    for (const Case &c : cases()) {
        Problem p = make_problem(c, &random, 300); // more than one chunk, and no whole number of row blocks
        Doubles params(p.params.begin(), p.params.end()), expected;
        double expected_loss = loss(p, params, &expected);
        std::vector<float> first;
        for (const NamedKernels &k : all_kernels()) {
            PpoLosses sum;
            std::vector<float> got = kernel_gradient(&p, *k.kernels, &sum);
            expect_close(p, Doubles(got.begin(), got.end()), expected, 1e-3, c.name + ", " + k.isa);
            double n = static_cast<double>(p.count);
            double got_loss = (sum.policy + static_cast<double>(p.step.value_weight) * sum.value -
                               static_cast<double>(p.step.entropy_weight) * sum.entropy) /
                              n;
            EXPECT_NEAR(got_loss, expected_loss, 1e-5 * (1 + std::fabs(expected_loss))) << c.name;
            if (first.empty()) first = got;
            EXPECT_EQ(got, first) << c.name << ", " << k.isa;
            bool meets_clip = c.apart > 0.2f && c.policy;
            EXPECT_GE(sum.clipped, meets_clip ? 0.1 * n : 0.0) << c.name << ": the clip was not met";
        }
    }
}

} // namespace
