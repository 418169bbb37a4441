// PPO (Schulman et al., "Proximal policy optimization algorithms", 2017) as the backends compute it: one call is one
// update, rollout and learning, with everything in the backend's own memory.
//
// Envs are cut into `shards`, equal and consecutive: the unit of determinism (design rule 7). A shard owns its envs,
// their statistics, the permutation of its samples and its part of the gradient; parts are folded in a fixed binary
// tree. Every result is the same bits for any number of threads, vector width, lane count or device.
//
// One update:
//   rollout     `rollout` steps of every env. Observations are normalised by the statistics of the updates before, or
//               not; both ways they are clamped to +-POLICY_CLIP, as in every evaluation of a policy; actions are drawn
//               from the PPO counters (update, env, step). Episodes end in the way of KERN_AUTORESET_SAME_STEP. Rewards
//               are divided by the deviation of the discounted return, as of the updates before, and clamped to +-10.
//   advantages  GAE(lambda) (Schulman et al., 2016), backwards. A terminated step's next value is 0; a truncated one's
//               is the value of the final observation; neither reaches across the reset. The rollout's last step takes
//               the value of the observation that follows it.
//   learning    epochs x minibatches: minibatch m of an epoch is part m of each shard's permuted samples. Advantages
//               are normalised within the minibatch (deviation over n - 1, plus 1e-8). Loss, to be minimised:
//                   mean(-min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A)) + value_weight value_loss
//                   - entropy_weight H
//               where value_loss is the mean of half the squared error, or the larger of that and the one of the value
//               clamped to the old value +- clip (clip_value). The gradient is scaled down to max_grad_norm, then Adam.
//               After an epoch whose mean KL ((ratio - 1) - log ratio) is above target_kl, learning stops.
//   statistics  the normalisers take in the rollout, folded by shard.
//
// With a recurrent layer (kernels/policy.h), states go on from rollout to rollout and are 0 at an episode's start; the
// value of a truncated episode's final observation is that of the state one step further. What is permuted are then the
// shard's envs: a minibatch consists of whole rollouts of envs, each a sequence that begins with the state that the
// rollout began with; back-propagation through time goes back to there, or to the episode's start (truncated BPTT,
// Werbos, 1990).
//
// With POLICY_BF16 (kernels/policy.h), backwards the loss by the sums of every layer but the heads is rounded to
// bfloat16 as well; gradients are summed in float32, and Adam and the parameters are float32.
//
// Ownership: the caller owns what open() returns and passes it to close(). Errors: Status; STATUS_NUMERIC names update,
// epoch, minibatch and tensor, or env, step and field; the state is then not to be used, but for a checkpoint of
// before. Thread safety: one call at a time per backend.
#ifndef SHOAL_KERNELS_PPO_KERN_H
#define SHOAL_KERNELS_PPO_KERN_H

#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PPO_HIDDEN_MAX = 8,
    PPO_SEQUENCE_MAX = 4096, // steps of a rollout with a recurrent layer
    PPO_TRAINERS_MAX = 64,
};

// Actor and critic: multilayer perceptrons in the arithmetic of kernels/policy.h. Shared, the critic's head is one more
// output of the actor's last layer's input; separate, it has hidden layers and a recurrent layer of its own with the
// same widths.
//
// Parameters, one flat vector: the actor as policy.h lays it out (outputs: logits of the discrete actions, or means of
// the continuous ones); then the critic: separate, all its layers; shared, its head (weights [in], bias); then, with
// continuous actions, log_std [actions], which does not depend on the state.
//
// A continuous action is the mean plus exp(log_std) times a normal; the simulator gets it clamped to [-1, 1] and mapped
// to [low, high]. So the actor's squash is POLICY_SQUASH_CLAMP, and es_evaluate() with the actor's shape and the first
// actor_params parameters acts by the means: the frozen policy.
typedef struct PpoShape {
    PolicyShape actor;
    bool is_shared;
    int32_t actor_params, critic_params, log_std_params;
    int32_t params; // the sum
} PpoShape;

// recurrent: units of the recurrent layer; 0: none. STATUS_USAGE as policy_shape().
Status ppo_shape(PpoShape *shape, const SimSpec *sim, const int32_t *hidden, int hidden_count, int32_t recurrent,
                 PolicyActivation activation, bool is_shared) HOST_MUST_CHECK;

// Floats of an env's recurrent state: the actor's units, then those of a separate critic.
int32_t ppo_recurrent_state(const PpoShape *shape);

// Orthogonal weights (QR of a normal matrix with the signs of R's diagonal) with gain sqrt(2) in hidden layers, 0.01 in
// the actor's head and 1 elsewhere; biases 0, but for policy_gate_bias(); log_std as given. From the INIT counters of
// `seed`. [params]
void ppo_init(const PpoShape *shape, uint64_t seed, float log_std, float *params);

typedef struct KernPpoSpec {
    KernSim sim;
    PpoShape policy;
    uint64_t seed;
    int32_t envs;        // a multiple of shards
    int32_t shards;      // a power of two
    int32_t rollout;     // steps of every env in an update
    int32_t minibatches; // divides (envs / shards) x rollout; with a recurrent layer envs / shards
    bool normalize_obs, normalize_reward;
    float gamma, lambda;
} KernPpoSpec;

// What may differ from update to update.
typedef struct KernPpoStep {
    uint32_t update; // counted from 0: of the counters
    int32_t epochs;
    float learning_rate, clip, entropy_weight, value_weight;
    float max_grad_norm; // 0: no limit
    float target_kl;     // 0: none
    bool clip_value, normalize_advantage;
    float beta1, beta2, epsilon; // Adam's; its step count is in the state
} KernPpoStep;

// Means over all samples of the update's last epoch; sums over the episodes that ended in the rollout.
typedef struct KernPpoReport {
    double policy_loss, value_loss, entropy, kl, clip_fraction;
    double explained_variance; // 1 - var(return - value) / var(return), before learning
    double grad_norm;          // of the last minibatch, before it is limited
    int32_t epochs;            // that were made
    int64_t episodes, episode_steps;
    double episode_return; // sum
} KernPpoReport;

// The training state, in host memory, the same for every backend. The arrays are the caller's.
typedef struct KernPpoState {
    float *params, *first, *second; // [params]
    int64_t adam_steps;
    // Of observations [obs], and of the discounted return: count, mean, sum of squared deviations.
    double obs_count, obs_mean[POLICY_OBS_MAX], obs_square[POLICY_OBS_MAX];
    double return_count, return_mean, return_square;
    // [envs][env_words]: what ppo_env_words() counts, of the episodes under way. NULL: ppo_write() leaves the envs as
    // they are, ppo_read() leaves them out.
    uint32_t *envs;
} KernPpoState;

typedef struct KernPpo {
    KernBackend *backend;
} KernPpo;

// What the observation normaliser of that state is, for evaluations: the identity where it is off or has seen nothing.
void ppo_normalizer(const KernPpoSpec *spec, const KernPpoState *state, KernNormalizer *normalizer);

// The parameter tensors in the order of the vector: "actor layer 1 weights", ..., "actor recurrent gate weights", ...,
// "actor recurrent candidate biases", ..., "critic head biases", "log_std". Hidden layers count from 1. Returns 0 where
// there is no tensor `index`.
typedef struct PpoTensor {
    char name[40];
    int32_t offset, count;
    int32_t in, out;      // weights: [in][out]; biases and log_std: in 0
    PolicyLayerKind kind; // of its layer
    bool is_critic;
} PpoTensor;

int ppo_tensor(const PpoShape *shape, int index, PpoTensor *tensor);

// The networks as a list of layers: the actor's, its head the last of them, then the critic's. The recurrent state
// (POLICY_STATE) is a layer of its own, right behind its gate and its candidate.
typedef struct PpoNode {
    PolicyLayerKind kind;
    int32_t in, out;
    int32_t from;   // the layer whose output is its input, of a state the candidate; -1: the observation
    int32_t params; // where its weights begin in the parameter vector; its biases follow them. Not of states
    bool is_critic;
    bool adds_delta; // its input's gradient is added to another's: a shared critic's head, a gate
} PpoNode;

enum { PPO_LAYERS_MAX = 2 * (POLICY_DENSE_MAX + 1) };

typedef struct PpoNetwork {
    int32_t layers, actor_head, critic_head;
    int32_t states, state[2]; // how many recurrent states there are, and their layers
    PpoNode layer[PPO_LAYERS_MAX];
    int32_t backward[PPO_LAYERS_MAX]; // layers in the order in which gradients go through them
} PpoNetwork;

void ppo_network(const PpoShape *shape, PpoNetwork *network);

// Words of an env in KernPpoState: the simulator's state, its drawn parameters, the episode's number, length, return
// and discounted return, the observation, and the recurrent state.
int32_t ppo_env_words(const KernPpoSpec *spec);

// STATUS_USAGE for counts that do not divide as KernPpoSpec says; every backend's ppo_plan() and ppo_open() call it.
Status ppo_check(const KernPpoSpec *spec) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
