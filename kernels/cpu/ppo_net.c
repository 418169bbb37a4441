#include "kernels/cpu/ppo_net.h"

#include <string.h>

#include "kernels/cpu/gemm.h"

_Alignas(64) const float gemm_zeros[POLICY_WIDTH_MAX] = {0};

static int32_t pad16(int32_t x) { return (x + 15) / 16 * 16; }

// A layer behind layer `from`. Parameters, weights and gradient are the dense layers'.
static PpoLayer *add_layer(PpoNet *net, PpoLayerKind kind, int32_t in, int32_t out, int32_t from) {
    PpoLayer *layer = &net->layer[net->layers++];
    *layer = (PpoLayer){.kind = kind,
                        .in = in,
                        .out = out,
                        .in_pad = pad16(in),
                        .out_pad = pad16(out),
                        .is_narrow = out < POLICY_NARROW,
                        .from = from};
    net->rows += 2 * net->block_rows * layer->out_pad;
    return layer;
}

static int32_t add_dense(PpoNet *net, const PolicyLayer *of, int32_t from) {
    PpoLayer *layer = add_layer(net, (PpoLayerKind)of->kind, of->in, of->out, from);
    int32_t in = of->in, out = of->out;
    layer->params = of->params;
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
    return net->layers - 1;
}

static int32_t add_state(PpoNet *net, int32_t candidate) {
    int32_t units = net->layer[candidate].out;
    PpoLayer *layer = add_layer(net, PPO_STATE, units, units, candidate);
    net->rows += net->block_rows * layer->out_pad;
    net->state_pad += layer->out_pad;
    net->state[net->states++] = net->layers - 1;
    return net->layers - 1;
}

static void add_layers(PpoNet *net) {
    PpoDense dense[PPO_DENSE_MAX];
    int count = ppo_dense(&net->shape, dense);
    int32_t last = -1; // that others can stand behind
    for (int i = 0; i < count; i++) {
        bool begins = i > 0 && dense[i].is_critic && !dense[i - 1].is_critic && !net->shape.is_shared;
        if (begins) last = -1;
        int32_t layer = add_dense(net, &dense[i].layer, last);
        switch (dense[i].layer.kind) {
        case POLICY_HIDDEN:
            last = layer;
            break;
        case POLICY_GATE:
            net->layer[layer].adds_delta = true;
            break;
        case POLICY_CANDIDATE:
            last = add_state(net, layer);
            break;
        case POLICY_HEAD:
            *(dense[i].is_critic ? &net->critic_head : &net->actor_head) = layer;
            break;
        }
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
    net->rows = net->block_rows * pad16(shape->actor.size[0]);
    add_layers(net);
    net->layer[net->critic_head].adds_delta = shape->is_shared;
    net->log_std = net->gradient;
    net->gradient = (net->gradient + pad16(shape->log_std_params) + PPO_TILE - 1) / PPO_TILE * PPO_TILE;
    int count = 0;
    net->backward[count++] = net->actor_head;
    net->backward[count++] = net->critic_head;
    for (int32_t layer = net->layers - 1; layer >= 0; layer--) {
        if (net->layer[layer].kind != PPO_HEAD) net->backward[count++] = layer;
    }
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
    for (int32_t col = 0; col < layer->in; col += 64) {
        int32_t width = layer->in_pad - col < 64 ? layer->in_pad - col : 64;
        for (int32_t o = 0; o < layer->out; o++) {
            for (int32_t k = 0; k < width && col + k < layer->in; k++)
                to[col * layer->out + o * width + k] = from[(col + k) * layer->out + o];
        }
    }
}

void ppo_net_pack(const PpoNet *net, const float *params, float *packed) {
    for (int32_t i = 0; i < net->layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        if (layer->kind == PPO_STATE) continue;
        const float *from = params + layer->params, *biases = from + layer->in * layer->out;
        float *to = packed + layer->weights;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->in; k++) {
                for (int32_t o = 0; o < layer->out; o++)
                    to[o * layer->in_pad + k] = from[k * layer->out + o];
            }
            copy_row(to + layer->out * layer->in_pad, biases, layer->out);
        } else {
            pack_panels(from, layer->in, layer->out, layer->out_pad, to);
            copy_row(to + layer->in * layer->out_pad, biases, layer->out);
            pack_transposed(layer, from, packed + layer->transposed);
        }
    }
}

void ppo_net_unpack(const PpoNet *net, const float *gradient, float *flat) {
    for (int32_t i = 0; i < net->layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        if (layer->kind == PPO_STATE) continue;
        const float *from = gradient + layer->gradient;
        float *to = flat + layer->params;
        if (layer->is_narrow) {
            for (int32_t k = 0; k < layer->in; k++) {
                for (int32_t o = 0; o < layer->out; o++)
                    to[k * layer->out + o] = from[o * layer->in_pad + k];
            }
            copy_row(to + layer->in * layer->out, from + layer->out * layer->in_pad, layer->out);
        } else {
            for (int32_t k = 0; k <= layer->in; k++)
                copy_row(to + k * layer->out, from + k * layer->out_pad, layer->out);
        }
    }
    int32_t count = net->shape.log_std_params;
    copy_row(flat + net->shape.params - count, gradient + net->log_std, count);
}

void ppo_net_carve(const PpoNet *net, float *memory, PpoScratch *scratch) {
    int32_t rows = net->block_rows;
    scratch->input = memory;
    memory += rows * net->layer[0].in_pad;
    for (int32_t i = 0; i < net->layers; i++) {
        scratch->output[i] = memory;
        scratch->delta[i] = memory + rows * net->layer[i].out_pad;
        memory += 2 * rows * net->layer[i].out_pad;
    }
    for (int32_t k = 0; k < net->states; k++) {
        scratch->before[k] = memory;
        memory += rows * net->layer[net->state[k]].out_pad;
    }
    scratch->chunk = memory;
}
