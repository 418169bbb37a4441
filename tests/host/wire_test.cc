// Messages between workers and master: what is written is read back, and nothing else is taken for a message.
#include "host/wire.h"

#include <cstring>
#include <random>
#include <vector>

#include "tests/host/host_test.h"
#include "tests/kernels/fresh_seed.h"

namespace {

struct Kind {
    int integers;
    bool has_bytes;
};
const Kind kinds[] = {
#define KIND(name, integers, bytes) {integers, bytes != 0},
    HOST_WIRE_LIST(KIND)
#undef KIND
};

std::vector<unsigned char> encode(const HostMessage &message) {
    std::vector<unsigned char> out(host_wire_size(&message));
    host_wire_encode(&message, out.data());
    return out;
}

TEST(Wire, RoundTrip) {
    std::mt19937_64 random(fresh_seed());
    for (int type = 0; type < HOST_MESSAGE_TYPES; type++) {
        for (int trial = 0; trial < 20; trial++) {
            std::vector<unsigned char> bytes(kinds[type].has_bytes ? random() % 100 : 0);
            for (auto &b : bytes)
                b = static_cast<unsigned char>(random());
            HostMessage message = {}, back;
            message.type = static_cast<HostMessageType>(type);
            for (int i = 0; i < kinds[type].integers; i++)
                message.value[i] = static_cast<int64_t>(random());
            message.bytes = bytes.data();
            message.size_bytes = bytes.size();
            std::vector<unsigned char> wire = encode(message);
            ASSERT_OK(host_wire_decode(wire.data(), wire.size(), &back)) << host_message_type_name(message.type);
            EXPECT_EQ(message.type, back.type);
            EXPECT_EQ(0, memcmp(message.value, back.value, sizeof message.value));
            ASSERT_EQ(bytes.size(), back.size_bytes);
            EXPECT_TRUE(bytes.empty() || memcmp(bytes.data(), back.bytes, bytes.size()) == 0);
        }
    }
}

TEST(Wire, EveryCutIsRefusedOrShorter) {
    for (int type = 0; type < HOST_MESSAGE_TYPES; type++) {
        unsigned char bytes[] = "0123456789";
        HostMessage message = {}, back;
        message.type = static_cast<HostMessageType>(type);
        message.bytes = kinds[type].has_bytes ? bytes : nullptr;
        message.size_bytes = kinds[type].has_bytes ? 10 : 0;
        std::vector<unsigned char> wire = encode(message);
        size_t fixed = HOST_WIRE_HEADER_BYTES + 8 * static_cast<size_t>(kinds[type].integers);
        for (size_t size = 0; size < wire.size(); size++) {
            std::vector<unsigned char> cut(wire.begin(), wire.begin() + static_cast<long>(size));
            Status status = host_wire_decode(cut.data(), cut.size(), &back);
            EXPECT_EQ(size < fixed ? STATUS_CORRUPT : STATUS_OK, status) << host_message_type_name(message.type);
        }
        if (kinds[type].has_bytes) continue;
        wire.push_back(0);
        EXPECT_EQ(STATUS_CORRUPT, host_wire_decode(wire.data(), wire.size(), &back));
    }
}

TEST(Wire, StrangeBytesAreRefused) {
    HostMessage back;
    EXPECT_FAILS(STATUS_CORRUPT, "none of Shoal's", host_wire_decode("", 0, &back));
    EXPECT_FAILS(STATUS_CORRUPT, "none of Shoal's", host_wire_decode("GET / HTTP/1.0\r\n\r\n", 18, &back));
    EXPECT_FAILS(STATUS_CORRUPT, "unknown type", host_wire_decode("SHL1\xff\xff\xff\xff", 8, &back));
}

TEST(Wire, PostsOfSizesThatMayBe) {
    HostMessage post = {};
    post.type = HOST_MESSAGE_POST;
    auto is_post = [&](int64_t key_bytes, size_t size_bytes) {
        post.value[1] = key_bytes;
        post.size_bytes = size_bytes;
        return host_wire_is_post(&post);
    };
    EXPECT_TRUE(is_post(1, 1));
    EXPECT_TRUE(is_post(HOST_WIRE_KEY_MAX, HOST_WIRE_KEY_MAX + HOST_WIRE_VALUE_MAX));
    EXPECT_FALSE(is_post(HOST_WIRE_KEY_MAX, HOST_WIRE_KEY_MAX + HOST_WIRE_VALUE_MAX + 1));
    EXPECT_FALSE(is_post(HOST_WIRE_KEY_MAX + 1, 1000));
    EXPECT_FALSE(is_post(2, 1));
    for (int64_t key : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX})
        EXPECT_FALSE(is_post(key, 10));
    post.type = HOST_MESSAGE_PAYLOAD;
    EXPECT_FALSE(is_post(1, 1));
}

TEST(Wire, Ranges) {
    unsigned char bytes[HOST_WIRE_RANGE_BYTES];
    int64_t first, count;
    host_wire_put_range(bytes, -5, INT64_MAX);
    host_wire_get_range(bytes, &first, &count);
    EXPECT_EQ(-5, first);
    EXPECT_EQ(INT64_MAX, count);
}

} // namespace
