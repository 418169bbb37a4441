// The policy: a multilayer perceptron from normalised observations to an action. Its shape and the order of its
// arithmetic, for every backend.
//
// Parameters are one flat vector; layer after layer: weights [in][out], then biases [out].
//
// Arithmetic (one definition, so that every backend gives the same bits):
//   wide layer (out >= 16)     one accumulator per output: bias, then fmaf(weight, input, sum), inputs ascending
//   narrow layer (out < 16)    16 partial sums per output from 0: partial k takes inputs k, k + 16, ... ascending by
//                              fmaf; then partial k += partial k + 8, + 4, + 2, + 1; then + bias
// A narrow layer in the wide layer's order would be one chain of dependent operations: 256 cycles for 64 inputs, as
// long as the whole hidden layer before it.
//
// Outputs: discrete, the index of the largest (the first of equals); continuous, y is brought into [-1, 1] as `squash`
// says, and that to the bounds: low + (high - low) (squashed y + 1) / 2.
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
    POLICY_WIDTH_MAX = 1024,
    POLICY_OBS_MAX = 512,
    POLICY_OUTPUTS_MAX = 16,
    POLICY_NARROW = 16, // layers with fewer outputs are narrow
};

#define POLICY_CLIP 5.0f // normalised observations are clamped to +-this

typedef enum PolicyActivation { POLICY_TANH, POLICY_RELU } PolicyActivation;

// How an output becomes a continuous action: tanh (what policy_shape() sets), or clamped, as PPO's means are.
typedef enum PolicySquash { POLICY_SQUASH_TANH, POLICY_SQUASH_CLAMP } PolicySquash;

typedef struct PolicyShape {
    int32_t layers;                      // hidden layers + 1
    int32_t size[POLICY_LAYERS_MAX + 1]; // [layers + 1] observation, hidden layers, outputs
    PolicyActivation activation;
    int32_t discrete; // 1: argmax over the outputs, 0: continuous actions
    float action_low, action_high;
    PolicySquash squash;
    int32_t params; // floats in the parameter vector
} PolicyShape;

// The shape for a simulator; hidden: [hidden_count] widths.
Status policy_shape(PolicyShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count,
                    PolicyActivation activation) HOST_MUST_CHECK;

// Where a layer's weights begin in the parameter vector; its biases follow them.
int32_t policy_layer_offset(const PolicyShape *shape, int layer);

// "cartpole 4-16-2 tanh": the simulator and the shape, for a checkpoint. Returns `text`.
enum { POLICY_TEXT_MAX = 160 };
const char *policy_text(const PolicyShape *shape, const SimSpec *sim, char text[POLICY_TEXT_MAX]);

// Initial parameters: weights normal with standard deviation 1 / sqrt(in), times 0.01 in the last layer; biases 0.
// Drawn from the INIT counters of `seed`. params: [shape->params]
void policy_init(const PolicyShape *shape, uint64_t seed, float *params);

// The forward pass in plain C, the reference for every backend: obs [size[0]] as normalised, outputs [size[layers]].
void policy_forward(const PolicyShape *shape, const float *params, const float *obs, float *outputs);

#ifdef __cplusplus
}
#endif

#endif
