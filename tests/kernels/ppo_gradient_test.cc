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
#include "tests/kernels/sanitized.h"

namespace {

constexpr uint64_t SEED = 20240607;

struct Case {
    std::string name;
    std::vector<int> choices; // of each discrete action
    int continuous;
    bool shared;
    PolicyActivation activation;
    std::vector<int32_t> hidden;
    float entropy_weight, value_weight;
    bool policy; // whether the surrogate has a part in the loss: advantages that are not 0
    bool clip_value;
    float apart; // how far old log-probabilities and values are from the present ones
    int32_t recurrent = 0;
};

struct Problem {
    SimSpec sim = {};
    PpoShape shape = {};
    KernPpoStep step = {};
    size_t count = 0, steps = 1; // samples, and those of one env, which follow each other
    std::vector<float> params, obs, log_prob, value, advantage, target, state; // state: [env][ppo_recurrent_state()]
    std::vector<uint32_t> action;
    std::vector<int32_t> ended;
    size_t discrete() const { return static_cast<size_t>(shape.actor.discrete); }
    size_t actions() const { return discrete() + static_cast<size_t>(shape.actor.continuous); }
};

using Doubles = std::vector<double>;

size_t at(int32_t i) { return static_cast<size_t>(i); }

// A layer of the plain networks: y = activation(W x + b), with what the way back needs.
struct Layer {
    PolicyLayerKind kind;
    size_t params, in, out;
    Doubles x, y;
    double nearest_kink; // the smallest magnitude of a hidden unit's sum
};

double activate(PolicyLayerKind kind, double x, PolicyActivation a) {
    if (kind == POLICY_HEAD) return x;
    if (kind == POLICY_GATE) return 1 / (1 + std::exp(-x));
    return kind == POLICY_CANDIDATE || a == POLICY_TANH ? std::tanh(x) : x > 0 ? x : 0.0;
}

double derivative(PolicyLayerKind kind, double y, PolicyActivation a) {
    if (kind == POLICY_HEAD) return 1;
    if (kind == POLICY_GATE) return y * (1 - y);
    return kind == POLICY_CANDIDATE || a == POLICY_TANH ? 1 - y * y : y > 0 ? 1 : 0;
}

void forward(Layer *layer, const Doubles &params, PolicyActivation activation) {
    layer->y.assign(layer->out, 0.0);
    layer->nearest_kink = 1;
    for (size_t o = 0; o < layer->out; o++) {
        double sum = params[layer->params + layer->in * layer->out + o];
        for (size_t i = 0; i < layer->in; i++)
            sum += params[layer->params + i * layer->out + o] * layer->x[i];
        if (layer->kind == POLICY_HIDDEN) layer->nearest_kink = std::min(layer->nearest_kink, std::fabs(sum));
        layer->y[o] = activate(layer->kind, sum, activation);
    }
}

// Adds to the gradient; returns the loss by the layer's input.
Doubles backward(const Layer &layer, const Doubles &params, Doubles by_output, PolicyActivation activation,
                 Doubles *gradient) {
    Doubles by_input(layer.in, 0.0);
    for (size_t o = 0; o < layer.out; o++) {
        double d = by_output[o] * derivative(layer.kind, layer.y[o], activation);
        (*gradient)[layer.params + layer.in * layer.out + o] += d;
        for (size_t i = 0; i < layer.in; i++) {
            (*gradient)[layer.params + i * layer.out + o] += d * layer.x[i];
            by_input[i] += d * params[layer.params + i * layer.out + o];
        }
    }
    return by_input;
}

// One network's pass over one sample: its hidden layers (a shared critic: none of its own), then gate and candidate,
// the state before and after, and the head.
struct Pass {
    std::vector<Layer> hidden, recurrent;
    Layer head;
    Doubles before, after;
    double nearest_kink() const {
        double nearest = 1;
        for (const Layer &layer : hidden)
            nearest = std::min(nearest, layer.nearest_kink);
        return nearest;
    }
};

// `below`: the actor's pass, which a shared critic stands on.
Pass forward_pass(const Problem &p, const Doubles &params, const Doubles &obs, const Doubles &before, size_t *params_at,
                  const Pass *below) {
    const PolicyShape &actor = p.shape.actor;
    PolicyActivation activation = actor.activation;
    Pass pass = {};
    auto run = [&](PolicyLayerKind kind, const Doubles &x, int32_t out) {
        Layer layer = {kind, *params_at, x.size(), at(out), x, {}, 1};
        forward(&layer, params, activation);
        *params_at += (layer.in + 1) * layer.out;
        return layer;
    };
    Doubles x = obs;
    if (below != nullptr && p.shape.is_shared) x = below->head.x;
    for (int32_t i = 1; (below == nullptr || !p.shape.is_shared) && i < actor.layers; i++) {
        pass.hidden.push_back(run(POLICY_HIDDEN, x, actor.size[i]));
        x = pass.hidden.back().y;
    }
    if ((below == nullptr || !p.shape.is_shared) && actor.recurrent > 0) {
        pass.recurrent.push_back(run(POLICY_GATE, x, actor.recurrent));
        pass.recurrent.push_back(run(POLICY_CANDIDATE, x, actor.recurrent));
        pass.before = before;
        for (size_t k = 0; k < before.size(); k++) {
            double z = pass.recurrent[0].y[k];
            pass.after.push_back((1 - z) * before[k] + z * pass.recurrent[1].y[k]);
        }
        x = pass.after;
    }
    pass.head = run(POLICY_HEAD, x, below == nullptr ? actor.size[actor.layers] : 1);
    return pass;
}

struct Passes {
    Pass actor, critic;
};

// Sample s; `last`: the sample before it.
Passes forward_sample(const Problem &p, const Doubles &params, const Doubles &obs, size_t s, const Passes *last) {
    size_t units = at(p.shape.actor.recurrent), words = at(ppo_recurrent_state(&p.shape)), params_at = 0;
    Doubles of_actor(units, 0.0), of_critic(units, 0.0);
    for (size_t k = 0; s % p.steps == 0 && k < units; k++) {
        const float *first = p.state.data() + s / p.steps * words;
        of_actor[k] = static_cast<double>(first[k]);
        of_critic[k] = static_cast<double>(first[words - units + k]);
    }
    if (s % p.steps != 0 && units > 0 && p.ended[s - 1] == 0) {
        of_actor = last->actor.after;
        of_critic = last->critic.after;
    }
    Passes passes;
    passes.actor = forward_pass(p, params, obs, of_actor, &params_at, nullptr);
    passes.critic = forward_pass(p, params, obs, of_critic, &params_at, &passes.actor);
    return passes;
}

// From the loss by what the head gets, for each sample of a network, down to the parameters.
void backward_network(const Problem &p, const Doubles &params, const std::vector<const Pass *> &passes,
                      std::vector<Doubles> by_head_input, Doubles *gradient) {
    PolicyActivation activation = p.shape.actor.activation;
    Doubles by_next;
    for (size_t s = passes.size(); s-- > 0;) {
        const Pass &pass = *passes[s];
        Doubles by = by_head_input[s];
        if (!pass.recurrent.empty()) {
            bool goes_on = (s + 1) % p.steps != 0 && p.ended[s] == 0;
            if (!goes_on) by_next.assign(by.size(), 0.0);
            Doubles by_gate, by_candidate;
            for (size_t k = 0; k < by.size(); k++) {
                double z = pass.recurrent[0].y[k], c = pass.recurrent[1].y[k], d = by[k] + by_next[k];
                by_gate.push_back(d * (c - pass.before[k]));
                by_candidate.push_back(d * z);
                by_next[k] = d * (1 - z);
            }
            by = backward(pass.recurrent[0], params, by_gate, activation, gradient);
            Doubles more = backward(pass.recurrent[1], params, by_candidate, activation, gradient);
            for (size_t k = 0; k < by.size(); k++)
                by[k] += more[k];
        }
        for (size_t i = pass.hidden.size(); i > 0; i--)
            by = backward(pass.hidden[i - 1], params, by, activation, gradient);
    }
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
    const uint32_t *words = p.action.data() + s * p.actions();
    PpoLikelihood now = {0, 0};
    Doubles prob(n), log_prob(n), entropy, action;
    std::vector<size_t> first; // of each discrete action's logits, then of the means
    for (size_t k = 0, from = 0; k <= p.discrete(); from += at(p.shape.actor.choices[k++])) {
        first.push_back(from);
        if (k == p.discrete()) break;
        entropy.push_back(
            ppo_categorical(y.data() + from, 1, p.shape.actor.choices[k], prob.data() + from, log_prob.data() + from));
        now.entropy += entropy.back();
        now.log_prob += log_prob[from + words[k]];
    }
    for (size_t k = 0; k < at(p.shape.actor.continuous); k++) {
        action.push_back(static_cast<double>(sim_float_from_bits(words[p.discrete() + k])));
        now = ppo_gaussian_add(now, y[first.back() + k], log_std[k], action[k]);
    }
    PpoPolicyLoss policy = ppo_policy_loss(now.log_prob, old, advantage, clip);
    PpoValueLoss of_value = ppo_value_loss(value, static_cast<double>(p.value[s]), static_cast<double>(p.target[s]),
                                           clip, p.step.clip_value);
    h.loss = policy.loss + value_weight * of_value.loss - entropy_weight * now.entropy;
    h.by_value = value_weight * of_value.gradient;
    for (size_t k = 0; k < p.discrete(); k++) {
        for (int i = 0; i < p.shape.actor.choices[k]; i++)
            h.by_actor.push_back(ppo_categorical_gradient(prob.data() + first[k], log_prob.data() + first[k],
                                                          entropy[k], static_cast<int32_t>(words[k]), i,
                                                          policy.gradient, -entropy_weight));
    }
    for (size_t k = 0; k < action.size(); k++) {
        PpoGaussianGradient g =
            ppo_gaussian_gradient(y[first.back() + k], log_std[k], action[k], policy.gradient, -entropy_weight);
        h.by_actor.push_back(g.mean);
        h.by_log_std.push_back(g.log_std);
    }
    return h;
}

Doubles observation(const Problem &p, size_t s) {
    auto first = p.obs.begin() + static_cast<std::ptrdiff_t>(s) * p.sim.obs;
    return Doubles(first, first + p.sim.obs);
}

// The mean loss, and its gradient where that is not NULL.
double loss(const Problem &p, const Doubles &params, Doubles *gradient) {
    double sum = 0, n = static_cast<double>(p.count);
    size_t log_std = at(p.shape.actor_params + p.shape.critic_params);
    Doubles total(params.size(), 0.0);
    std::vector<Passes> passes(p.count);
    std::vector<Doubles> by_actor, by_critic; // by what the heads get
    for (size_t s = 0; s < p.count; s++) {
        Passes &now = passes[s];
        now = forward_sample(p, params, observation(p, s), s, s > 0 ? &passes[s - 1] : nullptr);
        Heads h = heads(p, s, now.actor.head.y, now.critic.head.y[0], params.data() + log_std);
        sum += h.loss;
        if (gradient == nullptr) continue;
        by_actor.push_back(backward(now.actor.head, params, h.by_actor, POLICY_TANH, &total));
        by_critic.push_back(backward(now.critic.head, params, {h.by_value}, POLICY_TANH, &total));
        for (size_t k = 0; p.shape.is_shared && k < by_actor[s].size(); k++)
            by_actor[s][k] += by_critic[s][k];
        for (size_t k = 0; k < h.by_log_std.size(); k++)
            total[log_std + k] += h.by_log_std[k];
    }
    if (gradient == nullptr) return sum / n;
    std::vector<const Pass *> of_actor, of_critic;
    for (const Passes &both : passes)
        of_actor.push_back(&both.actor), of_critic.push_back(&both.critic);
    backward_network(p, params, of_actor, by_actor, &total);
    if (!p.shape.is_shared) backward_network(p, params, of_critic, by_critic, &total);
    for (double &x : total)
        x /= n;
    *gradient = total;
    return sum / n;
}

Problem make_problem(const Case &c, std::mt19937_64 *random, size_t count) {
    Problem p;
    std::normal_distribution<float> normal;
    auto draw = [&] { return normal(*random); };
    p.sim.obs = 5;
    for (size_t k = 0; k < c.choices.size(); k++)
        p.sim.choices[k] = c.choices[k], p.sim.discrete += c.choices[k];
    p.sim.continuous = c.continuous;
    EXPECT_EQ(ppo_shape(&p.shape, &p.sim, c.hidden.data(), static_cast<int>(c.hidden.size()), c.recurrent, c.activation,
                        c.shared),
              STATUS_OK);
    p.step.clip = 0.2f;
    p.step.entropy_weight = c.entropy_weight;
    p.step.value_weight = c.value_weight;
    p.step.clip_value = c.clip_value;
    p.count = count;
    for (int32_t i = 0; i < p.shape.params; i++)
        p.params.push_back(0.4f * draw());
    p.steps = c.recurrent > 0 ? count / 3 : 1; // three envs
    for (size_t i = 0; i < count / p.steps * at(ppo_recurrent_state(&p.shape)); i++)
        p.state.push_back(0.5f * draw());
    Doubles params(p.params.begin(), p.params.end());
    Passes last, now;
    for (size_t s = 0; s < count; s++) {
        p.ended.push_back((*random)() % 7 == 0 ? PPO_TERMINATED + static_cast<int32_t>((*random)() % 2) : 0);
        Doubles obs(at(p.sim.obs));
        // Finite differences must not step over the edge of a relu.
        for (double nearest = 0; nearest < 1e-4;) {
            for (double &x : obs)
                x = static_cast<double>(draw());
            now = forward_sample(p, params, obs, s, &last);
            nearest = std::min(now.actor.nearest_kink(), now.critic.nearest_kink());
        }
        last = now;
        for (double x : obs)
            p.obs.push_back(static_cast<float>(x));
        const Doubles &y = now.actor.head.y;
        PpoLikelihood likelihood = {0, 0};
        size_t from = 0;
        for (int choices : c.choices) {
            Doubles prob(at(choices)), log_prob(at(choices));
            ppo_categorical(y.data() + from, 1, choices, prob.data(), log_prob.data());
            p.action.push_back(static_cast<uint32_t>((*random)() % at(choices)));
            likelihood.log_prob += log_prob[p.action.back()];
            from += at(choices);
        }
        for (size_t k = 0; k < at(c.continuous); k++) {
            float action = static_cast<float>(y[from + k]) + draw();
            p.action.push_back(sim_bits_from_float(action));
            double log_std = params[at(p.shape.actor_params + p.shape.critic_params) + k];
            likelihood = ppo_gaussian_add(likelihood, y[from + k], log_std, static_cast<double>(action));
        }
        p.log_prob.push_back(static_cast<float>(likelihood.log_prob) + c.apart * draw());
        p.value.push_back(static_cast<float>(now.critic.head.y[0]) + c.apart * draw());
        p.advantage.push_back(c.policy ? draw() : 0.0f);
        p.target.push_back(draw());
    }
    return p;
}

std::vector<Case> cases() {
    const std::vector<int32_t> wide = {20, 37}, mixed = {7, 70}, none = {};
    std::vector<Case> all;
    struct Kind {
        const char *name;
        std::vector<int> choices;
        int continuous;
    };
    for (const Kind &kind : std::vector<Kind>{{"categorical", {4}, 0},
                                              {"Gaussian", {}, 3},
                                              {"categoricals", {3, 2, 4}, 0},
                                              {"wide head", {8, 8}, 0}, // POLICY_OUTPUTS_MAX
                                              {"mixed", {2, 3}, 2}}) {
        for (bool shared : {true, false}) {
            for (PolicyActivation activation : {POLICY_TANH, POLICY_RELU}) {
                bool is_one = kind.choices.size() + (kind.continuous > 0) == 1; // else half of the combinations
                if (!is_one && shared != (activation == POLICY_TANH)) continue;
                std::string name =
                    std::string(kind.name) + (shared ? ", shared" : ", separate") + (activation ? ", relu" : ", tanh");
                auto add = [&](const char *what, const std::vector<int32_t> &hidden, float entropy, float value,
                               bool policy, bool clip_value, float apart) {
                    all.push_back({name + ": " + what, kind.choices, kind.continuous, shared, activation, hidden,
                                   entropy, value, policy, clip_value, apart});
                };
                add("policy, no clip", wide, 0.0f, 0.0f, true, false, 0.01f);
                add("policy, clip", wide, 0.0f, 0.0f, true, false, 0.5f);
                add("value", wide, 0.0f, 0.7f, false, false, 0.5f);
                add("value, clip", wide, 0.0f, 0.7f, false, true, 0.5f);
                add("entropy", wide, 0.3f, 0.0f, false, false, 0.5f);
                add("all", wide, 0.1f, 0.5f, true, false, 0.01f);
                add("all, clip, narrow layer", mixed, 0.1f, 0.5f, true, true, 0.3f);
                add("all, no hidden layer", none, 0.1f, 0.5f, true, true, 0.3f);
                size_t first_recurrent = all.size();
                add("recurrent, policy, clip", {20}, 0.0f, 0.0f, true, false, 0.5f);
                add("recurrent, value", {20}, 0.0f, 0.7f, false, false, 0.5f);
                add("recurrent, all", {20}, 0.1f, 0.5f, true, false, 0.01f);
                add("recurrent, all, clip, narrow layer", mixed, 0.1f, 0.5f, true, true, 0.3f);
                add("recurrent, all, no hidden layer", none, 0.1f, 0.5f, true, true, 0.3f);
                for (size_t i = first_recurrent; i < all.size(); i++)
                    all[i].recurrent = i % 2 == 0 ? 6 : 21;
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
    for (Case c : cases()) {
        size_t apart = 4;   // of the parameters that are looked at, from a random one on: the time is quadratic in them
        if (is_sanitized) { // numbers are the release build's affair
            for (int32_t &width : c.hidden)
                width = std::min(width, 8);
            apart = 7;
        }
        const size_t first = random() % apart;
        Problem p = make_problem(c, &random, 12);
        Doubles params(p.params.begin(), p.params.end()), gradient, differences;
        loss(p, params, &gradient);
        for (size_t k = 0; k < params.size(); k++) {
            if (k % apart != first) {
                differences.push_back(gradient[k]);
                continue;
            }
            double kept = params[k], h = 2e-6;
            params[k] = kept + h;
            double above = loss(p, params, nullptr);
            params[k] = kept - h;
            double below = loss(p, params, nullptr);
            params[k] = kept;
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
    ppo_net_make(&net, &p->shape, static_cast<int32_t>(p->steps));
    Aligned packed(net.packed), scratch_memory(net.rows + net.gradient), gradient(net.gradient);
    ppo_net_pack(&net, p->params.data(), packed.data);
    PpoScratch scratch;
    ppo_net_carve(&net, scratch_memory.data, &scratch);
    Aligned state(static_cast<int64_t>(p->count / p->steps) * net.state_pad);
    const float *from = p->state.data();
    for (size_t env = 0; net.network.states > 0 && env < p->count / p->steps; env++) {
        float *to = state.data + env * at(net.state_pad);
        for (int32_t i = 0; i < net.network.states; i++, to += net.layer[net.network.state[0]].out_pad)
            std::copy_n(from, p->shape.actor.recurrent, to), from += p->shape.actor.recurrent;
    }
    PpoSamples samples = {p->obs.data(),       p->action.data(), p->log_prob.data(), p->value.data(),
                          p->advantage.data(), p->target.data(), p->ended.data(),    state.data};
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
    part.steps = static_cast<int32_t>(p->steps);
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
