// Batches against whole episodes of Gymnasium's vector environments, recorded by tests/sim/record_gymnasium.py in each
// auto-reset mode: flags, rewards, observations, final observations, and when an env is reset.
//
// A batch draws its own initial states, so those recorded are written into it at each reset. From there on a float
// trajectory leaves the original's float64 one only by what its own rounding errors grow to: the bounds are for that.
// Acrobot is chaotic and a pendulum near upright unstable (an error grows e-fold in a quarter of a second): their envs
// are set right from the recorded observation when they have drifted by 1e-5.
#include "kernel_reference.h"

#include "tests/sim/parity_data.h"

#include <algorithm>
#include <memory>

namespace {

struct Recording {
    Recording(const SimSpec *sim, const std::string &mode)
        : data(std::string(sim->name) + "_" + mode + ".vec"), envs(static_cast<size_t>(data.number("envs"))),
          steps(static_cast<size_t>(data.number("steps"))), obs(static_cast<size_t>(sim->obs)),
          fields(data.extent("first_state", 1)) {}

    float observation(size_t step, size_t env, size_t k) const {
        return data.values<float>("observation")[(step * envs + env) * obs + k];
    }
    bool flag(const char *name, size_t step, size_t env) const {
        return data.values<uint8_t>(name)[step * envs + env] != 0;
    }

    ParityData data;
    size_t envs, steps, obs, fields;
};

class Replay {
  public:
    Replay(const SimSpec *sim, const std::string &mode_name, KernAutoreset mode, const CpuWay &way)
        : r_(sim, mode_name), kernels_(way), sim_(sim), ref_(ref_sim(sim)), mode_(mode),
          is_unstable_(std::string(sim->name) == "acrobot" || std::string(sim->name) == "pendulum") {
        spec_ = {};
        kern_sim_default(&spec_.sim, sim);
        spec_.sim.time_limit = r_.data.number("time_limit");
        spec_.envs = static_cast<int64_t>(r_.envs);
        spec_.seed = 1;
        spec_.autoreset = mode;
        EXPECT_STATUS(kernels_->batch_open(kernels_.backend(), &spec_, &batch_));
        view_ = kernels_->batch_view(batch_);
    }
    Replay(const Replay &) = delete;
    Replay &operator=(const Replay &) = delete;
    ~Replay() { kernels_->batch_close(batch_); }

    // False where a field differs; what was compared is counted.
    void run() {
        for (size_t i = 0; i < r_.envs; i++)
            write_state(i, r_.data.values<float>("first_state") + i * r_.fields);
        expect_observation(0, r_.data.values<float>("first_observation"), false);
        for (size_t step = 0; step < r_.steps && !testing::Test::HasFailure(); step++)
            one_step(step);
        EXPECT_LE(set_right, is_unstable_ ? static_cast<int>(r_.envs * r_.steps / 20) : 0);
        EXPECT_GT(ends, 0) << "the recording has no end of an episode";
        EXPECT_EQ(kept_finals, mode_ == KERN_AUTORESET_SAME_STEP ? ends : 0);
        EXPECT_GE(resets, mode_ == KERN_AUTORESET_SAME_STEP ? ends : ends - static_cast<int>(r_.envs));
    }

    int ends = 0, resets = 0, kept_finals = 0, set_right = 0;
    double worst = 0;

  private:
    template <typename T> T &at(T *buffer, size_t env, size_t row = 0, size_t rows = 1) const {
        size_t lanes = static_cast<size_t>(view_.lanes);
        return buffer[(env / lanes * rows + row) * lanes + env % lanes];
    }

    void write_state(size_t env, const float *state) {
        size_t words = static_cast<size_t>(sim_->state_words), next = 0;
        std::vector<uint32_t> whole(words, 0);
        for (size_t w = 0; w < words; w++) {
            if (sim_->state[w].is_real) std::memcpy(&whole[w], state + next++, 4);
            at(view_.state, env, w, words) = whole[w];
        }
        ASSERT_EQ(next, r_.fields);
        std::vector<float> obs(r_.obs);
        ref_.observe(whole.data(), spec_.sim.value, obs.data());
        for (size_t k = 0; k < r_.obs; k++)
            at(view_.obs, env, k, r_.obs) = obs[k];
    }

    // An observation of the original against one of the batch, of the size that this simulator's drift allows.
    void expect_close(float got, float want, const std::string &where) {
        double error = std::fabs(static_cast<double>(got) - static_cast<double>(want)) /
                       std::max(1.0, std::fabs(static_cast<double>(want)));
        worst = std::max(worst, error);
        EXPECT_LE(error, bound()) << where << ": got " << got << ", want " << want;
    }
    double bound() const { return is_unstable_ ? 1e-4 : 1e-5; }

    void expect_observation(size_t step, const float *want, bool is_final) {
        for (size_t i = 0; i < r_.envs; i++) {
            if (is_final && !r_.flag("has_final", step, i)) continue;
            for (size_t k = 0; k < r_.obs; k++) {
                float got = at(is_final ? view_.final_obs : view_.obs, i, k, r_.obs);
                expect_close(got, want[i * r_.obs + k],
                             "step " + std::to_string(step) + ", env " + std::to_string(i) + ", observation " +
                                 std::to_string(k) + (is_final ? ", final" : ""));
            }
        }
    }

    void one_step(size_t step) {
        const float *resets_to = r_.data.values<float>("reset_state") + step * r_.envs * r_.fields;
        std::vector<uint8_t> mask(r_.envs, 0);
        for (size_t i = 0; i < r_.envs; i++) {
            mask[i] = mode_ == KERN_AUTORESET_DISABLED && r_.flag("was_reset", step, i);
            if (sim_->discrete > 0) at(view_.discrete, i) = r_.data.values<int32_t>("action")[step * r_.envs + i];
            if (sim_->continuous > 0) at(view_.continuous, i) = r_.data.values<float>("action")[step * r_.envs + i];
        }
        if (mode_ == KERN_AUTORESET_DISABLED) {
            ASSERT_STATUS(kernels_->batch_reset(batch_, mask.data()));
            for (size_t i = 0; i < r_.envs; i++) {
                if (mask[i]) write_state(i, resets_to + i * r_.fields);
            }
        }
        ASSERT_STATUS(kernels_->batch_step(batch_));
        for (size_t i = 0; i < r_.envs; i++)
            compare_flags(step, i, resets_to + i * r_.fields);
        if (mode_ == KERN_AUTORESET_SAME_STEP)
            expect_observation(step, r_.data.values<float>("final_obs") + step * r_.envs * r_.obs, true);
        expect_observation(step, r_.data.values<float>("observation") + step * r_.envs * r_.obs, false);
        if (is_unstable_) set_drifted_right(step);
    }

    // Flags, reward, and whether the batch began an episode where the original did; then its initial state is put in.
    void compare_flags(size_t step, size_t i, const float *reset_to) {
        SCOPED_TRACE("step " + std::to_string(step) + ", env " + std::to_string(i));
        bool was_reset = r_.flag("was_reset", step, i);
        bool terminated = r_.flag("terminated", step, i), truncated = r_.flag("truncated", step, i);
        EXPECT_EQ(at(view_.terminated, i) != 0, terminated);
        EXPECT_EQ(at(view_.truncated, i) != 0, truncated);
        double want = r_.data.values<double>("reward")[step * r_.envs + i];
        double got = static_cast<double>(at(view_.reward, i));
        EXPECT_NEAR(got, want, bound() * std::max(1.0, std::fabs(want)));
        ends += terminated || truncated;
        resets += was_reset;
        kept_finals += r_.flag("has_final", step, i);
        // The step count is 0 after a reset that is the row itself or follows it, and 1 where it came before.
        if (mode_ != KERN_AUTORESET_DISABLED) {
            EXPECT_EQ(at(view_.length, i) == 0, was_reset);
        } else if (was_reset) {
            EXPECT_EQ(at(view_.length, i), 1);
        }
        if (mode_ != KERN_AUTORESET_DISABLED && was_reset) write_state(i, reset_to);
    }

    // The state follows from the observation; the pendulum's whole turns do not matter to it.
    void set_drifted_right(size_t step) {
        for (size_t i = 0; i < r_.envs; i++) {
            auto o = [&](size_t k) { return r_.observation(step, i, k); };
            double drift = 0;
            for (size_t k = 0; k < r_.obs; k++)
                drift = std::max(drift, std::fabs(static_cast<double>(at(view_.obs, i, k, r_.obs) - o(k))));
            if (drift < 1e-5) continue;
            const float pendulum[2] = {std::atan2(o(1), o(0)), o(2)};
            if (r_.obs == 3) {
                write_state(i, pendulum);
            } else {
                const float acrobot[4] = {pendulum[0], std::atan2(o(3), o(2)), o(4), o(5)};
                write_state(i, acrobot);
            }
            set_right++;
        }
    }

    Recording r_;
    CpuKernels kernels_;
    const SimSpec *sim_;
    RefSim ref_;
    KernAutoreset mode_;
    bool is_unstable_;
    KernBatchSpec spec_;
    KernBatch *batch_ = nullptr;
    KernBatchView view_;
};

// The simulators that there are recordings of; position_only_cartpole is not Gymnasium's.
class GymnasiumBatchTest : public testing::TestWithParam<const char *> {};

void replay(const char *name, const char *mode_name, KernAutoreset mode) {
    for (const CpuWay &way : {CpuWay{1, "auto", 0}, CpuWay{2, "auto", 8}, CpuWay{1, "baseline", 1}}) {
        SCOPED_TRACE(way.text());
        Replay r(sim_spec_find(name), mode_name, mode, way);
        r.run();
        std::printf("%s %s, %s: %d ends, %d resets, largest difference %.1e, set right %d times\n", name, mode_name,
                    way.text().c_str(), r.ends, r.resets, r.worst, r.set_right);
        if (testing::Test::HasFailure()) return;
    }
}

TEST_P(GymnasiumBatchTest, NextStep) { replay(GetParam(), "next_step", KERN_AUTORESET_NEXT_STEP); }
TEST_P(GymnasiumBatchTest, SameStep) { replay(GetParam(), "same_step", KERN_AUTORESET_SAME_STEP); }
TEST_P(GymnasiumBatchTest, Disabled) { replay(GetParam(), "disabled", KERN_AUTORESET_DISABLED); }

INSTANTIATE_TEST_SUITE_P(Sims, GymnasiumBatchTest,
                         testing::Values("cartpole", "mountain_car", "mountain_car_continuous", "acrobot", "pendulum"),
                         [](const auto &of) { return std::string(of.param); });

} // namespace
