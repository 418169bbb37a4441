// libshoal_gloo.so: a group of processes over Gloo's TCP transport. The collectives are made of Gloo's sends and
// receives, rather than taken from it, because these can be aborted: Gloo's own wait for their buffers where nobody
// else can reach them, and closing a connection wakes nobody.
#include "host/gloo_library.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace {

using Clock = std::chrono::steady_clock;
using gloo::transport::UnboundBuffer;

constexpr size_t VALUE_MAX = 1 << 20; // of a key: the addresses of a member, some 100 bytes for each other one

Clock::time_point deadline_after(double timeout_s) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
}

struct Aborted {};

bool can_bind(const addrinfo *to) {
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_bound = fd >= 0 && bind(fd, to->ai_addr, to->ai_addrlen) == 0;
    if (fd >= 0) close(fd);
    return is_bound;
}

// Gloo 0.5 crashes where a name is not known, and loses memory where it is not this host's.
void check_address(const std::string &name) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
    if (error != 0) throw gloo::IoException("address " + name + ": " + gai_strerror(error));
    bool is_ours = false;
    for (const addrinfo *to = found; to != nullptr && !is_ours; to = to->ai_next)
        is_ours = can_bind(to);
    freeaddrinfo(found);
    if (!is_ours) throw gloo::IoException("address " + name + ": not one of this host's");
}

// The caller's store, its keys beginning with the group's name.
class Store : public gloo::rendezvous::Store {
  public:
    Store(const HostCommOptions &options, Clock::time_point deadline)
        : store_(options.store), group_(options.group), deadline_(deadline) {}

    void set(const std::string &key, const std::vector<char> &data) override {
        if (!store_.set(store_.self, (group_ + "/" + key).c_str(), data.data(), data.size())) {
            throw gloo::IoException("the store of addresses takes none");
        }
    }

    std::vector<char> get(const std::string &key) override {
        std::vector<char> value(VALUE_MAX);
        double left_s = std::chrono::duration<double>(deadline_ - Clock::now()).count();
        int64_t size = store_.get(store_.self, (group_ + "/" + key).c_str(), value.data(), value.size(),
                                  left_s > 0.0 ? left_s : 0.0);
        if (size < 0) throw gloo::IoException("member " + key + " did not come in time");
        value.resize(size_t(size));
        return value;
    }

    void wait(const std::vector<std::string> &keys) override {
        for (const std::string &key : keys)
            get(key);
    }

    void wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &) override { wait(keys); }

  private:
    HostCommStore store_;
    std::string group_;
    Clock::time_point deadline_;
};

} // namespace

struct GlooGroup {
  public:
    GlooGroup(const HostCommOptions &options, double timeout_s)
        : rank_(options.rank), size_(options.size), context_(options.rank, options.size) {
        Clock::time_point deadline = deadline_after(timeout_s);
        gloo::transport::tcp::attr attr;
        attr.hostname = options.address != nullptr ? options.address : "127.0.0.1";
        check_address(attr.hostname);
        device_ = gloo::transport::tcp::CreateDevice(attr);
        // Gloo waits five times as long for a connection.
        context_.setTimeout(std::chrono::milliseconds(int64_t(timeout_s * 1e3 / 5) + 1));
        Store store(options, deadline);
        context_.connectFullMesh(store, device_);
    }

    void abort() {
        std::lock_guard<std::mutex> lock(mutex_);
        is_aborted_ = true;
        for (UnboundBuffer *buffer : waiting_) {
            buffer->abortWaitRecv();
            buffer->abortWaitSend();
        }
    }

    // A ring: each member passes on the part that it got in the step before.
    void all_gather(const void *part, void *all, size_t part_bytes, double timeout_s) {
        char *parts = static_cast<char *>(all), *mine = parts + size_t(rank_) * part_bytes;
        if (part != mine && part_bytes > 0) memcpy(mine, part, part_bytes);
        if (part_bytes == 0) return;
        Clock::time_point deadline = deadline_after(timeout_s);
        int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
        for (int step = 0; step < size_ - 1; step++) {
            size_t out = size_t((rank_ - step + size_) % size_), in = size_t((rank_ - step - 1 + 2 * size_) % size_);
            exchange(parts + out * part_bytes, part_bytes, next, parts + in * part_bytes, part_bytes, before, deadline);
        }
    }

    // A binomial tree: in round k, whoever has the data passes it on to the member 2^k further.
    void broadcast(void *data, size_t size_bytes, int root, double timeout_s) {
        if (size_bytes == 0) return;
        Clock::time_point deadline = deadline_after(timeout_s);
        int place = (rank_ - root + size_) % size_; // counted from the root
        for (int reach = 1; reach < size_; reach *= 2) {
            uint64_t slot = slot_++;
            if (place < reach && place + reach < size_) {
                Transfer(*this, data, size_bytes).send((rank_ + reach) % size_, slot, deadline);
            } else if (place >= reach && place < 2 * reach) {
                Transfer(*this, data, size_bytes).recv((rank_ - reach + size_) % size_, slot, deadline);
            }
        }
    }

    void send(const void *data, size_t size_bytes, int to, double timeout_s) {
        if (size_bytes == 0) return;
        // Numbered by sender and receiver alone: other members do not take part.
        uint64_t slot = SINGLE | sent_to_[to]++;
        Transfer(*this, const_cast<void *>(data), size_bytes).send(to, slot, deadline_after(timeout_s));
    }

    void recv(void *data, size_t size_bytes, int from, double timeout_s) {
        if (size_bytes == 0) return;
        uint64_t slot = SINGLE | received_from_[from]++;
        Transfer(*this, data, size_bytes).recv(from, slot, deadline_after(timeout_s));
    }

    // Dissemination: after round k a member has heard, by others, of the 2^(k+1) - 1 before it.
    void barrier(double timeout_s) {
        Clock::time_point deadline = deadline_after(timeout_s);
        for (int reach = 1; reach < size_; reach *= 2) {
            char out = 0, in = 0;
            exchange(&out, 1, (rank_ + reach) % size_, &in, 1, (rank_ - reach % size_ + size_) % size_, deadline);
        }
    }

  private:
    static constexpr uint64_t SINGLE = uint64_t(1) << 63;

    // One piece of memory on its way; known to abort() while it lives.
    class Transfer {
      public:
        Transfer(GlooGroup &group, void *data, size_t size_bytes)
            : group_(group), buffer_(group.context_.createUnboundBuffer(data, size_bytes)) {
            std::lock_guard<std::mutex> lock(group_.mutex_);
            if (group_.is_aborted_) throw Aborted();
            group_.waiting_.insert(buffer_.get());
        }
        ~Transfer() {
            std::lock_guard<std::mutex> lock(group_.mutex_);
            group_.waiting_.erase(buffer_.get());
        }
        Transfer(const Transfer &) = delete;
        Transfer &operator=(const Transfer &) = delete;

        void start_send(int to, uint64_t slot) { buffer_->send(to, slot); }
        void start_recv(int from, uint64_t slot) { buffer_->recv(from, slot); }
        void wait_send(Clock::time_point deadline) {
            if (!buffer_->waitSend(left(deadline))) throw Aborted();
        }
        void wait_recv(Clock::time_point deadline) {
            if (!buffer_->waitRecv(left(deadline))) throw Aborted();
        }
        void send(int to, uint64_t slot, Clock::time_point deadline) {
            start_send(to, slot);
            wait_send(deadline);
        }
        void recv(int from, uint64_t slot, Clock::time_point deadline) {
            start_recv(from, slot);
            wait_recv(deadline);
        }

      private:
        // Gloo takes 0 for ever.
        static std::chrono::milliseconds left(Clock::time_point deadline) {
            auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
            return std::max(rest, std::chrono::milliseconds(1));
        }

        GlooGroup &group_;
        std::unique_ptr<UnboundBuffer> buffer_;
    };

    void exchange(void *out, size_t out_bytes, int to, void *in, size_t in_bytes, int from,
                  Clock::time_point deadline) {
        uint64_t slot = slot_++;
        Transfer incoming(*this, in, in_bytes), outgoing(*this, out, out_bytes);
        incoming.start_recv(from, slot);
        outgoing.start_send(to, slot);
        incoming.wait_recv(deadline);
        outgoing.wait_send(deadline);
    }

    int rank_, size_;
    std::shared_ptr<gloo::transport::Device> device_;
    gloo::rendezvous::Context context_;
    uint64_t slot_ = 0;                               // of what all members take part in
    std::map<int, uint64_t> sent_to_, received_from_; // messages so far
    std::mutex mutex_;                                // of what follows
    bool is_aborted_ = false;
    std::set<UnboundBuffer *> waiting_;
};

namespace {

// What Gloo says, without the place in its source that it begins with.
void describe(const std::exception &error, char *text) {
    const char *what = error.what(), *end = *what == '[' ? strstr(what, "] ") : nullptr;
    snprintf(text, GLOO_TEXT_MAX, "%s", end != nullptr ? end + 2 : what);
}

template <typename Call> GlooResult guarded(char *text, Call call) {
    try {
        call();
        return GLOO_OK;
    } catch (const Aborted &) {
        return GLOO_ABORTED;
    } catch (const std::exception &error) {
        describe(error, text);
        return GLOO_FAILED;
    }
}

GlooResult group_open(const HostCommOptions *options, double timeout_s, GlooGroup **group, char *text) {
    return guarded(text, [&] { *group = new GlooGroup(*options, timeout_s); });
}

void group_close(GlooGroup *group) { delete group; }

void group_abort(GlooGroup *group) { group->abort(); }

GlooResult group_all_gather(GlooGroup *group, const void *part, void *all, size_t part_bytes, double timeout_s,
                            char *text) {
    return guarded(text, [&] { group->all_gather(part, all, part_bytes, timeout_s); });
}

GlooResult group_broadcast(GlooGroup *group, void *data, size_t size_bytes, int root, double timeout_s, char *text) {
    return guarded(text, [&] { group->broadcast(data, size_bytes, root, timeout_s); });
}

GlooResult group_send(GlooGroup *group, const void *data, size_t size_bytes, int to, double timeout_s, char *text) {
    return guarded(text, [&] { group->send(data, size_bytes, to, timeout_s); });
}

GlooResult group_recv(GlooGroup *group, void *data, size_t size_bytes, int from, double timeout_s, char *text) {
    return guarded(text, [&] { group->recv(data, size_bytes, from, timeout_s); });
}

GlooResult group_barrier(GlooGroup *group, double timeout_s, char *text) {
    return guarded(text, [&] { group->barrier(timeout_s); });
}

} // namespace

extern "C" __attribute__((visibility("default"))) const GlooLibrary *shoal_gloo_library(void) {
    static const GlooLibrary library = {GLOO_LIBRARY_VERSION, group_open, group_close, group_abort,  group_all_gather,
                                        group_broadcast,      group_send, group_recv,  group_barrier};
    return &library;
}
