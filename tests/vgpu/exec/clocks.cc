#include "tests/vgpu/exec/clocks.h"

#include <algorithm>
#include <utility>

namespace vgpu {
namespace {

// Entries of a view. A thread that learns from more than some thousand blocks is taken to know of all, so that chains
// of blocks that learn from each other take neither time nor memory without bounds.
constexpr size_t ENTRIES_MOST = 8192;

bool comes_before(const View::Entry &a, const View::Entry &b) {
    return a.block != b.block ? a.block < b.block : a.threads < b.threads;
}

} // namespace

// ---- views ---------------------------------------------------------------------------------------------------------

View::View(std::vector<Entry> entries) {
    std::sort(entries.begin(), entries.end(), comes_before);
    entries_.reserve(entries.size());
    for (const Entry &entry : entries)
        append(entry);
}

// Entries come in order. Those that say no more than the ones for all of their warp or block are left out.
void View::append(const Entry &entry) {
    if (entries_.empty() || entries_.back().block != entry.block) whole_time_ = warp_time_ = 0;
    if (is_warp(entry.threads)) warp_time_ = 0;
    if (!entries_.empty() && entries_.back().block == entry.block && entries_.back().threads == entry.threads) {
        entries_.back().time = std::max(entries_.back().time, entry.time);
    } else if (entry.time > std::max(whole_time_, warp_time_)) {
        entries_.push_back(entry);
    } else {
        return;
    }
    if (entry.threads == WHOLE_BLOCK) whole_time_ = entries_.back().time;
    if (is_warp(entry.threads)) warp_time_ = entries_.back().time;
}

uint32_t View::find(uint32_t block, Threads threads) const {
    Entry wanted = {block, threads, 0};
    auto at = std::lower_bound(entries_.begin(), entries_.end(), wanted, comes_before);
    return at != entries_.end() && at->block == block && at->threads == threads ? at->time : 0;
}

uint32_t View::time(uint32_t block, int warp, int lane) const {
    if (is_everything_) return ~uint32_t{0};
    return std::max({find(block, WHOLE_BLOCK), find(block, threads_of(warp)), find(block, threads_of(warp, lane))});
}

View::Pointer View::join(const Pointer &a, const Pointer &b) {
    if (a == b || b == nullptr || (a != nullptr && a->is_everything_)) return a;
    if (a == nullptr || b->is_everything_) return b;
    auto both = std::make_shared<View>(std::vector<Entry>());
    both->entries_.reserve(a->entries_.size() + b->entries_.size());
    auto x = a->entries_.begin(), y = b->entries_.begin();
    while (x != a->entries_.end() || y != b->entries_.end()) {
        bool take_x = y == b->entries_.end() || (x != a->entries_.end() && !comes_before(*y, *x));
        both->append(take_x ? *x++ : *y++);
    }
    if (both->entries_ == a->entries_) return a;
    if (both->entries_ == b->entries_) return b;
    if (both->entries_.size() > ENTRIES_MOST) {
        both->entries_.clear();
        both->is_everything_ = true;
    }
    return both;
}

View::Pointer View::without(uint32_t block, const Pointer &view) {
    if (view == nullptr || view->is_everything_) return view;
    std::vector<Entry> others;
    std::copy_if(view->entries_.begin(), view->entries_.end(), std::back_inserter(others),
                 [&](const Entry &entry) { return entry.block != block; });
    if (others.size() == view->entries_.size()) return view;
    return others.empty() ? nullptr : std::make_shared<View>(std::move(others));
}

// ---- released views ------------------------------------------------------------------------------------------------

void Released::add(uint64_t word, const View::Pointer &view) {
    {
        std::lock_guard lock(mutex_);
        View::Pointer &at = views_[word];
        View::Pointer joined = View::join(at, view);
        if (joined != at) version_++;
        at = joined;
        is_empty_ = false;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst); // before the write that others find
}

bool Released::is_empty() const {
    std::atomic_thread_fence(std::memory_order_seq_cst); // after the read that found what was written
    return is_empty_;
}

View::Pointer Released::find(uint64_t word) const {
    std::lock_guard lock(mutex_);
    auto at = views_.find(word);
    return at == views_.end() ? nullptr : at->second;
}

void Released::clear() {
    std::lock_guard lock(mutex_);
    views_.clear();
    is_empty_ = true;
    version_++;
}

// ---- the clocks of a block -----------------------------------------------------------------------------------------

void Clocks::start(uint32_t block, size_t warps) {
    block_ = block;
    now_ = 1;
    barrier_ = 0;
    warps_.assign(warps, {});
    all_ = {};
    if (has_learnt_) std::fill(learnt_.begin(), learnt_.end(), Learnt());
    learnt_.resize(warps * LANES);
    has_learnt_ = has_released_ = false;
}

Mask Clocks::unordered(uint32_t block, int warp, Mask lanes, uint32_t time, int now_warp, int now_lane) const {
    bool is_own = block == block_;
    if (is_own && time <= barrier_) return 0;
    if (is_own && warp == now_warp) {
        if (time <= warps_[size_t(warp)].barrier) return 0;
        lanes &= ~(Mask{1} << now_lane);
    }
    const View *views[] = {all_.known.get(), learnt(now_warp, now_lane).known.get()};
    const std::vector<uint32_t> &met = warps_[size_t(now_warp)].met;
    bool may_have_met = is_own && warp == now_warp && !met.empty();
    if (views[0] == nullptr && views[1] == nullptr && !may_have_met) return lanes;

    Mask unknown = 0;
    for (Mask left = lanes; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        bool is_known = may_have_met && met[size_t(now_lane * LANES + lane)] >= time;
        for (const View *view : views)
            is_known = is_known || (view != nullptr && view->time(block, warp, lane) >= time);
        if (!is_known) unknown |= Mask{1} << lane;
    }
    return unknown;
}

void Clocks::block_barrier() {
    barrier_ = now_++;
    for (WarpClock &warp : warps_)
        warp.time = now_;
    if (!has_learnt_) return;
    has_learnt_ = false;
    for (Learnt &thread : learnt_) {
        has_learnt_ = has_learnt_ || thread.seen != nullptr;
        all_.known = View::join(all_.known, std::exchange(thread.known, nullptr));
        for (size_t scope = 0; scope < 2; scope++)
            all_.released[scope] = View::join(all_.released[scope], std::exchange(thread.released[scope], nullptr));
    }
    all_.known = View::without(block_, all_.known);
}

void Clocks::warp_barrier(int warp, Mask lanes, Mask live) {
    WarpClock &clock = warps_[size_t(warp)];
    if ((live & ~lanes) == 0) {
        clock.barrier = clock.time;
    } else {
        clock.met.resize(LANES * LANES);
        for (size_t other = 0; other < LANES; other++) {
            uint32_t latest = clock.time;
            if ((lanes >> other & 1) == 0) {
                latest = 0;
                for (Mask left = lanes; left != 0; left &= left - 1)
                    latest = std::max(latest, clock.met[size_t(__builtin_ctz(left)) * LANES + other]);
            }
            for (Mask left = lanes; left != 0; left &= left - 1)
                clock.met[size_t(__builtin_ctz(left)) * LANES + other] = latest;
        }
    }
    clock.time = ++now_;
    if (has_learnt_) exchange(warp, lanes);
}

// Lanes that met know what any of them knew.
void Clocks::exchange(int warp, Mask lanes) {
    Learnt together;
    for (Mask left = lanes; left != 0; left &= left - 1) {
        const Learnt &thread = learnt(warp, __builtin_ctz(left));
        together.known = View::join(together.known, thread.known);
        for (size_t scope = 0; scope < 2; scope++)
            together.released[scope] = View::join(together.released[scope], thread.released[scope]);
    }
    for (Mask left = lanes; left != 0; left &= left - 1) {
        Learnt &thread = learnt(warp, __builtin_ctz(left));
        together.seen = thread.seen;
        thread = together;
    }
}

void Clocks::fence(int warp, Mask lanes, Mask live, Scope scope) {
    for (Mask left = lanes; left != 0; left &= left - 1) {
        Learnt &thread = learnt(warp, __builtin_ctz(left));
        thread.known = View::join(thread.known, std::exchange(thread.seen, nullptr));
    }
    release(warp, lanes, live, scope);
}

// A fence of several lanes at once releases what all of them did.
void Clocks::release(int warp, Mask lanes, Mask live, Scope scope) {
    View::Pointer view = known_to(warp, lanes, live);
    for (Mask left = lanes; left != 0; left &= left - 1) {
        Learnt &thread = learnt(warp, __builtin_ctz(left));
        for (Scope reached : {Scope::block, Scope::device}) {
            View::Pointer &released = thread.released[size_t(reached)];
            if (reached <= scope) released = join(released, view);
        }
    }
    warps_[size_t(warp)].time = ++now_; // what comes behind the fence is not released
    has_learnt_ = has_released_ = true;
}

View::Pointer Clocks::known_to(int warp, Mask lanes, Mask live) const {
    const WarpClock &clock = warps_[size_t(warp)];
    std::vector<View::Entry> entries;
    if (barrier_ != 0) entries.push_back({block_, WHOLE_BLOCK, barrier_});
    if (clock.barrier > barrier_) entries.push_back({block_, threads_of(warp), clock.barrier});
    if ((live & ~lanes) == 0) {
        entries.push_back({block_, threads_of(warp), clock.time});
    } else {
        for (Mask left = lanes; left != 0; left &= left - 1)
            entries.push_back({block_, threads_of(warp, __builtin_ctz(left)), clock.time});
    }
    View::Pointer view = all_.known;
    for (Mask left = lanes; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        view = View::join(view, learnt(warp, lane).known);
        for (int other = 0; other < LANES && !clock.met.empty(); other++)
            entries.push_back({block_, threads_of(warp, other), clock.met[size_t(lane * LANES + other)]});
    }
    return View::join(view, std::make_shared<View>(std::move(entries)));
}

void Clocks::see(int warp, int lane, const View::Pointer &view) {
    View::Pointer &seen = learnt(warp, lane).seen;
    seen = join(seen, view);
    has_learnt_ = true;
}

void Clocks::acquire(int warp, int lane, const View::Pointer &view) {
    View::Pointer &known = learnt(warp, lane).known;
    known = join(known, view);
    has_learnt_ = true;
}

// The lanes of a warp mostly learn the same.
View::Pointer Clocks::join(const View::Pointer &a, const View::Pointer &b) {
    if (a != last_join_.a || b != last_join_.b) last_join_ = {a, b, View::join(a, b)};
    return last_join_.both;
}

View::Pointer Clocks::released(int warp, int lane, Scope scope) const {
    return View::join(all_.released[size_t(scope)], learnt(warp, lane).released[size_t(scope)]);
}

} // namespace vgpu
