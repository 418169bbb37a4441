// The policy's reference implementation against plain double arithmetic, its shapes, its initialisation and its
// actions.
#include "kernel_reference.h"

namespace {

std::vector<double> forward_double(const PolicyShape &shape, const std::vector<float> &params,
                                   const std::vector<float> &obs) {
    std::vector<double> x(obs.begin(), obs.end());
    const float *w = params.data();
    for (int layer = 0; layer < shape.layers; layer++) {
        size_t in = static_cast<size_t>(shape.size[layer]), out = static_cast<size_t>(shape.size[layer + 1]);
        std::vector<double> y(out);
        for (size_t o = 0; o < out; o++) {
            y[o] = static_cast<double>(w[in * out + o]);
            for (size_t i = 0; i < in; i++)
                y[o] += static_cast<double>(w[i * out + o]) * x[i];
            if (layer + 1 == shape.layers) continue;
            y[o] = shape.activation == POLICY_TANH ? std::tanh(y[o]) : std::max(y[o], 0.0);
        }
        w += (in + 1) * out;
        x = y;
    }
    return x;
}

const std::vector<std::vector<int32_t>> hidden_shapes = {{},       {1},       {8},         {15},        {16},
                                                         {17},     {33},      {16, 16},    {100, 20},   {64, 64},
                                                         {7, 200}, {3, 3, 3}, {20, 5, 40}, {1024, 2, 9}};

TEST(Policy, ForwardMatchesDouble) {
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<float> normal;
    for (int s = 0; s < sim_spec_count(); s++) {
        for (const auto &hidden : hidden_shapes) {
            for (PolicyActivation activation : {POLICY_TANH, POLICY_RELU}) {
                PolicyShape shape;
                ASSERT_STATUS(
                    policy_shape(&shape, sim_spec_at(s), hidden.data(), static_cast<int>(hidden.size()), activation));
                std::vector<float> params(static_cast<size_t>(shape.params)), obs(static_cast<size_t>(shape.size[0]));
                for (int layer = 0; layer < shape.layers; layer++) {
                    float deviation = 1.0f / std::sqrt(static_cast<float>(shape.size[layer]));
                    for (int32_t i = policy_layer_offset(&shape, layer); i < policy_layer_offset(&shape, layer + 1);
                         i++)
                        params[static_cast<size_t>(i)] = deviation * normal(random);
                }
                for (float &x : obs)
                    x = normal(random);
                float outputs[POLICY_OUTPUTS_MAX];
                policy_forward(&shape, params.data(), obs.data(), nullptr, outputs);
                std::vector<double> want = forward_double(shape, params, obs);
                for (size_t k = 0; k < want.size(); k++) {
                    // Measured: up to 3e-6 with 1,024 units.
                    EXPECT_NEAR(static_cast<double>(outputs[k]), want[k], 1e-5 * std::max(1.0, std::fabs(want[k])))
                        << sim_spec_at(s)->name << ", " << hidden.size() << " hidden, output " << k;
                }
            }
        }
    }
}

// Some steps of a recurrent policy against the formulas of kernels/policy.h.
TEST(Policy, RecurrentForwardMatchesDouble) {
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<float> normal;
    for (const auto &hidden : std::vector<std::vector<int32_t>>{{}, {6}, {20, 33}}) {
        for (int32_t units : {1, 5, 16, 40}) {
            PolicyShape shape, below, head = {};
            int count = static_cast<int>(hidden.size());
            ASSERT_STATUS(policy_shape(&shape, sim_spec_find("acrobot"), hidden.data(), count, POLICY_TANH));
            below = shape; // the hidden layers with gate and candidate as outputs, which have no activation there
            ASSERT_STATUS(policy_set_recurrent(&shape, units));
            below.size[below.layers] = units;
            head.layers = 1, head.size[0] = units, head.size[1] = 3;
            std::vector<float> params(static_cast<size_t>(shape.params)), state(static_cast<size_t>(units)), obs(6);
            for (float &x : params)
                x = 0.3f * normal(random);
            int32_t gate = policy_layer_offset(&shape, count), candidate = policy_layer_offset(&shape, count + 1);
            int32_t outputs = policy_layer_offset(&shape, count + 2);
            auto part = [&](int32_t from, int32_t to) {
                return std::vector<float>(params.begin() + from, params.begin() + to);
            };
            std::vector<float> of_gate = part(0, candidate), of_candidate = part(0, gate);
            for (float x : part(candidate, outputs))
                of_candidate.push_back(x);
            std::vector<double> h(static_cast<size_t>(units), 0.0);
            for (int step = 0; step < 5; step++) {
                for (float &x : obs)
                    x = normal(random);
                std::vector<double> z = forward_double(below, of_gate, obs),
                                    c = forward_double(below, of_candidate, obs);
                for (size_t k = 0; k < h.size(); k++) {
                    double open = 1 / (1 + std::exp(-z[k]));
                    h[k] = (1 - open) * h[k] + open * std::tanh(c[k]);
                }
                float got[3];
                policy_forward(&shape, params.data(), obs.data(), state.data(), got);
                std::vector<double> want =
                    forward_double(head, part(outputs, shape.params), std::vector<float>(state.begin(), state.end()));
                for (size_t k = 0; k < h.size(); k++)
                    EXPECT_NEAR(static_cast<double>(state[k]), h[k], 1e-5) << units << " units, step " << step;
                for (size_t k = 0; k < 3; k++)
                    EXPECT_NEAR(static_cast<double>(got[k]), want[k], 1e-5) << units << " units, step " << step;
            }
        }
    }
}

// The order that kernels/policy.h defines, on sums where another order gives other bits.
TEST(Policy, OrderOfSums) {
    SimSpec sim = *sim_spec_find("cartpole");
    sim.obs = 40;
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<float> normal;
    for (int outputs : {1, 3, 15, 16}) {
        sim.discrete = outputs;
        PolicyShape shape;
        ASSERT_STATUS(policy_shape(&shape, &sim, nullptr, 0, POLICY_TANH));
        std::vector<float> params(static_cast<size_t>(shape.params)), obs(40);
        for (float &x : params)
            x = normal(random) * 100.0f;
        for (float &x : obs)
            x = normal(random);
        float got[POLICY_OUTPUTS_MAX];
        policy_forward(&shape, params.data(), obs.data(), nullptr, got);
        for (int o = 0; o < outputs; o++) {
            auto weight = [&](int i) { return params[static_cast<size_t>(i * outputs + o)]; };
            float want = weight(40); // the bias
            if (outputs >= 16) {
                for (int i = 0; i < 40; i++)
                    want = std::fma(weight(i), obs[static_cast<size_t>(i)], want);
            } else {
                float p[16];
                for (int k = 0; k < 16; k++) {
                    p[k] = 0.0f;
                    for (int i = k; i < 40; i += 16)
                        p[k] = std::fma(weight(i), obs[static_cast<size_t>(i)], p[k]);
                }
                float sum = (((p[0] + p[8]) + (p[4] + p[12])) + ((p[2] + p[10]) + (p[6] + p[14]))) +
                            (((p[1] + p[9]) + (p[5] + p[13])) + ((p[3] + p[11]) + (p[7] + p[15])));
                want = sum + want;
            }
            EXPECT_EQ(bits_of(got[o]), bits_of(want)) << outputs << " outputs, output " << o;
        }
    }
}

TEST(Policy, ShapeOfEachSimulator) {
    const int32_t hidden[] = {64, 32};
    for (int s = 0; s < sim_spec_count(); s++) {
        const SimSpec *sim = sim_spec_at(s);
        PolicyShape shape;
        ASSERT_STATUS(policy_shape(&shape, sim, hidden, 2, POLICY_RELU));
        int outputs = sim->discrete + sim->continuous, choices = 0;
        EXPECT_EQ(shape.layers, 3);
        EXPECT_EQ(shape.size[0], sim->obs);
        EXPECT_EQ(shape.size[1], 64);
        EXPECT_EQ(shape.size[2], 32);
        EXPECT_EQ(shape.size[3], outputs);
        EXPECT_EQ(shape.params, sim->obs * 64 + 64 + 64 * 32 + 32 + 32 * outputs + outputs);
        EXPECT_EQ(policy_layer_offset(&shape, 1), sim->obs * 64 + 64);
        for (int k = 0; k < shape.discrete; k++) {
            EXPECT_EQ(shape.choices[k], sim->choices[k]);
            choices += shape.choices[k];
        }
        EXPECT_EQ(choices, sim->discrete);
        EXPECT_EQ(shape.action_low, sim->action_low);
        EXPECT_EQ(shape.action_high, sim->action_high);
        EXPECT_EQ(shape.activation, POLICY_RELU);
    }
}

TEST(Policy, ShapeErrors) {
    const SimSpec *sim = sim_spec_find("cartpole");
    PolicyShape shape;
    int32_t hidden[9] = {8, 8, 8, 8, 8, 8, 8, 8, 8};
    EXPECT_STATUS(policy_shape(&shape, sim, hidden, 8, POLICY_TANH));
    EXPECT_EQ(policy_shape(&shape, sim, hidden, 9, POLICY_TANH), STATUS_USAGE);
    EXPECT_NE(std::string(host_message()).find("9 hidden layers"), std::string::npos) << host_message();
    for (int32_t bad : {0, -1, 1025, INT32_MAX, INT32_MIN}) {
        hidden[1] = bad;
        EXPECT_EQ(policy_shape(&shape, sim, hidden, 2, POLICY_TANH), STATUS_USAGE) << bad;
        EXPECT_NE(std::string(host_message()).find(std::to_string(bad)), std::string::npos) << host_message();
    }
    hidden[1] = POLICY_WIDTH_MAX;
    EXPECT_STATUS(policy_shape(&shape, sim, hidden, 2, POLICY_TANH));
    for (int32_t bad : {-1, POLICY_WIDTH_MAX + 1, INT32_MAX, INT32_MIN}) {
        EXPECT_EQ(policy_set_recurrent(&shape, bad), STATUS_USAGE) << bad;
        EXPECT_NE(std::string(host_message()).find(std::to_string(bad)), std::string::npos) << host_message();
    }
    EXPECT_STATUS(policy_set_recurrent(&shape, POLICY_WIDTH_MAX));
}

TEST(Policy, InitialParameters) {
    const SimSpec *sim = sim_spec_find("acrobot");
    const int32_t hidden[] = {256, 128};
    PolicyShape shape;
    ASSERT_STATUS(policy_shape(&shape, sim, hidden, 2, POLICY_TANH));
    std::vector<float> params(static_cast<size_t>(shape.params)), again(params), other(params);
    uint64_t seed = fresh_seed();
    policy_init(&shape, seed, params.data());
    policy_init(&shape, seed, again.data());
    policy_init(&shape, seed ^ (1ull << 40), other.data());
    EXPECT_EQ(params, again);
    EXPECT_NE(params, other) << "the seed's high word counts";
    for (int layer = 0; layer < shape.layers; layer++) {
        int in = shape.size[layer], out = shape.size[layer + 1], first = policy_layer_offset(&shape, layer);
        double sum = 0, square = 0, n = in * out;
        double deviation = (layer == 2 ? 0.01 : 1.0) / std::sqrt(in);
        for (int i = 0; i < in * out; i++) {
            double x = static_cast<double>(params[static_cast<size_t>(first + i)]) / deviation;
            sum += x;
            square += x * x;
        }
        // Five standard errors of a mean and of a variance.
        EXPECT_NEAR(sum / n, 0.0, 5 / std::sqrt(n)) << "layer " << layer;
        EXPECT_NEAR(square / n, 1.0, 5 * std::sqrt(2 / n)) << "layer " << layer;
        for (int i = in * out; i < (in + 1) * out; i++)
            EXPECT_EQ(bits_of(params[static_cast<size_t>(first + i)]), 0u) << "layer " << layer << ", a bias";
    }
}

TEST(Policy, InitialGatesForgetAtManyRates) {
    PolicyShape shape;
    ASSERT_STATUS(policy_shape(&shape, sim_spec_find("cartpole"), nullptr, 0, POLICY_TANH));
    ASSERT_STATUS(policy_set_recurrent(&shape, 12));
    std::vector<float> params(static_cast<size_t>(shape.params));
    policy_init(&shape, 1, params.data());
    size_t biases = 4 * 12;
    for (size_t k = 0; k < 12; k++) {
        EXPECT_FLOAT_EQ(params[biases + k], 1.75f - 0.5f * static_cast<float>(k));
        EXPECT_EQ(params[2 * biases + 12 + k], 0.0f) << "a candidate's";
    }
    char text[POLICY_TEXT_MAX];
    EXPECT_STREQ(policy_text(&shape, sim_spec_find("cartpole"), text), "cartpole 4-r12-2 tanh");
    shape.precision = POLICY_BF16;
    EXPECT_STREQ(policy_text(&shape, sim_spec_find("cartpole"), text), "cartpole 4-r12-2 tanh bf16");
}

TEST(Policy, Bf16IsTheNearest) {
    std::mt19937_64 random(fresh_seed());
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = static_cast<uint32_t>(random());
        if (i % 2 == 0) bits = (bits & 0xffff0000u) | 0x8000u; // halfway
        float x = float_of(bits), got = policy_bf16(x);
        ASSERT_TRUE(same_bits(got, ref_bf16(x))) << std::hexfloat << x << " became " << got;
    }
    for (uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7f800001u}) // what is rounded up must not become infinite or 0
        EXPECT_TRUE(std::isnan(policy_bf16(float_of(bits)))) << std::hex << bits;
    EXPECT_EQ(policy_bf16(3.4e38f), INFINITY);
    EXPECT_EQ(bits_of(policy_bf16(-0.0f)), 0x80000000u);
    EXPECT_EQ(policy_bf16(1.00390625f), 1.0f) << "halfway, to the even one";
    EXPECT_EQ(policy_bf16(1.01171875f), 1.015625f);
}

// Layer by layer, each as a policy of its own whose weights and inputs are rounded beforehand; the last is not.
TEST(Policy, ForwardInBf16) {
    std::mt19937_64 random(fresh_seed());
    std::normal_distribution<float> normal;
    PolicyShape shape;
    const int32_t hidden[] = {20, 7};
    ASSERT_STATUS(policy_shape(&shape, sim_spec_find("acrobot"), hidden, 2, POLICY_TANH));
    shape.precision = POLICY_BF16;
    std::vector<float> params(static_cast<size_t>(shape.params)), x(6);
    for (float &p : params)
        p = normal(random);
    for (float &k : x)
        k = normal(random);
    float got[3];
    policy_forward(&shape, params.data(), x.data(), nullptr, got);
    std::transform(x.begin(), x.end(), x.begin(), ref_bf16);
    for (int layer = 0; layer < 3; layer++) {
        PolicyShape one = {};
        one.layers = 1, one.size[0] = shape.size[layer], one.size[1] = shape.size[layer + 1];
        auto from = params.begin() + policy_layer_offset(&shape, layer);
        std::vector<float> of_layer(from, from + (one.size[0] + 1) * one.size[1]), y(static_cast<size_t>(one.size[1]));
        auto biases = of_layer.end() - one.size[1];
        if (layer < 2) std::transform(of_layer.begin(), biases, of_layer.begin(), ref_bf16);
        policy_forward(&one, of_layer.data(), x.data(), nullptr, y.data());
        for (float &k : y)
            k = layer < 2 ? ref_bf16(sim_tanhf(k)) : k;
        x = y;
    }
    for (size_t k = 0; k < 3; k++)
        EXPECT_EQ(bits_of(got[k]), bits_of(x[k]));
    shape.precision = POLICY_FLOAT32;
    float other[3];
    policy_forward(&shape, params.data(), x.data(), nullptr, other);
    EXPECT_NE(bits_of(got[0]), bits_of(other[0]));
}

TEST(Policy, ArgmaxTakesTheFirstOfEquals) {
    const float nan = std::nanf(""), inf = INFINITY;
    auto best = [](std::vector<float> x) { return policy_argmax(x.data(), static_cast<int>(x.size())); };
    EXPECT_EQ(best({3}), 0);
    EXPECT_EQ(best({1, 2, 3}), 2);
    EXPECT_EQ(best({1, 3, 3}), 1);
    EXPECT_EQ(best({2, 2, 2}), 0);
    EXPECT_EQ(best({0.0f, -0.0f}), 0);
    EXPECT_EQ(best({-0.0f, 0.0f}), 0);
    EXPECT_EQ(best({-inf, -inf}), 0);
    EXPECT_EQ(best({-inf, 0, inf, inf}), 2);
    EXPECT_EQ(best({1, nan, 2}), 2) << "a NaN is never larger";
    EXPECT_EQ(best({2, nan, 1}), 0);
    EXPECT_EQ(best({nan, nan, nan}), 0);
    EXPECT_EQ(best({nan, 5, 6}), 0) << "nothing is larger than a NaN";
}

TEST(Policy, ActionsAndInputsStayInBounds) {
    for (float y : {-INFINITY, -1e9f, -1.0f, -0.1f, 0.0f, 0.3f, 2.0f, 1e9f, INFINITY}) {
        float a = policy_bounded(y, -2.0f, 3.0f);
        EXPECT_GE(a, -2.0f);
        EXPECT_LE(a, 3.0f);
        EXPECT_NEAR(static_cast<double>(a), 0.5 + 2.5 * std::tanh(static_cast<double>(y)), 2e-6);
    }
    EXPECT_TRUE(std::isnan(policy_bounded(std::nanf(""), -2.0f, 3.0f)));

    EXPECT_EQ(policy_normalize(4.0f, 1.0f, 0.5f), 1.5f);
    EXPECT_EQ(policy_normalize(1e30f, 1.0f, 0.5f), POLICY_CLIP);
    EXPECT_EQ(policy_normalize(-1e30f, 1.0f, 0.5f), -POLICY_CLIP);
    EXPECT_TRUE(std::isnan(policy_normalize(std::nanf(""), 1.0f, 0.5f)));

    EXPECT_EQ(bits_of(policy_activate(-3.0f, POLICY_RELU)), 0u);
    EXPECT_EQ(policy_activate(3.0f, POLICY_RELU), 3.0f);
    EXPECT_NEAR(policy_activate(0.5f, POLICY_TANH), 0.46211716f, 1e-7f);
}

} // namespace
