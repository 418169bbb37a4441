// Groups by NCCL whose members are threads of one process, each with a GPU of its own: how they find together.
#ifndef SHOAL_TESTS_CUDA_NCCL_GROUP_H
#define SHOAL_TESTS_CUDA_NCCL_GROUP_H

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "host/clock.h"
#include "kernels/kern.h"

// Where they leave what the others are to know.
class MemberStore {
  public:
    HostCommStore store() { return {this, set, get}; }
    // The group is not wanted any more: nothing can be set or got.
    void close() {
        std::lock_guard<std::mutex> lock(mutex_);
        is_closed_ = true;
        changed_.notify_all();
    }

  private:
    static bool set(void *self, const char *key, const void *value, size_t size_bytes) {
        auto *store = static_cast<MemberStore *>(self);
        std::lock_guard<std::mutex> lock(store->mutex_);
        store->values_[key] = std::string(static_cast<const char *>(value), size_bytes);
        store->changed_.notify_all();
        return !store->is_closed_;
    }

    static int64_t get(void *self, const char *key, void *value, size_t size_max, double timeout_s) {
        auto *store = static_cast<MemberStore *>(self);
        std::unique_lock<std::mutex> lock(store->mutex_);
        auto is_there = [&] { return store->is_closed_ || store->values_.count(key) > 0; };
        if (!store->changed_.wait_for(lock, std::chrono::duration<double>(timeout_s), is_there)) return -1;
        const std::string &found = store->values_[key];
        if (store->is_closed_ || found.size() > size_max) return -1;
        memcpy(value, found.data(), found.size());
        return static_cast<int64_t>(found.size());
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_closed_ = false;
    std::map<std::string, std::string> values_;
};

inline Status open_nccl(KernBackend *backend, MemberStore *store, int rank, int size, HostComm **comm,
                        double patience_s = 60.0) {
    HostCommOptions options = {rank, size, store->store(), "group", nullptr};
    return backend->ops->comm_open(backend, &options, host_now_s() + patience_s, comm);
}

// How many GPUs there are, as far as they are asked for.
inline int count_gpus(int wanted) {
    for (int gpu = 0; gpu < wanted; gpu++) {
        KernBackend *backend = nullptr;
        if (kern_cuda_open(gpu, &backend) != STATUS_OK) return gpu;
        backend->ops->close(backend);
    }
    return wanted;
}

#endif
