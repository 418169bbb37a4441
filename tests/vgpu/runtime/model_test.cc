// The settings that choose a model.
#include "tests/vgpu/runtime/model.h"

#include <gtest/gtest.h>

namespace vgpu {
namespace {

TEST(Model, SizesAreReadWithTheirUnits) {
    const std::pair<const char *, uint64_t> good[] = {{"0", 0},
                                                      {"1000", 1000},
                                                      {"3K", 3 << 10},
                                                      {"256M", 256 << 20},
                                                      {"80G", uint64_t{80} << 30},
                                                      {"18446744073709551615", UINT64_MAX}};
    for (const auto &[text, expected] : good) {
        uint64_t bytes = 1;
        EXPECT_TRUE(parse_bytes(text, &bytes)) << text;
        EXPECT_EQ(bytes, expected) << text;
    }
    for (const char *text : {"", "M", "-1", "12T", "12MB", " 1", "17179869184G", "18446744073709551616", "1.5G"}) {
        uint64_t bytes = 1;
        EXPECT_FALSE(parse_bytes(text, &bytes)) << text;
    }
}

TEST(Model, VisibleDevicesEndAtTheFirstThatIsNone) {
    using List = std::vector<int>;
    EXPECT_EQ(parse_visible("2,0,1", 4), (List{2, 0, 1}));
    EXPECT_EQ(parse_visible("", 4), List{});
    EXPECT_EQ(parse_visible("1,4,0", 4), List{1});
    EXPECT_EQ(parse_visible("-1", 4), List{});
    EXPECT_EQ(parse_visible("3,x,0", 4), List{3});
    EXPECT_EQ(parse_visible("1,1", 4), List{});
    EXPECT_EQ(parse_visible("NoDevFiles", 4), List{});
}

} // namespace
} // namespace vgpu
