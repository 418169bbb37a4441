// Frames as they are kept in a page, and pages that must not be written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/kernels/fresh_seed.h"

#include "kernels/replay.h"
#include "kernels/view.h"
#include "kernels/view_frames.h"

namespace {

using Words = std::vector<int64_t>;

// Every list without a list in it, in the order of the text.
std::vector<Words> lists_of(const std::string &text) {
    std::vector<Words> lists;
    size_t begin = 0;
    while ((begin = text.find_first_of("[]", begin)) != std::string::npos) {
        size_t end = text.find_first_of("[]", begin + 1);
        if (end == std::string::npos) break;
        if (text[begin] == '[' && text[end] == ']') {
            lists.emplace_back();
            for (size_t at = begin; at < end; at = text.find(',', at + 1)) {
                if (at == std::string::npos) break;
                lists.back().push_back(std::stoll(text.substr(at + 1)));
            }
        }
        begin = end;
    }
    return lists;
}

struct Shape {
    int64_t kind, colour, size;
    std::vector<int64_t> points;
    bool operator==(const Shape &o) const {
        return kind == o.kind && colour == o.colour && size == o.size && points == o.points;
    }
};

class FramesTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(view_frames_open(&frames_), STATUS_OK);
        ASSERT_EQ(host_json_open(&json_), STATUS_OK);
    }
    void TearDown() override {
        view_frames_close(&frames_);
        if (json_.stream != nullptr) std::fclose(json_.stream), std::free(json_.text);
    }

    std::string close_text() {
        char *text = nullptr;
        EXPECT_EQ(host_json_close(&json_, &text, nullptr), STATUS_OK);
        json_ = {};
        std::string copy = text;
        std::free(text);
        return copy;
    }

    void draw_random(std::mt19937_64 &random, double unit) {
        auto uniform = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
        SimFrame *f = &frames_.drawn;
        sim_frame_clear(f);
        float left = static_cast<float>(std::round(uniform(-3, 3) * 256) / 256); // so that the width is exact
        sim_frame_view(f, left, -1.0f, left + static_cast<float>(8192 * unit), 1.0f);
        sim_frame_line(f, SIM_TRACK, 0.5f, -1.0f, 0.0f, 1.0f, 0.0f); // stays
        for (int i = static_cast<int>(uniform(0, 9)); i > 0; i--) {
            if (uniform(0, 1) < 0.3) sim_frame_circle(f, SIM_JOINT, 0.25f, 0.5f, 0.5f); // comes and goes
            sim_frame_begin(f, SIM_POLYGON, static_cast<SimColour>(i % SIM_COLOUR_COUNT), 0.0f);
            for (int k = 3 + i % 4; k > 0; k--)
                sim_frame_point(f, static_cast<float>(uniform(-9, 9)), static_cast<float>(uniform(-9, 9)));
        }
    }

    // What was drawn, in whole units.
    std::vector<Shape> expected(double unit) const {
        const SimFrame &f = frames_.drawn;
        auto units = [unit](float x) { return static_cast<int64_t>(std::llround(static_cast<double>(x) / unit)); };
        std::vector<Shape> shapes;
        for (int32_t i = 0; i < f.shapes; i++) {
            shapes.push_back({f.shape[i].kind, f.shape[i].colour, units(f.shape[i].size), {}});
            for (int32_t k = f.shape[i].first; k < f.shape[i].first + f.shape[i].count; k++)
                shapes.back().points.insert(shapes.back().points.end(), {units(f.x[k]), units(f.y[k])});
        }
        return shapes;
    }

    ViewFrames frames_ = {};
    JsonText json_ = {};
};

Shape decode(const Words &words) {
    Shape shape = {words[0], words[1], words[2], {}};
    int64_t x = 0, y = 0;
    for (size_t i = 3; i < words.size(); i += 2)
        shape.points.insert(shape.points.end(), {x += words[i], y += words[i + 1]});
    return shape;
}

TEST_F(FramesTest, DecodeToWhatWasDrawn) {
    constexpr double unit = 0x1p-11; // of a view of 4 by 2
    constexpr int count = 200;
    std::mt19937_64 random(fresh_seed());
    std::vector<std::vector<Shape>> drawn;
    for (int i = 0; i < count; i++) {
        draw_random(random, unit);
        drawn.push_back(expected(unit));
        ASSERT_EQ(view_frames_put(&frames_, json_.stream), STATUS_OK);
    }
    EXPECT_EQ(frames_.unit, unit);
    int32_t shape_count = frames_.shapes, view_count = frames_.views;
    ASSERT_EQ(view_frames_finish(&frames_, json_.stream), STATUS_OK);
    std::vector<Words> lists = lists_of(close_text());
    ASSERT_EQ(lists.size(), static_cast<size_t>(count + shape_count + view_count));
    size_t all = 0;
    for (int i = 0; i < count; i++) {
        const Words &frame = lists[static_cast<size_t>(i)];
        ASSERT_LT(frame[0], view_count);
        std::vector<Shape> found;
        int64_t number = 0;
        for (size_t k = 1; k < frame.size(); k++) {
            number += frame[k];
            ASSERT_TRUE(number >= 0 && number < shape_count);
            found.push_back(decode(lists[static_cast<size_t>(count + number)]));
        }
        ASSERT_EQ(found, drawn[static_cast<size_t>(i)]) << "frame " << i;
        all += found.size();
    }
    EXPECT_LE(static_cast<size_t>(shape_count + count - 1), all); // what stays is there once
}

TEST_F(FramesTest, RefuseWhatCannotBeKept) {
    SimFrame *f = &frames_.drawn;
    for (float bad : {NAN, INFINITY}) {
        sim_frame_clear(f);
        sim_frame_circle(f, SIM_BODY, 1.0f, 0.0f, bad);
        EXPECT_EQ(view_frames_put(&frames_, json_.stream), STATUS_NUMERIC);
        sim_frame_clear(f);
        sim_frame_view(f, bad, 0.0f, 1.0f, 1.0f);
        EXPECT_EQ(view_frames_put(&frames_, json_.stream), STATUS_NUMERIC);
    }
    sim_frame_clear(f);
    for (int i = 0; i <= SIM_FRAME_SHAPES; i++)
        sim_frame_circle(f, SIM_BODY, 1.0f, 0.0f, 0.0f);
    EXPECT_EQ(view_frames_put(&frames_, json_.stream), STATUS_NUMERIC);
    EXPECT_NE(std::strstr(host_message(), "256 shapes"), nullptr) << host_message();
    sim_frame_clear(f); // what is far away is kept at the edge of what can be
    sim_frame_circle(f, SIM_BODY, 1.0f, 3e38f, -3e38f);
    EXPECT_EQ(view_frames_put(&frames_, json_.stream), STATUS_OK);
}

TEST(ViewTest, ASimulatorWithoutADrawingIsNamed) {
    EXPECT_EQ(kern_view_check(sim_spec_find("cartpole")), STATUS_OK);
    SimPlay play = *sim_spec_find("cartpole")->play;
    play.draw = nullptr;
    SimSpec spec = *sim_spec_find("cartpole");
    spec.name = "invisible";
    spec.play = &play;
    EXPECT_EQ(kern_view_check(&spec), STATUS_USAGE);
    EXPECT_NE(std::strstr(host_message(), "invisible_draw"), nullptr) << host_message();
}

// A page is of the test's episodes or it is none.
TEST(ViewTest, OtherReturnsThanTheTestsAreNoPage) {
    KernSim sim;
    PolicyShape shape;
    kern_sim_default(&sim, sim_spec_find("pendulum"));
    ASSERT_EQ(policy_shape(&shape, sim.spec, nullptr, 0, POLICY_TANH), STATUS_OK);
    std::vector<float> params(static_cast<size_t>(shape.params), 0.01f);
    KernEpisode episodes[2] = {};
    KernFrozen frozen = {&sim, &shape, params.data(), {}, 7, episodes};
    for (int k = 0; k < sim.spec->obs; k++)
        frozen.normalizer.scale[k] = 1.0f;
    KernReplay replay;
    ASSERT_EQ(kern_replay_open(&replay, &frozen), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        kern_replay_begin(&replay, 3, i);
        while (kern_replay_step(&replay)) {
        }
        EXPECT_FALSE(kern_replay_step(&replay)); // it has ended
        episodes[i] = {replay.episode_return, replay.length};
    }
    kern_replay_close(&replay);
    std::string path = testing::TempDir() + "view_test_" + std::to_string(getpid()) + ".html";
    KernViewInfo info = {"tool", "run", "device", "0123456789abcdef", 2, {}};
    ASSERT_EQ(kern_view_write(&frozen, 3, 2, &info, path.c_str()), STATUS_OK);
    ASSERT_TRUE(std::ifstream(path).good());
    ASSERT_EQ(std::remove(path.c_str()), 0);
    EXPECT_EQ(kern_view_write(&frozen, 4, 2, &info, path.c_str()), STATUS_NUMERIC); // another test's
    episodes[1].episode_return += 1.0f;
    EXPECT_EQ(kern_view_write(&frozen, 3, 2, &info, path.c_str()), STATUS_NUMERIC);
    EXPECT_NE(std::strstr(host_message(), "episode 1"), nullptr) << host_message();
    EXPECT_FALSE(std::ifstream(path).good());
}

} // namespace
