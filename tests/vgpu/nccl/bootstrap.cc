#include "tests/vgpu/nccl/bootstrap.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/vgpu/nccl/channels.h"

namespace vgpu {
namespace {

constexpr char MAGIC[] = "vgpu-nccl-"; // an id is this and 32 hexadecimal digits

// A name that is nowhere in the file system.
socklen_t address_of(const ncclUniqueId &id, sockaddr_un *address) {
    *address = {};
    address->sun_family = AF_UNIX;
    size_t length = strnlen(id.internal, sizeof address->sun_path - 2);
    memcpy(address->sun_path + 1, id.internal, length);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

struct Verdict {
    ncclResult_t result = ncclSuccess;
    char why[160] = {};
};

Verdict judge(const std::vector<Place> &places) {
    Verdict verdict;
    for (size_t i = 0; i < places.size(); i++) {
        const Place &mine = places[i];
        for (size_t k = 0; k < i && verdict.result == ncclSuccess; k++) {
            const Place &other = places[k];
            if (mine.rank == other.rank || mine.ranks != other.ranks) {
                verdict.result = ncclSystemError;
                snprintf(verdict.why, sizeof verdict.why, "rank %d of %d came when there was rank %d of %d", mine.rank,
                         mine.ranks, other.rank, other.ranks);
            } else if (strcmp(mine.device, other.device) == 0) {
                verdict.result = ncclInvalidUsage;
                snprintf(verdict.why, sizeof verdict.why, "Duplicate GPU detected: rank %d and rank %d both on %s",
                         mine.rank, other.rank, strrchr(mine.device, ' ') + 1);
            }
        }
    }
    return verdict;
}

// With a file, which the kernel hands over (unix(7), SCM_RIGHTS).
void answer(int socket, const Verdict &verdict, int file) {
    Verdict copy = verdict;
    iovec part = {&copy, sizeof copy};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return; // it is gone: the others will wait for it
}

void serve(int listener) {
    std::vector<Place> places;
    std::vector<int> sockets;
    while (places.empty() || places.size() < static_cast<size_t>(places[0].ranks)) {
        Place place;
        int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) break;
        if (recv(socket, &place, sizeof place, 0) == sizeof place) {
            places.push_back(place);
            sockets.push_back(socket);
        } else {
            close(socket);
        }
    }
    Verdict verdict = judge(places);
    int file = verdict.result == ncclSuccess && !places.empty() ? Channels::make(places[0].ranks) : -1;
    if (file < 0 && verdict.result == ncclSuccess) verdict.result = ncclSystemError;
    for (int socket : sockets) {
        answer(socket, verdict, file);
        close(socket);
    }
    if (file >= 0) close(file);
    close(listener);
}

ncclResult_t take_answer(int socket, int *file, std::string *why) {
    Verdict verdict;
    iovec part = {&verdict, sizeof verdict};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof verdict) {
        *why = "the process that made the id is gone";
        return ncclRemoteError;
    }
    const cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) memcpy(file, CMSG_DATA(header), sizeof *file);
    *why = verdict.why;
    return verdict.result;
}

} // namespace

ncclResult_t bootstrap_make(ncclUniqueId *id) {
    uint8_t random[16];
    *id = {};
    if (getrandom(random, sizeof random, 0) != sizeof random) return ncclSystemError;
    char *at = id->internal + sprintf(id->internal, "%s", MAGIC);
    for (uint8_t byte : random)
        at += sprintf(at, "%02x", byte);
    sockaddr_un address;
    socklen_t length = address_of(*id, &address);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0) return ncclSystemError;
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), length) != 0 || listen(listener, RANKS_MOST) != 0) {
        close(listener);
        return ncclSystemError;
    }
    std::thread(serve, listener).detach();
    return ncclSuccess;
}

ncclResult_t bootstrap_join(const ncclUniqueId &id, const Place &place, const std::atomic<bool> &is_aborted, int *file,
                            std::string *why) {
    constexpr int LOOK_MS = 5;
    *file = -1;
    if (strncmp(id.internal, MAGIC, strlen(MAGIC)) != 0) {
        *why = "the id is none";
        return ncclInvalidArgument;
    }
    sockaddr_un address;
    socklen_t length = address_of(id, &address);
    int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool is_there = socket >= 0 && connect(socket, reinterpret_cast<sockaddr *>(&address), length) == 0 &&
                    send(socket, &place, sizeof place, MSG_NOSIGNAL) == sizeof place;
    ncclResult_t result = ncclRemoteError;
    *why = "nobody listens at the id's address";
    pollfd item = {socket, POLLIN, 0};
    while (is_there && !is_aborted) {
        if (poll(&item, 1, LOOK_MS) <= 0) continue;
        result = take_answer(socket, file, why);
        break;
    }
    if (socket >= 0) close(socket);
    return result;
}

} // namespace vgpu
