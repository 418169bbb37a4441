// Fat binaries, built here byte by byte; the choice among architectures; LZ4.
#include "tests/vgpu/runtime/fatbin.h"

#include <cstring>
#include <random>
#include <zstd.h>

#include <gtest/gtest.h>

namespace vgpu {
namespace {

constexpr uint64_t PLAIN = 0x11, LZ4 = 0x2011, ZSTD = 0x8011;

template <typename T> void put(std::vector<uint8_t> *bytes, size_t offset, T value) {
    memcpy(bytes->data() + offset, &value, sizeof value);
}

struct TestEntry {
    uint16_t kind; // 1: PTX, 2: machine code
    uint32_t capability;
    std::string text;
    uint64_t flags = PLAIN;
};

// LZ4's simplest form: one sequence of literals.
std::string lz4_literals(const std::string &text) {
    std::string packed;
    size_t length = text.size();
    packed.push_back(static_cast<char>((length < 15 ? length : 15) << 4));
    if (length >= 15) {
        size_t left = length - 15;
        for (; left >= 255; left -= 255)
            packed.push_back(static_cast<char>(255));
        packed.push_back(static_cast<char>(left));
    }
    return packed + text;
}

std::string pack(const std::string &text, uint64_t flags) {
    if (flags == LZ4) return lz4_literals(text);
    if (flags != ZSTD) return text;
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

std::vector<uint8_t> make_container(const std::vector<TestEntry> &entries) {
    std::vector<uint8_t> bytes(16);
    for (const TestEntry &entry : entries) {
        std::string packed = pack(entry.text, entry.flags);
        uint64_t payload = (packed.size() + 7) / 8 * 8;
        std::vector<uint8_t> row(64 + payload);
        put<uint16_t>(&row, 0, entry.kind);
        put<uint32_t>(&row, 4, 64);
        put<uint64_t>(&row, 8, payload);
        put<uint32_t>(&row, 16, static_cast<uint32_t>(packed.size()));
        put<uint32_t>(&row, 28, entry.capability);
        put<uint64_t>(&row, 40, entry.flags);
        put<uint64_t>(&row, 56, entry.text.size());
        memcpy(row.data() + 64, packed.data(), packed.size());
        bytes.insert(bytes.end(), row.begin(), row.end());
    }
    put<uint32_t>(&bytes, 0, 0xba55ed50);
    put<uint16_t>(&bytes, 4, 1);
    put<uint16_t>(&bytes, 6, 16);
    put<uint64_t>(&bytes, 8, bytes.size() - 16);
    return bytes;
}

std::string ptx_for(const std::string &target) {
    return ".version 8.0\n// .target sm_10 in a comment\n.target " + target + ", debug\n.address_size 64\n";
}

std::string choose(const std::vector<TestEntry> &entries, int capability, std::string *error) {
    std::vector<uint8_t> container = make_container(entries);
    EXPECT_EQ(image_kind(container.data()), ImageKind::fatbin);
    EXPECT_EQ(image_bytes(container.data()), container.size());
    return image_ptx(container.data(), capability, error);
}

TEST(Fatbin, TheNewestPtxThatFitsIsTaken) {
    std::vector<TestEntry> entries{
        {1, 75, ptx_for("sm_75")}, {2, 90, "machine code"}, {1, 90, ptx_for("sm_90")}, {1, 80, ptx_for("sm_80")}};
    const std::pair<int, const char *> rows[] = {{75, "sm_75"}, {79, "sm_75"}, {80, "sm_80"},
                                                 {89, "sm_80"}, {90, "sm_90"}, {120, "sm_90"}};
    for (const auto &[capability, target] : rows) {
        std::string error;
        EXPECT_EQ(choose(entries, capability, &error), ptx_for(target)) << capability;
        EXPECT_EQ(error, "");
    }
    std::string error;
    EXPECT_EQ(choose(entries, 70, &error), "");
    EXPECT_EQ(error, "no PTX for compute capability 7.0 in this program; compile with code=compute_70");
}

TEST(Fatbin, PtxForOneArchitectureOnlyThere) {
    std::vector<TestEntry> entries{{1, 80, ptx_for("sm_80")}, {1, 90, ptx_for("sm_90")}, {1, 90, ptx_for("sm_90a")}};
    std::string error;
    EXPECT_EQ(choose(entries, 90, &error), ptx_for("sm_90a"));
    EXPECT_EQ(choose(entries, 100, &error), ptx_for("sm_90"));
    entries = {{1, 80, ptx_for("sm_80")}, {1, 90, ptx_for("sm_90a")}};
    EXPECT_EQ(choose(entries, 100, &error), ptx_for("sm_80"));
    entries = {{1, 90, ptx_for("sm_90a")}};
    EXPECT_EQ(choose(entries, 100, &error), "");
    EXPECT_NE(error, "");
}

TEST(Fatbin, TargetsAndCapabilities) {
    EXPECT_TRUE(target_fits("sm_75", 75));
    EXPECT_TRUE(target_fits("compute_75", 90));
    EXPECT_FALSE(target_fits("sm_90", 89));
    EXPECT_TRUE(target_fits("sm_90a", 90));
    EXPECT_FALSE(target_fits("sm_90a", 91));
    EXPECT_TRUE(target_fits("sm_100f", 103));
    EXPECT_FALSE(target_fits("sm_100f", 110));
    EXPECT_FALSE(target_fits("sm_103f", 100));
    EXPECT_FALSE(target_fits("sm_90x", 90));
    EXPECT_FALSE(target_fits("", 90));
    EXPECT_FALSE(target_fits("sm_", 90));
    EXPECT_EQ(ptx_target(ptx_for("sm_90a")), "sm_90a");
    EXPECT_EQ(ptx_target("  .target\tsm_75\n"), "sm_75");
    EXPECT_EQ(ptx_target(".version 7.0\n"), "");
}

TEST(Fatbin, CompressedEntriesAreUnpacked) {
    for (uint64_t flags : {PLAIN, LZ4, ZSTD}) {
        std::string error;
        EXPECT_EQ(choose({{1, 75, ptx_for("sm_75"), flags}}, 75, &error), ptx_for("sm_75")) << flags;
        EXPECT_EQ(error, "");
    }
}

TEST(Fatbin, DamagedContainersAreRefused) {
    std::vector<TestEntry> entries{{1, 75, ptx_for("sm_75"), ZSTD}};
    std::vector<uint8_t> container = make_container(entries);
    std::string error;
    std::vector<uint8_t> damaged = container;
    put<uint64_t>(&damaged, 16 + 8, 1 << 20); // the payload's size
    EXPECT_EQ(image_ptx(damaged.data(), 75, &error), "");
    EXPECT_EQ(error, "the fat binary is damaged");
    damaged = container;
    damaged[16 + 64] ^= 0xff; // the first byte of the compressed text
    EXPECT_EQ(image_ptx(damaged.data(), 75, &error), "");
    EXPECT_EQ(error, "the fat binary's PTX does not unpack (zstd)");
    const char elf[8] = "\x7f"
                        "ELF\x02\x01";
    EXPECT_EQ(image_ptx(elf, 75, &error), "");
    EXPECT_EQ(error, "machine code alone: no PTX for compute capability 7.5");
    EXPECT_EQ(image_ptx("\x01\x02\x03\x04", 75, &error), "");
    EXPECT_EQ(error, "neither PTX nor a fat binary");
}

TEST(Fatbin, RelocatableDeviceCodeIsRefused) {
    const uint64_t wrapper[] = {uint64_t{2} << 32 | 0x466243b1, 0, 0};
    std::string error;
    EXPECT_EQ(image_ptx(wrapper, 90, &error), "");
    EXPECT_NE(error.find("-rdc=false"), std::string::npos) << error;
}

TEST(Fatbin, PtxTextIsTakenAsItIs) {
    std::string text = ptx_for("sm_80"), error;
    EXPECT_EQ(image_kind(text.c_str()), ImageKind::ptx);
    EXPECT_EQ(image_bytes(text.c_str()), text.size() + 1);
    EXPECT_EQ(image_ptx(text.c_str(), 80, &error), text);
    EXPECT_EQ(image_ptx(text.c_str(), 75, &error), "");
    EXPECT_EQ(error, "PTX for sm_80 on a device of compute capability 7.5");
}

// ---- LZ4 -----------------------------------------------------------------------------------------------------------

// A block of random sequences, with the text that they stand for.
std::pair<std::string, std::string> random_block(std::mt19937 *random, int sequences) {
    std::string packed, text;
    auto put_length = [&packed](size_t length) {
        if (length < 15) return;
        size_t left = length - 15;
        for (; left >= 255; left -= 255)
            packed.push_back(static_cast<char>(255));
        packed.push_back(static_cast<char>(left));
    };
    for (int i = 0; i <= sequences; i++) {
        bool is_last = i == sequences;
        size_t literals = (*random)() % 4 == 0 ? (*random)() % 700 : (*random)() % 14;
        if (text.empty() || is_last) literals++; // the last sequence is literals alone
        size_t copied = is_last ? 0 : 4 + ((*random)() % 4 == 0 ? (*random)() % 700 : (*random)() % 14);
        size_t low = is_last ? 0 : (copied - 4 < 15 ? copied - 4 : 15);
        packed.push_back(static_cast<char>((literals < 15 ? literals : 15) << 4 | low));
        put_length(literals);
        for (size_t j = 0; j < literals; j++) {
            char letter = static_cast<char>('a' + (*random)() % 26);
            packed.push_back(letter), text.push_back(letter);
        }
        if (is_last) break;
        size_t distance = 1 + (*random)() % (text.size() < 65535 ? text.size() : 65535);
        packed.push_back(static_cast<char>(distance & 255));
        packed.push_back(static_cast<char>(distance >> 8));
        put_length(copied - 4);
        for (size_t j = 0; j < copied; j++)
            text.push_back(text[text.size() - distance]);
    }
    return {packed, text};
}

TEST(Lz4, RandomBlocks) {
    std::mt19937 random(20255);
    for (int i = 0; i < 200; i++) {
        auto [packed, expected] = random_block(&random, static_cast<int>(random() % 40));
        const auto *bytes = reinterpret_cast<const uint8_t *>(packed.data());
        std::string text;
        ASSERT_TRUE(lz4_unpack(bytes, packed.size(), expected.size(), &text)) << i;
        ASSERT_EQ(text, expected) << i;
        EXPECT_FALSE(lz4_unpack(bytes, packed.size(), expected.size() + 1, &text));
        EXPECT_FALSE(lz4_unpack(bytes, packed.size(), expected.size() - 1, &text));
        EXPECT_FALSE(lz4_unpack(bytes, packed.size() - 1, expected.size(), &text));
    }
}

TEST(Lz4, DamageIsRefused) {
    std::string text;
    const uint8_t far[] = {0x10, 'a', 2, 0}, none[] = {0x10, 'a', 0, 0}, cut[] = {0x10, 'a', 1};
    EXPECT_FALSE(lz4_unpack(far, sizeof far, 5, &text));
    EXPECT_FALSE(lz4_unpack(none, sizeof none, 5, &text));
    EXPECT_FALSE(lz4_unpack(cut, sizeof cut, 5, &text));
    const uint8_t good[] = {0x10, 'a', 1, 0};
    EXPECT_TRUE(lz4_unpack(good, sizeof good, 5, &text));
    EXPECT_EQ(text, "aaaaa");
}

} // namespace
} // namespace vgpu
