// How ranks, which may be of several processes, move bytes: memory that all of a communicator have mapped, in it a
// channel from each rank to each. Nobody notices that a peer is gone: its channel stays as it is.
#ifndef SHOAL_TESTS_VGPU_NCCL_CHANNELS_H
#define SHOAL_TESTS_VGPU_NCCL_CHANNELS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vgpu {

constexpr int RANKS_MOST = 64;

// Of bytes, from one writer to one reader, which both count what has gone through.
struct Channel {
    static constexpr uint64_t SIZE = 32 << 10;
    std::atomic<uint64_t> written, read;
    uint8_t bytes[SIZE];
};

// The channels of a communicator, in a file without a name (memfd).
class Channels {
  public:
    // The file of so many ranks' channels, all empty; -1: there is none.
    static int make(int ranks);
    // Takes the file; false: it cannot be mapped.
    bool map(int file, int ranks);
    Channels() = default;
    Channels(const Channels &) = delete;
    Channels &operator=(const Channels &) = delete;
    ~Channels();

    Channel &between(int from, int to) { return at_[from * ranks_ + to]; }

  private:
    Channel *at_ = nullptr;
    int ranks_ = 0;
};

// Bytes on their way through a channel, all or a part of them.
struct Transfer {
    Channel *channel = nullptr;
    uint8_t *data = nullptr; // on a device or the host
    size_t left = 0;
    bool is_send = false;
    bool step(); // moves what can be; whether that was something
};

// Moves everything, side by side; false: aborted before that was done.
bool run_transfers(std::vector<Transfer> transfers, const std::atomic<bool> &is_aborted);

} // namespace vgpu

#endif
