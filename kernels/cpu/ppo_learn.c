// PPO's learning on one CPU thread: the networks forwards and backwards over blocks of samples, and what is done to
// gradients and parameters. Compiled for each instruction set (ISA is defined).
#include <string.h>

#include "host/signals.h"
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
    const float *biases = weights + layer->node.out * layer->in_pad;
    int in_pad = layer->in_pad;
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < layer->node.out; o++) {
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
                          const PolicyShape *actor) {
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
                     .start = weights + layer->node.in * layer->out_pad},
             rows, layer->out_pad, layer->node.in);
    }
    if (layer->node.kind == POLICY_HEAD) return;
    if (layer->node.kind == POLICY_GATE) {
        dense_sigmoid(output, rows * layer->out_pad);
    } else {
        dense_activate(output, rows * layer->out_pad,
                       layer->node.kind == POLICY_CANDIDATE ? POLICY_TANH : actor->activation);
    }
    if (actor->precision == POLICY_BF16 && layer->node.kind == POLICY_HIDDEN)
        dense_round(output, rows * layer->out_pad);
    // 0 x infinity would leave NaN in the padding, which the next layer reads.
    for (int r = 0; layer->node.out < layer->out_pad && r < rows; r++) {
        for (int o = layer->node.out; o < layer->out_pad; o++)
            output[r * layer->out_pad + o] = 0.0f;
    }
}

// A step of the recurrent states `before`; count: a multiple of 16.
static void step_state(const float *restrict gate, const float *restrict candidate, const float *restrict before,
                       float *restrict state, int count) {
    const float *z = __builtin_assume_aligned(gate, 64), *c = __builtin_assume_aligned(candidate, 64);
    const float *b = __builtin_assume_aligned(before, 64);
    float *h = __builtin_assume_aligned(state, 64);
    for (int i = 0; i < count; i++) // vectorises x2
        h[i] = policy_state(z[i], c[i], b[i]);
}

// ended: of each row, where rows are the steps of one env; NULL where each is another env's.
static void forward_state(const PpoNet *net, const PpoScratch *scratch, int32_t at, float *before, int rows,
                          const int32_t *ended) {
    const float *gate = scratch->output[at - 2], *candidate = scratch->output[at - 1];
    float *state = scratch->output[at];
    int width = net->layer[at].out_pad;
    if (ended == NULL) {
        step_state(gate, candidate, before, state, rows * width);
        return;
    }
    for (int r = 0; r < rows; r++) {
        if (r > 0 && ended[r - 1]) memset(before + r * width, 0, (size_t)width * sizeof *before);
        if (r > 0 && !ended[r - 1]) memcpy(before + r * width, state + (r - 1) * width, (size_t)width * sizeof *before);
        step_state(gate + r * width, candidate + r * width, before + r * width, state + r * width, width);
    }
}

static void forward_rows(const PpoNet *net, const float *packed, const PpoScratch *scratch, int rows,
                         const int32_t *ended) {
    float *const *before = scratch->before;
    for (int32_t i = 0; i < net->network.layers; i++) {
        const PpoLayer *layer = &net->layer[i];
        const float *input = layer->node.from < 0 ? scratch->input : scratch->output[layer->node.from];
        cpu_probe_begin(&scratch->probe, "forward layer");
        if (layer->node.kind == POLICY_STATE) {
            forward_state(net, scratch, i, *before++, rows, ended);
        } else {
            forward_layer(layer, packed, input, scratch->output[i], rows, &net->shape.actor);
        }
        cpu_probe_end(&scratch->probe);
    }
}

static void forward(const PpoNet *net, const float *packed, const PpoScratch *scratch, int rows) {
    forward_rows(net, packed, scratch, rows, NULL);
    wide_end();
}

// ---- the loss and its gradient by the heads' outputs ---------------------------------------------------------------

// The gradient by row r's logits and means, and by log_std; returns the likelihood's part of the losses.
static void policy_row(const PpoPart *part, const PpoScratch *scratch, int r, float *log_std_gradient,
                       PpoLosses *losses) {
    const PpoNet *net = part->net;
    const PolicyShape *actor = &net->shape.actor;
    uint32_t sample = part->index[r];
    const float *y = scratch->output[net->network.actor_head] + r * 16;
    float *delta = scratch->delta[net->network.actor_head] + r * 16;
    float advantage = (part->samples->advantage[sample] - part->advantages.mean) * part->advantages.scale;
    float by_entropy = -part->step->entropy_weight * part->per_sample;
    const uint32_t *words = part->samples->action + (int64_t)sample * net->actions;
    float prob[POLICY_OUTPUTS_MAX], log_prob[POLICY_OUTPUTS_MAX], entropy[SIM_DISCRETE_MAX];
    float by_log_std[POLICY_OUTPUTS_MAX];
    PpoChoices choices = {prob, log_prob, entropy};
    PpoLikelihood now = ppo_likelihood(actor, y, 1, part->log_std, words, choices);
    PpoPolicyLoss loss = ppo_policy_loss(now.log_prob, part->samples->log_prob[sample], advantage, part->step->clip);
    ppo_likelihood_gradient(actor, y, 1, part->log_std, words, choices, loss.gradient * part->per_sample, by_entropy,
                            delta, by_log_std);
    for (int k = 0; k < actor->continuous; k++)
        log_std_gradient[k] = log_std_gradient[k] + by_log_std[k];
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
            d[i] = ppo_tanh_gradient(d[i], y[i]);
    } else {
        for (int i = 0; i < count; i++) // vectorises
            d[i] = ppo_relu_gradient(d[i], y[i]);
    }
}

static void backward_sigmoid(const float *restrict output, float *restrict delta, int count) {
    const float *y = __builtin_assume_aligned(output, 64);
    float *d = __builtin_assume_aligned(delta, 64);
    for (int i = 0; i < count; i++) // vectorises
        d[i] = ppo_sigmoid_gradient(d[i], y[i]);
}

// One step of the states' way back. by_state: what the step's outputs add; by_next: what the next step adds to that,
// and then what this one adds to the step before.
static void backward_step(const float *restrict gate, const float *restrict candidate, const float *restrict before,
                          const float *restrict by_state, float *restrict by_gate, float *restrict by_candidate,
                          float *restrict by_next, int count) {
    const float *z = __builtin_assume_aligned(gate, 64), *c = __builtin_assume_aligned(candidate, 64);
    const float *b = __builtin_assume_aligned(before, 64), *d = __builtin_assume_aligned(by_state, 64);
    float *by_z = __builtin_assume_aligned(by_gate, 64), *by_c = __builtin_assume_aligned(by_candidate, 64);
    float *next = __builtin_assume_aligned(by_next, 64);
    for (int i = 0; i < count; i++) { // vectorises
        PpoStateGradient g = ppo_state_gradient(z[i], c[i], b[i], d[i] + next[i]);
        by_z[i] = g.gate;
        by_c[i] = g.candidate;
        next[i] = g.before;
    }
}

// Back through time: to the loss by the gate's and the candidate's activations.
static void backward_state(const PpoNet *net, const PpoScratch *scratch, int32_t at, const float *before, int rows,
                           const int32_t *ended) {
    _Alignas(64) float by_next[POLICY_WIDTH_MAX] = {0.0f};
    int width = net->layer[at].out_pad;
    for (int r = rows - 1; r >= 0; r--) {
        int i = r * width;
        if (ended[r]) memset(by_next, 0, sizeof by_next); // the next step's state is another episode's
        backward_step(scratch->output[at - 2] + i, scratch->output[at - 1] + i, before + i, scratch->delta[at] + i,
                      scratch->delta[at - 2] + i, scratch->delta[at - 1] + i, by_next, width);
    }
}

// Adds `rows` samples to a layer's gradient, or begins it with them.
static void weight_gradient(const PpoLayer *layer, const float *input, const float *delta, float *gradient, int rows,
                            bool begins) {
    const float *start = begins ? gemm_zeros : NULL;
    float *biases = gradient + (layer->is_narrow ? layer->node.out * layer->in_pad : layer->node.in * layer->out_pad);
    if (layer->is_narrow) {
        gemm(&(Gemm){.c = gradient,
                     .c_stride = layer->in_pad,
                     .a = delta,
                     .a_row = 1,
                     .a_depth = layer->out_pad,
                     .b = input,
                     .b_stride = layer->in_pad,
                     .start = start},
             layer->node.out, layer->in_pad, rows);
    } else {
        gemm(&(Gemm){.c = gradient,
                     .c_stride = layer->out_pad,
                     .a = input,
                     .a_row = 1,
                     .a_depth = layer->in_pad,
                     .b = delta,
                     .b_stride = layer->out_pad,
                     .start = start},
             layer->node.in, layer->out_pad, rows);
    }
    for (int o = 0; o < layer->out_pad; o += WIDE) {
        Wide sum = wide_load(begins ? gemm_zeros : biases + o);
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
                 .start = layer->node.adds_delta ? NULL : gemm_zeros},
         rows, layer->in_pad, layer->node.out);
}

static void backward_layer(const PpoNet *net, const float *packed, const PpoScratch *scratch, int32_t at,
                           float *gradient, int rows, bool begins) {
    const PpoLayer *layer = &net->layer[at];
    const float *input = layer->node.from < 0 ? scratch->input : scratch->output[layer->node.from];
    float *delta = scratch->delta[at];
    if (layer->node.kind == POLICY_GATE) backward_sigmoid(scratch->output[at], delta, rows * layer->out_pad);
    if (layer->node.kind == POLICY_HIDDEN || layer->node.kind == POLICY_CANDIDATE) {
        backward_activation(scratch->output[at], delta, rows * layer->out_pad,
                            layer->node.kind == POLICY_CANDIDATE ? POLICY_TANH : net->shape.actor.activation);
    }
    if (policy_rounds(net->shape.actor.precision, layer->node.kind)) dense_round(delta, rows * layer->out_pad);
    weight_gradient(layer, input, delta, gradient + layer->gradient, rows, begins);
    if (layer->node.from >= 0) input_gradient(layer, packed, delta, scratch->delta[layer->node.from], rows);
}

static void backward(const PpoNet *net, const float *packed, const PpoScratch *scratch, float *gradient, int rows,
                     bool begins, const int32_t *ended) {
    int32_t states = net->network.states; // they come last to first
    for (int32_t i = 0; i < net->network.layers; i++) {
        int32_t at = net->network.backward[i];
        cpu_probe_begin(&scratch->probe, "backward layer");
        if (net->layer[at].node.kind == POLICY_STATE) {
            backward_state(net, scratch, at, scratch->before[--states], rows, ended);
        } else {
            backward_layer(net, packed, scratch, at, gradient, rows, begins);
        }
        cpu_probe_end(&scratch->probe);
    }
}

// ---- one part of a minibatch ---------------------------------------------------------------------------------------

static void gather_inputs(const PpoPart *part, const PpoScratch *scratch, int rows) {
    int obs = part->net->shape.actor.size[0], in_pad = part->net->layer[0].in_pad;
    for (int r = 0; r < rows; r++) {
        const float *from = part->samples->obs + (int64_t)part->index[r] * obs;
        for (int k = 0; k < obs; k++) {
            scratch->input[r * in_pad + k] = policy_input(from[k], part->normalizer->mean[k],
                                                          part->normalizer->scale[k], part->net->shape.actor.precision);
        }
    }
}

// The recurrent states of the part's first env before the rollout.
static void gather_states(const PpoPart *part, const PpoScratch *scratch) {
    const float *from = part->samples->state + (int64_t)(part->index[0] / (uint32_t)part->steps) * part->net->state_pad;
    for (int32_t k = 0; k < part->net->network.states; k++) {
        int32_t width = part->net->layer[part->net->network.state[k]].out_pad;
        memcpy(scratch->before[k], from + k * width, (size_t)width * sizeof *from);
    }
}

// One chunk: its gradient is one sum over its samples in their order, from 0.
static void chunk_gradient(PpoPart part, const PpoScratch *scratch, float *gradient, PpoLosses *losses) {
    const PpoNet *net = part.net;
    int block = net->network.states > 0 ? net->chunk : PPO_ROWS;
    memset(gradient + net->log_std, 0, (size_t)(net->gradient - net->log_std) * sizeof *gradient);
    for (int32_t left = part.count; left > 0; left -= block) {
        int rows = left < block ? left : block;
        const int32_t *ended = net->network.states > 0 ? part.samples->ended + part.index[0] : NULL;
        gather_inputs(&part, scratch, rows);
        if (net->network.states > 0) gather_states(&part, scratch);
        forward_rows(net, part.packed, scratch, rows, ended);
        cpu_probe_begin(&scratch->probe, "loss");
        for (int r = 0; r < rows; r++)
            policy_row(&part, scratch, r, gradient + net->log_std, losses);
        for (int r = 0; r < rows; r++)
            value_row(&part, scratch, r, losses);
        cpu_probe_end(&scratch->probe);
        backward(net, part.packed, scratch, gradient, rows, left == part.count, ended);
        part.index += rows;
    }
}

static void part_gradient(const PpoPart *part, const PpoScratch *scratch, float *gradient, PpoLosses *losses) {
    int32_t size = part->net->chunk;
    // Who stops finds out from the flag as well: the gradient is of no use then.
    for (int32_t first = 0; first < part->count && !host_stop_requested(); first += size) {
        PpoPart chunk = *part;
        chunk.index += first;
        chunk.count = part->count - first < size ? part->count - first : size;
        PpoLosses chunk_losses = {0};
        chunk_gradient(chunk, scratch, first == 0 ? gradient : scratch->chunk, &chunk_losses);
        *losses = ppo_losses_fold(*losses, chunk_losses);
        for (int32_t i = 0; first > 0 && i < part->net->gradient; i++)
            gradient[i] = gradient[i] + scratch->chunk[i];
    }
    wide_end();
}

// ---- order, sums, Adam ---------------------------------------------------------------------------------------------

enum { ORDER_BLOCK = 64 };

// Those numbers that are out of range go through the network again: all go, and those in range stay where they are, as
// which is which no processor can predict. Returns whether any still is out of range.
static uint32_t walk_on(const PpoPermutation *p, uint32_t number[ORDER_BLOCK]) {
    uint32_t outside = 0;
    for (int i = 0; i < ORDER_BLOCK; i++) { // vectorises
        uint32_t next = ppo_permutation_pass(p, number[i]), goes = 0u - (uint32_t)(number[i] >= p->count);
        number[i] = (next & goes) | (number[i] & ~goes);
        outside |= (uint32_t)(number[i] >= p->count);
    }
    return outside;
}

static void order_samples(uint64_t seed, uint32_t update, uint32_t epoch, uint32_t shard, uint32_t count,
                          uint32_t first, uint32_t *order) {
    PpoPermutation p = ppo_permutation(seed, update, epoch, shard, count);
    for (uint32_t begin = 0; begin < count; begin += ORDER_BLOCK) {
        uint32_t number[ORDER_BLOCK], outside = 0;
        for (uint32_t i = 0; i < ORDER_BLOCK; i++) { // vectorises
            number[i] = ppo_permutation_pass(&p, begin + i < count ? begin + i : 0);
            outside |= (uint32_t)(number[i] >= count);
        }
        while (outside)
            outside = walk_on(&p, number);
        for (uint32_t i = 0; i < ORDER_BLOCK && begin + i < count; i++)
            order[begin + i] = first + number[i];
    }
    wide_end();
}

static void add(float *restrict to, const float *restrict from, int32_t begin, int32_t end) {
    for (int32_t i = begin; i < end; i++) // vectorises
        to[i] = to[i] + from[i];
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
    .add = add,
    .adam = adam,
};
