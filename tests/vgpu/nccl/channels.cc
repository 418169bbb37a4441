#include "tests/vgpu/nccl/channels.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/vgpu/runtime/observer.h"

namespace vgpu {

static size_t size_of(int ranks) { return static_cast<size_t>(ranks * ranks) * sizeof(Channel); }

int Channels::make(int ranks) {
    int file = memfd_create("vgpu-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(size_of(ranks))) == 0) return file;
    close(file);
    return -1;
}

bool Channels::map(int file, int ranks) {
    void *at = mmap(nullptr, size_of(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED) return false;
    at_ = static_cast<Channel *>(at);
    ranks_ = ranks;
    return true;
}

Channels::~Channels() {
    if (at_ != nullptr) munmap(at_, size_of(ranks_));
}

bool Transfer::step() {
    uint64_t written = channel->written.load(std::memory_order_acquire);
    uint64_t read = channel->read.load(std::memory_order_acquire);
    uint64_t at = (is_send ? written : read) % Channel::SIZE;
    uint64_t may = is_send ? Channel::SIZE - (written - read) : written - read;
    size_t count = std::min({static_cast<size_t>(may), left, static_cast<size_t>(Channel::SIZE - at)});
    if (count == 0) return false;
    if (is_send) {
        vgpu_copy_memory(channel->bytes + at, data, count);
        channel->written.store(written + count, std::memory_order_release);
    } else {
        vgpu_copy_memory(data, channel->bytes + at, count);
        channel->read.store(read + count, std::memory_order_release);
    }
    data += count;
    left -= count;
    return true;
}

bool run_transfers(std::vector<Transfer> transfers, const std::atomic<bool> &is_aborted) {
    constexpr int PATIENT = 100;
    int idle = 0;
    for (;;) {
        bool has_moved = false, is_done = true;
        for (Transfer &transfer : transfers) {
            has_moved = transfer.step() || has_moved;
            is_done = is_done && transfer.left == 0;
        }
        if (is_done) return true;
        if (is_aborted) return false;
        idle = has_moved ? 0 : std::min(idle + 1, PATIENT);
        if (!has_moved) std::this_thread::sleep_for(std::chrono::microseconds(idle < PATIENT ? 20 : 500));
    }
}

} // namespace vgpu
