// Groups of several processes through Gloo: each member is a process of its own, forked before the library is loaded.
// They find each other through files in a folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "host/clock.h"
#include "host/comm.h"
#include "host/signals.h"

namespace {

namespace fs = std::filesystem;

constexpr double PATIENCE_S = 60.0; // of what should succeed

// ---- the store -----------------------------------------------------------------------------------------------------

std::string file_of(void *self, const char *key) {
    std::string name = key;
    for (char &c : name)
        c = c == '/' ? '_' : c;
    return *static_cast<std::string *>(self) + "/" + name;
}

bool store_set(void *self, const char *key, const void *value, size_t size_bytes) {
    std::string path = file_of(self, key), draft = path + ".part";
    std::ofstream(draft, std::ios::binary).write(static_cast<const char *>(value), std::streamsize(size_bytes));
    return rename(draft.c_str(), path.c_str()) == 0;
}

int64_t store_get(void *self, const char *key, void *value, size_t size_max, double timeout_s) {
    double until_s = host_now_s() + timeout_s;
    do {
        std::ifstream file(file_of(self, key), std::ios::binary);
        if (file) {
            std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
            if (content.size() > size_max) return -1;
            memcpy(value, content.data(), content.size());
            return int64_t(content.size());
        }
        usleep(1000);
    } while (host_now_s() < until_s);
    return -1;
}

// ---- members -------------------------------------------------------------------------------------------------------

#define MEMBER_CHECK(condition)                                                                             \
    do {                                                                                                    \
        if (condition) break;                                                                               \
        fprintf(stderr, "%s:%d: rank %d: %s (%s)\n", __FILE__, __LINE__, rank, #condition, host_message()); \
        _exit(1);                                                                                           \
    } while (0)

// What members see of each other, whatever becomes of the group.
struct Shared {
    std::atomic<int> arrived, failed;
};

class CommGloo : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/shoal-gloo-XXXXXX";
        ASSERT_NE(nullptr, mkdtemp(name));
        folder_ = name;
        void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, memory);
        shared_ = new (memory) Shared();
    }
    void TearDown() override {
        for (pid_t pid : members_)
            kill(pid, SIGKILL);
        while (!members_.empty())
            join(0);
        munmap(shared_, sizeof(Shared));
        fs::remove_all(folder_);
    }

    HostComm *group(int rank, int size, const char *name = "g") {
        HostCommOptions options = {rank, size, {&folder_, store_set, store_get}, name, nullptr};
        HostComm *comm = nullptr;
        MEMBER_CHECK(host_comm_gloo(&options, host_now_s() + PATIENCE_S, &comm) == STATUS_OK);
        MEMBER_CHECK(comm->rank == rank && comm->size == size && strcmp(comm->ops->name, "gloo") == 0);
        return comm;
    }

    void start(int size, const std::function<void(int rank)> &body) {
        for (int rank = 0; rank < size; rank++) {
            pid_t pid = fork();
            if (pid == 0) {
                MEMBER_CHECK(host_signals_install() == STATUS_OK);
                body(rank);
                _exit(0);
            }
            members_.push_back(pid);
        }
    }

    // The exit status of a member that is still counted; -1: killed.
    int join(size_t index) {
        int status = 0;
        waitpid(members_[index], &status, 0);
        members_.erase(members_.begin() + long(index));
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    void join_all() {
        while (!members_.empty())
            EXPECT_EQ(0, join(0));
    }

    // Until then nobody may end.
    void wait_until_arrived(int count) {
        int status;
        while (shared_->arrived < count && waitpid(-1, &status, WNOHANG) == 0)
            usleep(1000);
        ASSERT_GE(shared_->arrived, count);
    }

    std::string folder_;
    Shared *shared_ = nullptr;
    std::vector<pid_t> members_;
};

// What rank r holds, of any size.
std::vector<uint8_t> data_of(int rank, size_t size, unsigned seed) {
    std::mt19937 random(seed * 1000u + unsigned(rank));
    std::vector<uint8_t> data(size);
    for (uint8_t &byte : data)
        byte = uint8_t(random());
    return data;
}

void use_all_calls(HostComm *comm, size_t size, unsigned seed) {
    int rank = comm->rank, count = comm->size;
    double deadline_s = host_now_s() + PATIENCE_S;
    std::vector<uint8_t> mine = data_of(rank, size, seed), all(size * size_t(count));
    MEMBER_CHECK(host_comm_all_gather(comm, mine.data(), all.data(), size, deadline_s) == STATUS_OK);
    for (int r = 0; r < count; r++)
        MEMBER_CHECK(data_of(r, size, seed) ==
                     std::vector<uint8_t>(all.data() + size_t(r) * size, all.data() + size_t(r + 1) * size));
    // In place.
    std::fill(all.begin(), all.end(), uint8_t(0));
    std::copy(mine.begin(), mine.end(), all.data() + size_t(rank) * size);
    MEMBER_CHECK(host_comm_all_gather(comm, all.data() + size_t(rank) * size, all.data(), size, deadline_s) ==
                 STATUS_OK);
    for (int root = 0; root < count; root++) {
        std::vector<uint8_t> data = data_of(rank, size, seed + 1);
        MEMBER_CHECK(host_comm_broadcast(comm, data.data(), size, root, deadline_s) == STATUS_OK);
        MEMBER_CHECK(data == data_of(root, size, seed + 1));
    }
    // Everybody to the next one; the first member receives first, so that no order of waiting hangs.
    std::vector<uint8_t> got(size);
    int next = (rank + 1) % count, before = (rank + count - 1) % count;
    for (int turn = 0; turn < 2 && count > 1; turn++) {
        if ((rank == 0) == (turn == 0)) {
            MEMBER_CHECK(host_comm_recv(comm, got.data(), size, before, deadline_s) == STATUS_OK);
        } else {
            MEMBER_CHECK(host_comm_send(comm, mine.data(), size, next, deadline_s) == STATUS_OK);
        }
    }
    MEMBER_CHECK(count == 1 || got == data_of(before, size, seed));
}

TEST_F(CommGloo, AllCallsInGroupsOfEverySize) {
    for (int size : {1, 2, 3, 4, 5, 8}) {
        std::string name = "size " + std::to_string(size);
        start(size, [&](int rank) {
            HostComm *comm = group(rank, size, name.c_str());
            for (size_t bytes : {size_t(0), size_t(1), size_t(1000), size_t(300000)})
                use_all_calls(comm, bytes, unsigned(bytes));
            host_comm_free(comm);
        });
        join_all();
    }
}

TEST_F(CommGloo, NobodyPassesABarrierBeforeTheLastOneCame) {
    constexpr int SIZE = 5, ROUNDS = 50;
    start(SIZE, [&](int rank) {
        HostComm *comm = group(rank, SIZE);
        std::mt19937 random(7u + unsigned(rank));
        for (int round = 0; round < ROUNDS; round++) {
            usleep(unsigned(random() % 500));
            shared_->arrived++;
            MEMBER_CHECK(host_comm_barrier(comm, host_now_s() + PATIENCE_S) == STATUS_OK);
            MEMBER_CHECK(shared_->arrived >= (round + 1) * SIZE);
        }
        host_comm_free(comm);
    });
    join_all();
}

TEST_F(CommGloo, BadRanksAreRefused) {
    start(2, [&](int rank) {
        HostComm *comm = group(rank, 2);
        int x = 0;
        for (int other : {-1, 2, rank}) {
            MEMBER_CHECK(host_comm_send(comm, &x, sizeof x, other, host_now_s() + 1) == STATUS_SYSTEM);
            MEMBER_CHECK(host_comm_recv(comm, &x, sizeof x, other, host_now_s() + 1) == STATUS_SYSTEM);
        }
        use_all_calls(comm, 100, 1); // the group is still good
        host_comm_free(comm);
    });
    join_all();
}

// Those who talk to a dead member fail long before their deadline. Others may be waiting for one of these: they are
// told, as a master would, and abort. Then the survivors form another group.
TEST_F(CommGloo, ADeathWakesTheOthersAndTheyGoOn) {
    constexpr int SIZE = 4, DEAD = 2;
    start(SIZE, [&](int rank) {
        HostComm *comm = group(rank, SIZE);
        std::vector<uint8_t> part(1 << 20), all(part.size() * SIZE);
        shared_->arrived++;
        std::thread listener([&] {
            while (shared_->failed == 0)
                usleep(1000);
            host_comm_abort(comm);
        });
        Status status = STATUS_OK;
        double start_s = host_now_s();
        while (status == STATUS_OK)
            status = host_comm_all_gather(comm, part.data(), all.data(), part.size(), host_now_s() + 600);
        MEMBER_CHECK(status == STATUS_SYSTEM || (status == STATUS_STOPPED && shared_->failed > 0));
        MEMBER_CHECK(host_now_s() - start_s < 300); // not by the deadline
        shared_->failed++;
        listener.join();
        host_comm_free(comm);
        comm = group(rank - (rank > DEAD), SIZE - 1, "second");
        use_all_calls(comm, 10000, 3);
        host_comm_free(comm);
    });
    wait_until_arrived(SIZE);
    usleep(20000);
    kill(members_[DEAD], SIGKILL);
    EXPECT_EQ(-1, join(DEAD));
    join_all();
}

TEST_F(CommGloo, AStoppedMemberIsNoticedAtTheDeadline) {
    constexpr int SIZE = 3;
    start(SIZE, [&](int rank) {
        HostComm *comm = group(rank, SIZE);
        shared_->arrived++;
        if (rank == 1) raise(SIGSTOP);
        Status status = STATUS_OK;
        while (status == STATUS_OK)
            status = host_comm_barrier(comm, host_now_s() + 0.3);
        MEMBER_CHECK(status == STATUS_SYSTEM);
        host_comm_free(comm);
    });
    EXPECT_EQ(0, join(2)); // the later ones first: indices stay
    EXPECT_EQ(0, join(0));
    kill(members_[0], SIGKILL);
    EXPECT_EQ(-1, join(0));
}

// While rank 0 waits for what never comes, in each of the calls.
TEST_F(CommGloo, AnAbortWakesACallThatWaits) {
    for (const char *call : {"all_gather", "broadcast", "recv", "barrier"}) {
        shared_->arrived = 0;
        shared_->failed = 0;
        start(2, [&](int rank) {
            HostComm *comm = group(rank, 2, call);
            if (rank == 1) { // takes no part
                while (shared_->failed == 0)
                    usleep(1000);
                host_comm_free(comm);
                return;
            }
            std::thread aborter([&] {
                usleep(50000);
                host_comm_abort(comm);
                host_comm_abort(comm);
            });
            int x = 0, both[2];
            double deadline_s = host_now_s() + 600;
            Status status = call[0] == 'a'                 ? host_comm_all_gather(comm, &x, both, sizeof x, deadline_s)
                            : call[0] == 'r'               ? host_comm_recv(comm, &x, sizeof x, 1, deadline_s)
                            : strcmp(call, "barrier") == 0 ? host_comm_barrier(comm, deadline_s)
                                                           : host_comm_broadcast(comm, &x, sizeof x, 1, deadline_s);
            aborter.join();
            shared_->failed = 1;
            MEMBER_CHECK(status == STATUS_STOPPED);
            MEMBER_CHECK(host_comm_barrier(comm, deadline_s) == STATUS_STOPPED); // for good
            host_comm_free(comm);
        });
        join_all();
    }
}

TEST_F(CommGloo, AMemberThatNeverComesIsSaid) {
    start(1, [&](int rank) {
        HostCommOptions options = {0, 2, {&folder_, store_set, store_get}, "lonely", nullptr};
        HostComm *comm = nullptr;
        MEMBER_CHECK(host_comm_gloo(&options, host_now_s() + 0.2, &comm) == STATUS_SYSTEM);
        MEMBER_CHECK(strstr(host_message(), "rank 0 of 2") != nullptr &&
                     strstr(host_message(), "did not come") != nullptr);
        options.size = 0;
        MEMBER_CHECK(host_comm_gloo(&options, host_now_s() + 0.2, &comm) == STATUS_SYSTEM);
        options.size = 2;
        for (const char *address : {"no.such.host.invalid", "192.0.2.1", ""}) { // unknown, another machine's, none
            options.address = address;
            MEMBER_CHECK(host_comm_gloo(&options, host_now_s() + 5, &comm) == STATUS_SYSTEM);
            MEMBER_CHECK(strstr(host_message(), address) != nullptr);
        }
    });
    join_all();
}

} // namespace
