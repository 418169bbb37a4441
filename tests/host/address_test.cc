#include "host/address.h"

#include <netdb.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "host_test.h"

namespace {

std::string elsewhere(const char *address, const char *endpoint) {
    char text[HOST_ENDPOINT_MAX] = "";
    EXPECT_OK(host_address_elsewhere(address, endpoint, text, sizeof text));
    return text;
}

TEST(Address, AHostAndWhetherItIsAll) {
    const struct {
        const char *address, *host;
        bool everywhere;
    } cases[] = {
        {"tcp://10.1.2.3:5555", "10.1.2.3", false},
        {"tcp://[fe80::1]:*", "fe80::1", false},
        {"tcp://node:0", "node", false},
        {"tcp://*:5555", "*", true},
        {"tcp://0.0.0.0:*", "0.0.0.0", true},
        {"tcp://[::]:1", "::", true},
    };
    for (const auto &c : cases) {
        char host[HOST_ADDRESS_MAX];
        bool everywhere = !c.everywhere;
        EXPECT_OK(host_address_host(c.address, host, &everywhere));
        EXPECT_STREQ(c.host, host);
        EXPECT_EQ(c.everywhere, everywhere) << c.address;
    }
}

TEST(Address, WhatIsNone) {
    char text[HOST_ENDPOINT_MAX];
    bool everywhere;
    for (const char *address : {"", "node", "tcp://", "tcp://node", "tcp://node:", "tcp://:5555", "udp://node:5555"}) {
        EXPECT_FAILS(STATUS_USAGE, "no address", host_address_host(address, text, &everywhere));
        EXPECT_FAILS(STATUS_USAGE, "no address", host_address_towards(address, text, sizeof text));
    }
    EXPECT_FAILS(STATUS_SYSTEM, "no.such.host",
                 host_address_towards("tcp://no.such.host.invalid:1", text, sizeof text));
}

TEST(Address, OneAddressIsTheSameElsewhere) {
    EXPECT_EQ("tcp://127.0.0.1:5555", elsewhere("tcp://127.0.0.1:*", "tcp://127.0.0.1:5555"));
    EXPECT_EQ("tcp://[::1]:5555", elsewhere("tcp://[::1]:*", "tcp://[::1]:5555"));
}

TEST(Address, AHostThatListensEverywhereIsReachedByItsName) {
    char name[256] = "";
    ASSERT_EQ(0, gethostname(name, sizeof name - 1));
    addrinfo hints = {}, *found = nullptr;
    hints.ai_family = AF_INET;
    bool is_known = getaddrinfo(name, nullptr, &hints, &found) == 0;
    if (is_known) freeaddrinfo(found);
    std::string host = is_known ? name : "127.0.0.1";
    EXPECT_EQ("tcp://" + host + ":5555", elsewhere("tcp://*:*", "tcp://127.0.0.1:5555"));
    EXPECT_EQ("tcp://" + host + ":5555", elsewhere("tcp://0.0.0.0:5555", "tcp://127.0.0.1:5555"));
}

TEST(Address, TheOneThatReachesAnEndpointCanBeListenedAt) {
    char address[HOST_ENDPOINT_MAX], endpoint[HOST_ENDPOINT_MAX];
    int fd;
    ASSERT_OK(host_address_towards("tcp://127.0.0.1:5555", address, sizeof address));
    EXPECT_STREQ("tcp://127.0.0.1:*", address);
    ASSERT_OK(host_listen(address, &fd, endpoint, sizeof endpoint));
    EXPECT_EQ(0, strncmp(endpoint, "tcp://127.0.0.1:", 16)) << endpoint;
    close(fd);
}

} // namespace
