// Batches on the GPU against batches on the CPU, bit for bit.
#include "perf/lander_pilot.h"
#include "perf/walker_pilot.h"
#include "tests/cuda/cuda_test_util.h"
#include "tests/kernels/fresh_seed.h"

namespace {

// A batch and what its buffers hold, env after env: 4-byte words, so that a comparison is one of bits.
struct Batch {
    KernBatch *batch = nullptr;
    KernBatchView view = {};
    const KernOps *ops = nullptr;

    void open(KernBackend *backend, const KernBatchSpec &spec) {
        ops = backend->ops;
        ASSERT_OK(ops->batch_open(backend, &spec, &batch));
        view = ops->batch_view(batch);
    }
    ~Batch() {
        if (ops != nullptr) ops->batch_close(batch);
    }

    size_t at(int64_t env, int word, int words) const {
        return static_cast<size_t>((env / view.lanes * words + word) * view.lanes + env % view.lanes);
    }
    std::vector<uint32_t> read_blocks(const void *buffer, int words) const {
        std::vector<uint32_t> blocks(static_cast<size_t>(view.blocks * view.lanes) * static_cast<size_t>(words));
        EXPECT_EQ(ops->batch_read(batch, blocks.data(), buffer, blocks.size() * 4), STATUS_OK) << host_message();
        return blocks;
    }
    std::vector<uint32_t> read(const void *buffer, int words) const {
        std::vector<uint32_t> blocks = read_blocks(buffer, words), envs;
        for (int64_t env = 0; env < view.envs; env++) {
            for (int word = 0; word < words; word++)
                envs.push_back(blocks[at(env, word, words)]);
        }
        return envs;
    }
    // envs: [env][word]
    void write(void *buffer, int words, const std::vector<uint32_t> &envs) const {
        std::vector<uint32_t> blocks = read_blocks(buffer, words);
        for (int64_t env = 0; env < view.envs; env++) {
            for (int word = 0; word < words; word++) {
                blocks[at(env, word, words)] = envs[static_cast<size_t>(env * words + word)];
            }
        }
        ASSERT_OK(ops->batch_write(batch, buffer, blocks.data(), blocks.size() * 4));
    }
};

void expect_equal(const Batch &a, const Batch &b, const KernBatchSpec &spec) {
    const SimSpec *sim = spec.sim.spec;
    EXPECT_EQ(a.read(a.view.state, sim->state_words), b.read(b.view.state, sim->state_words)) << "state";
    EXPECT_EQ(a.read(a.view.obs, sim->obs), b.read(b.view.obs, sim->obs)) << "obs";
    EXPECT_EQ(a.read(a.view.reward, 1), b.read(b.view.reward, 1)) << "reward";
    EXPECT_EQ(a.read(a.view.terminated, 1), b.read(b.view.terminated, 1)) << "terminated";
    EXPECT_EQ(a.read(a.view.truncated, 1), b.read(b.view.truncated, 1)) << "truncated";
    EXPECT_EQ(a.read(a.view.length, 1), b.read(b.view.length, 1)) << "length";
    EXPECT_EQ(a.read(a.view.episode_return, 1), b.read(b.view.episode_return, 1)) << "episode_return";
    EXPECT_EQ(a.read(a.view.final_length, 1), b.read(b.view.final_length, 1)) << "final_length";
    EXPECT_EQ(a.read(a.view.final_return, 1), b.read(b.view.final_return, 1)) << "final_return";
    if (spec.autoreset == KERN_AUTORESET_SAME_STEP) {
        EXPECT_EQ(a.read(a.view.final_obs, sim->obs), b.read(b.view.final_obs, sim->obs)) << "final_obs";
    }
}

void write_actions(const SimSpec *sim, uint32_t step, Batch *a, Batch *b) {
    std::vector<uint32_t> discrete, continuous;
    int discrete_actions = sim_spec_discrete_actions(sim);
    for (int64_t env = 0; env < a->view.envs; env++) {
        for (int k = 0; k < discrete_actions + sim->continuous; k++) {
            float u = test_uniform(step + 2000 * static_cast<uint32_t>(k), static_cast<uint32_t>(env));
            if (k < discrete_actions) {
                discrete.push_back(static_cast<uint32_t>(u * static_cast<float>(sim->choices[k])));
            } else {
                continuous.push_back(sim_bits_from_float(sim_lerp(u, sim->action_low, sim->action_high)));
            }
        }
    }
    for (Batch *batch : {a, b}) {
        if (discrete_actions > 0) batch->write(batch->view.discrete, discrete_actions, discrete);
        if (sim->continuous > 0) batch->write(batch->view.continuous, sim->continuous, continuous);
    }
}

// What lander_pilot() makes of the observations, full throttle where the actions are continuous.
void write_piloted_actions(const SimSpec *sim, Batch *a, Batch *b) {
    std::vector<uint32_t> obs = a->read(a->view.obs, sim->obs), actions;
    for (size_t env = 0; env < static_cast<size_t>(a->view.envs); env++) {
        float seen[8];
        std::memcpy(seen, &obs[env * 8], sizeof seen);
        int32_t action = lander_pilot(seen, 1);
        if (sim->continuous == 0) {
            actions.push_back(static_cast<uint32_t>(action));
        } else {
            actions.push_back(sim_bits_from_float(action == 2 ? 1.0f : -1.0f));
            actions.push_back(sim_bits_from_float(action == 1 ? -1.0f : action == 3 ? 1.0f : 0.0f));
        }
    }
    for (Batch *batch : {a, b}) {
        if (sim->continuous == 0) {
            batch->write(batch->view.discrete, 1, actions);
        } else {
            batch->write(batch->view.continuous, sim->continuous, actions);
        }
    }
}

// What walker_pilot_act() makes of them. Pilots go on where their env begins a new episode.
void write_walkers_actions(const SimSpec *sim, std::vector<WalkerPilot> *pilots, Batch *a, Batch *b) {
    std::vector<uint32_t> obs = a->read(a->view.obs, sim->obs), actions(pilots->size() * 4);
    for (size_t env = 0; env < pilots->size(); env++) {
        float seen[24], action[4];
        std::memcpy(seen, &obs[env * 24], sizeof seen);
        walker_pilot_act(&(*pilots)[env], seen, 1, action);
        std::memcpy(&actions[env * 4], action, sizeof action);
    }
    for (Batch *batch : {a, b})
        batch->write(batch->view.continuous, sim->continuous, actions);
}

// With auto-reset off, whoever is done is reset by mask, and now and then one that is not.
void reset_by_mask(uint32_t step, Batch *a, Batch *b) {
    std::vector<uint32_t> terminated = a->read(a->view.terminated, 1), truncated = a->read(a->view.truncated, 1);
    std::vector<uint8_t> mask;
    for (size_t env = 0; env < terminated.size(); env++) {
        bool done = (terminated[env] | truncated[env]) != 0 && step % 4 != 0;
        mask.push_back(done || test_uniform(step + 1000, static_cast<uint32_t>(env)) < 0.01f);
    }
    ASSERT_OK(a->ops->batch_reset(a->batch, mask.data()));
    ASSERT_OK(b->ops->batch_reset(b->batch, mask.data()));
}

class CudaBatchTest : public CudaTest {
  protected:
    void compare(const KernBatchSpec &spec, uint32_t steps) {
        Batch a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        ASSERT_EQ(b.view.lanes, 32);
        expect_equal(a, b, spec);
        for (uint32_t step = 0; step < steps && !HasFailure(); step++) {
            SCOPED_TRACE("step " + std::to_string(step));
            write_actions(spec.sim.spec, step, &a, &b);
            ASSERT_OK(a.ops->batch_step(a.batch));
            ASSERT_OK(b.ops->batch_step(b.batch));
            expect_equal(a, b, spec);
            if (spec.autoreset == KERN_AUTORESET_DISABLED) reset_by_mask(step, &a, &b);
        }
        expect_equal(a, b, spec);
    }

    // 500 steps of `envs` envs, whose legs are on the ground where observations left or right are not 0.
    template <typename Act>
    void compare_in_contact(const SimSpec *sim, int64_t envs, size_t left, size_t right, int least_ends, Act write) {
        SCOPED_TRACE(sim->name);
        KernBatchSpec spec = {test_sim(sim, sim->time_limit, false), envs, fresh_seed(), KERN_AUTORESET_SAME_STEP};
        const size_t count = static_cast<size_t>(sim->obs);
        Batch a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        int in_contact = 0, ends = 0;
        for (int step = 0; step < 500 && !HasFailure(); step++) {
            SCOPED_TRACE("step " + std::to_string(step));
            write(&a, &b);
            ASSERT_OK(a.ops->batch_step(a.batch));
            ASSERT_OK(b.ops->batch_step(b.batch));
            expect_equal(a, b, spec);
            std::vector<uint32_t> obs = a.read(a.view.obs, sim->obs), terminated = a.read(a.view.terminated, 1);
            for (size_t env = 0; env < terminated.size(); env++) {
                in_contact += obs[env * count + left] != 0 || obs[env * count + right] != 0;
                ends += terminated[env] != 0;
            }
        }
        std::printf("%s: %d of %lld steps with a leg on the ground, %d ends\n", sim->name, in_contact,
                    500 * static_cast<long long>(envs), ends);
        EXPECT_GE(in_contact, 50);
        EXPECT_GE(ends, least_ends);
    }

    void compare_mode(KernAutoreset autoreset) {
        const int64_t sizes[] = {1, 31, 64, 130, 33};
        for (int i = 0; i < sim_spec_count(); i++) {
            for (bool randomised : {false, true}) {
                const SimSpec *sim = sim_spec_at(i);
                // Heavy ones meet both in one mode, and one of the two in the others.
                if (is_heavy(sim) && autoreset != KERN_AUTORESET_SAME_STEP && (i + autoreset + randomised) % 2 != 0)
                    continue;
                SCOPED_TRACE(std::string(sim->name) + (randomised ? ", randomised" : ""));
                // Of the heavy ones: a part of a block, then another with one env.
                const int64_t envs = !is_heavy(sim) ? sizes[(i + randomised) % 5] : randomised ? 33 : 5;
                KernBatchSpec spec = {test_sim(sim, test_steps(sim, 37), randomised), envs, UINT64_C(0x123456789abcdef),
                                      autoreset};
                compare(spec, static_cast<uint32_t>(test_steps(sim, 200)));
                if (IsSkipped() || HasFailure()) return;
            }
        }
    }
};

TEST_F(CudaBatchTest, NextStepResetMatchesTheCpu) { compare_mode(KERN_AUTORESET_NEXT_STEP); }

TEST_F(CudaBatchTest, SameStepResetMatchesTheCpu) { compare_mode(KERN_AUTORESET_SAME_STEP); }

TEST_F(CudaBatchTest, ResetByMaskMatchesTheCpu) { compare_mode(KERN_AUTORESET_DISABLED); }

TEST_F(CudaBatchTest, TheWholeTimeLimitMatchesTheCpu) {
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *sim = sim_spec_at(i);
        if (is_heavy(sim)) continue;
        SCOPED_TRACE(sim->name);
        KernBatchSpec spec = {test_sim(sim, sim->time_limit, false), 5, 7, KERN_AUTORESET_SAME_STEP};
        compare(spec, static_cast<uint32_t>(sim->time_limit) + 10);
        if (HasFailure()) return;
    }
}

// 500 steps of landers that come down, stand, slide and fall asleep on the ground.
TEST_F(CudaBatchTest, LandersInContactMatchTheCpu) {
    for (const char *name : {"lunar_lander", "lunar_lander_continuous"}) {
        const SimSpec *sim = sim_spec_find(name);
        compare_in_contact(sim, 3, 6, 7, 1, [&](Batch *a, Batch *b) { write_piloted_actions(sim, a, b); });
    }
}

// And of walkers that walk, stumble and fall.
TEST_F(CudaBatchTest, WalkersInContactMatchTheCpu) {
    for (const char *name : {"bipedal_walker", "bipedal_walker_hardcore"}) {
        const SimSpec *sim = sim_spec_find(name);
        std::vector<WalkerPilot> pilots(2);
        for (WalkerPilot &pilot : pilots)
            walker_pilot_start(&pilot);
        compare_in_contact(sim, 2, 8, 13, 0, [&](Batch *a, Batch *b) { write_walkers_actions(sim, &pilots, a, b); });
    }
}

// The lowest env is named, in the step it happens, by the first field; the report does not outlive its step.
TEST_F(CudaBatchTest, NamesTheLowestInfiniteEnv) {
    const SimSpec *sim = sim_spec_find("cartpole");
    for (KernAutoreset autoreset : {KERN_AUTORESET_NEXT_STEP, KERN_AUTORESET_SAME_STEP, KERN_AUTORESET_DISABLED}) {
        KernBatchSpec spec = {test_sim(sim, 50, false), 100, 3, autoreset};
        Batch a, b;
        a.open(cpu, spec);
        b.open(cuda, spec);
        std::vector<uint32_t> state = a.read(a.view.state, sim->state_words);
        for (size_t env : {99u, 71u, 70u})
            state[env * 5 + 3] = 0x7f800000u; // theta_dot
        state[40 * 5 + 1] = 0x7fc00000u;      // x_dot
        for (Batch *batch : {&a, &b})
            batch->write(batch->view.state, sim->state_words, state);
        for (uint32_t step = 0; step < 4; step++) {
            write_actions(sim, step, &a, &b);
            Status expected = a.ops->batch_step(a.batch);
            std::string message = expected == STATUS_OK ? "" : host_message();
            Status status = b.ops->batch_step(b.batch);
            EXPECT_EQ(status, expected);
            if (status == STATUS_NUMERIC) {
                EXPECT_EQ(host_message(), message);
            }
            if (step == 0) {
                EXPECT_EQ(message, "cartpole: env 40, step 1: x_m is NaN or infinite");
            }
        }
    }
}

TEST_F(CudaBatchTest, RefusesSizesOutOfRange) {
    KernBatchSpec spec = {test_sim(sim_spec_at(0), 50, false), 0, 3, KERN_AUTORESET_SAME_STEP};
    KernBatch *batch = nullptr;
    EXPECT_EQ(cuda->ops->batch_open(cuda, &spec, &batch), STATUS_USAGE);
}

// A plan needs no memory, so it can be made for more than any GPU has.
TEST_F(CudaBatchTest, PlansTheMostEnvs) {
    KernBatchSpec spec = {test_sim(sim_spec_find("cartpole"), 50, true), UINT32_MAX, 3, KERN_AUTORESET_SAME_STEP};
    HostPlan plan;
    host_plan_init(&plan);
    ASSERT_OK(cuda->ops->batch_plan(cuda, &spec, &plan));
    EXPECT_GT(host_plan_total(&plan), static_cast<size_t>(spec.envs) * 4 * (5 + 8 + 4 + 4 + 1 + 8));
    EXPECT_GE(host_plan_find(&plan, "final observations"), 0);
}

} // namespace
