// PPO's updates on the CPU, shared by several trainers: the bits of one, whatever their number and each one's way.
#include "ppo_reference.h"
#include "thread_group.h"

namespace {

class Ppo : private CpuKernels, public PpoRun {
  public:
    Ppo(const CpuWay &way, const KernPpoSpec &spec) : CpuKernels(way), PpoRun(backend(), spec) {}
};

std::vector<PpoSetting> settings() {
    return {
        // Shards of 3 envs, which end within blocks of lanes; episodes that end and are cut off.
        {"cartpole", {17, 33}, POLICY_TANH, false, 24, 8, 100, 1, 2, true, true, 25, false},
        {"pendulum", {64}, POLICY_RELU, true, 16, 16, 40, 8, 2, true, false, 16, true},
        {"mountain_car", {80, 16}, POLICY_RELU, false, 64, 64, 8, 2, 1, false, false, 0, false},
        {"cartpole", {17}, POLICY_TANH, false, 32, 8, 60, 2, 2, true, true, 25, false, 18},
    };
}

// The ways of a group's members, each another.
CpuWay way_of(int rank) {
    const int lanes[] = {0, 1, 8, 0};
    return {1 + rank % 2, rank % 3 == 1 ? "baseline" : "auto", lanes[rank % 4]};
}

std::string one_trainer(const PpoSetting &s, const KernPpoSpec &spec, uint32_t updates, KernPpoReport *report) {
    Ppo ppo(CpuWay{2, "auto", 0}, spec);
    PpoState state(spec);
    ppo.begin(&state);
    for (uint32_t update = 0; update < updates; update++)
        EXPECT_EQ(ppo.update(make_step(s, update), report), STATUS_OK) << host_message();
    EXPECT_EQ(ppo.read(&state), STATUS_OK);
    return ppo_bytes(spec, state);
}

TEST(PpoGroup, HasTheBitsOfOneTrainer) {
    uint64_t seed = fresh_seed();
    for (const PpoSetting &s : settings()) {
        KernPpoSpec spec = make_spec(s, seed);
        KernPpoReport wanted;
        std::string expected = one_trainer(s, spec, 2, &wanted);
        for (int size : {1, 2, 3, 4, 7, 8}) {
            ThreadGroup group(size);
            group.run([&](HostComm *comm) {
                SCOPED_TRACE(std::string(s.sim) + ", trainer " + std::to_string(comm->rank) + " of " +
                             std::to_string(size));
                Ppo ppo(way_of(comm->rank), spec);
                PpoState state(spec);
                ppo.begin(&state);
                ASSERT_STATUS(ppo.join(comm));
                KernPpoReport report;
                for (uint32_t update = 0; update < 2; update++)
                    ASSERT_STATUS(ppo.update(make_step(s, update), &report));
                ASSERT_STATUS(ppo.read(&state));
                EXPECT_TRUE(ppo_bytes(spec, state) == expected);
                EXPECT_EQ(0, memcmp(&report, &wanted, sizeof report));
            });
        }
    }
}

// A member is gone in the middle of an update: the others go back to the state before, and go on in another group or
// alone.
TEST(PpoGroup, GoesOnFromTheStateBeforeAfterALoss) {
    PpoSetting s = settings()[0];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    KernPpoReport report;
    std::string expected = one_trainer(s, spec, 2, &report);
    PpoState before(spec);
    {
        Ppo ppo(CpuWay{1, "auto", 0}, spec);
        ppo.begin(&before);
        ASSERT_STATUS(ppo.update(make_step(s, 0), &report));
        ASSERT_STATUS(ppo.read(&before));
    }
    ThreadGroup whole(4), smaller(2);
    std::vector<std::string> after(2);
    whole.run([&](HostComm *comm) {
        if (comm->rank == 3) return; // leaves, and the rest finds out
        Ppo ppo(way_of(comm->rank), spec);
        KernPpoReport ignored;
        ASSERT_STATUS(ppo.write(before));
        ASSERT_STATUS(ppo.join(comm));
        EXPECT_EQ(ppo.update(make_step(s, 1), &ignored), STATUS_STOPPED);
        if (comm->rank != 0) return;
        PpoState state(spec);
        ASSERT_STATUS(ppo.join(nullptr));
        ASSERT_STATUS(ppo.write(before));
        ASSERT_STATUS(ppo.update(make_step(s, 1), &ignored));
        ASSERT_STATUS(ppo.read(&state));
        EXPECT_TRUE(ppo_bytes(spec, state) == expected);
    });
    smaller.run([&](HostComm *comm) {
        Ppo ppo(way_of(comm->rank + 1), spec);
        PpoState state(spec);
        KernPpoReport ignored;
        ASSERT_STATUS(ppo.write(before));
        ASSERT_STATUS(ppo.join(comm));
        ASSERT_STATUS(ppo.update(make_step(s, 1), &ignored));
        ASSERT_STATUS(ppo.read(&state));
        EXPECT_TRUE(ppo_bytes(spec, state) == expected);
    });
}

// All members say the same, whoever's env it was.
TEST(PpoGroup, NamesWhatIsNotFinite) {
    PpoSetting s = settings()[1];
    KernPpoSpec spec = make_spec(s, fresh_seed());
    for (int env : {3, 14}) {
        ThreadGroup group(4);
        group.run([&](HostComm *comm) {
            Ppo ppo(way_of(comm->rank), spec);
            PpoState state(spec);
            ppo.begin(&state);
            float bad = std::nanf("");
            std::memcpy(&state.envs[index_of(env * ppo_env_words(&spec))], &bad, 4);
            ASSERT_STATUS(ppo.write(state));
            ASSERT_STATUS(ppo.join(comm));
            KernPpoReport report;
            EXPECT_EQ(ppo.update(make_step(s, 2), &report), STATUS_NUMERIC);
            EXPECT_EQ(std::string(host_message()),
                      "pendulum: update 2, env " + std::to_string(env) + ", step 0: theta_rad is NaN or infinite");
        });
    }
}

// More trainers than shards: the rest only listen.
TEST(PpoGroup, NeedsNoMoreTrainersThanShards) {
    PpoSetting s = settings()[0];
    s.shards = 2;
    KernPpoSpec spec = make_spec(s, fresh_seed());
    KernPpoReport wanted;
    std::string expected = one_trainer(s, spec, 1, &wanted);
    ThreadGroup group(5);
    group.run([&](HostComm *comm) {
        Ppo ppo(way_of(comm->rank), spec);
        PpoState state(spec);
        KernPpoReport report;
        ppo.begin(&state);
        ASSERT_STATUS(ppo.join(comm));
        ASSERT_STATUS(ppo.update(make_step(s, 0), &report));
        ASSERT_STATUS(ppo.read(&state));
        EXPECT_TRUE(ppo_bytes(spec, state) == expected);
    });
    HostComm crowd = {nullptr, 0, PPO_TRAINERS_MAX + 1, 0, false};
    Ppo ppo(CpuWay{1, "auto", 0}, spec);
    EXPECT_EQ(ppo.join(&crowd), STATUS_USAGE);
    EXPECT_STREQ(host_message(), "65 trainers: at most 64 share PPO's updates");
}

} // namespace
