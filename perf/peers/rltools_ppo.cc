// RLtools' own PPO example, Pendulum for 300,000 steps on one core, as a program that rltools_ppo.py can time: one seed
// a process, and the frozen policy tested over 100 episodes at the end, as pporun does. The settings are the example's
// (src/rl/environments/pendulum/ppo/cpu/config.h of RLtools), which is included, not repeated.
//
// usage: rltools_ppo SEED. Prints one JSON object. Built by rltools_ppo.py against the user's copy of RLtools.
// Each header may use what those above it declare.
// clang-format off
#include <rl_tools/operations/cpu_mux.h>
#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h> // what calls BLAS; the example leaves it out and is 12 times slower
#include <rl_tools/rl/environments/pendulum/operations_generic.h>
#include <rl_tools/rl/environment_wrappers/scale_observations/operations_generic.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/loop/steps/evaluation/config.h>
#include <rl_tools/rl/loop/steps/timing/config.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>
#include <rl_tools/rl/loop/steps/evaluation/operations_generic.h>
#include <rl_tools/rl/loop/steps/timing/operations_cpu.h>
// clang-format on

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rlt = rl_tools;

#define BENCHMARK // the example's switch for training without tests on the way
#include "rl/environments/pendulum/ppo/cpu/config.h"

using Device = rlt::devices::DEVICE_FACTORY<>;
using Number = rlt::numeric_types::Policy<float>;
using Index = Device::index_t;
using Config = CONFIG_FACTORY<Device, Number, true>;
using Core = Config::LOOP_CORE_CONFIG;
using State = Core::State<Core>;

constexpr Index EPISODES = 100;
using Test = rlt::rl::utils::evaluation::Specification<Number, Index, Core::ENVIRONMENT_EVALUATION, EPISODES,
                                                       Config::ENVIRONMENT::EPISODE_STEP_LIMIT>;
using Policy = rlt::utils::typing::remove_reference_t<decltype(rlt::get_actor(std::declval<State>()))>;
using TestBuffer =
    rlt::rl::utils::evaluation::PolicyBuffer<rlt::rl::utils::evaluation::PolicyBufferSpecification<Test, Policy, true>>;

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: rltools_ppo SEED\n");
        return 2;
    }
    auto start = std::chrono::steady_clock::now();
    Device device;
    State state;
    TestBuffer buffer;
    rlt::malloc(device, state);
    rlt::malloc(device, buffer);
    rlt::init(device, state, std::strtoul(argv[1], nullptr, 10));
    while (!rlt::step(device, state)) {
    }
    std::chrono::duration<double> train_s = std::chrono::steady_clock::now() - start;
    rlt::rl::utils::evaluation::Result<Test> result;
    auto actor = rlt::get_actor(state);
    rlt::evaluate(device, rlt::get_ref(device, state.envs, 0), state.ui, actor, buffer, result, state.rng,
                  rlt::Mode<rlt::mode::Evaluation<>>{});
    using Sizes = Core::CORE_PARAMETERS;
    std::printf("{\"seed\": %s, \"env_steps\": %lu, \"train_s\": %.6f, \"test_return_mean\": %.9g}\n", argv[1],
                static_cast<unsigned long>(state.step * Sizes::ON_POLICY_RUNNER_STEPS_PER_ENV * Sizes::N_ENVIRONMENTS),
                train_s.count(), static_cast<double>(result.returns_mean));
    return 0;
}
