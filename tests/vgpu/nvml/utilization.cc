#include "tests/vgpu/nvml/utilization.h"

#include <algorithm>

namespace vgpu {

void BusyTime::begin(uint64_t stream, uint64_t begin) { begun_.emplace(stream, begin); }

void BusyTime::add(uint64_t stream, uint64_t begin, uint64_t end) {
    begun_.erase(stream);
    intervals_.push_back({begin, end});
    uint64_t kept_ns = (PERIODS_KEPT + 2) * period_ns_;
    bool is_full = intervals_.size() >= 1024 && intervals_.size() % 1024 == 0;
    if (!is_full || end < kept_ns) return;
    auto is_old = [&](const Interval &interval) { return interval.end < end - kept_ns; };
    intervals_.erase(std::remove_if(intervals_.begin(), intervals_.end(), is_old), intervals_.end());
}

unsigned BusyTime::last_percent(uint64_t now) const { return now < period_ns_ ? 0 : percent(last_period(now), now); }

unsigned BusyTime::percent(uint64_t period, uint64_t now) const {
    uint64_t from = period * period_ns_, to = from + period_ns_;
    std::vector<Interval> inside;
    auto take = [&](uint64_t begin, uint64_t end) {
        begin = std::max(begin, from), end = std::min(end, to);
        if (begin < end) inside.push_back({begin, end});
    };
    for (const Interval &interval : intervals_)
        take(interval.begin, interval.end);
    for (const auto &[stream, begin] : begun_)
        take(begin, std::max(begin, now));
    std::sort(inside.begin(), inside.end(), [](const Interval &a, const Interval &b) { return a.begin < b.begin; });
    uint64_t busy = 0, reached = from;
    for (const Interval &interval : inside) {
        uint64_t begin = std::max(interval.begin, reached);
        if (interval.end > begin) busy += interval.end - begin;
        reached = std::max(reached, interval.end);
    }
    return static_cast<unsigned>((busy * 100 + period_ns_ / 2) / period_ns_);
}

} // namespace vgpu
