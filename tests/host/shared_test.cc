// Memory that processes share: made once, whoever dies; found by all that run; gone with the last of them.
#include "host/shared.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "host/signals.h"
#include "tests/host/host_test.h"

namespace {

constexpr size_t size_bytes = 300000;

// What the processes of a test tell each other, in memory that forks keep in common.
struct Board {
    std::atomic<int> fills{0}, begun{0}, opened{0};
    std::atomic<bool> may_go{false};
    std::atomic<unsigned long> inode[8]{};
};

enum class Way { GOOD, HANGS, FAILS };

struct Filling {
    Board *board;
    Way way = Way::GOOD;
};

unsigned char byte_at(size_t i) { return static_cast<unsigned char>(i * 7 + i / 251); }

Status fill(void *context, void *bytes, size_t size) {
    auto *filling = static_cast<Filling *>(context);
    auto *at = static_cast<unsigned char *>(bytes);
    EXPECT_EQ(size_bytes, size);
    EXPECT_TRUE(std::all_of(at, at + size, [](unsigned char c) { return c == 0; }));
    for (size_t i = 0; i < size / 2; i++)
        at[i] = byte_at(i);
    filling->board->begun++;
    if (filling->way == Way::HANGS) pause();
    if (filling->way == Way::FAILS) return host_fail(STATUS_NUMERIC, "cannot be computed");
    for (size_t i = size / 2; i < size; i++)
        at[i] = byte_at(i);
    filling->board->fills++;
    return STATUS_OK;
}

bool is_right(const HostShared &shared) {
    const auto *at = static_cast<const unsigned char *>(shared.bytes);
    for (size_t i = 0; i < size_bytes; i++)
        if (at[i] != byte_at(i)) return false;
    return shared.size_bytes == size_bytes;
}

unsigned long inode_of(const HostShared &shared) {
    struct stat info = {};
    return fstat(shared.file, &info) == 0 ? info.st_ino : 0;
}

// Lines of /proc/net/unix that hold this text.
int names_with(const std::string &text) {
    std::ifstream stream("/proc/net/unix");
    int count = 0;
    for (std::string line; std::getline(stream, line);)
        count += line.find(text) != std::string::npos;
    return count;
}

// A socket of the abstract namespace.
int sign(const std::string &text) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, text.data(), text.size());
    auto length = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + text.size());
    EXPECT_EQ(0, bind(fd, reinterpret_cast<const struct sockaddr *>(&address), length)) << strerror(errno);
    return fd;
}

class Shared : public testing::Test {
  protected:
    void SetUp() override {
        void *memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, memory);
        board = new (memory) Board;
        static int count;
        name = "test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    }
    void TearDown() override {
        for (pid_t pid : children)
            kill(pid, SIGKILL);
        for (pid_t pid : children)
            waitpid(pid, nullptr, 0);
        host_stop_clear();
        munmap(board, sizeof(Board));
    }

    Status open(HostShared *shared, Way way = Way::GOOD, double patience_s = 60.0) {
        Filling filling = {board, way};
        HostSharedSpec spec = {name.c_str(), size_bytes, patience_s, fill, &filling};
        return host_shared_open(shared, &spec);
    }

    // A process that opens the memory, notes its inode and stays until it may go. It ends with 0 if all was right.
    pid_t begin(size_t number, Way way = Way::GOOD) {
        pid_t pid = fork();
        if (pid == 0) {
            HostShared shared;
            bool good = open(&shared, way) == STATUS_OK && shared.reason[0] == '\0' && is_right(shared);
            board->inode[number] = good ? inode_of(shared) : 0;
            board->opened++;
            while (!board->may_go)
                usleep(1000);
            host_shared_close(&shared);
            _exit(good ? 0 : 1);
        }
        children.push_back(pid);
        return pid;
    }

    static void wait_for(const std::atomic<int> &value, int least) {
        for (int i = 0; value < least; i++) {
            ASSERT_LT(i, 60000) << "waited for a minute";
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    static void end_by_force(pid_t pid) {
        int status = 0;
        ASSERT_EQ(0, kill(pid, SIGKILL));
        ASSERT_EQ(pid, waitpid(pid, &status, 0));
        ASSERT_TRUE(WIFSIGNALED(status));
    }

    void expect_good_ends() {
        board->may_go = true;
        for (pid_t pid : children) {
            int status = -1;
            waitpid(pid, &status, 0);
            EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
        }
        children.clear();
    }

    Board *board = nullptr;
    std::string name;
    std::vector<pid_t> children;
};

TEST_F(Shared, IsMadeOnceAndGoneAfterTheLastOne) {
    HostShared a, b;
    ASSERT_OK(open(&a));
    ASSERT_OK(open(&b));
    EXPECT_STREQ("", a.reason);
    EXPECT_STREQ("", b.reason);
    EXPECT_NE(a.bytes, b.bytes);
    EXPECT_EQ(inode_of(a), inode_of(b));
    EXPECT_EQ(1, board->fills);
    EXPECT_TRUE(is_right(a) && is_right(b));
    EXPECT_EQ(2, names_with(name));
    host_shared_close(&a);
    EXPECT_TRUE(is_right(b));
    ASSERT_OK(open(&a));
    EXPECT_EQ(1, board->fills);
    host_shared_close(&a);
    host_shared_close(&b);
    host_shared_close(&b); // once more is fine
    EXPECT_EQ(0, names_with(name));
    ASSERT_OK(open(&a));
    EXPECT_EQ(2, board->fills);
    host_shared_close(&a);
}

TEST_F(Shared, NobodyCanChangeIt) {
    HostShared shared;
    ASSERT_OK(open(&shared));
    void *bytes = const_cast<void *>(shared.bytes);
    EXPECT_NE(0, mprotect(bytes, 4096, PROT_READ | PROT_WRITE));
    int fd = ::open(("/proc/self/fd/" + std::to_string(shared.file)).c_str(), O_RDWR);
    if (fd >= 0) {
        EXPECT_EQ(MAP_FAILED, mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        EXPECT_EQ(-1, pwrite(fd, "x", 1, 0));
        EXPECT_NE(0, ftruncate(fd, 10));
        ::close(fd);
    }
    EXPECT_TRUE(is_right(shared));
    host_shared_close(&shared);
}

TEST_F(Shared, ProcessesThatBeginAtOnceHaveOne) {
    for (size_t i = 0; i < 8; i++)
        begin(i);
    wait_for(board->opened, 8);
    EXPECT_EQ(1, board->fills);
    EXPECT_EQ(8, names_with(name));
    for (size_t i = 0; i < 8; i++) {
        EXPECT_NE(0u, board->inode[i]);
        EXPECT_EQ(board->inode[0], board->inode[i]);
    }
    expect_good_ends();
    EXPECT_EQ(0, names_with(name));
}

TEST_F(Shared, WhereTheOneThatFillsItDiesAnotherBeginsAnew) {
    pid_t first = begin(0, Way::HANGS);
    wait_for(board->begun, 1);
    begin(1);
    begin(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(30)); // they wait
    EXPECT_EQ(0, board->opened);
    EXPECT_EQ(1, board->begun);
    end_by_force(first);
    children.erase(children.begin());
    wait_for(board->opened, 2);
    EXPECT_EQ(1, board->fills);
    EXPECT_NE(0u, board->inode[1]);
    EXPECT_EQ(board->inode[1], board->inode[2]);
    expect_good_ends();
}

TEST_F(Shared, OutlivesTheOneThatFilledItButNotTheLast) {
    pid_t first = begin(0);
    wait_for(board->opened, 1);
    pid_t second = begin(1);
    wait_for(board->opened, 2);
    end_by_force(first);
    pid_t third = begin(2);
    wait_for(board->opened, 3);
    EXPECT_EQ(1, board->fills);
    EXPECT_EQ(board->inode[0], board->inode[2]);
    end_by_force(second);
    end_by_force(third);
    children.clear();
    EXPECT_EQ(0, names_with(name));
    HostShared shared;
    ASSERT_OK(open(&shared));
    EXPECT_EQ(2, board->fills);
    host_shared_close(&shared);
}

TEST_F(Shared, AFailureIsTheFillersOwn) {
    HostShared shared;
    EXPECT_FAILS(STATUS_NUMERIC, "cannot be computed", open(&shared, Way::FAILS));
    EXPECT_EQ(0, names_with(name));
    ASSERT_OK(open(&shared));
    EXPECT_TRUE(is_right(shared));
    EXPECT_STREQ("", shared.reason);
    host_shared_close(&shared);
}

TEST_F(Shared, PatienceEnds) {
    begin(0, Way::HANGS);
    wait_for(board->begun, 1);
    HostShared shared;
    ASSERT_OK(open(&shared, Way::GOOD, 0.1));
    EXPECT_NE(nullptr, strstr(shared.reason, "too long")) << shared.reason;
    EXPECT_EQ(-1, shared.file);
    EXPECT_TRUE(is_right(shared));
    host_shared_close(&shared);
}

TEST_F(Shared, AStopEndsTheWait) {
    begin(0, Way::HANGS);
    wait_for(board->begun, 1);
    host_stop_request();
    HostShared shared;
    EXPECT_EQ(STATUS_STOPPED, open(&shared));
}

TEST_F(Shared, OtherNamesAndSizesAreOthers) {
    HostShared a, b, c;
    Filling filling = {board};
    ASSERT_OK(open(&a));
    name += "0"; // begins alike
    ASSERT_OK(open(&b));
    EXPECT_NE(inode_of(a), inode_of(b));
    name.pop_back();
    HostSharedSpec spec = {name.c_str(), size_bytes - 1, 60.0,
                           [](void *, void *bytes, size_t size) {
                               memset(bytes, 9, size);
                               return STATUS_OK;
                           },
                           &filling};
    ASSERT_OK(host_shared_open(&c, &spec));
    EXPECT_NE(inode_of(a), inode_of(c));
    EXPECT_EQ(9, static_cast<const unsigned char *>(c.bytes)[size_bytes - 2]);
    host_shared_close(&c);
    host_shared_close(&b);
    host_shared_close(&a);
}

// A name that leads to a file that is not the memory, or to none.
TEST_F(Shared, FalseNamesAreNoHarm) {
    std::string full = "shoal-" + std::to_string(geteuid()) + "-" + name;
    int false_file = memfd_create(full.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), plain = ::open("/dev/zero", O_RDONLY);
    ASSERT_GE(false_file, 0);
    ASSERT_EQ(0, ftruncate(false_file, size_bytes)); // of its name and size, but not sealed
    std::vector<int> signs;
    for (const std::string &tail : {std::to_string(getpid()) + "/" + std::to_string(false_file),
                                    std::to_string(getpid()) + "/" + std::to_string(plain),
                                    std::to_string(getpid()) + "/99999", std::string("4194304/3"), std::string("x/y")})
        signs.push_back(sign(full + "/" + tail));
    HostShared shared;
    ASSERT_OK(open(&shared));
    EXPECT_STREQ("", shared.reason);
    EXPECT_EQ(1, board->fills);
    EXPECT_TRUE(is_right(shared));
    host_shared_close(&shared);
    for (int fd : signs)
        ::close(fd);
    ::close(false_file);
    ::close(plain);
}

// What a name leads to may be another process's: it is not opened before it is known to be the memory.
TEST_F(Shared, WhatIsNotTheMemoryIsNotOpened) {
    char path[] = "/tmp/shoal-shared-XXXXXX";
    int file = mkstemp(path), watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_TRUE(file >= 0 && watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0) << strerror(errno);
    int name_fd = sign("shoal-" + std::to_string(geteuid()) + "-" + name + "/" + std::to_string(getpid()) + "/" +
                       std::to_string(file));
    HostShared shared;
    ASSERT_OK(open(&shared));
    EXPECT_EQ(1, board->fills);
    char events[4096];
    EXPECT_EQ(-1, read(watch, events, sizeof events)) << "it was opened";
    int again = ::open(path, O_RDONLY);
    EXPECT_LT(0, read(watch, events, sizeof events)) << "what the watch would have seen";
    host_shared_close(&shared);
    for (int fd : {file, watch, name_fd, again})
        ::close(fd);
    unlink(path);
}

// A kernel may add seals of its own: F_SEAL_EXEC, by vm.memfd_noexec.
TEST_F(Shared, MoreSealsThanAreAskedForAreFine) {
    std::string full = "shoal-" + std::to_string(geteuid()) + "-" + name;
    int file = memfd_create(full.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_GE(file, 0);
    ASSERT_EQ(0, ftruncate(file, size_bytes));
    ASSERT_EQ(0, fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK));
    ASSERT_EQ(0, fcntl(file, F_ADD_SEALS, F_SEAL_SEAL));
    int name_fd = sign(full + "/" + std::to_string(getpid()) + "/" + std::to_string(file));
    HostShared shared;
    ASSERT_OK(open(&shared));
    EXPECT_EQ(0, board->fills);
    EXPECT_STREQ("", shared.reason);
    host_shared_close(&shared);
    ::close(name_fd);
    ::close(file);
}

// Where the system refuses what sharing takes, a process has memory of its own, and says why.
TEST_F(Shared, ALimitLeavesMemoryOfOnesOwn) {
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {4096, 4096};
        HostShared shared;
        bool good = setrlimit(RLIMIT_FSIZE, &limit) == 0 && open(&shared) == STATUS_OK && is_right(shared) &&
                    strstr(shared.reason, "File too large") != nullptr && shared.file == -1;
        host_shared_close(&shared);
        _exit(good ? 0 : 1);
    }
    children.push_back(pid);
    expect_good_ends();
}

} // namespace
