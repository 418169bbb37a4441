// The share of a period that is busy, by hand and against a count of each nanosecond.
#include "tests/vgpu/nvml/utilization.h"

#include <gtest/gtest.h>
#include <random>

namespace vgpu {
namespace {

TEST(BusyTime, CountsWhatIsInTheLastWholePeriod) {
    BusyTime time(1000);
    EXPECT_EQ(time.last_percent(500), 0u); // none is over yet
    time.add(1, 1000, 1250);
    time.add(2, 1200, 1500); // at the same time as the end of the first
    time.add(1, 1900, 2300);
    EXPECT_EQ(time.last_percent(1999), 0u);
    EXPECT_EQ(time.last_percent(2000), 60u);
    EXPECT_EQ(time.last_percent(2999), 60u);
    EXPECT_EQ(time.last_percent(3000), 30u);
    EXPECT_EQ(time.last_percent(4000), 0u);
}

TEST(BusyTime, WorkThatHasBegunIsBusyUntilItsEndIsKnown) {
    BusyTime time(1000);
    time.begin(7, 1500);
    EXPECT_EQ(time.last_percent(2000), 50u);
    EXPECT_EQ(time.last_percent(3500), 100u);
    time.add(7, 1500, 2100);
    EXPECT_EQ(time.last_percent(2000), 50u);
    EXPECT_EQ(time.last_percent(3500), 10u);
}

TEST(BusyTime, EqualsACountOfEveryNanosecond) {
    unsigned seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    constexpr uint64_t PERIOD = 997, PERIODS = 5;
    for (int round = 0; round < 200; round++) {
        BusyTime time(PERIOD);
        std::vector<bool> is_busy(PERIOD * PERIODS + 2000);
        for (int i = 0; i < 12; i++) {
            uint64_t begin = random() % (PERIOD * PERIODS), length = random() % 700;
            time.add(random() % 3, begin, begin + length);
            std::fill_n(is_busy.begin() + static_cast<ptrdiff_t>(begin), length, true);
        }
        for (uint64_t period = 0; period < PERIODS; period++) {
            auto from = is_busy.begin() + static_cast<ptrdiff_t>(period * PERIOD);
            double share = double(std::count(from, from + PERIOD, true)) / double(PERIOD);
            EXPECT_NEAR(time.percent(period, PERIOD * PERIODS), share * 100, 0.51);
        }
    }
}

} // namespace
} // namespace vgpu
