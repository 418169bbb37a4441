#include "kernels/cpu/ppo_net.h"

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/policy_math.h"

_Alignas(64) const float gemm_zeros[POLICY_WIDTH_MAX] = {0};

static void add_dense(PpoNet *net, PpoLayer *layer) {
    int32_t in = layer->node.in, out = layer->node.out;
    layer->weights = net->packed;
    layer->gradient = net->gradient;
    if (layer->is_narrow) {
        net->packed += out * layer->in_pad + 16;
        net->gradient += out * layer->in_pad + 16;
    } else {
        layer->transposed = net->packed + (in + 1) * layer->out_pad;
        net->packed = layer->transposed + out * layer->in_pad;
        net->gradient += (in + 1) * layer->out_pad;
    }
}

static void add_layer(PpoNet *net, PpoLayer *layer, PpoNode node) {
    *layer = (PpoLayer){.node = node,
                        .in_pad = cpu_round_up(node.in, 16),
                        .out_pad = cpu_round_up(node.out, 16),
                        .is_narrow = node.out < POLICY_NARROW};
    net->rows += 2 * net->block_rows * layer->out_pad;
    if (layer->node.kind != POLICY_STATE) {
        add_dense(net, layer);
    } else {
        net->rows += net->block_rows * layer->out_pad;
        net->state_pad += layer->out_pad;
    }
}

void ppo_net_make(PpoNet *net, const PpoShape *shape, int32_t steps) {
    bool is_recurrent = shape->actor.recurrent > 0;
    memset(net, 0, sizeof *net);
    net->shape = *shape;
    net->outputs = shape->actor.size[shape->actor.layers];
    net->actions = shape->actor.discrete + shape->actor.continuous;
    net->block_rows = is_recurrent && steps > PPO_ROWS ? steps : PPO_ROWS;
    net->chunk = is_recurrent ? steps : PPO_CHUNK;
    net->rows = net->block_rows * cpu_round_up(shape->actor.size[0], 16);
    ppo_network(shape, &net->network);
    for (int32_t i = 0; i < net->network.layers; i++)
        add_layer(net, &net->layer[i], net->network.layer[i]);
    net->log_std = net->gradient;
    net->gradient = (net->gradient + cpu_round_up(shape->log_std_params, 16) + PPO_TILE - 1) / PPO_TILE * PPO_TILE;
}

// Biases stay as they are.
static void round_weights(const PpoLayer *layer, float *packed) {
    int32_t count = layer->is_narrow ? layer->node.out * layer->in_pad : layer->node.in * layer->out_pad;
    for (int32_t i = 0; i < count; i++)
        packed[layer->weights + i] = policy_bf16(packed[layer->weights + i]);
    for (int32_t i = 0; !layer->is_narrow && i < layer->node.out * layer->in_pad; i++)
        packed[layer->transposed + i] = policy_bf16(packed[layer->transposed + i]);
}

static void copy_row(float *to, const float *from, int32_t count) { memcpy(to, from, (size_t)count * sizeof *to); }

// [rows][cols] -> [ceil(cols_pad / 64)][rows][64, fewer in the last]
static void pack_panels(const float *from, int32_t rows, int32_t cols, int32_t cols_pad, float *to) {
    for (int32_t col = 0; col < cols; col += 64) {
        int32_t width = cols_pad - col < 64 ? cols_pad - col : 64, filled = cols - col < width ? cols - col : width;
        for (int32_t row = 0; row < rows; row++)
            copy_row(to + col * rows + row * width, from + row * cols + col, filled);
    }
}

static void pack_transposed(const PpoLayer *layer, const float *from, float *to) {
    for (int32_t col = 0; col < layer->node.in; col += 64) {
        int32_t width = layer->in_pad - col < 64 ? layer->in_pad - col : 64;
        for (int32_t o = 0; o < layer->node.out; o++) {
            for (int32_t k = 0; k < width && col + k < layer->node.in; k++)
                to[col * layer->node.out + o * width + k] = from[(col + k) * layer->node.out + o];
        }
    }
}

void ppo_net_pack(const PpoNet *net, const float *params, float *packed) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        if (layer->node.kind == POLICY_STATE) continue;
        const float *from = params + layer->node.params, *biases = from + layer->node.in * layer->node.out;
        float *to = packed + layer->weights;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->node.in; k++) {
                for (int32_t o = 0; o < layer->node.out; o++)
                    to[o * layer->in_pad + k] = from[k * layer->node.out + o];
            }
            copy_row(to + layer->node.out * layer->in_pad, biases, layer->node.out);
        } else {
            pack_panels(from, layer->node.in, layer->node.out, layer->out_pad, to);
            copy_row(to + layer->node.in * layer->out_pad, biases, layer->node.out);
            pack_transposed(layer, from, packed + layer->transposed);
        }
        if (policy_rounds(net->shape.actor.precision, layer->node.kind)) round_weights(layer, packed);
    }
}

void ppo_net_unpack(const PpoNet *net, const float *gradient, float *flat) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        if (layer->node.kind == POLICY_STATE) continue;
        const float *from = gradient + layer->gradient;
        float *to = flat + layer->node.params;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->node.in; k++) {
                for (int32_t o = 0; o < layer->node.out; o++)
                    to[k * layer->node.out + o] = from[o * layer->in_pad + k];
            }
            copy_row(to + layer->node.in * layer->node.out, from + layer->node.out * layer->in_pad, layer->node.out);
        } else {
            for (int32_t k = 0; k <= layer->node.in; k++)
                copy_row(to + k * layer->node.out, from + k * layer->out_pad, layer->node.out);
        }
    }
    int32_t count = net->shape.log_std_params;
    copy_row(flat + net->shape.params - count, gradient + net->log_std, count);
}

void ppo_net_carve(const PpoNet *net, float *memory, PpoScratch *scratch) {
    int32_t rows = net->block_rows;
    scratch->input = memory;
    memory += rows * net->layer[0].in_pad;
    for (int32_t i = 0; i < net->network.layers; i++) {
        scratch->output[i] = memory;
        scratch->delta[i] = memory + rows * net->layer[i].out_pad;
        memory += 2 * rows * net->layer[i].out_pad;
    }
    for (int32_t k = 0; k < net->network.states; k++) {
        scratch->before[k] = memory;
        memory += rows * net->layer[net->network.state[k]].out_pad;
    }
    scratch->chunk = memory;
}
