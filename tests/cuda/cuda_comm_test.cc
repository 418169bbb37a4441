// Groups of GPUs by NCCL: members are threads here, each with a backend of its own. A machine with one GPU runs what
// one member can do.
#include <atomic>
#include <functional>
#include <thread>

#include "tests/cuda/cuda_test_util.h"
#include "tests/cuda/nccl_group.h"

namespace {

double soon_s(double patience_s = 60.0) { return host_now_s() + patience_s; }

struct Member {
    int rank;
    KernBackend *backend;
    HostComm *comm;   // the body may free it and make it null
    KernBatch *batch; // by which its memory is read and written

    // A buffer in the GPU's memory with these bytes in it.
    char *upload(const std::vector<char> &bytes) const {
        HostMemory memory = backend->ops->memory(backend);
        void *block = nullptr;
        EXPECT_EQ(STATUS_OK, memory.alloc(memory.self, bytes.size(), &block)) << host_message();
        EXPECT_EQ(STATUS_OK, backend->ops->batch_write(batch, block, bytes.data(), bytes.size())) << host_message();
        return static_cast<char *>(block);
    }
    std::vector<char> download(const char *data, size_t size) const {
        std::vector<char> bytes(size);
        EXPECT_EQ(STATUS_OK, backend->ops->batch_read(batch, bytes.data(), data, size)) << host_message();
        return bytes;
    }
    void release(char *data, size_t size) const {
        HostMemory memory = backend->ops->memory(backend);
        memory.release(memory.self, data, size);
    }
};

// Skips the test where there are fewer.
#define NEED_GPUS(count) \
    if (count_gpus(count) < (count)) GTEST_SKIP() << "needs " << (count) << " GPUs"

class CudaCommTest : public CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        if (cuda == nullptr) return; // skipped
        HostCommGpu gpu;
        cuda->ops->comm_describe(cuda, nullptr, &gpu);
        const char *required = getenv("SHOAL_TEST_CUDA");
        ASSERT_FALSE(gpu.version == 0 && required != nullptr && strcmp(required, "required") == 0) << gpu.missing;
        if (gpu.version == 0) GTEST_SKIP() << gpu.missing;
    }

    // A thread for each member, of the GPU of its rank or of that one.
    static void run(int size, const std::function<void(Member &)> &body) {
        MemberStore store;
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; rank++) {
            threads.emplace_back([&, rank] {
                Member m{rank, nullptr, nullptr, nullptr};
                KernBatchSpec spec = {};
                kern_sim_default(&spec.sim, sim_spec_find("cartpole"));
                spec.envs = 1;
                ASSERT_OK(kern_cuda_open(rank, &m.backend));
                ASSERT_OK(m.backend->ops->batch_open(m.backend, &spec, &m.batch));
                ASSERT_OK(open_nccl(m.backend, &store, rank, size, &m.comm));
                EXPECT_TRUE(m.comm->takes_device && m.comm->rank == rank && m.comm->size == size);
                EXPECT_STREQ("nccl", m.comm->ops->name);
                body(m);
                host_comm_free(m.comm);
                m.backend->ops->batch_close(m.batch);
                m.backend->ops->close(m.backend);
            });
        }
        for (std::thread &thread : threads)
            thread.join();
    }
};

std::vector<char> bytes_of(int rank, size_t size) {
    std::vector<char> bytes(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = static_cast<char>(rank * 29 + static_cast<int>(i % 101));
    return bytes;
}

std::vector<char> parts_of(int members, size_t size) {
    std::vector<char> all;
    for (int rank = 0; rank < members; rank++) {
        std::vector<char> part = bytes_of(rank, size);
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

void gather(Member &m, size_t size) {
    size_t count = static_cast<size_t>(m.comm->size), mine = static_cast<size_t>(m.rank) * size;
    std::vector<char> part = bytes_of(m.rank, size), all(count * size), expected = parts_of(m.comm->size, size);
    ASSERT_OK(host_comm_all_gather(m.comm, part.data(), all.data(), size, soon_s()));
    EXPECT_TRUE(all == expected) << "host memory, " << size << " bytes";
    std::vector<char> placed(count * size);
    memcpy(&placed[mine], part.data(), size);
    char *d_all = m.upload(placed);
    ASSERT_OK(host_comm_all_gather(m.comm, d_all + mine, d_all, size, soon_s()));
    EXPECT_TRUE(m.download(d_all, count * size) == expected) << "device memory, " << size << " bytes";
    m.release(d_all, count * size);
}

void tell(Member &m, int root, size_t size) {
    std::vector<char> data = bytes_of(m.rank, size), expected = bytes_of(root, size);
    char *d_data = m.upload(data);
    ASSERT_OK(host_comm_broadcast(m.comm, data.data(), size, root, soon_s()));
    EXPECT_TRUE(data == expected) << "host memory, " << size << " bytes";
    ASSERT_OK(host_comm_broadcast(m.comm, d_data, size, root, soon_s()));
    EXPECT_TRUE(m.download(d_data, size) == expected) << "device memory, " << size << " bytes";
    m.release(d_data, size);
}

TEST_F(CudaCommTest, OneMember) {
    run(1, [](Member &m) {
        gather(m, 1000);
        tell(m, 0, 1000);
        ASSERT_OK(host_comm_barrier(m.comm, soon_s()));
        char byte = 0;
        EXPECT_EQ(STATUS_SYSTEM, host_comm_send(m.comm, &byte, 1, 0, soon_s()));
        EXPECT_STREQ("nccl send: rank 0 is the caller itself", host_message());
        EXPECT_EQ(STATUS_SYSTEM, host_comm_broadcast(m.comm, &byte, 1, 1, soon_s()));
    });
}

// In several pieces, too, where it comes from host memory.
TEST_F(CudaCommTest, Collectives) {
    NEED_GPUS(4);
    run(4, [](Member &m) {
        for (size_t size : {size_t{1}, size_t{4000}, size_t{1500001}})
            gather(m, size);
        for (int root : {0, 2})
            for (size_t size : {size_t{24}, size_t{5000003}})
                tell(m, root, size);
        ASSERT_OK(host_comm_barrier(m.comm, soon_s()));
        ASSERT_OK(host_comm_all_gather(m.comm, nullptr, nullptr, 0, soon_s()));
        EXPECT_GT(m.comm->traffic_bytes, 4 * 3 * (4000 + 1500001));
    });
}

TEST_F(CudaCommTest, SendAndReceive) {
    NEED_GPUS(2);
    run(2, [](Member &m) {
        std::vector<char> data = bytes_of(m.rank, 70000);
        ASSERT_OK(m.rank == 0 ? host_comm_send(m.comm, data.data(), data.size(), 1, soon_s())
                              : host_comm_recv(m.comm, data.data(), data.size(), 0, soon_s()));
        EXPECT_TRUE(data == bytes_of(0, 70000));
    });
}

// A member does not take part: another thread's abort wakes the one that waits, and its GPU is as good as before.
TEST_F(CudaCommTest, AnAbortWakesACall) {
    NEED_GPUS(2);
    std::atomic<bool> is_over{false};
    run(2, [&](Member &m) {
        if (m.rank == 1) {
            while (!is_over)
                std::this_thread::yield();
            host_comm_abort(m.comm);
            return;
        }
        std::vector<char> part = bytes_of(0, 100), all(200);
        char *d_data = m.upload(part);
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            host_comm_abort(m.comm);
        });
        EXPECT_EQ(STATUS_STOPPED, host_comm_all_gather(m.comm, part.data(), all.data(), 100, soon_s()));
        EXPECT_STREQ("nccl all_gather: the group was aborted", host_message());
        other.join();
        host_comm_free(m.comm);
        m.comm = nullptr;
        EXPECT_TRUE(m.download(d_data, 100) == part);
        m.release(d_data, 100);
        is_over = true;
    });
}

TEST_F(CudaCommTest, ADeadlineIsKept) {
    NEED_GPUS(2);
    std::atomic<bool> is_over{false};
    run(2, [&](Member &m) {
        if (m.rank == 0) {
            EXPECT_EQ(STATUS_SYSTEM, host_comm_barrier(m.comm, soon_s(0.1)));
            EXPECT_NE(nullptr, strstr(host_message(), "rank 0 of 2: not all members came in time")) << host_message();
            is_over = true;
        }
        while (!is_over)
            std::this_thread::yield();
        host_comm_abort(m.comm);
    });
}

TEST_F(CudaCommTest, AMemberThatNeverComes) {
    MemberStore store, another;
    HostComm *comm = nullptr;
    EXPECT_EQ(STATUS_SYSTEM, open_nccl(cuda, &store, 0, 2, &comm, 0.1));
    EXPECT_STREQ("nccl group, rank 0 of 2: not all members came in time", host_message());
    host_comm_free(comm);
    EXPECT_EQ(STATUS_SYSTEM, open_nccl(cuda, &another, 1, 2, &comm, 0.1));
    EXPECT_STREQ("nccl group, rank 1 of 2: no id came in time", host_message());
    host_comm_free(comm);
}

// The master has formed another group meanwhile.
TEST_F(CudaCommTest, AGroupThatIsNotWantedAnyMore) {
    MemberStore store;
    HostComm *comm = nullptr;
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        store.close();
    });
    EXPECT_EQ(STATUS_STOPPED, open_nccl(cuda, &store, 0, 2, &comm));
    other.join();
    host_comm_free(comm);
}

TEST_F(CudaCommTest, TwoMembersOnOneGpuAreRefused) {
    MemberStore store;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; rank++) {
        threads.emplace_back([&, rank] {
            KernBackend *backend = nullptr;
            HostComm *comm = nullptr;
            ASSERT_OK(kern_cuda_open(0, &backend));
            EXPECT_EQ(STATUS_SYSTEM, open_nccl(backend, &store, rank, 2, &comm));
            EXPECT_NE(nullptr, strstr(host_message(), "invalid usage")) << host_message();
            host_comm_free(comm);
            backend->ops->close(backend);
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

TEST_F(CudaCommTest, WhatAGpuIs) {
    KernBackend *again = nullptr, *in_turn = nullptr;
    HostCommGpu first, second;
    cuda->ops->comm_describe(cuda, nullptr, &first);
    EXPECT_GE(first.version, 21400) << first.missing;
    ASSERT_OK(kern_cuda_open(0, &again));
    again->ops->comm_describe(again, nullptr, &second);
    EXPECT_STREQ(first.id, second.id);
    again->ops->close(again);
    int gpus = count_gpus(4);
    ASSERT_OK(kern_cuda_open(kern_cuda_in_turn(gpus - 1), &in_turn));
    in_turn->ops->comm_describe(in_turn, nullptr, &second);
    EXPECT_EQ(gpus == 1, strcmp(first.id, second.id) == 0) << first.id << ", " << second.id;
    in_turn->ops->close(in_turn);
    EXPECT_EQ(nullptr, cpu->ops->comm_open);
}

// Each has its own range of the vectors, and gets all of them; the last has fewer parameters than the others.
TEST_F(CudaCommTest, GathersAnUpdate) {
    NEED_GPUS(3);
    const SimSpec *sim = sim_spec_find("cartpole");
    run(3, [&](Member &m) {
        KernEsSpec spec = {};
        const int32_t hidden[] = {24};
        spec.sim = test_sim(sim, 10, false);
        ASSERT_OK(policy_shape(&spec.policy, sim, hidden, 1, POLICY_TANH));
        spec.members = 4;
        spec.episodes = 1;
        KernEs *es = nullptr;
        ASSERT_OK(m.backend->ops->es_open(m.backend, &spec, &es));
        size_t params = static_cast<size_t>(spec.policy.params), range = 64;
        ASSERT_TRUE(params > 2 * range && params < 3 * range) << params;
        std::vector<float> expected[3], mine[3];
        for (size_t k = 0; k < 3; k++) {
            for (size_t i = 0; i < params; i++) {
                bool is_own = i / range == static_cast<size_t>(m.rank);
                expected[k].push_back(static_cast<float>(1000 * k + i));
                mine[k].push_back(is_own ? expected[k][i] : -1.0f);
            }
        }
        ASSERT_OK(m.backend->ops->es_write(es, mine[0].data(), mine[1].data(), mine[2].data()));
        ASSERT_OK(m.backend->ops->es_gather(es, m.comm, static_cast<int32_t>(range)));
        ASSERT_OK(m.backend->ops->es_read(es, mine[0].data(), mine[1].data(), mine[2].data()));
        for (size_t k = 0; k < 3; k++)
            EXPECT_EQ(expected[k], mine[k]);
        EXPECT_EQ(3 * 2 * 3 * 64 * 4, m.comm->traffic_bytes);
        m.backend->ops->es_close(es);
    });
}

} // namespace
