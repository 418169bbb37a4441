// What the tests of PPO's updates share: a run's settings in short, a run on a backend, and its training state with its
// own memory and as bytes to compare.
#ifndef SHOAL_TESTS_KERNELS_PPO_RUN_H
#define SHOAL_TESTS_KERNELS_PPO_RUN_H

#include <gtest/gtest.h> // before sim.h: its macro R() meets a template parameter of that name

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/signals.h"
#include "kernels/ppo_kern.h"
#include "tests/kernels/test_sim.h"

inline size_t index_of(int64_t i) { return static_cast<size_t>(i); }

// ---- settings ------------------------------------------------------------------------------------------------------

struct PpoSetting {
    const char *sim;
    std::vector<int32_t> hidden;
    PolicyActivation activation;
    bool shared;
    int32_t envs, shards, rollout, minibatches, epochs;
    bool normalize, clip_value;
    int time_limit; // 0: the simulator's own
    bool randomised;
    int32_t recurrent = 0;
    PolicyPrecision precision = POLICY_FLOAT32;
};

inline KernPpoSpec make_spec(const PpoSetting &s, uint64_t seed) {
    KernPpoSpec spec = {};
    const SimSpec *sim = sim_spec_find(s.sim);
    spec.sim = test_sim(sim, s.time_limit > 0 ? s.time_limit : sim->time_limit, s.randomised);
    EXPECT_EQ(ppo_shape(&spec.policy, sim, s.hidden.data(), static_cast<int>(s.hidden.size()), s.recurrent,
                        s.activation, s.shared),
              STATUS_OK)
        << host_message();
    spec.policy.actor.precision = s.precision;
    spec.seed = seed;
    spec.envs = s.envs;
    spec.shards = s.shards;
    spec.rollout = s.rollout;
    spec.minibatches = s.minibatches;
    spec.normalize_obs = spec.normalize_reward = s.normalize;
    spec.gamma = 0.97f;
    spec.lambda = 0.9f;
    return spec;
}

inline KernPpoStep make_step(const PpoSetting &s, uint32_t update) {
    KernPpoStep step = {};
    step.update = update;
    step.epochs = s.epochs;
    step.learning_rate = 0.003f;
    step.clip = 0.1f;
    step.entropy_weight = 0.01f;
    step.value_weight = 0.5f;
    step.max_grad_norm = s.normalize ? 0.5f : 0.0f;
    step.clip_value = s.clip_value;
    step.normalize_advantage = s.normalize;
    step.beta1 = 0.9f, step.beta2 = 0.999f, step.epsilon = 1e-5f;
    return step;
}

// ---- the training state --------------------------------------------------------------------------------------------

// With its own memory.
class PpoState {
  public:
    explicit PpoState(const KernPpoSpec &spec)
        : params(index_of(spec.policy.params)), first(params.size()), second(params.size()),
          envs(index_of(spec.envs) * index_of(ppo_env_words(&spec))) {
        state.params = params.data();
        state.first = first.data();
        state.second = second.data();
        state.envs = envs.data();
    }
    PpoState(const PpoState &) = delete;
    PpoState &operator=(const PpoState &) = delete;

    std::vector<float> params, first, second;
    std::vector<uint32_t> envs;
    KernPpoState state = {};
};

// Everything a state holds, as bytes; doubles as they are.
inline std::string ppo_bytes(const KernPpoSpec &spec, const PpoState &s) {
    std::string text;
    auto add = [&](const void *data, size_t bytes) { text.append(static_cast<const char *>(data), bytes); };
    size_t obs = index_of(spec.sim.spec->obs) * sizeof(double);
    add(s.params.data(), s.params.size() * 4);
    add(s.first.data(), s.first.size() * 4);
    add(s.second.data(), s.second.size() * 4);
    add(s.envs.data(), s.envs.size() * 4);
    add(&s.state.adam_steps, sizeof s.state.adam_steps);
    add(&s.state.obs_count, sizeof(double));
    add(s.state.obs_mean, obs);
    add(s.state.obs_square, obs);
    add(&s.state.return_count, 3 * sizeof(double));
    return text;
}

// ---- a run ---------------------------------------------------------------------------------------------------------

class PpoRun {
  public:
    PpoRun(KernBackend *backend, const KernPpoSpec &spec) : spec_(spec), ops_(backend->ops) {
        EXPECT_EQ(ops_->ppo_open(backend, &spec, &ppo_), STATUS_OK) << host_message();
    }
    PpoRun(const PpoRun &) = delete;
    PpoRun &operator=(const PpoRun &) = delete;
    ~PpoRun() { ops_->ppo_close(ppo_); }
    Status write(const PpoState &s) { return ops_->ppo_write(ppo_, &s.state); }
    Status read(PpoState *s) { return ops_->ppo_read(ppo_, &s->state); }
    Status join(HostComm *comm) { return ops_->ppo_join(ppo_, comm); }
    Status update(const KernPpoStep &step, KernPpoReport *report) { return ops_->ppo_update(ppo_, &step, report); }

    // Initial parameters, the envs as they were opened; into `state` as well.
    void begin(PpoState *state) {
        ASSERT_EQ(read(state), STATUS_OK) << host_message();
        ppo_init(&spec_.policy, spec_.seed, -0.5f, state->params.data());
        ASSERT_EQ(write(*state), STATUS_OK) << host_message();
    }

  private:
    KernPpoSpec spec_;
    const KernOps *ops_;
    KernPpo *ppo_ = nullptr;
};

// ---- stops ---------------------------------------------------------------------------------------------------------

// A rollout that takes minutes, and epochs that take hours: whoever waits for them waits for a stop.
inline std::vector<std::pair<PpoSetting, const char *>> endless_updates() {
    return {{{"cartpole", {512, 512}, POLICY_TANH, false, 1, 1, 1000000, 1, 1, true, true, 0, false}, "rollout"},
            {{"pendulum", {16}, POLICY_TANH, false, 8, 2, 64, 2, 1 << 24, true, true, 0, false}, "learning"}};
}

// Asks for a stop in a while, from another thread.
class StopLater {
  public:
    StopLater()
        : thread_([] {
              std::this_thread::sleep_for(std::chrono::milliseconds(300));
              host_stop_request();
          }) {}
    StopLater(const StopLater &) = delete;
    StopLater &operator=(const StopLater &) = delete;
    ~StopLater() {
        thread_.join();
        host_stop_clear();
    }

  private:
    std::thread thread_;
};

#endif
