// PPO's learning on one CPU thread: the networks forwards and backwards over blocks of samples, and what is done to
// gradients and parameters. Compiled for each instruction set (ISA is defined).
#include <string.h>

#include "kernels/cpu/dense.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/ppo_net.h"
#include "kernels/policy_math.h"
#include "kernels/ppo_random.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

// ---- forwards ------------------------------------------------------------------------------------------------------

// A narrow layer: 16 partial sums over the inputs, folded (kernels/policy.h).
static void forward_narrow(const PpoLayer *layer, const float *weights, const float *input, float *output, int rows) {
    const float *biases = weights + layer->dense.out * layer->in_pad;
    int in_pad = layer->in_pad;
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < layer->dense.out; o++) {
            Wide partial[16 / WIDE] = {{0}};
            for (int i = 0; i < in_pad; i += 16) {
                for (int k = 0; k < 16 / WIDE; k++) {
                    int at = i + k * WIDE;
                    partial[k] =
                        wide_fma(wide_load(weights + o * in_pad + at), wide_load(input + r * in_pad + at), partial[k]);
                }
            }
            output[r * layer->out_pad + o] = wide_fold16(partial) + biases[o];
        }
    }
}

static void forward_layer(const PpoLayer *layer, const float *packed, const float *input, float *output, int rows,
                          PolicyActivation activation) {
    const float *weights = packed + layer->weights;
    if (layer->is_narrow) {
        forward_narrow(layer, weights, input, output, rows);
    } else {
        gemm(&(Gemm){.c = output,
                     .c_stride = layer->out_pad,
                     .a = input,
                     .a_row = layer->in_pad,
                     .a_depth = 1,
                     .b = weights,
                     .start = weights + layer->dense.in * layer->out_pad},
             rows, layer->out_pad, layer->dense.in);
    }
    if (layer->dense.is_head) return;
    dense_activate(output, rows * layer->out_pad, activation);
    // 0 x infinity would leave NaN in the padding, which the next layer reads.
    for (int r = 0; layer->dense.out < layer->out_pad && r < rows; r++) {
        for (int o = layer->dense.out; o < layer->out_pad; o++)
            output[r * layer->out_pad + o] = 0.0f;
    }
}

static void forward(const PpoNet *net, const float *packed, const PpoScratch *scratch, int rows) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        const float *input = layer->dense.from < 0 ? scratch->input : scratch->output[layer->dense.from];
        forward_layer(layer, packed, input, scratch->output[i], rows, net->shape.actor.activation);
    }
    wide_end();
}

// ---- the loss and its gradient by the heads' outputs ---------------------------------------------------------------

// The gradient by row r's logits or means, and by log_std; returns the likelihood's part of the losses.
static void policy_row(const PpoPart *part, const PpoScratch *scratch, int r, float *log_std_gradient,
                       PpoLosses *losses) {
    const PpoNet *net = part->net;
    uint32_t at = part->index[r];
    const float *y = scratch->output[net->network.actor_head] + r * 16;
    float *delta = scratch->delta[net->network.actor_head] + r * 16;
    float advantage = (part->samples->advantage[at] - part->advantages.mean) * part->advantages.scale;
    float by_entropy = -part->step->entropy_weight * part->per_sample;
    float prob[POLICY_OUTPUTS_MAX], log_prob[POLICY_OUTPUTS_MAX];
    const uint32_t *words = part->samples->action + (int64_t)at * (net->shape.actor.discrete ? 1 : net->actions);
    int32_t action = (int32_t)words[0];
    PpoLikelihood now = {0.0f, 0.0f};
    if (net->shape.actor.discrete) {
        now.entropy = ppo_categorical(y, net->actions, prob, log_prob);
        now.log_prob = log_prob[action];
    } else {
        for (int k = 0; k < net->actions; k++)
            now = ppo_gaussian_add(now, y[k], part->log_std[k], sim_float_from_bits(words[k]));
    }
    PpoPolicyLoss loss = ppo_policy_loss(now.log_prob, part->samples->log_prob[at], advantage, part->step->clip);
    float by_log_prob = loss.gradient * part->per_sample;
    for (int k = 0; k < net->actions; k++) {
        if (net->shape.actor.discrete) {
            delta[k] = ppo_categorical_gradient(prob, log_prob, now.entropy, action, k, by_log_prob, by_entropy);
        } else {
            PpoGaussianGradient g =
                ppo_gaussian_gradient(y[k], part->log_std[k], sim_float_from_bits(words[k]), by_log_prob, by_entropy);
            delta[k] = g.mean;
            log_std_gradient[k] = log_std_gradient[k] + g.log_std;
        }
    }
    losses->policy += (double)loss.loss;
    losses->entropy += (double)now.entropy;
    losses->kl += (double)loss.kl;
    losses->clipped += loss.clipped;
}

static void value_row(const PpoPart *part, const PpoScratch *scratch, int r, PpoLosses *losses) {
    const PpoSamples *samples = part->samples;
    uint32_t at = part->index[r];
    float value = scratch->output[part->net->network.critic_head][r * 16];
    PpoValueLoss loss =
        ppo_value_loss(value, samples->value[at], samples->target[at], part->step->clip, part->step->clip_value);
    scratch->delta[part->net->network.critic_head][r * 16] =
        loss.gradient * (part->step->value_weight * part->per_sample);
    losses->value += (double)loss.loss;
}

// ---- backwards -----------------------------------------------------------------------------------------------------

// From the loss by activations to the loss by sums. count: a multiple of 16.
static void backward_activation(const float *restrict output, float *restrict delta, int count,
                                PolicyActivation activation) {
    const float *y = __builtin_assume_aligned(output, 64);
    float *d = __builtin_assume_aligned(delta, 64);
    if (activation == POLICY_TANH) {
        for (int i = 0; i < count; i++) // vectorises
            d[i] = d[i] * sim_fmaf(-y[i], y[i], 1.0f);
    } else {
        for (int i = 0; i < count; i++) // vectorises
            d[i] = y[i] > 0.0f ? d[i] : 0.0f;
    }
}

// Adds `rows` samples to a layer's gradient.
static void weight_gradient(const PpoLayer *layer, const float *input, const float *delta, float *gradient, int rows) {
    float *biases = gradient + (layer->is_narrow ? layer->dense.out * layer->in_pad : layer->dense.in * layer->out_pad);
    if (layer->is_narrow) {
        gemm(&(Gemm){.c = gradient,
                     .c_stride = layer->in_pad,
                     .a = delta,
                     .a_row = 1,
                     .a_depth = layer->out_pad,
                     .b = input,
                     .b_stride = layer->in_pad},
             layer->dense.out, layer->in_pad, rows);
    } else {
        gemm(&(Gemm){.c = gradient,
                     .c_stride = layer->out_pad,
                     .a = input,
                     .a_row = 1,
                     .a_depth = layer->in_pad,
                     .b = delta,
                     .b_stride = layer->out_pad},
             layer->dense.in, layer->out_pad, rows);
    }
    for (int o = 0; o < layer->out_pad; o += WIDE) {
        Wide sum = wide_load(biases + o);
        for (int r = 0; r < rows; r++)
            sum = sum + wide_load(delta + r * layer->out_pad + o);
        wide_store(biases + o, sum);
    }
}

static void input_gradient(const PpoLayer *layer, const float *packed, const float *delta, float *by_input, int rows) {
    gemm(&(Gemm){.c = by_input,
                 .c_stride = layer->in_pad,
                 .a = delta,
                 .a_row = layer->out_pad,
                 .a_depth = 1,
                 .b = packed + (layer->is_narrow ? layer->weights : layer->transposed),
                 .b_stride = layer->is_narrow ? layer->in_pad : 0,
                 .start = layer->dense.adds_delta ? NULL : gemm_zeros},
         rows, layer->in_pad, layer->dense.out);
}

static void backward(const PpoNet *net, const float *packed, const PpoScratch *scratch, float *gradient, int rows) {
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[net->network.backward[i]];
        const float *input = layer->dense.from < 0 ? scratch->input : scratch->output[layer->dense.from];
        float *delta = scratch->delta[net->network.backward[i]];
        if (!layer->dense.is_head) {
            backward_activation(scratch->output[net->network.backward[i]], delta, rows * layer->out_pad,
                                net->shape.actor.activation);
        }
        weight_gradient(layer, input, delta, gradient + layer->gradient, rows);
        if (layer->dense.from >= 0) input_gradient(layer, packed, delta, scratch->delta[layer->dense.from], rows);
    }
}

// ---- one part of a minibatch ---------------------------------------------------------------------------------------

static void gather_inputs(const PpoPart *part, const PpoScratch *scratch, int rows) {
    int obs = part->net->shape.actor.size[0], in_pad = part->net->layer[0].in_pad;
    for (int r = 0; r < rows; r++) {
        const float *from = part->samples->obs + (int64_t)part->index[r] * obs;
        for (int k = 0; k < obs; k++) {
            scratch->input[r * in_pad + k] =
                policy_normalize(from[k], part->normalizer->mean[k], part->normalizer->scale[k]);
        }
    }
}

// One chunk: its gradient is one sum over its samples in their order, from 0.
static void chunk_gradient(PpoPart part, const PpoScratch *scratch, float *gradient, PpoLosses *losses) {
    memset(gradient, 0, (size_t)part.net->gradient * sizeof *gradient);
    for (int32_t left = part.count; left > 0; left -= PPO_ROWS) {
        int rows = left < PPO_ROWS ? left : PPO_ROWS;
        gather_inputs(&part, scratch, rows);
        forward(part.net, part.packed, scratch, rows);
        for (int r = 0; r < rows; r++)
            policy_row(&part, scratch, r, gradient + part.net->log_std, losses);
        for (int r = 0; r < rows; r++)
            value_row(&part, scratch, r, losses);
        backward(part.net, part.packed, scratch, gradient, rows);
        part.index += rows;
    }
}

static void part_gradient(const PpoPart *part, const PpoScratch *scratch, float *gradient, PpoLosses *losses) {
    for (int32_t first = 0; first < part->count; first += PPO_CHUNK) {
        PpoPart chunk = *part;
        chunk.index += first;
        chunk.count = part->count - first < PPO_CHUNK ? part->count - first : PPO_CHUNK;
        PpoLosses chunk_losses = {0};
        chunk_gradient(chunk, scratch, first == 0 ? gradient : scratch->chunk, &chunk_losses);
        *losses = ppo_losses_fold(*losses, chunk_losses);
        for (int32_t i = 0; first > 0 && i < part->net->gradient; i++)
            gradient[i] = gradient[i] + scratch->chunk[i];
    }
    wide_end();
}

// ---- order, fold, Adam ---------------------------------------------------------------------------------------------

static void order_samples(uint64_t seed, uint32_t update, uint32_t epoch, uint32_t shard, uint32_t count,
                          uint32_t first, uint32_t *order) {
    PpoPermutation p = ppo_permutation(seed, update, epoch, shard, count);
    for (uint32_t i = 0; i < count; i++) // vectorises
        order[i] = ppo_permutation_pass(&p, i);
    for (uint32_t i = 0; i < count; i++) {
        while (order[i] >= count)
            order[i] = ppo_permutation_pass(&p, order[i]);
        order[i] += first;
    }
    wide_end();
}

static void fold(float *gradients, int32_t shards, int64_t stride, int32_t begin, int32_t end) {
    for (int32_t apart = 1; apart < shards; apart *= 2) {
        for (int32_t shard = 0; shard < shards; shard += 2 * apart) {
            float *restrict to = gradients + shard * stride;
            const float *restrict from = gradients + (shard + apart) * stride;
            for (int32_t i = begin; i < end; i++) // vectorises
                to[i] = to[i] + from[i];
        }
    }
    wide_end();
}

static void adam(float *restrict params, float *restrict first, float *restrict second, const float *restrict gradient,
                 const PpoAdamStep *step, int32_t begin, int32_t end) {
    PpoAdamStep s = *step;
    for (int32_t i = begin; i < end; i++) { // vectorises
        PpoAdam a = ppo_adam((PpoAdam){params[i], first[i], second[i]}, gradient[i], s);
        params[i] = a.param;
        first[i] = a.first;
        second[i] = a.second;
    }
    wide_end();
}

const PpoKernels ISA_CAT(ppo_kernels_, ISA) = {
    .forward = forward,
    .gradient = part_gradient,
    .order = order_samples,
    .fold = fold,
    .adam = adam,
};
