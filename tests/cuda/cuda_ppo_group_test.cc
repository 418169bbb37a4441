// PPO's updates shared by trainers on GPUs, or on GPUs and CPUs: the bits of one trainer on the CPU.
#include "tests/cuda/cuda_test_util.h"

#include <cmath>

#include "tests/cuda/nccl_group.h"
#include "tests/kernels/kernel_reference.h"
#include "tests/kernels/ppo_run.h"
#include "tests/kernels/thread_group.h"

namespace {

// What a trainer computes on, 'g' the first GPU, 'n' one of its own, or 'c' a CPU, each with a backend of its own.
class Device {
  public:
    Device(char kind, int rank) : cpu_(CpuWay{1 + rank % 2, "auto", rank % 2 == 1 ? 8 : 0}) {
        Status status = kind == 'c' ? cpu_.status() : kern_cuda_open(kind == 'n' ? rank : 0, &cuda_);
        EXPECT_EQ(status, STATUS_OK) << host_message();
    }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    ~Device() {
        if (cuda_ != nullptr) cuda_->ops->close(cuda_);
    }
    KernBackend *backend() const { return cuda_ != nullptr ? cuda_ : cpu_.backend(); }

  private:
    CpuKernels cpu_;
    KernBackend *cuda_ = nullptr;
};

class Trainer : private Device, public PpoRun {
  public:
    Trainer(char kind, int rank, const KernPpoSpec &spec) : Device(kind, rank), PpoRun(backend(), spec) {}
    using Device::backend;
};

class CudaPpoGroupTest : public CudaTest {
  protected:
    // The state after some updates by one trainer on the CPU.
    std::string one_trainer(const KernPpoSpec &spec, const std::vector<KernPpoStep> &steps, KernPpoReport *report) {
        PpoRun ppo(cpu, spec);
        PpoState state(spec);
        ppo.begin(&state);
        for (const KernPpoStep &step : steps)
            EXPECT_EQ(ppo.update(step, report), STATUS_OK) << host_message();
        EXPECT_EQ(ppo.read(&state), STATUS_OK);
        return ppo_bytes(spec, state);
    }

    // kinds: of each trainer.
    void compare(const KernPpoSpec &spec, const std::vector<KernPpoStep> &steps,
                 const std::vector<std::string> &groups) {
        KernPpoReport wanted;
        std::string expected = one_trainer(spec, steps, &wanted);
        for (const std::string &kinds : groups) {
            int size = static_cast<int>(kinds.size());
            bool is_nccl = kinds[0] == 'n';
            if (is_nccl && count_gpus(size) < size) continue;
            ThreadGroup group(size);
            MemberStore store;
            group.run([&](HostComm *threads) {
                HostComm *comm = threads;
                SCOPED_TRACE(std::string(spec.sim.spec->name) + ", trainer " + std::to_string(comm->rank) + " of " +
                             kinds);
                Trainer ppo(kinds[index_of(comm->rank)], comm->rank, spec);
                PpoState state(spec);
                ppo.begin(&state);
                ASSERT_OK(is_nccl ? open_nccl(ppo.backend(), &store, comm->rank, size, &comm) : STATUS_OK);
                ASSERT_OK(ppo.join(comm));
                KernPpoReport report;
                for (const KernPpoStep &step : steps)
                    ASSERT_OK(ppo.update(step, &report));
                ASSERT_OK(ppo.read(&state));
                EXPECT_TRUE(ppo_bytes(spec, state) == expected);
                EXPECT_EQ(0, memcmp(&report, &wanted, sizeof report));
                ASSERT_OK(ppo.join(nullptr));
                if (is_nccl) host_comm_free(comm);
            });
            if (HasFailure()) return;
        }
    }

    // What every trainer says of a step that ends in NaN or infinity.
    void fail(const KernPpoSpec &spec, const PpoState &state, const KernPpoStep &step, const std::string &expected) {
        const std::string kinds = "gcg";
        ThreadGroup group(static_cast<int>(kinds.size()));
        group.run([&](HostComm *comm) {
            Trainer ppo(kinds[index_of(comm->rank)], comm->rank, spec);
            KernPpoReport report;
            ASSERT_OK(ppo.write(state));
            ASSERT_OK(ppo.join(comm));
            EXPECT_EQ(ppo.update(step, &report), STATUS_NUMERIC);
            EXPECT_EQ(host_message(), expected) << "trainer " << comm->rank;
        });
    }
};

std::vector<KernPpoStep> make_steps(const PpoSetting &s, uint32_t count) {
    std::vector<KernPpoStep> steps;
    for (uint32_t update = 0; update < count; update++)
        steps.push_back(make_step(s, update));
    return steps;
}

// Shards that end within warps, of one env, of several chunks; episodes that end and are cut off; discrete and
// continuous actions, networks that are shared, recurrent and of bfloat16.
const PpoSetting SETTINGS[] = {
    {"cartpole", {9}, POLICY_TANH, false, 24, 8, 12, 2, 2, true, true, 5, false},
    {"pendulum", {17}, POLICY_RELU, true, 8, 8, 6, 3, 2, true, false, 4, true},
    {"parking", {9}, POLICY_TANH, false, 20, 4, 6, 5, 1, false, true, 4, true, 5},
    {"mountain_car_continuous", {18}, POLICY_TANH, true, 12, 4, 4, 1, 2, true, true, 3, false, 0, POLICY_BF16},
};

TEST_F(CudaPpoGroupTest, HasTheBitsOfOneTrainer) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : SETTINGS) {
        compare(make_spec(s, seed), make_steps(s, 2), {"g", "gg", "ggg", "gggg", "gc", "cgcg", "ccg", "nn", "nnn"});
        if (HasFailure()) return;
    }
}

// Parts of several chunks, whose moments and partial sums are several; one chunk a round, and rollouts in several
// launches.
TEST_F(CudaPpoGroupTest, SlicesAndRoundsChangeNothing) {
    PpoSetting s = {"cartpole", {8}, POLICY_TANH, false, 12, 4, 90, 1, 1, true, true, 30, false};
    for (int slice_steps : {0, 40}) {
        open_backends(slice_steps);
        compare(make_spec(s, fresh_seed()), make_steps(s, 1), {"gg", "cg"});
        if (HasFailure()) return;
    }
}

// More trainers than shards, and more shards than one launch folds.
TEST_F(CudaPpoGroupTest, AnyNumberOfShards) {
    PpoSetting few = SETTINGS[0], many = {"pendulum", {}, POLICY_TANH, true, 256, 256, 2, 2, 1, true, true, 2, false};
    few.shards = 2;
    compare(make_spec(few, fresh_seed()), make_steps(few, 1), {"ggg", "ccg", "nnnn"});
    compare(make_spec(many, fresh_seed()), make_steps(many, 1), {"gg"});
}

TEST_F(CudaPpoGroupTest, StopsAtTheTargetKl) {
    PpoSetting s = SETTINGS[0];
    s.epochs = 8;
    KernPpoSpec spec = make_spec(s, fresh_seed());
    std::vector<KernPpoStep> steps = make_steps(s, 2);
    for (KernPpoStep &step : steps)
        step.target_kl = 1e-5f;
    KernPpoReport report;
    one_trainer(spec, steps, &report);
    EXPECT_LT(report.epochs, 8);
    compare(spec, steps, {"gg", "gc", "nn"});
}

TEST_F(CudaPpoGroupTest, NamesWhatIsNotFinite) {
    PpoSetting s = SETTINGS[1];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    PpoState state(spec);
    KernPpoReport report;
    PpoRun alone(cpu, spec);
    alone.begin(&state);
    KernPpoStep step = make_step(s, 7);
    step.value_weight = 3e38f; // the critic's gradient overflows
    EXPECT_EQ(alone.update(step, &report), STATUS_NUMERIC);
    std::string expected = host_message();
    EXPECT_NE(expected.find("epoch 0, minibatch 0: the gradient of"), std::string::npos) << expected;
    fail(spec, state, step, expected);

    step = make_step(s, 2);
    float bad = std::nanf("");
    for (int env : {1, 6}) { // of the first trainer, and of the second
        PpoState wrong(spec);
        ASSERT_OK(alone.write(state));
        ASSERT_OK(alone.read(&wrong));
        memcpy(&wrong.envs[index_of(env * ppo_env_words(&spec))], &bad, 4);
        fail(spec, wrong, step,
             "pendulum: update 2, env " + std::to_string(env) + ", step 0: theta_rad is NaN or infinite");
    }
}

// A member is gone in the middle of an update: the others go back to the state before, and go on alone.
TEST_F(CudaPpoGroupTest, GoesOnFromTheStateBeforeAfterALoss) {
    PpoSetting s = SETTINGS[0];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    KernPpoReport report;
    std::string expected = one_trainer(spec, make_steps(s, 1), &report);
    PpoState before(spec);
    PpoRun(cpu, spec).begin(&before);
    ThreadGroup group(3);
    group.run([&](HostComm *comm) {
        if (comm->rank == 2) return; // leaves, and the rest finds out
        Trainer ppo('g', comm->rank, spec);
        PpoState state(spec);
        KernPpoReport ignored;
        ASSERT_OK(ppo.write(before));
        ASSERT_OK(ppo.join(comm));
        EXPECT_EQ(ppo.update(make_step(s, 0), &ignored), STATUS_STOPPED);
        ASSERT_OK(ppo.join(nullptr));
        ASSERT_OK(ppo.write(before));
        ASSERT_OK(ppo.update(make_step(s, 0), &ignored));
        ASSERT_OK(ppo.read(&state));
        EXPECT_TRUE(ppo_bytes(spec, state) == expected);
    });
}

TEST_F(CudaPpoGroupTest, JoinsAndLeaves) {
    PpoSetting s = SETTINGS[0];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    KernPpoReport wanted;
    std::string expected = one_trainer(spec, make_steps(s, 4), &wanted);
    ThreadGroup group(2);
    group.run([&](HostComm *comm) {
        Trainer ppo('g', comm->rank, spec);
        PpoState state(spec);
        KernPpoReport report;
        ppo.begin(&state);
        for (uint32_t update = 0; update < 4; update++) {
            ASSERT_OK(ppo.join(update % 2 == 1 ? comm : nullptr));
            ASSERT_OK(ppo.update(make_step(s, update), &report));
        }
        ASSERT_OK(ppo.read(&state));
        EXPECT_TRUE(ppo_bytes(spec, state) == expected);
        EXPECT_EQ(0, memcmp(&report, &wanted, sizeof report));
    });
    HostComm crowd = {nullptr, 0, PPO_TRAINERS_MAX + 1, 0, false};
    PpoRun ppo(cuda, spec);
    EXPECT_EQ(ppo.join(&crowd), STATUS_USAGE);
    EXPECT_STREQ(host_message(), "65 trainers: at most 64 share PPO's updates");
}

} // namespace
