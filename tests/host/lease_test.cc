// Leases: every wanted item is computed once and only once, whatever happens to workers; what kills them is found.
#include "host/lease.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/host/host_test.h"
#include "tests/kernels/fresh_seed.h"

namespace {

struct Table : HostLeaseTable {
    Table() { host_lease_init(this); }
    ~Table() { host_lease_free(this); }
    Table(const Table &) = delete;
    Table &operator=(const Table &) = delete;
};

struct Held {
    int64_t worker, lease;
    HostRange range;
};

HostLeaseAsk ask(int64_t worker, double share = 0.25, double rate = 0, bool must_live = false) {
    return HostLeaseAsk{worker, share, rate, must_live};
}

// The table's own books agree with each other: each wanted item lies in one piece, and counts are what they count.
void check_books(const HostLeaseTable &t, const std::set<int32_t> &wanted) {
    std::map<int32_t, int> pieces;
    int32_t free_items = 0;
    for (int32_t i = 0; i < t.pending_count; i++) {
        free_items += t.pending[i].range.count;
        for (int32_t k = 0; k < t.pending[i].range.count; k++)
            pieces[t.pending[i].range.first + k]++;
    }
    std::set<int32_t> leased;
    for (int32_t i = 0; i < t.active_count; i++) {
        EXPECT_GE(t.active[i].holders, 1);
        for (int32_t k = 0; k < t.active[i].piece.range.count; k++)
            leased.insert(t.active[i].piece.range.first + k);
    }
    for (int32_t item : wanted)
        EXPECT_EQ(1, pieces[item] + static_cast<int>(leased.count(item))) << "item " << item;
    for (const auto &[item, count] : pieces) {
        if (count > 0) {
            EXPECT_EQ(1U, wanted.count(item)) << "item " << item;
        }
    }
    EXPECT_EQ(free_items, t.free);
    EXPECT_EQ(static_cast<int32_t>(wanted.size()), t.open);
}

// Any schedule of grants, results, late results, deaths and returns ends with every item done once.
TEST(Lease, RandomSchedules) {
    uint64_t seed = fresh_seed();
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < 300; trial++) {
        SCOPED_TRACE("trial " + std::to_string(trial));
        auto draw = [&](int n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); };
        Table t;
        int32_t count = 1 + draw(300), grain = 1 + draw(std::min(count, 4));
        HostRange all = {0, count};
        ASSERT_OK(host_lease_begin(&t, trial, count, grain, &all, 1));
        std::set<int32_t> wanted;
        for (int32_t i = 0; i < count; i++)
            wanted.insert(i);
        std::vector<Held> held;
        std::vector<HostRange> sent; // by workers that were thought dead
        double now_s = 0;
        int64_t next_worker = 1;
        for (int step = 0; !wanted.empty() && step < 20000; step++) {
            now_s += 0.05;
            int what = draw(20);
            if (what < 9 && held.size() < 8) {
                Held h = {next_worker++, 0, {0, 0}};
                HostLeaseAsk a = ask(h.worker, 0.05 + 0.1 * draw(10), draw(2) * 100.0);
                if (host_lease_grant(&t, &a, now_s, &h.lease, &h.range)) held.push_back(h);
            } else if (what < 17 && !held.empty()) {
                size_t at = static_cast<size_t>(draw(static_cast<int>(held.size())));
                int32_t fresh = -1, expected = 0;
                for (int32_t k = 0; k < held[at].range.count; k++)
                    expected += static_cast<int32_t>(wanted.erase(held[at].range.first + k));
                ASSERT_OK(host_lease_finish(&t, held[at].range, &fresh));
                EXPECT_EQ(expected, fresh);
                held.erase(held.begin() + static_cast<long>(at));
            } else if (what < 19 && !held.empty()) {
                size_t at = static_cast<size_t>(draw(static_cast<int>(held.size())));
                // Kills by chance must not make an item lost: only crashes on one item twice do, and these are none.
                HostLeaseEnd end = draw(2) == 0 || held[at].range.count == 1 ? HOST_LEASE_RETURNED : HOST_LEASE_DIED;
                ASSERT_OK(host_lease_leave(&t, held[at].worker, held[at].lease, end));
                if (end == HOST_LEASE_DIED) sent.push_back(held[at].range);
                held.erase(held.begin() + static_cast<long>(at));
            } else if (!sent.empty()) {
                int32_t fresh = 0, expected = 0;
                for (int32_t k = 0; k < sent.back().count; k++)
                    expected += static_cast<int32_t>(wanted.erase(sent.back().first + k));
                ASSERT_OK(host_lease_finish(&t, sent.back(), &fresh));
                EXPECT_EQ(expected, fresh);
                sent.pop_back();
            }
            check_books(t, wanted);
            if (HasFailure()) FAIL() << "seed " << seed;
        }
        EXPECT_TRUE(wanted.empty());
        EXPECT_EQ(0, t.open);
        int32_t lost;
        EXPECT_FALSE(host_lease_take_lost(&t, &lost));
    }
}

// A set of items that end every worker is found exactly, whether workers say that they crash or not, and the number of
// workers it costs is a few for each halving.
TEST(Lease, FindsWhatKillsWorkers) {
    uint64_t seed = fresh_seed();
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < 60; trial++) {
        auto draw = [&](int n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); };
        int32_t count = 2 + draw(500);
        HostLeaseEnd end = trial % 2 == 0 ? HOST_LEASE_CRASHED : HOST_LEASE_DIED;
        std::set<int32_t> bad, lost;
        for (int32_t i = draw(4); i > 0; i--)
            bad.insert(draw(count));
        Table t;
        HostRange all = {0, count};
        ASSERT_OK(host_lease_begin(&t, 1, count, 2, &all, 1));
        int64_t worker = 1;
        int deaths = 0;
        for (double now_s = 0; t.open > 0 && deaths < 1000; now_s += 0.01, worker++) {
            HostLeaseAsk a = ask(worker);
            int64_t lease;
            HostRange range;
            ASSERT_TRUE(host_lease_grant(&t, &a, now_s, &lease, &range));
            auto first_bad = bad.lower_bound(range.first);
            if (first_bad != bad.end() && *first_bad < range.first + range.count) {
                deaths++;
                ASSERT_OK(host_lease_leave(&t, worker, lease, end));
            } else {
                int32_t fresh;
                ASSERT_OK(host_lease_finish(&t, range, &fresh));
                EXPECT_EQ(range.count, fresh);
            }
            int32_t item;
            while (host_lease_take_lost(&t, &item))
                lost.insert(item);
        }
        EXPECT_EQ(bad, lost) << "seed " << seed << ", trial " << trial;
        EXPECT_LE(deaths, static_cast<int>(bad.size()) * (2 * 9 + HOST_LEASE_DEATHS)) << "seed " << seed;
    }
}

// One worker killed from outside, again and again, wherever it is: nothing is lost as long as it is not the same single
// item eight times.
TEST(Lease, KillsAreNoCrashes) {
    Table t;
    HostRange all = {0, 1}, range;
    ASSERT_OK(host_lease_begin(&t, 1, 1, 1, &all, 1));
    int64_t lease;
    int32_t item;
    for (int i = 0; i < HOST_LEASE_DEATHS - 1; i++) {
        HostLeaseAsk a = ask(i + 1);
        ASSERT_TRUE(host_lease_grant(&t, &a, 0, &lease, &range));
        ASSERT_OK(host_lease_leave(&t, i + 1, lease, HOST_LEASE_DIED));
        ASSERT_FALSE(host_lease_take_lost(&t, &item));
    }
    EXPECT_EQ(1, t.open);
}

// What is suspect is kept from the trainer, and known again when another session begins the round anew.
TEST(Lease, SuspectsAreRemembered) {
    Table t;
    HostRange all = {0, 64}, range;
    int64_t lease;
    ASSERT_OK(host_lease_begin(&t, 7, 64, 2, &all, 1));
    HostLeaseAsk greedy = ask(1, 1.0, 1e9);
    ASSERT_TRUE(host_lease_grant(&t, &greedy, 0, &lease, &range));
    ASSERT_EQ(64, range.count);
    ASSERT_OK(host_lease_leave(&t, 1, lease, HOST_LEASE_CRASHED));
    HostLeaseAsk trainer = ask(2, 1.0, 0, true);
    EXPECT_FALSE(host_lease_grant(&t, &trainer, 0, &lease, &range));
    // The trainer goes back to an earlier round, and comes to this one again.
    ASSERT_OK(host_lease_begin(&t, 5, 64, 2, &all, 1));
    EXPECT_TRUE(host_lease_grant(&t, &trainer, 0, &lease, &range));
    ASSERT_OK(host_lease_begin(&t, 7, 64, 2, &all, 1));
    EXPECT_FALSE(host_lease_grant(&t, &trainer, 0, &lease, &range));
    HostLeaseAsk other = ask(3);
    ASSERT_TRUE(host_lease_grant(&t, &other, 0, &lease, &range));
    EXPECT_EQ(32, range.count);
    // A later round knows nothing of it.
    ASSERT_OK(host_lease_begin(&t, 8, 64, 2, &all, 1));
    EXPECT_TRUE(host_lease_grant(&t, &trainer, 0, &lease, &range));
}

TEST(Lease, LostItemsAreRemembered) {
    Table t;
    HostRange all = {0, 1}, range;
    int64_t lease;
    int32_t item;
    ASSERT_OK(host_lease_begin(&t, 7, 1, 1, &all, 1));
    for (int64_t w = 1; w <= HOST_LEASE_CRASHES; w++) {
        HostLeaseAsk a = ask(w);
        ASSERT_TRUE(host_lease_grant(&t, &a, 0, &lease, &range));
        ASSERT_OK(host_lease_leave(&t, w, lease, HOST_LEASE_CRASHED));
    }
    ASSERT_TRUE(host_lease_take_lost(&t, &item));
    ASSERT_OK(host_lease_begin(&t, 7, 1, 1, &all, 1));
    EXPECT_EQ(0, t.open);
    ASSERT_TRUE(host_lease_take_lost(&t, &item));
    EXPECT_EQ(0, item);
}

// A late lease goes to a second worker, and only to one; the first result counts.
TEST(Lease, LateLeasesAreDoubled) {
    Table t;
    HostRange all = {0, 8}, range, again;
    int64_t lease, second;
    ASSERT_OK(host_lease_begin(&t, 1, 8, 1, &all, 1));
    HostLeaseAsk first = ask(1, 1.0, 8000.0), other = ask(2, 1.0, 8000.0), third = ask(3, 1.0, 8000.0);
    ASSERT_TRUE(host_lease_grant(&t, &first, 10.0, &lease, &range));
    ASSERT_EQ(8, range.count);
    EXPECT_FALSE(host_lease_grant(&t, &other, 10.001, &second, &again));
    ASSERT_TRUE(host_lease_grant(&t, &other, 11.0, &second, &again));
    EXPECT_EQ(range.first, again.first);
    EXPECT_EQ(range.count, again.count);
    EXPECT_FALSE(host_lease_grant(&t, &third, 12.0, &second, &again));
    int32_t fresh;
    ASSERT_OK(host_lease_finish(&t, range, &fresh));
    EXPECT_EQ(8, fresh);
    EXPECT_EQ(nullptr, host_lease_find(&t, lease, &again));
    ASSERT_OK(host_lease_finish(&t, range, &fresh));
    EXPECT_EQ(0, fresh);
}

// Workers of any speeds end together: simulated, to within the work of one lease of the slowest.
TEST(Lease, UnevenWorkersEndTogether) {
    const double rate[] = {100.0, 1000.0, 3000.0, 10000.0};
    const double total = 14100.0;
    Table t;
    HostRange all = {0, 100000};
    ASSERT_OK(host_lease_begin(&t, 1, 100000, 2, &all, 1));
    double free_s[4] = {}, done_s[4] = {};
    int leases = 0;
    for (;;) {
        int w = static_cast<int>(std::min_element(free_s, free_s + 4) - free_s);
        HostLeaseAsk a = ask(w + 1, rate[w] / total, rate[w]);
        int64_t lease;
        HostRange range;
        if (t.free == 0) break;
        ASSERT_TRUE(host_lease_grant(&t, &a, free_s[w], &lease, &range));
        leases++;
        free_s[w] += range.count / rate[w];
        done_s[w] = free_s[w];
        int32_t fresh;
        ASSERT_OK(host_lease_finish(&t, range, &fresh));
    }
    double ideal_s = 100000 / total, last_s = *std::max_element(done_s, done_s + 4);
    EXPECT_LT(last_s, ideal_s * 1.01);
    EXPECT_LT(leases, 200);
}

TEST(Lease, RefusesWhatIsNoRound) {
    Table t;
    HostRange beyond = {90, 11}, negative = {-1, 5}, empty = {3, 0}, fine = {0, 100};
    EXPECT_FAILS(STATUS_CORRUPT, "round of 0", host_lease_begin(&t, 1, 0, 1, &fine, 1));
    EXPECT_FAILS(STATUS_CORRUPT, "items 90", host_lease_begin(&t, 1, 100, 1, &beyond, 1));
    EXPECT_FAILS(STATUS_CORRUPT, "items -1", host_lease_begin(&t, 1, 100, 1, &negative, 1));
    EXPECT_FAILS(STATUS_CORRUPT, "items 3", host_lease_begin(&t, 1, 100, 1, &empty, 1));
    ASSERT_OK(host_lease_begin(&t, 1, 100, 1, &fine, 1));
    int32_t fresh;
    EXPECT_FAILS(STATUS_CORRUPT, "items 90", host_lease_finish(&t, beyond, &fresh));
    EXPECT_EQ(100, t.open);
}

// The trainer says again what it lacks: what it has is not computed again, what was lost on the way is.
TEST(Lease, WantedAgain) {
    Table t;
    HostRange all = {0, 10}, range;
    int64_t lease;
    int32_t fresh;
    ASSERT_OK(host_lease_begin(&t, 1, 10, 1, &all, 1));
    HostLeaseAsk a = ask(1, 1.0, 0);
    ASSERT_TRUE(host_lease_grant(&t, &a, 0, &lease, &range)); // 0 to 4
    ASSERT_EQ(5, range.count);
    ASSERT_OK(host_lease_finish(&t, range, &fresh));
    HostRange lacking[] = {{2, 1}, {7, 3}};
    ASSERT_OK(host_lease_want(&t, lacking, 2));
    check_books(t, {2, 7, 8, 9});
}

} // namespace
