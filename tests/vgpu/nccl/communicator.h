// A communicator of the stand-in: its state, what it has put into streams, and the thread in which it goes on where its
// calls do not wait.
#ifndef SHOAL_TESTS_VGPU_NCCL_COMMUNICATOR_H
#define SHOAL_TESTS_VGPU_NCCL_COMMUNICATOR_H

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/vgpu/nccl/bootstrap.h"
#include "tests/vgpu/nccl/channels.h"

namespace vgpu {

// A call, or several in a group: bytes to and from other ranks, and copies on the device itself.
struct Task {
    struct Piece {
        int peer = 0;
        void *data = nullptr; // on the device
        size_t bytes = 0;
        bool is_send = false;
    };
    struct LocalCopy {
        void *to = nullptr;
        const void *from = nullptr;
        size_t bytes = 0;
    };
    std::vector<Piece> pieces;
    std::vector<LocalCopy> copies;
};

// What a communicator's operations in streams need of it.
struct Link {
    Channels channels;
    std::atomic<bool> is_aborted{false};
    std::atomic<ncclResult_t> state{ncclInProgress};
    void fail(ncclResult_t result, const std::string &text); // unless it has failed before
    const char *error();                                     // of the last failure, ""

  private:
    std::mutex mutex_;
    std::string error_; // set once
};

struct Operation;

} // namespace vgpu

struct ncclComm {
  public:
    // What ncclCommInitRankConfig() has checked. Begins to look for the others.
    ncclComm(const ncclUniqueId &id, const vgpu::Place &place, int device, bool is_blocking);
    ncclComm(const ncclComm &) = delete;
    ncclComm &operator=(const ncclComm &) = delete;
    ~ncclComm(); // its operations are done

    // Whether it may be called: ncclInvalidArgument while something is in progress, or what it has failed with.
    ncclResult_t ready();
    ncclResult_t launch(vgpu::Task task, cudaStream_t stream);
    ncclResult_t finalize();
    void wait();  // until all operations are done
    void abort(); // the operations end, done or not

    vgpu::Link &link() { return *link_; }
    const vgpu::Place &place() const { return place_; }
    int device() const { return device_; }
    bool is_finalized() const { return is_finalized_; }

  private:
    ncclResult_t begin(const std::function<ncclResult_t()> &body);
    ncclResult_t connect(const ncclUniqueId &id);
    ncclResult_t enqueue(const vgpu::Task &task, cudaStream_t stream);
    ncclResult_t meet_others();

    std::shared_ptr<vgpu::Link> link_ = std::make_shared<vgpu::Link>();
    vgpu::Place place_;
    int device_;
    bool is_blocking_, is_finalized_ = false;
    std::thread worker_;
    std::vector<std::unique_ptr<vgpu::Operation>> operations_;
};

#endif
