// PPO's training state in a test: with its own memory, and as bytes to compare.
#ifndef SHOAL_TESTS_KERNELS_PPO_BYTES_H
#define SHOAL_TESTS_KERNELS_PPO_BYTES_H

#include <string>
#include <vector>

#include "kernels/ppo_kern.h"

inline size_t index_of(int64_t i) { return static_cast<size_t>(i); }

// The training state with its own memory.
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

#endif
