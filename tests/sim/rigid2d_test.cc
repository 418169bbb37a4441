// The rigid-body core alone: shapes against closed forms, and that whatever is put into a world ends in a defined state
// or in a NaN or an overflow that the simulator reports, never in a hang. What is faithful to Box2D is tested by the
// simulators on it (lunar_lander_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include "sim/rigid2d/rigid2d.h"
#include "tests/kernels/fresh_seed.h"

namespace {

Rigid2dVec vec(double x, double y) { return rigid2d_vec(static_cast<real>(x), static_cast<real>(y)); }

// A world whose bodies are boxes of 1 m x 1 m.
struct World {
    static constexpr int bodies_max = 3, contacts_max = 12;
    Rigid2dBody body[bodies_max] = {};
    Rigid2dJoint joint[2] = {};
    Rigid2dContact contact[contacts_max] = {};
    Rigid2dPolygon shape[bodies_max] = {};
    Rigid2dMass mass[bodies_max] = {};
    Rigid2dHinge hinge[2] = {};
    std::vector<Rigid2dBox> block;
    std::vector<Rigid2dEdge> edge;
    Rigid2dMotion motion[bodies_max] = {};
    Rigid2dVelocity velocity[bodies_max] = {};
    Rigid2dTouch touch[contacts_max] = {};
    Rigid2dContactRow contact_row[contacts_max] = {};
    Rigid2dJointRow joint_row[2] = {};
    std::vector<real> alpha0;
    Rigid2dWorld w = {};

    World(int bodies, std::vector<Rigid2dEdge> edges, std::vector<Rigid2dBox> blocks = {})
        : block(std::move(blocks)), edge(std::move(edges)), alpha0(block.size() + edge.size() + 1) {
        w.body = body, w.joint = joint, w.contact = contact, w.bodies = bodies, w.contacts_max = contacts_max;
        w.shape = shape, w.mass = mass, w.hinge = hinge;
        w.block = block.data(), w.blocks = static_cast<int32_t>(block.size());
        w.edge = edge.data(), w.edges = static_cast<int32_t>(edge.size()), w.friction = R(0.5);
        w.gravity_mps2 = vec(0, -10), w.dt_s = R(0.02), w.velocity_iterations = 180, w.position_iterations = 60;
        w.motion = motion, w.velocity = velocity, w.touch = touch;
        w.contact_row = contact_row, w.joint_row = joint_row, w.ground_alpha0 = alpha0.data();
        for (int i = 0; i < bodies; i++) {
            rigid2d_polygon_set_box(&shape[i], R(0.5), R(0.5));
            shape[i].friction = R(0.5);
            mass[i] = rigid2d_polygon_mass(&shape[i], R(1.0));
        }
    }

    void put(int i, double x, double y, double angle = 0) {
        rigid2d_body_create(&w, i, vec(x, y), static_cast<real>(angle));
    }
    void step() {
        rigid2d_begin(&w);
        rigid2d_find_contacts(&w);
        rigid2d_step(&w);
    }
};

Rigid2dEdge floor_at(double y) { return Rigid2dEdge{vec(-50, y), vec(50, y), R(0.5)}; }

Rigid2dPolygon box(double x, double y, double half) {
    const Rigid2dVec v[4] = {vec(x - half, y - half), vec(x + half, y - half), vec(x + half, y + half),
                             vec(x - half, y + half)};
    Rigid2dPolygon p;
    rigid2d_polygon_set(&p, v, 4);
    p.friction = R(0.5);
    return p;
}

Rigid2dBox block(double x, double y, double half) {
    return Rigid2dBox{vec(x - half, y - half), vec(x + half, y + half)};
}

TEST(Rigid2dShapeTest, AHullLeavesInnerAndCollinearPointsOut) {
    const Rigid2dVec v[8] = {vec(0, 0), vec(2, 0), vec(1, 0), vec(2, 1), vec(1, 0.5), vec(0, 1), vec(1, 1), vec(2, 0)};
    Rigid2dPolygon p;
    rigid2d_polygon_set(&p, v, 8);
    ASSERT_EQ(p.count, 4);
    const double want[4][2] = {{2, 0}, {2, 1}, {0, 1}, {0, 0}};
    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(p.vertex[i].x, static_cast<real>(want[i][0])) << i;
        EXPECT_EQ(p.vertex[i].y, static_cast<real>(want[i][1])) << i;
    }
    EXPECT_EQ(p.normal[0].x, R(1.0));
    EXPECT_NEAR(p.centroid.x, 1, 1e-6);
    EXPECT_NEAR(p.centroid.y, 0.5, 1e-6);
}

TEST(Rigid2dShapeTest, MassOfABoxAndATriangle) {
    Rigid2dPolygon p = box(3, -2, 0.5);
    Rigid2dMass m = rigid2d_polygon_mass(&p, R(2.0));
    EXPECT_NEAR(1 / m.inverse_mass, 2, 1e-5);
    EXPECT_NEAR(1 / m.inverse_inertia, 2.0 / 6, 1e-4); // m (w^2 + h^2) / 12, about the centre
    EXPECT_NEAR(m.center.x, 3, 1e-5);
    EXPECT_NEAR(m.center.y, -2, 1e-5);
    const Rigid2dVec v[3] = {vec(0, 0), vec(3, 0), vec(0, 3)};
    rigid2d_polygon_set(&p, v, 3);
    m = rigid2d_polygon_mass(&p, R(1.0));
    EXPECT_NEAR(1 / m.inverse_mass, 4.5, 1e-5);
    EXPECT_NEAR(1 / m.inverse_inertia, 4.5, 1e-4); // b^4 / 18
    EXPECT_NEAR(m.center.x, 1, 1e-5);
}

TEST(Rigid2dShapeTest, DegeneratePolygonsAreNothing) {
    const real nan = static_cast<real>(NAN);
    const std::vector<std::vector<Rigid2dVec>> degenerate = {
        {vec(1, 1)},
        {vec(0, 0), vec(1, 1)},
        {vec(0, 0), vec(1, 1), vec(2, 2), vec(3, 3)},
        {vec(1, 1), vec(1, 1), vec(1, 1), vec(1, 1)},
        {vec(0, 0), vec(1e-5, 0), vec(0, 1e-5)},
        {{nan, nan}, {nan, nan}, {nan, nan}},
        {{nan, R(0.0)}, vec(1, 0), vec(0, 1), {R(0.0), nan}},
    };
    for (size_t i = 0; i < degenerate.size(); i++) {
        Rigid2dPolygon p;
        rigid2d_polygon_set(&p, degenerate[i].data(), static_cast<int32_t>(degenerate[i].size()));
        EXPECT_EQ(p.count, 0) << i;
        EXPECT_EQ(rigid2d_polygon_mass(&p, R(1.0)).inverse_mass, R(1.0)) << i;
        EXPECT_EQ(rigid2d_polygon_ray(&p, vec(-5, 0), vec(5, 0), R(1.0)), R(1.0)) << i;
    }
}

TEST(Rigid2dShapeTest, RaysMeetEdgesFromBothSidesAndPolygonsFromOutside) {
    const Rigid2dEdge e = {vec(0, 0), vec(4, 0), R(0.1)};
    EXPECT_NEAR(rigid2d_edge_ray(&e, vec(1, 3), vec(1, -1), R(1.0)), 0.75, 1e-6);
    EXPECT_NEAR(rigid2d_edge_ray(&e, vec(1, -1), vec(1, 3), R(1.0)), 0.25, 1e-6);
    EXPECT_EQ(rigid2d_edge_ray(&e, vec(5, 3), vec(5, -1), R(1.0)), R(1.0)) << "beside it";
    EXPECT_EQ(rigid2d_edge_ray(&e, vec(0, 1), vec(4, 1), R(1.0)), R(1.0)) << "parallel";
    EXPECT_EQ(rigid2d_edge_ray(&e, vec(1, 3), vec(1, -1), R(0.5)), R(0.5)) << "beyond the limit";
    const Rigid2dEdge point = {vec(1, 0), vec(1, 0), R(0.1)};
    EXPECT_EQ(rigid2d_edge_ray(&point, vec(1, 3), vec(1, -1), R(1.0)), R(1.0)) << "no length";
    Rigid2dPolygon p = box(0, 0, 1);
    EXPECT_NEAR(rigid2d_polygon_ray(&p, vec(-3, 0.5), vec(1, 0.5), R(1.0)), 0.5, 1e-6);
    EXPECT_EQ(rigid2d_polygon_ray(&p, vec(0, 0), vec(3, 0), R(1.0)), R(1.0)) << "from inside";
    EXPECT_EQ(rigid2d_polygon_ray(&p, vec(-3, 2), vec(3, 2), R(1.0)), R(1.0)) << "above it";
}

// A chain of uneven points, 14/30 m apart, that begins at x = 0.
std::vector<real> a_chain(std::mt19937_64 *random, int points) {
    std::vector<real> y(static_cast<size_t>(points));
    for (real &at : y)
        at = static_cast<real>(static_cast<double>((*random)() % 1000) * 1e-3);
    return y;
}

void set_chain(Rigid2dWorld *w, const std::vector<real> &y) {
    w->edge = nullptr, w->edges = static_cast<int32_t>(y.size()) - 1;
    w->chain_y_m = y.data(), w->chain_m = R(14.0), w->chain_points = R(30.0);
}

std::vector<Rigid2dEdge> edges_of(const Rigid2dWorld &w) {
    std::vector<Rigid2dEdge> edges;
    for (int32_t i = 0; i < w.edges; i++)
        edges.push_back(rigid2d_ground_edge(&w, i));
    return edges;
}

// Only edges near a body are looked at, which must change nothing, wherever the body is.
TEST(Rigid2dGroundTest, AChainIsAsItsEdgesListed) {
    std::mt19937_64 random(fresh_seed());
    for (int round = 0; round < 20; round++) {
        const std::vector<real> y = a_chain(&random, 40);
        World chain(1, {}, {block(5, 1, 0.3), block(9, 0.5, 0.4)});
        set_chain(&chain.w, y);
        World listed(1, edges_of(chain.w), chain.block);
        for (World *world : {&chain, &listed}) {
            world->alpha0.resize(64), world->w.ground_alpha0 = world->alpha0.data();
            world->put(0, round - 1, 2, 0.3 * round);
            world->body[0].vx_mps = static_cast<real>(round % 7) - R(3.0);
        }
        for (int step = 0; step < 200; step++) {
            chain.step(), listed.step();
            ASSERT_EQ(chain.w.contacts, listed.w.contacts) << round << " " << step;
            ASSERT_EQ(0, std::memcmp(chain.body, listed.body, sizeof chain.body)) << round << " " << step;
        }
    }
}

TEST(Rigid2dGroundTest, RaysMeetWhatIsNearest) {
    std::mt19937_64 random(fresh_seed());
    const std::vector<real> y = a_chain(&random, 40);
    World world(1, {}, {block(3, 1.5, 0.3), block(4, 2, 0.4), block(6, 3, 0)});
    set_chain(&world.w, y);
    auto between = [&](double low, double high) {
        return low + static_cast<double>(random() % 4096) / 4096 * (high - low);
    };
    int hits = 0;
    for (int round = 0; round < 500; round++) {
        const Rigid2dVec from = vec(between(-2, 21), between(-1, 4));
        const Rigid2dVec to[3] = {vec(between(-2, 21), between(-1, 4)), vec(from.x, -1), from};
        real got[3];
        rigid2d_ground_rays(&world.w, from, to, 3, got);
        for (int i = 0; i < 3; i++) {
            real want = R(1.0);
            for (const Rigid2dEdge &e : edges_of(world.w))
                want = rigid2d_edge_ray(&e, from, to[i], want);
            for (int32_t k = 0; k < world.w.blocks; k++) {
                Rigid2dPolygon p;
                rigid2d_ground_polygon(&world.w, k, &p);
                want = rigid2d_polygon_ray(&p, from, to[i], want);
            }
            ASSERT_EQ(got[i], want) << round << " " << i;
            hits += got[i] < R(1.0);
        }
        ASSERT_EQ(got[2], R(1.0)) << "a ray without a length";
    }
    EXPECT_GT(hits, 100);
}

TEST(Rigid2dGroundTest, RaysThatAreNoNumbersEnd) {
    const double extremes[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 1e-45};
    std::mt19937_64 random(1);
    const std::vector<real> y = a_chain(&random, 40);
    World world(1, {}, {block(3, 1.5, 0.3)});
    set_chain(&world.w, y);
    for (double a : extremes) {
        for (double b : extremes) {
            const Rigid2dVec to[2] = {vec(b, a), vec(1, 0)};
            real got[2];
            rigid2d_ground_rays(&world.w, vec(a, b), to, 2, got);
            EXPECT_TRUE(!(got[0] < R(0.0)) && !(got[0] > R(1.0))) << a << " " << b;
        }
        Rigid2dSpan span = rigid2d_ground_span(&world.w, static_cast<real>(a), static_cast<real>(a));
        EXPECT_TRUE(span.begin >= 0 && span.begin <= 39 && span.end >= 0 && span.end <= 39) << a;
        EXPECT_EQ(span.end - span.begin == 39, std::isnan(a)) << "a NaN may be anywhere";
    }
}

TEST(Rigid2dWorldTest, ABoxFallsSettlesAndSleeps) {
    for (bool on_block : {false, true}) {
        World world(1, on_block ? std::vector<Rigid2dEdge>{} : std::vector<Rigid2dEdge>{floor_at(0)},
                    on_block ? std::vector<Rigid2dBox>{block(0, -2, 2)} : std::vector<Rigid2dBox>{});
        world.put(0, 0.1, 3, 0.2);
        int steps = 0;
        while (world.body[0].awake && steps < 1000)
            world.step(), steps++;
        EXPECT_LT(steps, 1000) << on_block;
        EXPECT_GT(steps, 60) << on_block;
        EXPECT_NEAR(world.body[0].y_m, 0.5 + 0.015, 0.01) << "two skins, but for the slop";
        EXPECT_NEAR(std::remainder(world.body[0].angle_rad, SIM_PI / 2), 0, 5e-3) << "the slop over its width";
        ASSERT_EQ(world.w.contacts, 1);
        EXPECT_EQ(world.contact[0].points, 2);
        EXPECT_NEAR(world.contact[0].normal0_ns + world.contact[0].normal1_ns, 10 * 0.02, 1e-3) << "its weight";
    }
}

// An edge has no thickness: only continuous collision keeps a body from passing it within one step.
TEST(Rigid2dWorldTest, AFastBodyDoesNotPassThroughTheGround) {
    for (double speed : {30.0, 99.0, 1e4, 1e6, 3e38}) {
        World world(1, {floor_at(0)});
        world.put(0, 0, 1.2);
        world.body[0].vy_mps = static_cast<real>(-speed);
        for (int i = 0; i < 50; i++)
            world.step();
        EXPECT_GT(world.body[0].y_m, 0.4) << speed;
        EXPECT_LT(world.body[0].y_m, 3) << speed;
        EXPECT_LE(std::hypot(world.body[0].vx_mps, world.body[0].vy_mps), 100.01) << "2 m a step at most";
    }
}

// A new contact wakes a body after the islands are solved: it has not moved, but the search for impacts looks at it.
TEST(Rigid2dWorldTest, ABodyThatWakesLateIsSearchedForImpacts) {
    World world(1, {floor_at(0)});
    world.put(0, 0, 0.5 + 0.005); // as close as an impact is
    world.body[0].awake = 0;
    world.motion[0].swept = {vec(1000, 1000), vec(1001, 1001)}; // of another step
    rigid2d_begin(&world.w);
    rigid2d_step(&world.w);
    EXPECT_EQ(world.body[0].awake, 1);
    ASSERT_EQ(world.w.contacts, 1);
    EXPECT_EQ(world.touch[0].toi_count, 1);
    EXPECT_EQ(world.contact[0].points, 2);
}

TEST(Rigid2dWorldTest, WhatIsClearOfTheGroundHasNoImpact) {
    std::mt19937_64 random(fresh_seed());
    auto between = [&](double low, double high) {
        return low + static_cast<double>(random() % 65536) / 65536 * (high - low);
    };
    int clear = 0, impacts = 0;
    for (int round = 0; round < 20000; round++) {
        const bool on_block = round % 3 == 0;
        const Rigid2dEdge edge = {vec(-1, between(-0.5, 0.5)), vec(1, between(-0.5, 0.5)), R(0.5)};
        World world(1, {edge},
                    on_block ? std::vector<Rigid2dBox>{block(-1, -1, between(0.1, 0.5))} : std::vector<Rigid2dBox>{});
        world.put(0, between(-2, 2), between(0.4, 1.6), between(-4, 4));
        rigid2d_begin(&world.w); // the sweep begins here
        Rigid2dBody &b = world.body[0];
        b.x_m += static_cast<real>(between(-1, 1)), b.y_m += static_cast<real>(between(-1, 1));
        b.angle_rad += static_cast<real>(between(-1.5, 1.5));
        rigid2d_body_follow(&world.w, 0);
        rigid2d_body_box_follow(&world.w, 0);
        const Rigid2dSweep sweep = rigid2d_body_sweep(&world.w, 0);
        Rigid2dPolygon ground;
        ground.vertex[0] = edge.a, ground.vertex[1] = edge.b, ground.count = 2;
        if (on_block) rigid2d_ground_polygon(&world.w, 0, &ground);
        const real toi = rigid2d_toi({ground.vertex, ground.count}, {world.shape[0].vertex, 4}, sweep);
        const int32_t is_clear = rigid2d_contact_is_clear(&world.w, 0, 0, &sweep);
        EXPECT_TRUE(!is_clear || toi == R(1.0)) << round << " " << toi;
        clear += is_clear, impacts += toi < R(1.0);
    }
    EXPECT_GT(clear, 2000);
    EXPECT_GT(impacts, 2000);
}

TEST(Rigid2dWorldTest, SpeedIsClippedToTwoMetresAStep) {
    World world(1, {});
    world.put(0, 0, 0);
    world.body[0].vx_mps = R(1e6), world.body[0].spin_radps = R(1e6);
    world.step();
    EXPECT_NEAR(world.body[0].x_m, 2, 1e-4);
    EXPECT_NEAR(world.body[0].angle_rad, 1.5707964, 1e-5);
}

TEST(Rigid2dWorldTest, DegenerateGroundIsDefined) {
    const Rigid2dEdge point = {vec(0, 0), vec(0, 0), R(0.5)};
    World world(1, {point, floor_at(-1)}, {block(0, 0, 0), block(0, 0.5, -1)});
    for (int i = 0; i < 2; i++) {
        Rigid2dPolygon p;
        rigid2d_ground_polygon(&world.w, i, &p);
        EXPECT_EQ(p.count, i == 0 ? 0 : 4) << "nothing, and a box whose corners are exchanged";
    }
    world.w.blocks = 1;
    world.put(0, 0, 1);
    for (int i = 0; i < 500; i++)
        world.step();
    EXPECT_TRUE(std::isfinite(world.body[0].x_m) && std::isfinite(world.body[0].y_m));
    EXPECT_GT(world.body[0].y_m, -0.6);
}

// Such a body has no shape: it falls as a point of 1 kg, and meets nothing.
TEST(Rigid2dWorldTest, ABodyWithoutAShapeFalls) {
    World world(1, {floor_at(0)}, {block(0, -2, 1)});
    const Rigid2dVec line[3] = {vec(0, 0), vec(1, 1), vec(2, 2)};
    rigid2d_polygon_set(&world.shape[0], line, 3);
    world.mass[0] = rigid2d_polygon_mass(&world.shape[0], R(1.0));
    world.put(0, 0, 1);
    double v = 0, y = 1;
    for (int i = 0; i < 100; i++) {
        world.step();
        v -= 10 * 0.02, y += 0.02 * v;
        ASSERT_NEAR(world.body[0].y_m, y, 1e-4 * (1 + std::fabs(y))) << i;
    }
    for (int32_t i = 0; i < world.w.contacts; i++)
        EXPECT_EQ(world.contact[i].points, 0);
}

TEST(Rigid2dWorldTest, NansEndAndAreKept) {
    for (int field = 0; field < 6; field++) {
        World world(1, {floor_at(0)});
        world.put(0, 0, 0.52);
        for (int i = 0; i < 5; i++)
            world.step();
        real *fields[6] = {&world.body[0].x_m,    &world.body[0].y_m,    &world.body[0].angle_rad,
                           &world.body[0].vx_mps, &world.body[0].vy_mps, &world.body[0].spin_radps};
        *fields[field] = static_cast<real>(NAN);
        for (int i = 0; i < 5; i++)
            world.step();
        EXPECT_TRUE(std::any_of(fields, fields + 6, [](const real *x) { return std::isnan(*x); })) << field;
    }
}

// Numbers that worlds are not made of: each step ends, and what it leaves behind can be stepped again.
TEST(Rigid2dWorldTest, AnyNumbersEnd) {
    const double extremes[] = {0, -0.0, 1e-45, 1e-20, -1e-3, 0.5, -1, 3, 1e6, -1e20, 3.4e38, INFINITY, -INFINITY, NAN};
    std::mt19937_64 random(fresh_seed());
    auto below = [&](size_t count) { return static_cast<size_t>(random() % count); };
    // Mostly usual numbers, or everything would be NaN after a step.
    auto number = [&] {
        return below(8) == 0 ? extremes[below(std::size(extremes))] : static_cast<double>(below(400)) * 0.01 - 2;
    };
    auto any = [&] { return static_cast<real>(number()); };
    int finite = 0;
    for (int round = 0; round < 300; round++) {
        std::vector<Rigid2dEdge> edges = {floor_at(0)};
        std::vector<Rigid2dBox> blocks(below(3));
        for (size_t i = below(4); i > 0; i--)
            edges.push_back({{any(), any()}, {any(), any()}, any()});
        for (Rigid2dBox &at : blocks)
            at = block(number(), number(), number());
        World world(3, edges, blocks);
        world.w.friction = any();
        world.w.joints = 2, world.w.one_ground = static_cast<int32_t>(below(2));
        world.w.gravity_mps2 = {any(), any()};
        for (int i = 0; i < 3; i++) {
            Rigid2dVec v[8];
            for (Rigid2dVec &at : v)
                at = {any(), any()};
            if (below(2) == 0) {
                rigid2d_polygon_set(&world.shape[i], v, 1 + static_cast<int32_t>(below(8)));
                world.mass[i] = rigid2d_polygon_mass(&world.shape[i], any());
            }
            world.put(i, number(), number(), number());
            world.body[i].vx_mps = any(), world.body[i].vy_mps = any(), world.body[i].spin_radps = any();
        }
        for (int i = 0; i < 2; i++)
            world.hinge[i] = {0, i + 1, {any(), any()}, {any(), any()}, any(), any(), any(), any(), any()};
        for (int step = 0; step < 20; step++) {
            world.step();
            ASSERT_GE(world.w.contacts, 0);
            ASSERT_LE(world.w.contacts, World::contacts_max);
            for (int32_t i = 0; i < world.w.contacts; i++) {
                ASSERT_LT(rigid2d_contact_shape(&world.w, i), world.w.blocks + world.w.edges);
                ASSERT_TRUE(world.contact[i].points >= 0 && world.contact[i].points <= 2);
            }
        }
        finite += std::isfinite(world.body[0].x_m);
    }
    EXPECT_GT(finite, 0);
    EXPECT_LT(finite, 300) << "nothing extreme came of it";
}

TEST(Rigid2dWorldTest, AMotorAtItsLimitHoldsForTenThousandSteps) {
    World world(2, {});
    world.w.joints = 1;
    world.w.gravity_mps2 = vec(0, 0);
    world.hinge[0] = Rigid2dHinge{0, 1, vec(0.5, 0), vec(-0.5, 0), R(0.0), R(-0.5), R(0.8), R(4.0), R(1000.0)};
    world.put(0, 0, 0), world.put(1, 1, 0);
    for (int i = 0; i < 10000; i++) {
        world.body[0].still_s = R(0.0); // awake, or there would be nothing to see
        world.step();
        real angle = world.body[1].angle_rad - world.body[0].angle_rad;
        ASSERT_TRUE(std::isfinite(angle)) << i;
        ASSERT_LT(angle, 0.8 + 0.09) << i; // a step of the motor beyond
        if (i > 20) {
            ASSERT_NEAR(angle, 0.8, 0.04) << i;
        } // the slop is 0.035
        Rigid2dVec at0 = rigid2d_apply(
            rigid2d_transform(rigid2d_body_position(&world.body[0]), world.body[0].angle_rad, vec(0, 0)), vec(0.5, 0));
        Rigid2dVec at1 = rigid2d_apply(
            rigid2d_transform(rigid2d_body_position(&world.body[1]), world.body[1].angle_rad, vec(0, 0)), vec(-0.5, 0));
        ASSERT_LT(rigid2d_length(rigid2d_sub(at0, at1)), 0.01) << i;
    }
}

TEST(Rigid2dWorldTest, AContactWithoutRoomIsAnOverflow) {
    std::vector<Rigid2dEdge> edges;
    for (int i = 0; i < World::contacts_max + 1; i++)
        edges.push_back(floor_at(0.01 * i));
    World world(1, edges);
    world.put(0, 0, 0.6);
    world.step();
    EXPECT_EQ(world.w.overflow, 1);
    EXPECT_EQ(world.w.contacts, World::contacts_max);
}

} // namespace
