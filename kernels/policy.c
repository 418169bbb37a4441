#include "kernels/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/policy_math.h"
#include "sim/sim_rng.h"

Status policy_shape(PolicyShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count,
                    PolicyActivation activation) {
    memset(shape, 0, sizeof *shape);
    if (hidden_count + 1 > POLICY_LAYERS_MAX) {
        return host_fail(STATUS_USAGE, "%d hidden layers: at most %d", hidden_count, POLICY_LAYERS_MAX - 1);
    }
    shape->layers = hidden_count + 1;
    shape->size[0] = sim->obs;
    for (int i = 0; i < hidden_count; i++) {
        if (hidden[i] < 1 || hidden[i] > POLICY_WIDTH_MAX) {
            return host_fail(STATUS_USAGE, "hidden layer of %d units: 1 to %d", hidden[i], POLICY_WIDTH_MAX);
        }
        shape->size[i + 1] = hidden[i];
    }
    shape->size[shape->layers] = sim->discrete + sim->continuous;
    shape->activation = activation;
    shape->discrete = sim_spec_discrete_actions(sim);
    memcpy(shape->choices, sim->choices, (size_t)shape->discrete * sizeof *shape->choices);
    shape->continuous = sim->continuous;
    shape->action_low = sim->action_low;
    shape->action_high = sim->action_high;
    return policy_set_recurrent(shape, 0);
}

Status policy_set_recurrent(PolicyShape *shape, int32_t units) {
    if (units < 0 || units > POLICY_WIDTH_MAX) {
        return host_fail(STATUS_USAGE, "recurrent layer of %d units: 0 to %d", units, POLICY_WIDTH_MAX);
    }
    shape->recurrent = units;
    PolicyLayer layers[POLICY_DENSE_MAX];
    const PolicyLayer *head = &layers[policy_layers(shape, layers) - 1];
    shape->params = head->params + (head->in + 1) * head->out;
    return STATUS_OK;
}

int policy_layers(const PolicyShape *shape, PolicyLayer layers[POLICY_DENSE_MAX]) {
    int count = 0, hidden = shape->layers - 1;
    for (int i = 0; i < hidden; i++)
        layers[count++] = (PolicyLayer){.kind = POLICY_HIDDEN, .in = shape->size[i], .out = shape->size[i + 1]};
    int32_t in = shape->size[hidden], units = shape->recurrent;
    if (units > 0) {
        layers[count++] = (PolicyLayer){.kind = POLICY_GATE, .in = in, .out = units};
        layers[count++] = (PolicyLayer){.kind = POLICY_CANDIDATE, .in = in, .out = units};
        in = units;
    }
    layers[count++] = (PolicyLayer){.kind = POLICY_HEAD, .in = in, .out = shape->size[shape->layers]};
    for (int i = 1; i < count; i++)
        layers[i].params = layers[i - 1].params + (layers[i - 1].in + 1) * layers[i - 1].out;
    return count;
}

int32_t policy_layer_offset(const PolicyShape *shape, int layer) {
    PolicyLayer layers[POLICY_DENSE_MAX];
    return layer < policy_layers(shape, layers) ? layers[layer].params : shape->params;
}

const char *policy_text(const PolicyShape *shape, const SimSpec *sim, char text[POLICY_TEXT_MAX]) {
    int at = snprintf(text, POLICY_TEXT_MAX, "%s ", sim->name);
    for (int i = 0; i <= shape->layers; i++) {
        if (i == shape->layers && shape->recurrent > 0) {
            at += snprintf(text + at, (size_t)(POLICY_TEXT_MAX - at), "-r%d", shape->recurrent);
        }
        at += snprintf(text + at, (size_t)(POLICY_TEXT_MAX - at), "%s%d", i > 0 ? "-" : "", shape->size[i]);
    }
    snprintf(text + at, (size_t)(POLICY_TEXT_MAX - at), " %s", shape->activation == POLICY_TANH ? "tanh" : "relu");
    return text;
}

float policy_gate_bias(int32_t unit, int32_t units) { return 2.0f - 6.0f * ((float)unit + 0.5f) / (float)units; }

void policy_init(const PolicyShape *shape, uint64_t seed, float *params) {
    PolicyLayer layers[POLICY_DENSE_MAX];
    int count = policy_layers(shape, layers);
    for (int layer = 0; layer < count; layer++) {
        int32_t in = layers[layer].in, out = layers[layer].out, first = layers[layer].params, weights = in * out;
        float deviation = 1.0f / sim_sqrtf((float)in) * (layers[layer].kind == POLICY_HEAD ? 0.01f : 1.0f);
        for (int32_t i = 0; i < weights; i++) {
            uint32_t at = (uint32_t)(first + i);
            SimWords4 w = sim_philox(at, 0, 0, SIM_RNG_INIT, (uint32_t)seed, (uint32_t)(seed >> 32));
            params[at] = deviation * sim_normal4_from(w).x0;
        }
        for (int32_t o = 0; o < out; o++)
            params[first + weights + o] = layers[layer].kind == POLICY_GATE ? policy_gate_bias(o, out) : 0.0f;
    }
}

static float layer_output(const float *weights, int32_t in, int32_t out, int32_t o, const float *x) {
    const float *bias = weights + in * out;
    if (out >= POLICY_NARROW) {
        float sum = bias[o];
        for (int32_t i = 0; i < in; i++)
            sum = sim_fmaf(weights[i * out + o], x[i], sum);
        return sum;
    }
    float partial[16] = {0};
    for (int32_t i = 0; i < in; i++)
        partial[i % 16] = sim_fmaf(weights[i * out + o], x[i], partial[i % 16]);
    for (int half = 8; half > 0; half /= 2) {
        for (int k = 0; k < half; k++)
            partial[k] = partial[k] + partial[k + half];
    }
    return partial[0] + bias[o];
}

static void layer_outputs(const PolicyLayer *layer, const PolicyShape *shape, const float *params, const float *x,
                          float *y) {
    for (int32_t o = 0; o < layer->out; o++) {
        float sum = layer_output(params + layer->params, layer->in, layer->out, o, x);
        y[o] = policy_finish(sum, layer->kind, shape->activation);
    }
}

void policy_forward(const PolicyShape *shape, const float *params, const float *obs, float *state, float *outputs) {
    float buffer[2][POLICY_WIDTH_MAX], gate[POLICY_WIDTH_MAX] = {0.0f}, candidate[POLICY_WIDTH_MAX];
    const float *x = obs;
    PolicyLayer layers[POLICY_DENSE_MAX];
    int count = policy_layers(shape, layers);
    for (int i = 0; i < count; i++) {
        const PolicyLayer *layer = &layers[i];
        float *y = layer->kind == POLICY_GATE        ? gate
                   : layer->kind == POLICY_CANDIDATE ? candidate
                   : layer->kind == POLICY_HEAD      ? outputs
                                                     : buffer[i % 2];
        layer_outputs(layer, shape, params, x, y);
        if (layer->kind == POLICY_HIDDEN) x = y;
        if (layer->kind != POLICY_CANDIDATE) continue;
        for (int32_t o = 0; o < layer->out; o++)
            state[o] = policy_state(gate[o], candidate[o], state[o]);
        x = state;
    }
}
