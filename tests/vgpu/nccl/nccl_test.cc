// The stand-in for NCCL has the real library's rules. Ranks are threads here, each on a device of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/vgpu/nccl/nccl_api.h"

namespace {

using std::chrono::milliseconds;

ncclConfig_t nonblocking() { return {sizeof(ncclConfig_t), NCCL_CONFIG_MAGIC, 21400, 0}; }

// What the communicator ends with when it is no longer in progress.
ncclResult_t outcome(ncclComm_t comm) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) return ncclInternalError;
        std::this_thread::yield();
    }
    return state;
}

void expect_begun(ncclResult_t result) { EXPECT_TRUE(result == ncclSuccess || result == ncclInProgress) << result; }

class Buffer {
  public:
    explicit Buffer(size_t bytes, int value = 0) : bytes_(bytes) {
        EXPECT_EQ(cudaSuccess, cudaMalloc(&data_, bytes));
        EXPECT_EQ(cudaSuccess, cudaMemset(data_, value, bytes));
        EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { cudaFree(data_); }
    char *at(size_t offset = 0) const { return static_cast<char *>(data_) + offset; }
    std::vector<char> read(cudaStream_t stream) const {
        std::vector<char> bytes(bytes_);
        EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(bytes.data(), data_, bytes_, cudaMemcpyDeviceToHost, stream));
        EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
        return bytes;
    }

  private:
    void *data_ = nullptr;
    size_t bytes_;
};

struct Rank {
    int rank = 0;
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;

    void done(ncclResult_t begun) const {
        expect_begun(begun);
        EXPECT_EQ(ncclSuccess, outcome(comm)) << ncclGetLastError(comm);
    }
};

// A communicator of so many ranks, each on the device of its number; it is aborted at the end unless the body took it.
void run(int ranks, const std::function<void(Rank &)> &body) {
    ncclUniqueId id;
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; rank++) {
        threads.emplace_back([&, rank] {
            Rank mine;
            mine.rank = rank;
            ncclConfig_t config = nonblocking();
            ASSERT_EQ(cudaSuccess, cudaSetDevice(rank));
            ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&mine.stream, cudaStreamNonBlocking));
            mine.done(ncclCommInitRankConfig(&mine.comm, ranks, id, rank, &config));
            body(mine);
            EXPECT_EQ(ncclSuccess, ncclCommAbort(mine.comm)); // of none is nothing
            EXPECT_EQ(cudaSuccess, cudaStreamDestroy(mine.stream));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

char value_of(int rank, size_t i) { return static_cast<char>(rank * 31 + static_cast<int>(i % 97)); }

void fill(const Buffer &buffer, size_t offset, size_t bytes, int rank, cudaStream_t stream) {
    std::vector<char> values(bytes);
    for (size_t i = 0; i < bytes; i++)
        values[i] = value_of(rank, i);
    EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(buffer.at(offset), values.data(), bytes, cudaMemcpyHostToDevice, stream));
}

// More than a channel holds, and few bytes; into another buffer, and in place.
TEST(NcclStandIn, AllGather) {
    for (size_t bytes : {size_t{8}, size_t{100000}}) {
        run(4, [bytes](Rank &r) {
            Buffer part(bytes), all(4 * bytes), place(4 * bytes);
            size_t mine = static_cast<size_t>(r.rank) * bytes;
            fill(part, 0, bytes, r.rank, r.stream);
            fill(place, mine, bytes, r.rank, r.stream);
            r.done(ncclAllGather(part.at(), all.at(), bytes / 4, ncclFloat32, r.comm, r.stream));
            r.done(ncclAllGather(place.at(mine), place.at(), bytes, ncclInt8, r.comm, r.stream));
            std::vector<char> got = all.read(r.stream), in_place = place.read(r.stream);
            for (size_t i = 0; i < got.size(); i++)
                ASSERT_EQ(value_of(static_cast<int>(i / bytes), i % bytes), got[i]) << i;
            EXPECT_EQ(got, in_place);
        });
    }
}

TEST(NcclStandIn, BroadcastSendAndReceive) {
    run(3, [](Rank &r) {
        constexpr size_t BYTES = 70000;
        Buffer data(BYTES, r.rank);
        r.done(ncclBroadcast(data.at(), data.at(), BYTES, ncclUint8, 1, r.comm, r.stream));
        EXPECT_EQ(std::vector<char>(BYTES, 1), data.read(r.stream));
        if (r.rank == 2) {
            Buffer other(BYTES, 9);
            r.done(ncclSend(other.at(), BYTES, ncclInt8, 0, r.comm, r.stream));
            EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(r.stream));
        } else if (r.rank == 0) {
            r.done(ncclRecv(data.at(), BYTES, ncclInt8, 2, r.comm, r.stream));
            EXPECT_EQ(std::vector<char>(BYTES, 9), data.read(r.stream));
        }
    });
}

// Each sends first, more than is under way at a time: only in a group do they get anywhere.
TEST(NcclStandIn, GroupsAreOneOperation) {
    run(2, [](Rank &r) {
        constexpr size_t BYTES = 200000;
        Buffer out(BYTES, 5 + r.rank), in(BYTES);
        EXPECT_EQ(ncclSuccess, ncclGroupStart());
        EXPECT_EQ(ncclSuccess, ncclSend(out.at(), BYTES, ncclInt8, 1 - r.rank, r.comm, r.stream));
        EXPECT_EQ(ncclSuccess, ncclRecv(in.at(), BYTES, ncclInt8, 1 - r.rank, r.comm, r.stream));
        r.done(ncclGroupEnd());
        EXPECT_EQ(std::vector<char>(BYTES, static_cast<char>(6 - r.rank)), in.read(r.stream));
        EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
    });
}

// What is before it in the stream comes first, and what is behind it waits.
TEST(NcclStandIn, CallsAreInTheStreamsOrder) {
    run(2, [](Rank &r) {
        constexpr size_t BYTES = 4096;
        Buffer part(BYTES), all(2 * BYTES), copy(2 * BYTES);
        for (int round = 1; round < 20; round++) {
            EXPECT_EQ(cudaSuccess, cudaMemsetAsync(part.at(), 2 * round + r.rank, BYTES, r.stream));
            if (r.rank == round % 2) std::this_thread::sleep_for(milliseconds(1));
            r.done(ncclAllGather(part.at(), all.at(), BYTES, ncclInt8, r.comm, r.stream));
            EXPECT_EQ(cudaSuccess, cudaMemsetAsync(part.at(), 99, BYTES, r.stream));
            EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(copy.at(), all.at(), 2 * BYTES, cudaMemcpyDeviceToDevice, r.stream));
            std::vector<char> got = copy.read(r.stream);
            ASSERT_EQ(2 * round, got[0]);
            ASSERT_EQ(2 * round + 1, got[BYTES]);
        }
    });
}

TEST(NcclStandIn, TwoRanksOnOneDeviceAreRefused) {
    ncclUniqueId id;
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; rank++) {
        threads.emplace_back([&, rank] {
            ncclComm_t comm = nullptr;
            ncclConfig_t config = nonblocking();
            ASSERT_EQ(cudaSuccess, cudaSetDevice(rank % 2));
            expect_begun(ncclCommInitRankConfig(&comm, 3, id, rank, &config));
            EXPECT_EQ(ncclInvalidUsage, outcome(comm));
            EXPECT_NE(nullptr, strstr(ncclGetLastError(comm), "Duplicate GPU")) << ncclGetLastError(comm);
            EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

// The other rank does not come: nothing may be called meanwhile, and an abort ends it.
TEST(NcclStandIn, WaitsForAllRanksUntilAborted) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    ncclConfig_t config = nonblocking();
    ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    EXPECT_EQ(ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, 0, &config));
    Buffer data(16);
    EXPECT_EQ(ncclInvalidArgument, ncclBroadcast(data.at(), data.at(), 16, ncclInt8, 0, comm, nullptr));
    std::this_thread::sleep_for(milliseconds(50));
    ncclResult_t state;
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(ncclInProgress, state);
    EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
}

// A rank is gone: nobody says so, the stream goes no further, and an abort is what ends it.
TEST(NcclStandIn, HangsUntilAborted) {
    run(2, [](Rank &r) {
        if (r.rank == 1) return;
        Buffer data(64), all(128);
        r.done(ncclAllGather(data.at(), all.at(), 64, ncclInt8, r.comm, r.stream));
        std::this_thread::sleep_for(milliseconds(100));
        EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(r.stream));
        EXPECT_EQ(ncclSuccess, outcome(r.comm)); // it is as if nothing had happened
        EXPECT_EQ(ncclSuccess, ncclCommAbort(r.comm));
        r.comm = nullptr;
        EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(r.stream));
    });
}

TEST(NcclStandIn, FinalizeWaitsForTheOthers) {
    std::atomic<bool> may_end{false};
    run(2, [&](Rank &r) {
        Buffer data(64), all(128);
        r.done(ncclAllGather(data.at(), all.at(), 64, ncclInt8, r.comm, r.stream));
        if (r.rank == 1) {
            std::this_thread::sleep_for(milliseconds(50));
            may_end = true;
        }
        expect_begun(ncclCommFinalize(r.comm));
        EXPECT_EQ(ncclSuccess, outcome(r.comm));
        EXPECT_TRUE(may_end);
        EXPECT_EQ(ncclInvalidArgument, ncclCommFinalize(r.comm));
        EXPECT_EQ(ncclSuccess, ncclCommDestroy(r.comm));
        r.comm = nullptr;
    });
}

TEST(NcclStandIn, BlockingCommunicatorsWait) {
    ncclUniqueId id;
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; rank++) {
        threads.emplace_back([&, rank] {
            ncclComm_t comm = nullptr;
            ASSERT_EQ(cudaSuccess, cudaSetDevice(rank));
            ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comm, 2, id, rank));
            int count = 0, mine = -1, device = -1;
            EXPECT_EQ(ncclSuccess, ncclCommCount(comm, &count));
            EXPECT_EQ(ncclSuccess, ncclCommUserRank(comm, &mine));
            EXPECT_EQ(ncclSuccess, ncclCommCuDevice(comm, &device));
            EXPECT_EQ(2, count);
            EXPECT_EQ(rank, mine);
            EXPECT_EQ(rank, device);
            Buffer data(64, rank);
            EXPECT_EQ(ncclSuccess, ncclBroadcast(data.at(), data.at(), 64, ncclInt8, 1, comm, nullptr));
            EXPECT_EQ(std::vector<char>(64, 1), data.read(nullptr));
            EXPECT_EQ(ncclSuccess, ncclCommDestroy(comm));
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

TEST(NcclStandIn, ArgumentsAreChecked) {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    ncclConfig_t config = nonblocking(), wrong = config;
    wrong.magic = 0;
    int version = 0;
    EXPECT_EQ(ncclSuccess, ncclGetVersion(&version));
    EXPECT_EQ(22809, version);
    ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
    EXPECT_EQ(ncclInvalidArgument, ncclGetUniqueId(nullptr));
    EXPECT_EQ(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 2, id, 2, &config));
    EXPECT_EQ(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 0, id, 0, &config));
    EXPECT_EQ(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 2, id, 0, &wrong));
    EXPECT_EQ(nullptr, comm);
    run(2, [](Rank &r) {
        char host[16] = {};
        Buffer data(16);
        EXPECT_EQ(ncclInvalidArgument, ncclSend(host, 16, ncclInt8, 1 - r.rank, r.comm, r.stream));
        EXPECT_EQ(ncclInvalidArgument, ncclSend(data.at(), 16, ncclInt8, 2, r.comm, r.stream));
        EXPECT_EQ(ncclInvalidArgument, ncclSend(data.at(), 16, ncclNumTypes, 0, r.comm, r.stream));
        EXPECT_EQ(ncclInvalidArgument, ncclSend(data.at(), 16, ncclInt8, 0, nullptr, r.stream));
        EXPECT_STREQ("", ncclGetLastError(r.comm));
    });
}

} // namespace
