// The operations on integers, bits and predicates against references that compute otherwise: in wider integers or bit
// by bit.
#include "tests/vgpu/exec/ops_test.h"

namespace vgpu {
namespace {

__extension__ using Int128 = __int128;

INSTANTIATE_TEST_SUITE_P(Isa, Ops, testing::Values("baseline", "v3", "v4"),
                         [](const auto &tested) { return std::string(tested.param); });

constexpr int ROUNDS = 50;

// f(a, b, c) in 128 bits gives the low bits of the expected result.
template <class T, class F> void check(Ops &, T *d, const T *a, const T *b, const T *c, const char *opcode, F &&f) {
    for (int l = 0; l < LANES; l++)
        ASSERT_EQ(d[l], (T)f((Int128)a[l], (Int128)b[l], (Int128)c[l]))
            << opcode << " of " << +a[l] << ", " << +b[l] << ", " << +c[l];
}

TEST_P(Ops, IntegersOfEveryWidth) {
    const auto run = [&](auto t, const std::string &type) {
        using T = decltype(t);
        constexpr int BYTES = sizeof(T), BITS = 8 * BYTES;
        const auto check_all = [&](const std::string &name, int operands, auto f) {
            const std::string opcode = name + "." + type;
            execute(opcode, std::vector<int>((size_t)operands + 1, BYTES));
            check(*this, lanes<T>(0), lanes<T>(1), lanes<T>(2), lanes<T>(3), opcode.c_str(), f);
        };
        for (int round = 0; round < ROUNDS; round++) {
            fill<T>(1), fill<T>(2), fill<T>(3);
            check_all("add", 2, [](Int128 a, Int128 b, Int128) { return a + b; });
            check_all("sub", 2, [](Int128 a, Int128 b, Int128) { return a - b; });
            check_all("mul.lo", 2, [](Int128 a, Int128 b, Int128) { return a * b; });
            check_all("mul.hi", 2, [](Int128 a, Int128 b, Int128) { return a * b >> BITS; });
            check_all("mad.lo", 3, [](Int128 a, Int128 b, Int128 c) { return a * b + c; });
            check_all("mad.hi", 3, [](Int128 a, Int128 b, Int128 c) { return (a * b >> BITS) + c; });
            check_all("div", 2, [](Int128 a, Int128 b, Int128) { return b == 0 ? -1 : a / b; });
            check_all("rem", 2, [](Int128 a, Int128 b, Int128) { return b == 0 ? a : a % b; });
            check_all("min", 2, [](Int128 a, Int128 b, Int128) { return a < b ? a : b; });
            check_all("max", 2, [](Int128 a, Int128 b, Int128) { return a < b ? b : a; });
            check_all("sad", 3, [](Int128 a, Int128 b, Int128 c) { return c + (a < b ? b - a : a - b); });
        }
    };
    run(uint16_t{}, "u16"), run(int16_t{}, "s16");
    run(uint32_t{}, "u32"), run(int32_t{}, "s32");
    run(uint64_t{}, "u64"), run(int64_t{}, "s64");
}

TEST_P(Ops, InactiveLanesKeepTheirValues) {
    const Mask active = 0x8421a5c3;
    for (const auto &[opcode, widths] : std::vector<std::pair<const char *, std::vector<int>>>{
             {"add.s32", {4, 4, 4}}, {"div.u32", {4, 4, 4}}, {"cvt.rni.s32.f32", {4, 4}}, {"selp.b32", {4, 4, 4, 0}}}) {
        set<uint32_t>(0, 0xdeadbeef), set<uint32_t>(1, 0x40e00000), set<uint32_t>(2, 3);
        execute(opcode, widths, active);
        for (int l = 0; l < LANES; l++)
            EXPECT_EQ(lanes<uint32_t>(0)[l] == 0xdeadbeef, (active >> l & 1) == 0) << opcode << " lane " << l;
    }
    predicate(0) = predicate(1) = 0x0f0f0f0f;
    set<int32_t>(2, 1), set<int32_t>(3, 2);
    execute("setp.lt.s32", {0, 0, 4, 4}, active);
    EXPECT_EQ(predicate(0), 0x0f0f0f0f | active);
    EXPECT_EQ(predicate(1), 0x0f0f0f0f & ~active);
}

TEST_P(Ops, CarriesChain) {
    const auto word = [](uint64_t x, int i) { return (uint32_t)(x >> 32 * i); };
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a[LANES], b[LANES], sum[LANES], difference[LANES], product[LANES];
        fill<uint64_t>(0), fill<uint64_t>(1);
        std::copy_n(lanes<uint64_t>(0), LANES, a);
        std::copy_n(lanes<uint64_t>(1), LANES, b);
        const auto words = [&](const char *opcode, int i, uint64_t *to) {
            for (int l = 0; l < LANES; l++)
                lanes<uint32_t>(1)[l] = word(a[l], i), lanes<uint32_t>(2)[l] = word(b[l], i);
            execute(opcode, {4, 4, 4});
            for (int l = 0; l < LANES; l++)
                to[l] = i == 0 ? lanes<uint32_t>(0)[l] : to[l] | (uint64_t)lanes<uint32_t>(0)[l] << 32;
        };
        words("add.cc.u32", 0, sum), words("addc.cc.u32", 1, sum);
        for (int l = 0; l < LANES; l++)
            ASSERT_EQ(carry_ >> l & 1, (a[l] + b[l] < a[l])) << a[l] << " + " << b[l];
        words("sub.cc.u32", 0, difference), words("subc.cc.u32", 1, difference);
        for (int l = 0; l < LANES; l++)
            ASSERT_EQ(carry_ >> l & 1, (a[l] >= b[l])) << a[l] << " - " << b[l];
        // The low words' product, the high words added to its upper half.
        const auto multiply = [&](const char *opcode, int i) {
            for (int l = 0; l < LANES; l++) {
                lanes<uint32_t>(1)[l] = word(a[l], 0), lanes<uint32_t>(2)[l] = word(b[l], 0);
                lanes<uint32_t>(3)[l] = word(a[l], i);
            }
            execute(opcode, {4, 4, 4, 4});
            for (int l = 0; l < LANES; l++)
                product[l] = i == 0 ? lanes<uint32_t>(0)[l] : product[l] | (uint64_t)lanes<uint32_t>(0)[l] << 32;
        };
        multiply("mad.lo.cc.u32", 0), multiply("madc.hi.u32", 1);
        for (int l = 0; l < LANES; l++) {
            ASSERT_EQ(sum[l], a[l] + b[l]);
            ASSERT_EQ(difference[l], a[l] - b[l]);
            ASSERT_EQ(product[l], (uint64_t)word(a[l], 0) * word(b[l], 0) + a[l]);
        }
    }
    carry_ = 0xffff0000;
    set<uint32_t>(1, 1), set<uint32_t>(2, 1);
    execute("add.cc.u32", {4, 4, 4}, 0x0000ffff | 0x00ff0000);
    EXPECT_EQ(carry_, 0xff000000) << "the carry of inactive lanes stays";
}

TEST_P(Ops, BitFieldsBitByBit) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int operand = 1; operand <= 4; operand++)
            fill<uint32_t>(operand);
        const uint32_t *d = lanes<uint32_t>(0), *a = lanes<uint32_t>(1), *b = lanes<uint32_t>(2);
        const uint32_t *c = lanes<uint32_t>(3);
        const auto bit = [](uint32_t x, uint32_t i) { return i < 32 ? x >> i & 1 : 0; };
        const auto check_bits = [&](const char *opcode, std::vector<int> widths, auto expected) {
            execute(opcode, widths);
            for (int l = 0; l < LANES; l++)
                for (uint32_t i = 0; i < 32; i++)
                    ASSERT_EQ(bit(d[l], i), expected(l, i))
                        << opcode << " of " << a[l] << ", " << b[l] << ", " << c[l] << ", bit " << i;
        };
        const auto extract = [&](int l, uint32_t i, uint32_t sign) {
            const uint32_t position = b[l] & 0xff, length = c[l] & 0xff;
            return i < length && position + i <= 31 ? bit(a[l], position + i) : sign;
        };
        check_bits("bfe.u32", {4, 4, 4, 4}, [&](int l, uint32_t i) { return extract(l, i, 0); });
        check_bits("bfe.s32", {4, 4, 4, 4}, [&](int l, uint32_t i) {
            const uint32_t position = b[l] & 0xff, length = c[l] & 0xff;
            return extract(l, i, length == 0 ? 0 : bit(a[l], std::min(position + length - 1, 31U)));
        });
        check_bits("bfi.b32", {4, 4, 4, 4, 4}, [&](int l, uint32_t i) {
            const uint32_t position = c[l] & 0xff, length = lanes<uint32_t>(4)[l] & 0xff;
            return i >= position && i < position + length ? bit(a[l], i - position) : bit(b[l], i);
        });
        check_bits("shl.b32", {4, 4, 4}, [&](int l, uint32_t i) { return i < b[l] ? 0 : bit(a[l], i - b[l]); });
        check_bits("shr.s32", {4, 4, 4},
                   [&](int l, uint32_t i) { return bit(a[l], (uint32_t)std::min<uint64_t>((uint64_t)i + b[l], 31)); });
        check_bits("brev.b32", {4, 4}, [&](int l, uint32_t i) { return bit(a[l], 31 - i); });
        check_bits("shf.l.wrap.b32", {4, 4, 4, 4}, [&](int l, uint32_t i) {
            const uint32_t n = c[l] % 32;
            return i >= n ? bit(b[l], i - n) : bit(a[l], 32 + i - n);
        });
        check_bits("shf.r.clamp.b32", {4, 4, 4, 4}, [&](int l, uint32_t i) {
            const uint32_t n = std::min(c[l], 32U);
            return i + n < 32 ? bit(a[l], i + n) : bit(b[l], i + n - 32);
        });
        const uint32_t table = (uint32_t)random_() & 0xff;
        set<uint32_t>(4, table);
        check_bits("lop3.b32", {4, 4, 4, 4, 4}, [&](int l, uint32_t i) {
            return table >> (bit(a[l], i) * 4 + bit(b[l], i) * 2 + bit(c[l], i)) & 1;
        });
        check_bits("prmt.b32", {4, 4, 4, 4}, [&](int l, uint32_t i) {
            const uint32_t selector = c[l] >> i / 8 * 4, byte = selector & 7, within = selector & 8 ? 7 : i % 8;
            return bit(byte < 4 ? a[l] : b[l], byte % 4 * 8 + within);
        });
        execute("bfind.shiftamt.s32", {4, 4});
        for (int l = 0; l < LANES; l++) {
            uint32_t amount = 0;
            while (amount < 32 && bit(a[l], 31 - amount) == bit(a[l], 31))
                amount++;
            const uint32_t expected = bit(a[l], 31) == 0 || amount < 32 ? amount : 32;
            ASSERT_EQ(d[l], expected == 32 ? ~0U : expected) << a[l];
        }
    }
}

TEST_P(Ops, ComparisonsSetBothPredicates) {
    for (int l = 0; l < LANES; l++)
        lanes<int32_t>(2)[l] = l - 16, lanes<int32_t>(3)[l] = 0;
    predicate(4) = 0x0ff00ff0;
    flip_ = 1 << 4;
    execute("setp.lt.and.s32", {0, 0, 4, 4, 0});
    EXPECT_EQ(predicate(0), 0x0000ffffU & ~0x0ff00ff0U);
    EXPECT_EQ(predicate(1), 0xffff0000U & ~0x0ff00ff0U);
    flip_ = 0;
    execute("setp.hs.xor.u32", {0, 0, 4, 4, 0});
    EXPECT_EQ(predicate(0), ~0x0ff00ff0U) << "every unsigned number is at least zero";
    EXPECT_EQ(predicate(1), 0x0ff00ff0U);
}

TEST_P(Ops, PacksAndUnpacks) {
    fill<uint16_t>(1), fill<uint16_t>(2), fill<uint16_t>(3), fill<uint16_t>(4);
    execute("mov.b64", {8, 2, 2, 2, 2});
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 4; i++)
            ASSERT_EQ((uint16_t)(lanes<uint64_t>(0)[l] >> 16 * i), lanes<uint16_t>(1 + i)[l]);
    fill<uint64_t>(2);
    execute("mov.b64", {4, 4, 8});
    for (int l = 0; l < LANES; l++)
        ASSERT_EQ(lanes<uint64_t>(2)[l], (uint64_t)lanes<uint32_t>(1)[l] << 32 | lanes<uint32_t>(0)[l]);
}

TEST_P(Ops, RegistersMayBeWiderThanTypes) {
    set<uint32_t>(1, 0xffffff80);
    execute("cvt.s32.s8", {4, 4});
    EXPECT_EQ(lanes<int32_t>(0)[5], -128);
    execute("cvt.u32.u8", {4, 4});
    EXPECT_EQ(lanes<int32_t>(0)[5], 128);
    execute("cvt.u8.u32", {4, 4});
    EXPECT_EQ(lanes<uint32_t>(0)[5], 128U) << "zero-extended";
    execute("cvt.s8.u32", {8, 4});
    EXPECT_EQ(lanes<int64_t>(0)[5], -128) << "sign-extended";
    execute("cvt.sat.u8.s32", {4, 4});
    EXPECT_EQ(lanes<uint32_t>(0)[5], 0U);
}

} // namespace
} // namespace vgpu
