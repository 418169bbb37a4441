// The solver's iterations of several worlds at once against those of each alone, bit by bit.
#include "kernel_reference.h"

#include <memory>

extern "C" {
#include "kernels/cpu/islands.h"
}

namespace {

using Iterate = uint32_t(Rigid2dWorld *const *, int);
struct NamedIterate {
    const char *isa;
    Iterate *iterate;
};
std::vector<NamedIterate> iterate_functions() {
    std::vector<NamedIterate> found = {{"baseline", cpu_islands_iterate_baseline}};
#if defined(__x86_64__)
    if (has_isa("v3")) found.push_back({"v3", cpu_islands_iterate_v3});
    if (has_isa("v4")) found.push_back({"v4", cpu_islands_iterate_v4});
#endif
    return found;
}

constexpr int bodies = 5, joints_max = 4, contacts_max = 40, worlds_max = CPU_ISLANDS_MAX, iterations = 6;

// A world in the middle of a step, as far as its iterations go.
struct Island {
    Rigid2dVelocity velocity[bodies] = {};
    Rigid2dJointRow joint_row[joints_max] = {};
    Rigid2dContactRow contact_row[contacts_max] = {};
    Rigid2dWorld w = {};

    void point() {
        w.bodies = bodies, w.velocity_iterations = iterations;
        w.velocity = velocity, w.joint_row = joint_row, w.contact_row = contact_row;
    }
};

class Random {
  public:
    explicit Random(uint64_t seed) : bits_(seed) {}
    int below(int n) { return static_cast<int>(bits_() % static_cast<uint64_t>(n)); }
    // Small, and a signed zero now and then.
    float value() {
        if (below(16) == 0) return below(2) == 0 ? 0.0f : -0.0f;
        return std::uniform_real_distribution<float>(-0.5f, 0.5f)(bits_);
    }
    float positive() { return std::fabs(value()); }

  private:
    std::mt19937_64 bits_;
};

// A chain of joints: the same in all worlds unless `turned`.
void fill_joints(Random *random, Island *island, int count, bool turned) {
    island->w.joint_rows = count;
    for (int i = 0; i < count; i++) {
        Rigid2dJointRow &row = island->joint_row[i];
#define FILL(type, name) row.name = static_cast<type>(random->value());
        RIGID2D_JOINT_ROW(FILL)
        row.joint = count - 1 - i;
        row.a = turned ? row.joint + 1 : row.joint, row.b = turned ? row.joint : row.joint + 1;
        row.free = random->below(2);
        row.side = static_cast<float>(random->below(3) - 1);
        row.motor_most = random->positive();
    }
}

void fill_contacts(Random *random, Island *island, int count) {
    island->w.contact_rows = count;
    for (int i = 0; i < count; i++) {
        Rigid2dContactRow &row = island->contact_row[i];
        RIGID2D_CONTACT_ROW(FILL)
#undef FILL
        row.contact = i, row.body = random->below(bodies), row.points = 1 + random->below(2);
        row.friction = random->positive(), row.mass = random->positive(), row.inertia = random->positive();
        row.n0 = random->positive(), row.n1 = random->positive();
        if (row.points == 2) continue;
        row.rx1 = row.ry1 = row.nm1 = row.tm1 = row.n1 = row.t1 = 0.0f;
        row.k11 = row.k12 = row.k22 = row.m11 = row.m12 = row.m22 = 0.0f;
    }
}

struct Worlds {
    std::vector<std::unique_ptr<Island>> island;
    std::vector<Rigid2dWorld *> world;

    void add(const Island &from) {
        island.push_back(std::make_unique<Island>(from));
        island.back()->point();
        world.push_back(&island.back()->w);
    }
};

void expect_same(float a, float b, const std::string &where) {
    if (std::isnan(a) && std::isnan(b)) return;
    EXPECT_EQ(bits_of(a), bits_of(b)) << where << ": " << a << " " << b;
}

void expect_same(const Island &a, const Island &b, const std::string &where) {
    for (int i = 0; i < bodies; i++) {
        expect_same(a.velocity[i].x, b.velocity[i].x, where + ", body " + std::to_string(i));
        expect_same(a.velocity[i].y, b.velocity[i].y, where + ", body " + std::to_string(i));
        expect_same(a.velocity[i].w, b.velocity[i].w, where + ", body " + std::to_string(i));
    }
#define SAME(type, name) expect_same(static_cast<float>(x.name), static_cast<float>(y.name), where + ", " #name);
    for (int i = 0; i < a.w.joint_rows; i++) {
        const Rigid2dJointRow &x = a.joint_row[i], &y = b.joint_row[i];
        RIGID2D_JOINT_ROW(SAME)
    }
    for (int i = 0; i < a.w.contact_rows; i++) {
        const Rigid2dContactRow &x = a.contact_row[i], &y = b.contact_row[i];
        RIGID2D_CONTACT_ROW(SAME)
    }
#undef SAME
}

Island random_island(Random *random, int joints, int contacts, bool turned) {
    Island island;
    for (Rigid2dVelocity &v : island.velocity)
        v.x = random->value() + 0.0f, v.y = random->value() + 0.0f, v.w = random->value() + 0.0f; // not -0
    fill_joints(random, &island, joints, turned);
    fill_contacts(random, &island, contacts);
    return island;
}

// Iterates the worlds together, and each that was not left behind alone; expects the same, and `left` bits.
void check(const NamedIterate &f, const std::vector<Island> &islands, uint32_t left) {
    Worlds together, alone;
    for (const Island &island : islands)
        together.add(island), alone.add(island);
    EXPECT_EQ(f.iterate(together.world.data(), static_cast<int>(islands.size())), left) << f.isa;
    for (size_t i = 0; i < islands.size(); i++) {
        if (!(left >> i & 1u)) rigid2d_island_iterate(alone.world[i]);
        expect_same(*together.island[i], *alone.island[i], std::string(f.isa) + ", world " + std::to_string(i));
    }
}

TEST(Islands, AreSolvedAsEachAlone) {
    uint64_t seed = fresh_seed();
    for (const NamedIterate &f : iterate_functions()) {
        Random random(seed);
        for (int trial = 0; trial < 200 && !::testing::Test::HasFailure(); trial++) {
            const int joints = random.below(joints_max + 1), count = 1 + random.below(worlds_max);
            std::vector<Island> islands;
            for (int i = 0; i < count; i++)
                islands.push_back(random_island(&random, joints, random.below(4), false));
            check(f, islands, 0);
        }
    }
}

TEST(Islands, ContactsOfOnePointAreSolvedAsSuch) {
    Random random(fresh_seed());
    for (const NamedIterate &f : iterate_functions()) {
        for (int trial = 0; trial < 50 && !::testing::Test::HasFailure(); trial++) {
            std::vector<Island> islands;
            for (int i = 0; i < worlds_max; i++) {
                islands.push_back(random_island(&random, 2, 8, false));
                int count = 0;
                for (int k = 0; k < 8; k++) {
                    const Rigid2dContactRow row = islands.back().contact_row[k];
                    if (row.points == 1) islands.back().contact_row[count++] = row;
                }
                islands.back().w.contact_rows = count;
            }
            check(f, islands, 0);
        }
    }
}

TEST(Islands, SleepingWorldsHaveNoLane) {
    Random random(fresh_seed());
    for (const NamedIterate &f : iterate_functions()) {
        check(f, std::vector<Island>(3, random_island(&random, 0, 0, false)), 0);
        std::vector<Island> islands(worlds_max, random_island(&random, 0, 0, false));
        islands[3] = random_island(&random, 2, 2, false);
        islands[15] = random_island(&random, 2, 1, false);
        check(f, islands, 0);
    }
}

TEST(Islands, LeaveWhatIsNotLikeTheOthers) {
    Random random(fresh_seed());
    for (const NamedIterate &f : iterate_functions()) {
        std::vector<Island> islands;
        islands.push_back(random_island(&random, 3, 2, false));
        islands.push_back(random_island(&random, 3, 1, true));
        islands.push_back(random_island(&random, 2, 1, false));
        islands.push_back(random_island(&random, 3, 0, false));
        check(f, islands, 6);
    }
}

TEST(Islands, LeaveContactsWithoutRoom) {
    Random random(fresh_seed());
    for (const NamedIterate &f : iterate_functions()) {
        std::vector<Island> islands;
        islands.push_back(random_island(&random, 2, contacts_max, false));
        // Bodies 1 and 0 in all slots, so that there is none left for body 2.
        for (int body : {1, 0, 2}) {
            islands.push_back(random_island(&random, 2, 32, false));
            for (int i = 0; i < 32; i++)
                islands.back().contact_row[i].body = body;
        }
        islands.push_back(random_island(&random, 2, 1, false));
        islands.back().contact_row[0].body = 1;
        check(f, islands, 9);
    }
}

} // namespace
