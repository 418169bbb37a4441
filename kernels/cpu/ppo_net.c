#include "kernels/cpu/ppo_net.h"

#include <string.h>

#include "kernels/cpu/gemm.h"

_Alignas(64) const float gemm_zeros[POLICY_WIDTH_MAX] = {0};

static int32_t pad16(int32_t x) { return (x + 15) / 16 * 16; }

static void add_layer(PpoNet *net, PpoLayer *layer, PpoDense dense) {
    int32_t in = dense.in, out = dense.out;
    *layer = (PpoLayer){.dense = dense, .in_pad = pad16(in), .out_pad = pad16(out), .is_narrow = out < POLICY_NARROW};
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
    net->rows += 2 * PPO_ROWS * layer->out_pad;
}

void ppo_net_make(PpoNet *net, const PpoShape *shape) {
    const PolicyShape *actor = &shape->actor;
    memset(net, 0, sizeof *net);
    net->shape = *shape;
    net->actions = actor->size[actor->layers];
    net->rows = PPO_ROWS * pad16(actor->size[0]);
    ppo_network(shape, &net->network);
    for (int32_t i = 0; i < net->network.layers; i++)
        add_layer(net, &net->layer[i], net->network.layer[i]);
    net->log_std = net->gradient;
    net->gradient = (net->gradient + pad16(shape->log_std_params) + PPO_TILE - 1) / PPO_TILE * PPO_TILE;
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
    for (int32_t col = 0; col < layer->dense.in; col += 64) {
        int32_t width = layer->in_pad - col < 64 ? layer->in_pad - col : 64;
        for (int32_t o = 0; o < layer->dense.out; o++) {
            for (int32_t k = 0; k < width && col + k < layer->dense.in; k++)
                to[col * layer->dense.out + o * width + k] = from[(col + k) * layer->dense.out + o];
        }
    }
}

void ppo_net_pack(const PpoNet *net, const float *params, float *packed) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        const float *from = params + layer->dense.params, *biases = from + layer->dense.in * layer->dense.out;
        float *to = packed + layer->weights;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->dense.in; k++) {
                for (int32_t o = 0; o < layer->dense.out; o++)
                    to[o * layer->in_pad + k] = from[k * layer->dense.out + o];
            }
            copy_row(to + layer->dense.out * layer->in_pad, biases, layer->dense.out);
        } else {
            pack_panels(from, layer->dense.in, layer->dense.out, layer->out_pad, to);
            copy_row(to + layer->dense.in * layer->out_pad, biases, layer->dense.out);
            pack_transposed(layer, from, packed + layer->transposed);
        }
    }
}

void ppo_net_unpack(const PpoNet *net, const float *gradient, float *flat) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        const float *from = gradient + layer->gradient;
        float *to = flat + layer->dense.params;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->dense.in; k++) {
                for (int32_t o = 0; o < layer->dense.out; o++)
                    to[k * layer->dense.out + o] = from[o * layer->in_pad + k];
            }
            copy_row(to + layer->dense.in * layer->dense.out, from + layer->dense.out * layer->in_pad,
                     layer->dense.out);
        } else {
            for (int32_t k = 0; k <= layer->dense.in; k++)
                copy_row(to + k * layer->dense.out, from + k * layer->out_pad, layer->dense.out);
        }
    }
    int32_t count = net->shape.log_std_params;
    copy_row(flat + net->shape.params - count, gradient + net->log_std, count);
}

void ppo_net_carve(const PpoNet *net, float *memory, PpoScratch *scratch) {
    scratch->input = memory;
    memory += PPO_ROWS * net->layer[0].in_pad;
    for (int32_t i = 0; i < net->network.layers; i++) {
        scratch->output[i] = memory;
        scratch->delta[i] = memory + PPO_ROWS * net->layer[i].out_pad;
        memory += 2 * PPO_ROWS * net->layer[i].out_pad;
    }
    scratch->chunk = memory;
}
