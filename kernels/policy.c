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
    shape->size[shape->layers] = sim->discrete > 0 ? sim->discrete : sim->continuous;
    shape->activation = activation;
    shape->discrete = sim->discrete > 0;
    shape->action_low = sim->action_low;
    shape->action_high = sim->action_high;
    shape->params = policy_layer_offset(shape, shape->layers);
    return STATUS_OK;
}

int32_t policy_layer_offset(const PolicyShape *shape, int layer) {
    int32_t offset = 0;
    for (int i = 0; i < layer; i++)
        offset += (shape->size[i] + 1) * shape->size[i + 1];
    return offset;
}

const char *policy_text(const PolicyShape *shape, const SimSpec *sim, char text[POLICY_TEXT_MAX]) {
    int at = snprintf(text, POLICY_TEXT_MAX, "%s ", sim->name);
    for (int i = 0; i <= shape->layers; i++) {
        at += snprintf(text + at, (size_t)(POLICY_TEXT_MAX - at), "%s%d", i > 0 ? "-" : "", shape->size[i]);
    }
    snprintf(text + at, (size_t)(POLICY_TEXT_MAX - at), " %s", shape->activation == POLICY_TANH ? "tanh" : "relu");
    return text;
}

void policy_init(const PolicyShape *shape, uint64_t seed, float *params) {
    for (int layer = 0; layer < shape->layers; layer++) {
        int32_t in = shape->size[layer], out = shape->size[layer + 1];
        int32_t first = policy_layer_offset(shape, layer), weights = in * out;
        float deviation = 1.0f / sim_sqrtf((float)in) * (layer + 1 == shape->layers ? 0.01f : 1.0f);
        for (int32_t i = 0; i < weights; i++) {
            uint32_t at = (uint32_t)(first + i);
            SimWords4 w = sim_philox(at, 0, 0, SIM_RNG_INIT, (uint32_t)seed, (uint32_t)(seed >> 32));
            params[at] = deviation * sim_normal4_from(w).x0;
        }
        memset(params + first + weights, 0, (size_t)out * sizeof *params);
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

void policy_forward(const PolicyShape *shape, const float *params, const float *obs, float *outputs) {
    float buffer[2][POLICY_WIDTH_MAX];
    const float *x = obs;
    for (int layer = 0; layer < shape->layers; layer++) {
        int32_t in = shape->size[layer], out = shape->size[layer + 1];
        int last = layer + 1 == shape->layers;
        float *y = last ? outputs : buffer[layer % 2];
        for (int32_t o = 0; o < out; o++) {
            float sum = layer_output(params + policy_layer_offset(shape, layer), in, out, o, x);
            y[o] = last ? sum : policy_activate(sum, shape->activation);
        }
        x = y;
    }
}
