// What share of a sample period a device was busy: time is cut into periods from the clock's zero on, and the last
// whole one counts. A kernel is one whatever its size, several at once are no more than one.
#ifndef SHOAL_TESTS_VGPU_NVML_UTILIZATION_H
#define SHOAL_TESTS_VGPU_NVML_UTILIZATION_H

#include <cstdint>
#include <map>
#include <vector>

namespace vgpu {

// Of one device and one kind of work. The caller sees to it that one thread at a time uses it.
class BusyTime {
  public:
    explicit BusyTime(uint64_t period_ns) : period_ns_(period_ns) {}

    // Work of a stream that has begun is busy from then on, until it is added.
    void begin(uint64_t stream, uint64_t begin);
    void add(uint64_t stream, uint64_t begin, uint64_t end);

    // In per cent, rounded, of the last period that was over at `now`, and of period number `period`, which ends at
    // (period + 1) * period_ns.
    unsigned last_percent(uint64_t now) const;
    unsigned percent(uint64_t period, uint64_t now) const;
    // Periods whose work is known end at this one; those before it, PERIODS_KEPT of them.
    uint64_t last_period(uint64_t now) const { return now / period_ns_ - 1; }

    static constexpr uint64_t PERIODS_KEPT = 100;

  private:
    struct Interval {
        uint64_t begin, end;
    };

    uint64_t period_ns_;
    std::vector<Interval> intervals_;
    std::map<uint64_t, uint64_t> begun_; // stream -> begin
};

} // namespace vgpu

#endif
