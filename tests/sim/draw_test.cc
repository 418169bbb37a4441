// The drawings of all simulators: whole, finite and in view over random episodes, and where the observation says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/sim_play.h"
#include "sim/sim_spec.h"
#include "tests/kernels/fresh_seed.h"

namespace {

class Env {
  public:
    Env(const SimSpec *spec, uint64_t seed) : spec_(spec), random_(seed), rng_{} {
        rng_.seed_low = static_cast<uint32_t>(seed), rng_.c3 = SIM_RNG_EVALUATE;
        for (int k = 0; k < spec->param_count; k++)
            params_.push_back(static_cast<float>(spec->params[k].value));
        state_.resize(static_cast<size_t>(spec->state_words));
        SimRng rng = rng_;
        spec->play->reset(state_.data(), params_.data(), &rng);
    }

    // With random actions; false where the episode has ended.
    bool step() {
        for (int k = 0; spec_->choices[k] > 0; k++)
            discrete_[k] = std::uniform_int_distribution<int32_t>(0, spec_->choices[k] - 1)(random_);
        for (int k = 0; k < spec_->continuous; k++)
            continuous_[k] = std::uniform_real_distribution<float>(spec_->action_low, spec_->action_high)(random_);
        SimRng rng = rng_;
        rng.c0 = static_cast<uint32_t>(++steps_) << 8;
        SimStep out = spec_->play->step(state_.data(), params_.data(), discrete_, continuous_, &rng);
        return !out.terminated && steps_ < std::min(spec_->time_limit, 300);
    }

    const SimFrame &draw() {
        sim_frame_clear(frame_.get());
        spec_->play->draw(state_.data(), params_.data(), steps_ > 0 ? discrete_ : nullptr,
                          steps_ > 0 ? continuous_ : nullptr, frame_.get());
        return *frame_;
    }

    std::vector<double> observe() const {
        std::vector<float> obs(static_cast<size_t>(spec_->obs));
        spec_->play->observe(state_.data(), params_.data(), obs.data());
        return {obs.begin(), obs.end()};
    }

  private:
    const SimSpec *spec_;
    std::mt19937_64 random_;
    SimRng rng_;
    std::vector<float> params_;
    std::vector<uint32_t> state_;
    int32_t discrete_[SIM_DISCRETE_MAX] = {};
    float continuous_[8] = {};
    int steps_ = 0;
    std::unique_ptr<SimFrame> frame_ = std::make_unique<SimFrame>();
};

// What the world may have outside of a view that goes along.
bool is_scenery(SimColour colour) { return colour == SIM_GROUND || colour == SIM_TRACK || colour == SIM_GOAL; }

// At most as far outside of the view as the view is large: what flies out of it, and arrows.
void expect_sound(const SimFrame &f, const std::string &name) {
    ASSERT_FALSE(f.is_full) << name;
    ASSERT_GT(f.shapes, 2) << name;
    float width = f.right - f.left, height = f.top - f.bottom;
    ASSERT_TRUE(width > 0.0f && height > 0.0f && std::isfinite(width + height)) << name;
    int32_t points = 0;
    for (int32_t i = 0; i < f.shapes; i++) {
        const SimShape &shape = f.shape[i];
        ASSERT_EQ(shape.first, points) << name;
        points += shape.count;
        ASSERT_GE(shape.count, shape.kind == SIM_POLYGON ? 3 : shape.kind == SIM_LINE ? 2 : 1) << name;
        ASSERT_TRUE(shape.kind != SIM_CIRCLE || shape.count == 1) << name;
        ASSERT_TRUE(shape.size >= 0.0f && shape.size < width) << name;
        ASSERT_TRUE(shape.colour >= 0 && shape.colour < SIM_COLOUR_COUNT) << name;
    }
    ASSERT_EQ(points, f.points) << name;
    for (int32_t k = 0; k < f.shapes; k++) {
        const SimShape &shape = f.shape[k];
        for (int32_t i = shape.first; i < shape.first + shape.count; i++) {
            ASSERT_TRUE(f.y[i] > f.bottom - height && f.y[i] < f.top + height) << name << ": y " << f.y[i];
            ASSERT_TRUE(std::isfinite(f.x[i])) << name;
            if (is_scenery(shape.colour)) continue;
            ASSERT_TRUE(f.x[i] > f.left - width && f.x[i] < f.right + width) << name << ": x " << f.x[i];
        }
    }
}

TEST(DrawTest, RandomEpisodesAreInView) {
    uint64_t seed = fresh_seed();
    for (int i = 0; i < sim_spec_count(); i++) {
        const SimSpec *spec = sim_spec_at(i);
        ASSERT_NE(spec->play->draw, nullptr) << spec->name;
        for (uint64_t episode = 0; episode < 3; episode++) {
            Env env(spec, seed + episode);
            do {
                expect_sound(env.draw(), spec->name);
            } while (!HasFatalFailure() && env.step());
            expect_sound(env.draw(), spec->name);
        }
    }
}

// The first shape of that kind and colour, as points.
std::vector<std::pair<double, double>> points_of(const SimFrame &f, SimShapeKind kind, SimColour colour) {
    for (int32_t i = 0; i < f.shapes; i++) {
        if (f.shape[i].kind != kind || f.shape[i].colour != colour) continue;
        std::vector<std::pair<double, double>> points;
        for (int32_t k = f.shape[i].first; k < f.shape[i].first + f.shape[i].count; k++)
            points.emplace_back(static_cast<double>(f.x[k]), static_cast<double>(f.y[k]));
        return points;
    }
    ADD_FAILURE() << "no such shape";
    return {{0, 0}, {0, 0}};
}

void expect_at(std::pair<double, double> point, double x, double y) {
    EXPECT_NEAR(point.first, x, 1e-4);
    EXPECT_NEAR(point.second, y, 1e-4);
}

// Calls check(frame, observation) along a random episode.
template <typename Check> void along_episode(const char *name, Check check) {
    Env env(sim_spec_find(name), fresh_seed());
    do {
        check(env.draw(), env.observe());
    } while (env.step());
}

TEST(DrawTest, CartpoleLeansAsObserved) {
    along_episode("cartpole", [](const SimFrame &f, const std::vector<double> &o) {
        auto pole = points_of(f, SIM_LINE, SIM_PART);
        double x = o[0], hinge = pole[0].second;
        expect_at(pole[0], x, hinge);
        expect_at(pole[1], x + std::sin(o[2]), hinge + std::cos(o[2]));
        EXPECT_FLOAT_EQ(f.step_s, 0.02f);
    });
}

TEST(DrawTest, AcrobotHangsAsObserved) {
    along_episode("acrobot", [](const SimFrame &f, const std::vector<double> &o) {
        auto upper = points_of(f, SIM_LINE, SIM_BODY), lower = points_of(f, SIM_LINE, SIM_PART);
        double sum = std::atan2(o[1], o[0]) + std::atan2(o[3], o[2]);
        expect_at(upper[0], 0, 0);
        expect_at(upper[1], o[1], -o[0]);
        expect_at(lower[0], o[1], -o[0]);
        expect_at(lower[1], o[1] + std::sin(sum), -o[0] - std::cos(sum));
    });
}

TEST(DrawTest, PendulumStandsAsObserved) {
    along_episode("pendulum", [](const SimFrame &f, const std::vector<double> &o) {
        expect_at(points_of(f, SIM_LINE, SIM_BODY)[1], -o[1], o[0]);
    });
}

TEST(DrawTest, MountainCarsStandOnTheHill) {
    for (const char *name : {"mountain_car", "mountain_car_continuous"}) {
        along_episode(name, [](const SimFrame &f, const std::vector<double> &o) {
            auto car = points_of(f, SIM_POLYGON, SIM_BODY);
            double x = (car[0].first + car[2].first) / 2, y = (car[0].second + car[2].second) / 2;
            double height = std::sin(3 * o[0]) * 0.45 + 0.55; // as in Gymnasium
            EXPECT_NEAR(std::hypot(x - o[0], y - height), 0.065, 1e-4);
            double slope = (car[1].second - car[0].second) / (car[1].first - car[0].first);
            EXPECT_NEAR(slope, 1.35 * std::cos(3 * o[0]), 1e-3);
            EXPECT_EQ(f.step_s, 0.0f);
        });
    }
}

TEST(DrawTest, LandersHullIsWhereObserved) {
    const double hull[6][2] = {{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}};
    for (const char *name : {"lunar_lander", "lunar_lander_continuous"}) {
        along_episode(name, [&](const SimFrame &f, const std::vector<double> &o) {
            auto drawn = points_of(f, SIM_POLYGON, SIM_BODY);
            ASSERT_EQ(drawn.size(), 6u);
            double x = 10 + 10 * o[0], y = 20.0 / 6 + 18.0 / 30 + o[1] * 20.0 / 3;
            for (const auto &corner : hull) {
                double u = corner[0] / 30, v = corner[1] / 30, best = 1e9;
                double at_x = x + std::cos(o[4]) * u - std::sin(o[4]) * v;
                double at_y = y + std::sin(o[4]) * u + std::cos(o[4]) * v;
                for (const auto &point : drawn)
                    best = std::min(best, std::hypot(point.first - at_x, point.second - at_y));
                EXPECT_LT(best, 1e-4) << name;
            }
        });
    }
}

TEST(DrawTest, ParkingCarIsWhereObserved) {
    along_episode("parking", [](const SimFrame &f, const std::vector<double> &o) {
        auto car = points_of(f, SIM_POLYGON, SIM_BODY);
        EXPECT_NEAR((car[0].first + car[2].first) / 2, o[0], 1e-5);
    });
}

TEST(DrawTest, WhatHasNoRoomIsSaid) {
    auto f = std::make_unique<SimFrame>();
    sim_frame_clear(f.get());
    for (int i = 0; i < SIM_FRAME_SHAPES; i++)
        sim_frame_circle(f.get(), SIM_BODY, 1.0f, 0.0f, 0.0f);
    EXPECT_FALSE(f->is_full);
    sim_frame_circle(f.get(), SIM_BODY, 1.0f, 0.0f, 0.0f);
    EXPECT_TRUE(f->is_full);
    EXPECT_EQ(f->shapes, static_cast<int>(SIM_FRAME_SHAPES));
    EXPECT_EQ(f->points, static_cast<int>(SIM_FRAME_SHAPES));

    sim_frame_clear(f.get());
    sim_frame_begin(f.get(), SIM_LINE, SIM_BODY, 0.0f);
    for (int i = 0; i < SIM_FRAME_POINTS; i++)
        sim_frame_point(f.get(), 0.0f, 0.0f);
    EXPECT_FALSE(f->is_full);
    sim_frame_point(f.get(), 0.0f, 0.0f);
    EXPECT_TRUE(f->is_full);
    EXPECT_EQ(f->points, static_cast<int>(SIM_FRAME_POINTS));
}

TEST(DrawTest, AViewIsNeverFlat) {
    SimFrame f;
    sim_frame_view(&f, 3.0f, 2.0f, 3.0f, -7.0f);
    EXPECT_GT(f.right, f.left);
    EXPECT_GT(f.top, f.bottom);
}

} // namespace
