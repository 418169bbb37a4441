// PPO's actor and critic as the CPU computes them: a list of dense layers with packed weights and of recurrent states,
// and one shard's part of a minibatch's gradient. Plain data; nothing outside kernels/cpu and its tests includes this.
//
// Packed weights of a layer, each part aligned to 64 bytes; padding is 0:
//   wide (out >= 16)    weights [out_pad / 64][in][64], biases [out_pad], and weights transposed [in_pad / 64][out][64]
//   narrow              weights [out][in_pad], biases [16]
// A packed gradient:
//   wide                weights [in][out_pad], biases [out_pad]
//   narrow              weights [out][in_pad], biases [16]
// and log_std [16] at the end.
#ifndef SHOAL_KERNELS_CPU_PPO_NET_H
#define SHOAL_KERNELS_CPU_PPO_NET_H

#include "kernels/cpu/probe.h"
#include "kernels/ppo_kern.h"
#include "kernels/ppo_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PPO_ROWS = 48, // samples that go through the layers together. It changes speed, not results
};

typedef struct PpoLayer {
    PpoNode node;
    int32_t in_pad, out_pad; // padded to multiples of 16
    bool is_narrow;
    int32_t weights;    // where it begins in the packed weights,
    int32_t transposed; // there too, where the layer is wide,
    int32_t gradient;   // and in the packed gradient
} PpoLayer;

typedef struct PpoNet {
    PpoShape shape;
    PpoNetwork network;
    int32_t state_pad;  // floats of an env's recurrent states: [network.states][out_pad]
    int32_t block_rows; // samples that go through the layers together at most
    int32_t chunk;      // samples whose weight gradients are one sum: PPO_CHUNK, or the steps of a sequence
    int32_t outputs;    // of the actor's head
    int32_t actions;    // discrete and continuous ones
    int32_t log_std;    // where it begins in the packed gradient
    int32_t packed;     // floats of the packed weights
    int32_t gradient;   // floats of a packed gradient; a multiple of PPO_TILE
    int32_t rows;       // floats of one thread's activations and their gradients
    PpoLayer layer[PPO_LAYERS_MAX];
} PpoNet;

// A rollout, [env][step] of everything.
typedef struct PpoSamples {
    float *obs;       // [..][obs], as the simulator gives it
    uint32_t *action; // [..][actions]: discrete ones, int32_t; then floats before they are clamped
    float *log_prob;  // of the action when it was drawn
    float *value;     // of the observation
    float *advantage;
    float *target;  // what the value should be: value + advantage
    int32_t *ended; // 0, PPO_TERMINATED, PPO_TRUNCATED
    float *state;   // [env][state_pad] recurrent states before the rollout's first step
} PpoSamples;

// One thread's scratch: activations and their gradients of block_rows samples. What is padding stays 0.
typedef struct PpoScratch {
    float *input;                  // [block_rows][in_pad]
    float *output[PPO_LAYERS_MAX]; // [block_rows][out_pad]
    float *delta[PPO_LAYERS_MAX];  // [block_rows][out_pad] the loss by a layer's output, then by its sums
    float *before[2];              // [block_rows][out_pad] each recurrent state one step earlier
    float *chunk;                  // [net.gradient]
    CpuProbe probe;
} PpoScratch;

// One shard's part of a minibatch.
typedef struct PpoPart {
    const PpoNet *net;
    const float *packed;
    const float *log_std; // [log_std_params]
    const PpoSamples *samples;
    const KernNormalizer *normalizer;
    const KernPpoStep *step;
    const uint32_t *index; // [count] of samples; with recurrent states, whole rollouts of envs, steps in order
    int32_t count;
    int32_t steps; // of a rollout
    PpoAdvantageScale advantages;
    float per_sample; // 1 / samples of the whole minibatch
} PpoPart;

// steps: of a rollout.
void ppo_net_make(PpoNet *net, const PpoShape *shape, int32_t steps);
// params [shape.params] -> packed [net.packed]
void ppo_net_pack(const PpoNet *net, const float *params, float *packed);
// A packed gradient [net.gradient] -> flat [shape.params]
void ppo_net_unpack(const PpoNet *net, const float *gradient, float *flat);
// memory: [net.rows + net.gradient] zeros
void ppo_net_carve(const PpoNet *net, float *memory, PpoScratch *scratch);

// Compiled for each instruction set:
//   forward    the outputs of every layer for `rows` samples in scratch->input, of as many envs: with their recurrent
//              states in scratch->before
//   gradient   of one part: packed, overwritten; adds to the losses
//   order      the shard's permutation: `first` + permuted numbers
//   add        elements [begin, end) of a gradient to another's
//   adam       parameters [begin, end)
typedef struct PpoKernels {
    void (*forward)(const PpoNet *net, const float *packed, const PpoScratch *scratch, int rows);
    void (*gradient)(const PpoPart *part, const PpoScratch *scratch, float *gradient, PpoLosses *losses);
    void (*order)(uint64_t seed, uint32_t update, uint32_t epoch, uint32_t shard, uint32_t count, uint32_t first,
                  uint32_t *order);
    void (*add)(float *to, const float *from, int32_t begin, int32_t end);
    void (*adam)(float *params, float *first, float *second, const float *gradient, const PpoAdamStep *step,
                 int32_t begin, int32_t end);
} PpoKernels;

extern const PpoKernels ppo_kernels_baseline;
#if defined(__x86_64__)
extern const PpoKernels ppo_kernels_v3, ppo_kernels_v4;
#endif

#ifdef __cplusplus
}
#endif

#endif
