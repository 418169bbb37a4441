// Instructions by which the lanes of a warp see each other: shuffles, votes, matches, reductions. Each runs in warps
// whose lanes take part at random, against a reference that follows the PTX ISA's text.

#include <functional>

#include "tests/vgpu/conformance/ptx_test.h"

namespace {

constexpr uint32_t WARPS = 96, LANES = 32;

// What the lanes of one warp have, and give. Registers of 64 bits are in a (upper half in b).
struct Warp {
    uint32_t mask = 0; // the lanes that take part
    uint32_t a[LANES] = {}, b[LANES] = {}, c[LANES] = {};
    uint32_t d[LANES] = {}, p[LANES] = {};

    bool has(uint32_t lane) const { return (mask >> lane & 1) != 0; }
    uint64_t wide(uint32_t lane) const { return uint64_t{b[lane]} << 32 | a[lane]; }
};

// Loads %a, %b, %c of the lane, %w = {%a, %b} and %q = bit 0 of %a; lanes outside %mask jump over the instruction.
const char *const KERNEL_BEGIN = R"(
.visible .entry warp_op(.param .u64 inputs, .param .u64 masks, .param .u64 outputs)
{
    .reg .pred %p, %q, %out;
    .reg .b32 %a, %b, %c, %d, %e, %mask, %lane, %warp, %thread, %t;
    .reg .b64 %w, %in, %masks, %o;
    .shared .align 4 .b32 exchange[32];
    ld.param.u64 %in, [inputs];
    ld.param.u64 %masks, [masks];
    ld.param.u64 %o, [outputs];
    mov.u32 %lane, %tid.x;
    mov.u32 %warp, %ctaid.x;
    mad.lo.u32 %thread, %warp, 32, %lane;
    mad.wide.u32 %in, %thread, 12, %in;
    mad.wide.u32 %o, %thread, 8, %o;
    mad.wide.u32 %masks, %warp, 4, %masks;
    ld.global.u32 %mask, [%masks];
    ld.global.u32 %a, [%in];
    ld.global.u32 %b, [%in+4];
    ld.global.u32 %c, [%in+8];
    mov.b64 %w, {%a, %b};
    and.b32 %t, %a, 1;
    setp.ne.u32 %q, %t, 0;
    setp.ne.u32 %p, 0, 0;
    mov.u32 %d, 0;
    shr.u32 %t, %mask, %lane;
    and.b32 %t, %t, 1;
    setp.eq.u32 %out, %t, 0;
    @%out bra DONE;
)";

const char *const KERNEL_END = R"(
    selp.u32 %e, 1, 0, %p;
    st.global.u32 [%o], %d;
    st.global.u32 [%o+4], %e;
DONE:
    ret;
}
)";

class WarpTest : public PtxTest {
  protected:
    // Inputs of all warps; `shape` changes what is random to what the instruction is about.
    void fill(TestRandom *random, const std::function<void(TestRandom *, Warp *)> &shape) {
        warps_.assign(WARPS, Warp{});
        for (uint32_t w = 0; w < WARPS; w++) {
            Warp &warp = warps_[w];
            const uint32_t masks[] = {~0u, 1u << random->below(32), random->bits32() | 1, 0xFFFF, 0xFFFF0000};
            warp.mask = masks[w % 5];
            for (uint32_t l = 0; l < LANES; l++) {
                warp.a[l] = random->bits32();
                warp.b[l] = random->bits32();
                warp.c[l] = random->bits32();
            }
            if (shape) shape(random, &warp);
        }
    }

    void run(const std::string &instruction) {
        load_body(KERNEL_BEGIN + ("    " + instruction) + KERNEL_END);
        std::vector<uint32_t> inputs, masks;
        for (const Warp &warp : warps_) {
            masks.push_back(warp.mask);
            for (uint32_t l = 0; l < LANES; l++)
                inputs.insert(inputs.end(), {warp.a[l], warp.b[l], warp.c[l]});
        }
        DeviceArray<uint32_t> in(inputs), mask(masks), out(size_t{2} * LANES * WARPS, 0xA5A5A5A5);
        launch("warp_op", {WARPS}, {LANES}, 0, in.data(), mask.data(), out.data());
        if (HasFatalFailure()) return;
        std::vector<uint32_t> got = out.read();
        for (uint32_t w = 0; w < WARPS; w++) {
            for (uint32_t l = 0; l < LANES; l++) {
                warps_[w].d[l] = got[2 * (w * LANES + l)];
                warps_[w].p[l] = got[2 * (w * LANES + l) + 1];
            }
        }
    }

    // Compares every lane that takes part with reference(warp, lane), which sets d and p of the expected lane or
    // returns false where the ISA says nothing.
    struct Expected {
        uint32_t d = 0, p = 0;
    };
    using Reference = std::function<bool(const Warp &warp, uint32_t lane, Expected *expected)>;

    void check(const std::string &instruction, const Reference &reference) {
        SCOPED_TRACE(instruction);
        run(instruction);
        if (HasFatalFailure()) return;
        int compared = 0;
        for (uint32_t w = 0; w < WARPS; w++) {
            for (uint32_t l = 0; l < LANES; l++) {
                Expected expected;
                if (!warps_[w].has(l) || !reference(warps_[w], l, &expected)) continue;
                compared++;
                ASSERT_EQ(warps_[w].d[l], expected.d) << describe(w, l);
                ASSERT_EQ(warps_[w].p[l], expected.p) << describe(w, l);
            }
        }
        EXPECT_GT(compared, 0);
    }

    std::string describe(uint32_t w, uint32_t lane) const {
        char text[200];
        const Warp &warp = warps_[w];
        snprintf(text, sizeof text, "warp %u lane %u mask 0x%x a 0x%x b 0x%x c 0x%x", w, lane, warp.mask, warp.a[lane],
                 warp.b[lane], warp.c[lane]);
        return text;
    }

    std::vector<Warp> warps_;
};

// ---- shuffles ----

enum class Shuffle { up, down, bfly, idx };

// The ISA's pseudocode. Whether the source lane is in range goes into `in_range`.
uint32_t source_lane(Shuffle mode, uint32_t lane, uint32_t b, uint32_t c, bool *in_range) {
    const auto l = static_cast<int>(lane), offset = static_cast<int>(b & 31);
    const auto segment = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31);
    const int max_lane = (l & segment) | (clamp & ~segment), min_lane = l & segment;
    int source = 0;
    switch (mode) {
    case Shuffle::up:
        source = l - offset;
        *in_range = source >= max_lane;
        break;
    case Shuffle::down:
        source = l + offset;
        *in_range = source <= max_lane;
        break;
    case Shuffle::bfly:
        source = l ^ offset;
        *in_range = source <= max_lane;
        break;
    case Shuffle::idx:
        source = min_lane | (offset & ~segment);
        *in_range = source <= max_lane;
        break;
    }
    return *in_range ? static_cast<uint32_t>(source) : lane;
}

// Widths as __shfl_sync makes them (1 to 32 lanes), or any segment and clamp at all.
void shape_shuffle(Shuffle mode, TestRandom *random, Warp *warp) {
    uint32_t width = 1u << random->below(6);
    uint32_t common = (32 - width) << 8 | (mode == Shuffle::up ? 0 : 31);
    bool is_uniform = random->below(2) != 0;
    for (uint32_t l = 0; l < LANES; l++) {
        warp->b[l] = is_uniform ? warp->b[0] & 31 : warp->b[l];
        warp->c[l] = random->below(4) != 0 ? common : warp->c[l];
    }
}

// A lane that does not take part has no value to give: with the lanes of the mask come those that they read.
void add_sources(Shuffle mode, Warp *warp) {
    for (uint32_t before = 0; before != warp->mask;) {
        before = warp->mask;
        for (uint32_t l = 0; l < LANES; l++) {
            bool in_range = false;
            if (warp->has(l)) warp->mask |= 1u << source_lane(mode, l, warp->b[l], warp->c[l], &in_range);
        }
    }
}

class ShuffleTest : public WarpTest {
  protected:
    void check_shuffle(const std::string &instruction, Shuffle mode, bool has_predicate) {
        TestRandom random(1 + static_cast<uint32_t>(mode));
        fill(&random, [mode](TestRandom *r, Warp *warp) { shape_shuffle(mode, r, warp); });
        for (Warp &warp : warps_)
            add_sources(mode, &warp);
        check(instruction, [=](const Warp &warp, uint32_t lane, Expected *expected) {
            bool in_range = false;
            uint32_t source = source_lane(mode, lane, warp.b[lane], warp.c[lane], &in_range);
            *expected = {warp.a[source], has_predicate && in_range ? 1u : 0u};
            return true;
        });
    }
};

TEST_F(ShuffleTest, Up) { check_shuffle("shfl.sync.up.b32 %d|%p, %a, %b, %c, %mask;", Shuffle::up, true); }
TEST_F(ShuffleTest, Down) { check_shuffle("shfl.sync.down.b32 %d|%p, %a, %b, %c, %mask;", Shuffle::down, true); }
TEST_F(ShuffleTest, Butterfly) { check_shuffle("shfl.sync.bfly.b32 %d|%p, %a, %b, %c, %mask;", Shuffle::bfly, true); }
TEST_F(ShuffleTest, Index) { check_shuffle("shfl.sync.idx.b32 %d|%p, %a, %b, %c, %mask;", Shuffle::idx, true); }
TEST_F(ShuffleTest, WithoutPredicate) {
    check_shuffle("shfl.sync.down.b32 %d, %a, %b, %c, %mask;", Shuffle::down, false);
}

TEST_F(WarpTest, ShuffleWithImmediates) {
    TestRandom random(21);
    fill(&random, nullptr);
    for (Warp &warp : warps_)
        warp.mask = ~0u;
    check("shfl.sync.up.b32 %d|%p, %a, 3, 0x1800, 0xffffffff;",
          [](const Warp &warp, uint32_t lane, Expected *expected) {
              bool in_range = lane % 8 >= 3;
              *expected = {warp.a[in_range ? lane - 3 : lane], in_range};
              return true;
          });
}

// ---- votes ----

uint32_t ballot(const Warp &warp) {
    uint32_t bits = 0;
    for (uint32_t l = 0; l < LANES; l++)
        bits |= (warp.a[l] & 1) << l;
    return bits & warp.mask;
}

// Often all alike, so that all and uni are true at times.
void shape_vote(TestRandom *random, Warp *warp) {
    uint32_t shape = random->below(4);
    for (uint32_t &a : warp->a)
        a = shape == 0 ? a | 1 : shape == 1 ? a & ~1u : a;
}

class VoteTest : public WarpTest {
  protected:
    void check_vote(const std::string &instruction, const std::function<bool(uint32_t, uint32_t)> &vote) {
        TestRandom random(31);
        fill(&random, shape_vote);
        check(instruction, [=](const Warp &warp, uint32_t, Expected *expected) {
            *expected = {0, vote(ballot(warp), warp.mask)};
            return true;
        });
    }
};

TEST_F(VoteTest, All) {
    check_vote("vote.sync.all.pred %p, %q, %mask;", [](uint32_t votes, uint32_t mask) { return votes == mask; });
}
TEST_F(VoteTest, AllNegated) {
    check_vote("vote.sync.all.pred %p, !%q, %mask;", [](uint32_t votes, uint32_t) { return votes == 0; });
}
TEST_F(VoteTest, Any) {
    check_vote("vote.sync.any.pred %p, %q, %mask;", [](uint32_t votes, uint32_t) { return votes != 0; });
}
TEST_F(VoteTest, Uniform) {
    check_vote("vote.sync.uni.pred %p, %q, %mask;",
               [](uint32_t votes, uint32_t mask) { return votes == 0 || votes == mask; });
}

// The words may come in the other order, too.
TEST_F(VoteTest, OtherOrderOfWords) {
    check_vote("vote.all.sync.pred %p, %q, %mask;", [](uint32_t votes, uint32_t mask) { return votes == mask; });
    check_vote("vote.any.sync.pred %p, !%q, %mask;", [](uint32_t votes, uint32_t mask) { return votes != mask; });
    check_vote("vote.uni.sync.pred %p, %q, %mask;",
               [](uint32_t votes, uint32_t mask) { return votes == 0 || votes == mask; });
}

TEST_F(WarpTest, Ballot) {
    TestRandom random(32);
    fill(&random, shape_vote);
    check("vote.sync.ballot.b32 %d, %q, %mask;", [](const Warp &warp, uint32_t, Expected *expected) {
        *expected = {ballot(warp), 0};
        return true;
    });
    check("vote.ballot.sync.b32 %d, !%q, %mask;", [](const Warp &warp, uint32_t, Expected *expected) {
        *expected = {~ballot(warp) & warp.mask, 0};
        return true;
    });
}

// ---- matches ----

uint32_t lanes_alike(const Warp &warp, uint32_t lane, bool is_wide) {
    uint32_t alike = 0;
    for (uint32_t l = 0; l < LANES; l++) {
        bool is_equal = is_wide ? warp.wide(l) == warp.wide(lane) : warp.a[l] == warp.a[lane];
        if (warp.has(l) && is_equal) alike |= 1u << l;
    }
    return alike;
}

// Few different values; of 64 bits they may differ in either half.
void shape_match(TestRandom *random, Warp *warp) {
    uint32_t kinds = 1 + random->below(4);
    for (uint32_t l = 0; l < LANES; l++) {
        warp->a[l] = 0x1000 + random->below(kinds);
        warp->b[l] = 0x80000000 + random->below(kinds);
    }
}

TEST_F(WarpTest, MatchAny) {
    TestRandom random(41);
    for (bool is_wide : {false, true}) {
        fill(&random, shape_match);
        const char *instruction = is_wide ? "match.any.sync.b64 %d, %w, %mask;" : "match.any.sync.b32 %d, %a, %mask;";
        check(instruction, [=](const Warp &warp, uint32_t lane, Expected *expected) {
            *expected = {lanes_alike(warp, lane, is_wide), 0};
            return true;
        });
    }
}

TEST_F(WarpTest, MatchAll) {
    TestRandom random(42);
    for (bool is_wide : {false, true}) {
        fill(&random, shape_match);
        const char *instruction =
            is_wide ? "match.all.sync.b64 %d|%p, %w, %mask;" : "match.all.sync.b32 %d|%p, %a, %mask;";
        check(instruction, [=](const Warp &warp, uint32_t lane, Expected *expected) {
            bool all = lanes_alike(warp, lane, is_wide) == warp.mask;
            *expected = {all ? warp.mask : 0, all};
            return true;
        });
    }
}

// ---- reductions ----

class ReduceTest : public WarpTest {
  protected:
    void check_reduce(const std::string &instruction, uint32_t (*combine)(uint32_t, uint32_t)) {
        TestRandom random(51);
        fill(&random, [](TestRandom *r, Warp *warp) {
            if (r->below(3) != 0) return;
            for (uint32_t &a : warp->a)
                a = r->below(2) != 0 ? r->below(100) : -r->below(100);
        });
        check(instruction, [=](const Warp &warp, uint32_t lane, Expected *expected) {
            uint32_t total = warp.a[lane];
            for (uint32_t l = 0; l < LANES; l++) {
                if (warp.has(l) && l != lane) total = combine(total, warp.a[l]);
            }
            *expected = {total, 0};
            return true;
        });
    }
};

uint32_t reduce_add(uint32_t x, uint32_t y) { return x + y; }
uint32_t reduce_min(uint32_t x, uint32_t y) { return x < y ? x : y; }
uint32_t reduce_max(uint32_t x, uint32_t y) { return x < y ? y : x; }
uint32_t reduce_min_signed(uint32_t x, uint32_t y) { return static_cast<int32_t>(x) < static_cast<int32_t>(y) ? x : y; }
uint32_t reduce_max_signed(uint32_t x, uint32_t y) { return static_cast<int32_t>(x) < static_cast<int32_t>(y) ? y : x; }
uint32_t reduce_and(uint32_t x, uint32_t y) { return x & y; }
uint32_t reduce_or(uint32_t x, uint32_t y) { return x | y; }
uint32_t reduce_xor(uint32_t x, uint32_t y) { return x ^ y; }

TEST_F(ReduceTest, AddUnsigned) { check_reduce("redux.sync.add.u32 %d, %a, %mask;", reduce_add); }
TEST_F(ReduceTest, AddSigned) { check_reduce("redux.sync.add.s32 %d, %a, %mask;", reduce_add); }
TEST_F(ReduceTest, MinUnsigned) { check_reduce("redux.sync.min.u32 %d, %a, %mask;", reduce_min); }
TEST_F(ReduceTest, MinSigned) { check_reduce("redux.sync.min.s32 %d, %a, %mask;", reduce_min_signed); }
TEST_F(ReduceTest, MaxUnsigned) { check_reduce("redux.sync.max.u32 %d, %a, %mask;", reduce_max); }
TEST_F(ReduceTest, MaxSigned) { check_reduce("redux.sync.max.s32 %d, %a, %mask;", reduce_max_signed); }
TEST_F(ReduceTest, And) { check_reduce("redux.sync.and.b32 %d, %a, %mask;", reduce_and); }
TEST_F(ReduceTest, Or) { check_reduce("redux.sync.or.b32 %d, %a, %mask;", reduce_or); }
TEST_F(ReduceTest, Xor) { check_reduce("redux.sync.xor.b32 %d, %a, %mask;", reduce_xor); }

// ---- who is there ----

TEST_F(WarpTest, Elect) {
    TestRandom random(61);
    fill(&random, nullptr);
    run("elect.sync %d|%p, %mask;");
    for (const Warp &warp : warps_) {
        uint32_t elected = 0;
        for (uint32_t l = 0; l < LANES; l++) {
            if (!warp.has(l)) continue;
            elected |= warp.p[l] << l;
            ASSERT_LT(warp.d[l], LANES);
            ASSERT_TRUE(warp.has(warp.d[l]));
        }
        for (uint32_t l = 0; l < LANES; l++) {
            if (!warp.has(l)) continue;
            EXPECT_EQ(elected, 1u << warp.d[l]) << "mask " << warp.mask << " lane " << l;
        }
    }
}

// Lanes that jumped over it are not active; which of the others run together is the machine's affair.
TEST_F(WarpTest, ActiveMask) {
    TestRandom random(62);
    fill(&random, nullptr);
    run("activemask.b32 %d;");
    for (const Warp &warp : warps_) {
        for (uint32_t l = 0; l < LANES; l++) {
            if (!warp.has(l)) continue;
            EXPECT_EQ(warp.d[l] & ~warp.mask, 0u);
            EXPECT_NE(warp.d[l] >> l & 1, 0u);
        }
    }
}

// Each lane reads what the lane above it among those that take part has written.
TEST_F(WarpTest, BarrierOrdersSharedMemory) {
    TestRandom random(63);
    fill(&random, [](TestRandom *, Warp *warp) {
        for (uint32_t l = 0; l < LANES; l++) {
            warp->b[l] = l;
            for (uint32_t step = 1; step <= LANES && warp->b[l] == l; step++) {
                if (warp->has((l + step) % LANES)) warp->b[l] = (l + step) % LANES;
            }
        }
    });
    const char *instructions = R"(mov.u32 %e, exchange;
    mad.lo.u32 %t, %lane, 4, %e;
    st.shared.u32 [%t], %a;
    bar.warp.sync %mask;
    mad.lo.u32 %t, %b, 4, %e;
    ld.shared.u32 %d, [%t];)";
    check(instructions, [](const Warp &warp, uint32_t lane, Expected *expected) {
        *expected = {warp.a[warp.b[lane]], 0};
        return true;
    });
}

} // namespace
