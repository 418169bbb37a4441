// What is in streams: a host function that moves bytes from device to device and waits for the others, as NCCL's kernel
// does. Planted faults, for tests of those who use NCCL:
//
//   VGPU_NCCL_ERROR=n       the process's n-th operation fails with ncclRemoteError, and hangs until it is aborted
//   VGPU_NCCL_ABORT=hangs   ncclCommAbort() does not return
#include "tests/vgpu/nccl/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

struct Operation {
    std::shared_ptr<Link> link;
    std::vector<Transfer> transfers;
    cudaEvent_t done = nullptr;
    bool is_bad = false;

    Operation() = default;
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;
    ~Operation() {
        if (done != nullptr) cudaEventDestroy(done);
    }
};

void Link::fail(ncclResult_t result, const std::string &text) {
    std::lock_guard lock(mutex_);
    if (!error_.empty()) return;
    error_ = text.empty() ? "unknown" : text;
    state = result;
}

const char *Link::error() {
    std::lock_guard lock(mutex_);
    return error_.c_str();
}

namespace {

bool is_planted() {
    static const uint64_t wanted = vgpu_number_setting("VGPU_NCCL_ERROR", 0, 0, 1'000'000'000);
    static std::atomic<uint64_t> count{0};
    return wanted > 0 && ++count == wanted;
}

// In the stream's thread.
void exchange(void *data) {
    auto *operation = static_cast<Operation *>(data);
    Link &link = *operation->link;
    if (operation->is_bad) {
        link.fail(ncclRemoteError, "planted by VGPU_NCCL_ERROR");
        while (!link.is_aborted)
            usleep(500);
        return;
    }
    run_transfers(operation->transfers, link.is_aborted);
}

class DeviceScope {
  public:
    explicit DeviceScope(int device) {
        cudaGetDevice(&before_);
        cudaSetDevice(device);
    }
    DeviceScope(const DeviceScope &) = delete;
    DeviceScope &operator=(const DeviceScope &) = delete;
    ~DeviceScope() { cudaSetDevice(before_); }

  private:
    int before_ = 0;
};

ncclResult_t result_of(cudaError_t error) { return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }

} // namespace
} // namespace vgpu

using namespace vgpu;

ncclComm::ncclComm(const ncclUniqueId &id, const Place &place, int device, bool is_blocking)
    : place_(place), device_(device), is_blocking_(is_blocking) {
    begin([this, id] { return connect(id); });
}

ncclComm::~ncclComm() {
    if (worker_.joinable()) worker_.join();
    DeviceScope scope(device_);
    operations_.clear();
}

// In this thread, or in one of its own after a while, as NCCL does it: until then the streams know nothing of it.
ncclResult_t ncclComm::begin(const std::function<ncclResult_t()> &body) {
    link_->state = ncclInProgress;
    auto run = [this, body] {
        DeviceScope scope(device_);
        ncclResult_t result = body(), expected = ncclInProgress;
        if (result != ncclSuccess) link_->fail(result, ncclGetErrorString(result));
        link_->state.compare_exchange_strong(expected, result);
    };
    if (is_blocking_) {
        run();
    } else {
        worker_ = std::thread([run] {
            usleep(100);
            run();
        });
    }
    return link_->state;
}

ncclResult_t ncclComm::ready() {
    ncclResult_t state = link_->state;
    if (state == ncclInProgress) return ncclInvalidArgument;
    if (worker_.joinable()) worker_.join();
    return state;
}

ncclResult_t ncclComm::connect(const ncclUniqueId &id) {
    int file;
    std::string why;
    ncclResult_t result = bootstrap_join(id, place_, link_->is_aborted, &file, &why);
    if (result == ncclSuccess && !link_->channels.map(file, place_.ranks)) result = ncclSystemError;
    if (result != ncclSuccess) link_->fail(result, why);
    return result;
}

ncclResult_t ncclComm::launch(Task task, cudaStream_t stream) {
    return begin([this, task = std::move(task), stream] { return enqueue(task, stream); });
}

ncclResult_t ncclComm::enqueue(const Task &task, cudaStream_t stream) {
    auto is_done = [](const std::unique_ptr<Operation> &o) { return cudaEventQuery(o->done) == cudaSuccess; };
    operations_.erase(std::remove_if(operations_.begin(), operations_.end(), is_done), operations_.end());
    auto operation = std::make_unique<Operation>();
    operation->link = link_;
    operation->is_bad = is_planted();
    for (const Task::Piece &piece : task.pieces) {
        int from = piece.is_send ? place_.rank : piece.peer, to = piece.is_send ? piece.peer : place_.rank;
        auto *data = static_cast<uint8_t *>(piece.data);
        operation->transfers.push_back({&link_->channels.between(from, to), data, piece.bytes, piece.is_send});
    }
    cudaError_t error = cudaEventCreateWithFlags(&operation->done, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaLaunchHostFunc(stream, exchange, operation.get());
    for (const Task::LocalCopy &copy : task.copies)
        if (error == cudaSuccess)
            error = cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDeviceToDevice, stream);
    if (error == cudaSuccess) error = cudaEventRecord(operation->done, stream);
    if (operation->done != nullptr) operations_.push_back(std::move(operation)); // the stream may hold it
    return result_of(error);
}

void ncclComm::wait() {
    if (worker_.joinable()) worker_.join();
    DeviceScope scope(device_);
    for (const auto &operation : operations_)
        cudaEventSynchronize(operation->done);
}

// All of a machine wait for each other before they go, and all are of one here.
ncclResult_t ncclComm::meet_others() {
    for (const auto &operation : operations_)
        while (cudaEventQuery(operation->done) == cudaErrorNotReady && !link_->is_aborted)
            usleep(200);
    std::vector<Transfer> transfers;
    std::vector<uint8_t> bytes(static_cast<size_t>(2 * place_.ranks));
    for (int peer = 0; peer < place_.ranks; peer++) {
        if (peer == place_.rank) continue;
        uint8_t *at = &bytes[static_cast<size_t>(2 * peer)];
        transfers.push_back({&link_->channels.between(place_.rank, peer), at, 1, true});
        transfers.push_back({&link_->channels.between(peer, place_.rank), at + 1, 1, false});
    }
    return run_transfers(std::move(transfers), link_->is_aborted) ? ncclSuccess : ncclInternalError;
}

ncclResult_t ncclComm::finalize() {
    is_finalized_ = true;
    return begin([this] { return meet_others(); });
}

void ncclComm::abort() {
    static const char *const planted = getenv("VGPU_NCCL_ABORT");
    link_->is_aborted = true;
    while (planted != nullptr && strcmp(planted, "hangs") == 0)
        pause();
    wait();
}
