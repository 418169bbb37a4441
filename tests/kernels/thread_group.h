// A group of trainers that are threads of one process: collectives through shared memory, for tests. A member that
// leaves early wakes the others, whose calls fail from then on.
#ifndef SHOAL_TESTS_KERNELS_THREAD_GROUP_H
#define SHOAL_TESTS_KERNELS_THREAD_GROUP_H

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "host/comm.h"

class ThreadGroup {
  public:
    explicit ThreadGroup(int size) : members_(static_cast<size_t>(size)), parts_(members_.size()) {
        for (int rank = 0; rank < size; rank++)
            members_[static_cast<size_t>(rank)] = {{&ops_, rank, size, 0, false}, this};
    }

    // One thread for each member, until all have returned.
    void run(const std::function<void(HostComm *comm)> &body) {
        std::vector<std::thread> threads;
        for (Member &member : members_)
            threads.emplace_back([&] {
                body(&member.base);
                abort_all(&member.base);
            });
        for (std::thread &thread : threads)
            thread.join();
    }

    int64_t bytes() const { return bytes_; } // gathered by all members

  private:
    struct Member {
        HostComm base;
        ThreadGroup *group;
    };

    static ThreadGroup *of(HostComm *comm) { return reinterpret_cast<Member *>(comm)->group; }

    // Whether all came.
    bool meet() {
        std::unique_lock<std::mutex> lock(mutex_);
        int round = round_;
        if (++arrived_ == static_cast<int>(members_.size())) {
            arrived_ = 0;
            round_++;
            changed_.notify_all();
        }
        changed_.wait(lock, [&] { return is_aborted_ || round_ != round; });
        return round_ != round;
    }

    static Status all_gather(HostComm *comm, const void *part, void *all, size_t part_bytes, double) {
        ThreadGroup *group = of(comm);
        {
            std::lock_guard<std::mutex> lock(group->mutex_);
            group->parts_[static_cast<size_t>(comm->rank)] = part;
            group->bytes_ += static_cast<int64_t>(part_bytes);
        }
        if (!group->meet()) return host_fail(STATUS_STOPPED, "aborted");
        for (int rank = 0; rank < comm->size; rank++) {
            char *to = static_cast<char *>(all) + static_cast<size_t>(rank) * part_bytes;
            const void *from = group->parts_[static_cast<size_t>(rank)];
            if (to != from) memcpy(to, from, part_bytes);
        }
        return group->meet() ? STATUS_OK : host_fail(STATUS_STOPPED, "aborted");
    }

    static Status barrier(HostComm *comm, double) {
        return of(comm)->meet() ? STATUS_OK : host_fail(STATUS_STOPPED, "aborted");
    }

    static void abort_all(HostComm *comm) {
        ThreadGroup *group = of(comm);
        std::lock_guard<std::mutex> lock(group->mutex_);
        group->is_aborted_ = true;
        group->changed_.notify_all();
    }

    static HostCommOps make_ops() {
        HostCommOps ops = {};
        ops.name = "threads";
        ops.all_gather = all_gather;
        ops.barrier = barrier;
        ops.abort = abort_all;
        return ops;
    }

    HostCommOps ops_ = make_ops();
    std::vector<Member> members_;
    std::vector<const void *> parts_;
    std::mutex mutex_;
    std::condition_variable changed_;
    int arrived_ = 0, round_ = 0;
    int64_t bytes_ = 0;
    bool is_aborted_ = false;
};

#endif
