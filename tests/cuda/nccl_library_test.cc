// Opening NCCL: what is missing is named; and, where the toolkit has it, that the real library has what Shoal calls and
// needs no GPU to make an id.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "kernels/cuda/nccl_library.h"

#ifdef HAS_NCCL_HEADER
#include <nccl.h>

// The declarations are NCCL's own.
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId), "ncclUniqueId");
static_assert(int(NCCL_SUCCESS) == int(ncclSuccess) && int(NCCL_IN_PROGRESS) == int(ncclInProgress), "ncclResult_t");
static_assert(int(NCCL_BYTES) == int(ncclInt8), "ncclDataType_t");
static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size) &&
                  offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic) &&
                  offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version) &&
                  offsetof(NcclConfig, is_blocking) == offsetof(ncclConfig_t, blocking) &&
                  sizeof(NcclConfig) <= sizeof(ncclConfig_t),
              "ncclConfig_t");

TEST(NcclLibrary, TheConfigurationIsNcclsOwn) {
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    NcclConfig ours = NCCL_NONBLOCKING;
    EXPECT_EQ(theirs.magic, ours.magic);
    EXPECT_LE(ours.version, theirs.version);
    EXPECT_EQ(0, ours.is_blocking);
}
#endif

TEST(NcclLibrary, WhatIsMissingIsNamed) {
    NcclLibrary library = {};
    char missing[256] = "";
    EXPECT_FALSE(nccl_library_open(&library, "libnccl-that-is-not-there.so.2", missing, sizeof missing));
    EXPECT_NE(nullptr, strstr(missing, "libnccl-that-is-not-there.so.2")) << missing;
    EXPECT_FALSE(nccl_library_open(&library, "libm.so.6", missing, sizeof missing));
    EXPECT_STREQ("libm.so.6 has no ncclGetVersion: it is older than 2.14", missing);
}

TEST(NcclLibrary, ListensAtTheInterfaceOfTheAddress) {
    unsetenv("NCCL_SOCKET_IFNAME");
    nccl_choose_interface("192.0.2.7"); // no interface's
    EXPECT_EQ(nullptr, getenv("NCCL_SOCKET_IFNAME"));
    nccl_choose_interface(nullptr);
    EXPECT_STREQ("=lo", getenv("NCCL_SOCKET_IFNAME"));
    setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
    nccl_choose_interface(nullptr); // the user's word
    EXPECT_STREQ("eth7", getenv("NCCL_SOCKET_IFNAME"));
    unsetenv("NCCL_SOCKET_IFNAME");
}

#ifdef REAL_NCCL
// Sockets of this process that listen, at other addresses than loopback's.
static int count_listeners_beyond_loopback() {
    int count = 0;
    for (const char *table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
        std::ifstream file(table);
        std::string line, slot, local, remote, state, rest[6], inode;
        std::getline(file, line);
        while (file >> slot >> local >> remote >> state >> rest[0] >> rest[1] >> rest[2] >> rest[3] >> rest[4] >>
               inode) {
            std::getline(file, line);
            bool is_loopback =
                local.compare(0, 8, "0100007F") == 0 || local.compare(0, 32, "00000000000000000000000001000000") == 0;
            if (state != "0A" || is_loopback) continue;
            std::string command =
                "ls -l /proc/" + std::to_string(getpid()) + "/fd | grep -q 'socket:\\[" + inode + "\\]'";
            count += system(command.c_str()) == 0;
        }
    }
    return count;
}

TEST(NcclLibrary, TheRealOneHasAllAndMakesIds) {
    NcclLibrary library = {};
    char missing[256] = "";
    ASSERT_TRUE(nccl_library_open(&library, REAL_NCCL, missing, sizeof missing)) << missing;
    EXPECT_GE(library.version, NCCL_VERSION_MIN);
    nccl_choose_interface(nullptr);
    NcclId one = {}, other = {};
    ASSERT_EQ(NCCL_SUCCESS, library.get_unique_id(&one));
    ASSERT_EQ(NCCL_SUCCESS, library.get_unique_id(&other));
    EXPECT_NE(0, memcmp(&one, &other, sizeof one));
    EXPECT_EQ(0, count_listeners_beyond_loopback());
    EXPECT_STREQ("no error", library.error_string(NCCL_SUCCESS));
}
#endif
