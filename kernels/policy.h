// The policy: a multilayer perceptron from normalised observations to an action, with or without a recurrent layer
// before its outputs. Its shape and the order of its arithmetic, for every backend.
//
// Parameters are one flat vector; layer after layer, as policy_layers() lists them: weights [in][out], then biases
// [out].
//
// Arithmetic (one definition, so that every backend gives the same bits):
//   wide layer (out >= 16)     one accumulator per output: bias, then fmaf(weight, input, sum), inputs ascending
//   narrow layer (out < 16)    16 partial sums per output from 0: partial k takes inputs k, k + 16, ... ascending by
//                              fmaf; then partial k += partial k + 8, + 4, + 2, + 1; then + bias
// A narrow layer in the wide layer's order would be one chain of dependent operations: 256 cycles for 64 inputs, as
// long as the whole hidden layer before it.
//
// The recurrent layer is a minGRU (Feng et al., "Were RNNs all we needed?", 2024) of `recurrent` units over what the
// last hidden layer gives, x (without hidden layers: the observation). Its two dense layers do not see the state, so
// that only the last line has to go through time:
//   gate       z = sigmoid(W_z x + b_z), with sigmoid(y) = fmaf(1/2, tanh(y / 2), 1/2)
//   candidate  c = tanh(W_c x + b_c)
//   state      h = fmaf(z, c - h, h), 0 at the start of every episode; it is the input of the outputs' layer
//
// Precision: with POLICY_BF16, what the products of all layers but the outputs' are made of is bfloat16: weights,
// rounded as they are used, the observation as normalised, and what hidden layers give (policy_bf16()). Biases, sums,
// activations, the recurrent state, the outputs' layer and the parameters themselves stay float32.
//
// Outputs: those of each discrete action's choices, then one for each continuous action. Discrete: the index of the
// largest (the first of equals); continuous: y is brought into [-1, 1] as `squash` says, and that to the bounds: low +
// (high - low) (squashed y + 1) / 2.
//
// Errors: shape errors are STATUS_USAGE. Thread safety: plain data.
#ifndef SHOAL_KERNELS_POLICY_H
#define SHOAL_KERNELS_POLICY_H

#include <stdint.h>

#include "host/status.h"
#include "sim/sim_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    POLICY_LAYERS_MAX = 9, // hidden layers + 1
    POLICY_DENSE_MAX = POLICY_LAYERS_MAX + 2,
    POLICY_WIDTH_MAX = 1024,
    POLICY_OBS_MAX = 512,
    POLICY_OUTPUTS_MAX = 16,
    POLICY_NARROW = 16, // layers with fewer outputs are narrow
};

#define POLICY_CLIP 5.0f // normalised observations are clamped to +-this

typedef enum PolicyActivation { POLICY_TANH, POLICY_RELU } PolicyActivation;

typedef enum PolicyPrecision { POLICY_FLOAT32, POLICY_BF16 } PolicyPrecision;

// How an output becomes a continuous action: tanh (what policy_shape() sets), or clamped, as PPO's means are.
typedef enum PolicySquash { POLICY_SQUASH_TANH, POLICY_SQUASH_CLAMP } PolicySquash;

typedef struct PolicyShape {
    int32_t layers;                      // hidden layers + 1
    int32_t size[POLICY_LAYERS_MAX + 1]; // [layers + 1] observation, hidden layers, outputs
    int32_t recurrent;                   // units of the recurrent layer; 0: there is none
    PolicyActivation activation;
    int32_t discrete;                  // discrete actions
    int32_t choices[SIM_DISCRETE_MAX]; // [discrete]
    int32_t continuous;                // continuous actions
    float action_low, action_high;
    PolicySquash squash;
    PolicyPrecision precision; // POLICY_FLOAT32 is what policy_shape() sets
    int32_t params;            // floats in the parameter vector
} PolicyShape;

// The shape for a simulator, without a recurrent layer; hidden: [hidden_count] widths.
Status policy_shape(PolicyShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count,
                    PolicyActivation activation) HOST_MUST_CHECK;

// Gives the shape a recurrent layer of `units`; 0: none.
Status policy_set_recurrent(PolicyShape *shape, int32_t units) HOST_MUST_CHECK;

// The dense layers in the order of the parameters: hidden ones, gate and candidate of the recurrent layer, outputs.
typedef enum PolicyLayerKind {
    POLICY_HIDDEN,
    POLICY_GATE,
    POLICY_CANDIDATE,
    POLICY_HEAD,
    POLICY_STATE // what gate and candidate make; not a dense layer
} PolicyLayerKind;

typedef struct PolicyLayer {
    PolicyLayerKind kind;
    int32_t in, out;
    int32_t params; // where its weights begin in the parameter vector; its biases follow them
} PolicyLayer;

// Fills in `layers`; returns how many there are.
int policy_layers(const PolicyShape *shape, PolicyLayer layers[POLICY_DENSE_MAX]);

// Where a layer's weights begin in the parameter vector.
int32_t policy_layer_offset(const PolicyShape *shape, int layer);

// "cartpole 4-16-2 tanh", "cartpole 4-16-r8-2 tanh bf16" with 8 recurrent units in bfloat16: the simulator and the
// shape, for a checkpoint. Returns `text`.
enum { POLICY_TEXT_MAX = 160 };
const char *policy_text(const PolicyShape *shape, const SimSpec *sim, char text[POLICY_TEXT_MAX]);

// Initial parameters: weights normal with standard deviation 1 / sqrt(in), times 0.01 in the last layer; biases 0, but
// for policy_gate_bias(). Drawn from the INIT counters of `seed`. params: [shape->params]
void policy_init(const PolicyShape *shape, uint64_t seed, float *params);

// The bias that unit `unit` of `units` of a gate starts with, evenly from 2 down to -4, so that the units forget
// within a step (z = 0.88) to tens of steps (0.02).
float policy_gate_bias(int32_t unit, int32_t units);

// The forward pass in plain C, the reference for every backend: obs [size[0]] as normalised, state [recurrent], which
// takes a step (NULL where there is none), outputs [size[layers]].
void policy_forward(const PolicyShape *shape, const float *params, const float *obs, float *state, float *outputs);

#ifdef __cplusplus
}
#endif

#endif
