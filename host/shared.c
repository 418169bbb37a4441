#define _GNU_SOURCE // memfd_create, fallocate, F_ADD_SEALS
#include "host/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/plan.h"
#include "host/signals.h"

enum {
    NAME_BYTES = 108,      // of a socket's address; the first is 0
    STEP_BYTES = 64 << 20, // taken from the system at a time
    WAIT_MS = 2,
    WAIT_MAX_MS = 50 // between two looks for what another process fills
};

static const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// The memory is to be this process's own. Returns STATUS_OK: that is no failure.
static Status refuse(HostShared *shared, const char *what, const char *why) {
    snprintf(shared->reason, sizeof shared->reason, "%s: %s", what, why);
    return STATUS_OK;
}

static Status fail_memory(size_t size_bytes) {
    char text[16];
    int error = errno;
    return host_fail(STATUS_MEMORY, "cannot allocate %s (%zu bytes) of shared memory: %s",
                     host_bytes_text(size_bytes, text), size_bytes, strerror(error));
}

// The memory's name, which all others begin with.
static void name_of(const HostSharedSpec *spec, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "shoal-%u-%.60s", (unsigned)geteuid(), spec->name);
}

// A socket of that name; -1: errno says why not, EADDRINUSE that another process has it.
static int bind_name(const char *name) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path + 1, name, length);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    if (bind(fd, (const struct sockaddr *)&address, bytes) == 0) return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

// ---- what is there -------------------------------------------------------------------------------------------------

// Whether a file is of the memory's name and size, and this user's. It may be open with O_PATH alone.
static bool is_named(int fd, const char *name, size_t size_bytes) {
    char path[64], link[2 * NAME_BYTES], wanted[2 * NAME_BYTES];
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_uid != geteuid() || info.st_size != (off_t)size_bytes) return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0) return false;
    link[length] = '\0';
    snprintf(wanted, sizeof wanted, "/memfd:%s (deleted)", name);
    return strcmp(link, wanted) == 0;
}

// Whether it is full and never to change again. The kernel may have sealed more: F_SEAL_EXEC, by vm.memfd_noexec.
static bool is_sealed(int fd) {
    int have = fcntl(fd, F_GET_SEALS);
    return have >= 0 && (have & seals) == seals;
}

// Opens the memory of the process that a line of /proc/net/unix speaks of; -1: it speaks of none, or it is gone.
static int open_from(const char *line, const char *name, size_t size_bytes) {
    char sign[NAME_BYTES + 16], path[64];
    int length = snprintf(sign, sizeof sign, "@%s/", name), pid, number;
    const char *at = strstr(line, sign);
    if (at == NULL || sscanf(at + length, "%d/%d", &pid, &number) != 2) return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    // The number may be of another process here: nothing but the memory is opened for reading, which a device might
    // note.
    int found = open(path, O_PATH | O_CLOEXEC), fd = -1;
    if (found >= 0 && is_named(found, name, size_bytes)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", found);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (found >= 0) close(found);
    if (fd < 0 || is_sealed(fd)) return fd;
    close(fd);
    return -1;
}

// Whether some process has the memory, which is then open here, too.
static bool find(HostShared *shared, const HostSharedSpec *spec) {
    char name[NAME_BYTES], *line = NULL;
    size_t room = 0;
    FILE *names = fopen("/proc/net/unix", "re");
    if (names == NULL) {
        refuse(shared, "/proc/net/unix", strerror(errno));
        return false;
    }
    name_of(spec, name);
    while (shared->file < 0 && getline(&line, &room, names) > 0)
        shared->file = open_from(line, name, spec->size_bytes);
    free(line);
    fclose(names);
    return shared->file >= 0;
}

// Maps it, and says that it is here. Where that cannot be said, others do without this process.
static Status map(HostShared *shared, const HostSharedSpec *spec) {
    char name[NAME_BYTES], sign[NAME_BYTES];
    void *bytes = mmap(NULL, spec->size_bytes, PROT_READ, MAP_SHARED, shared->file, 0);
    if (bytes == MAP_FAILED) return fail_memory(spec->size_bytes);
    shared->bytes = bytes;
    name_of(spec, name);
    int length = snprintf(sign, sizeof sign, "%.*s/%d/%d", NAME_BYTES - 24, name, (int)getpid(), shared->file);
    if (length < NAME_BYTES - 1) shared->sign = bind_name(sign);
    return STATUS_OK;
}

// ---- making it -----------------------------------------------------------------------------------------------------

// Takes the memory from the system: touching what it cannot give would end the process.
static Status take(HostShared *shared, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += STEP_BYTES) {
        size_t step = size_bytes - at < STEP_BYTES ? size_bytes - at : STEP_BYTES;
        while (fallocate(shared->file, 0, (off_t)at, (off_t)step) != 0) {
            if (errno == EINTR && host_stop_requested())
                return host_fail(STATUS_STOPPED, "stopped while memory was taken");
            if (errno == EINTR) continue;
            if (errno != ENOMEM && errno != ENOSPC) return refuse(shared, "fallocate", strerror(errno));
            return fail_memory(size_bytes);
        }
    }
    return STATUS_OK;
}

static Status fill(HostShared *shared, const HostSharedSpec *spec, void *bytes) {
    TRY(take(shared, spec->size_bytes));
    return shared->reason[0] == '\0' ? spec->fill(spec->context, bytes, spec->size_bytes) : STATUS_OK;
}

// Under the lock.
static Status make(HostShared *shared, const HostSharedSpec *spec) {
    char name[NAME_BYTES];
    name_of(spec, name);
    shared->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shared->file < 0) return refuse(shared, "memfd_create", strerror(errno));
    if (ftruncate(shared->file, (off_t)spec->size_bytes) != 0) return refuse(shared, "ftruncate", strerror(errno));
    void *bytes = mmap(NULL, spec->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->file, 0);
    if (bytes == MAP_FAILED) return fail_memory(spec->size_bytes);
    Status status = fill(shared, spec, bytes);
    munmap(bytes, spec->size_bytes); // what is mapped for writing cannot be sealed
    TRY(status);
    if (shared->reason[0] != '\0') return STATUS_OK;
    if (fcntl(shared->file, F_ADD_SEALS, seals) != 0) return refuse(shared, "F_ADD_SEALS", strerror(errno));
    return map(shared, spec);
}

static Status make_own(HostShared *shared, const HostSharedSpec *spec) {
    void *bytes;
    HostMemory memory = host_memory_cpu();
    if (shared->file >= 0) close(shared->file);
    shared->file = -1;
    TRY(memory.alloc(memory.self, spec->size_bytes, &bytes));
    shared->bytes = bytes;
    return spec->fill(spec->context, bytes, spec->size_bytes);
}

// ---- opening -------------------------------------------------------------------------------------------------------

static void sleep_ms(int time_ms) {
    struct timespec time = {.tv_nsec = time_ms * 1000000L};
    nanosleep(&time, NULL);
}

// Maps what is there, or makes it, unless `reason` comes to say why not.
static Status share(HostShared *shared, const HostSharedSpec *spec) {
    char name[NAME_BYTES], lock[NAME_BYTES];
    double until_s = host_now_s() + spec->patience_s;
    name_of(spec, name);
    snprintf(lock, sizeof lock, "%.*s/lock", NAME_BYTES - 8, name);
    for (int wait_ms = WAIT_MS;; wait_ms = 2 * wait_ms < WAIT_MAX_MS ? 2 * wait_ms : WAIT_MAX_MS) {
        if (find(shared, spec)) return map(shared, spec);
        if (shared->reason[0] != '\0') return STATUS_OK;
        int fd = bind_name(lock);
        if (fd >= 0) {
            // Between that look and the lock another process may have come to its end.
            Status status = find(shared, spec) ? map(shared, spec) : make(shared, spec);
            close(fd);
            return status;
        }
        if (errno != EADDRINUSE) return refuse(shared, "the name of a socket", strerror(errno));
        if (host_stop_requested()) return host_fail(STATUS_STOPPED, "stopped while another process fills memory");
        if (host_now_s() >= until_s) return refuse(shared, "another process", "it has been filling it for too long");
        sleep_ms(wait_ms);
    }
}

Status host_shared_open(HostShared *shared, const HostSharedSpec *spec) {
    *shared = (HostShared){.size_bytes = spec->size_bytes, .file = -1, .sign = -1};
    Status status = share(shared, spec);
    if (status == STATUS_OK && shared->reason[0] != '\0') status = make_own(shared, spec);
    if (status != STATUS_OK) host_shared_close(shared);
    return status;
}

void host_shared_close(HostShared *shared) {
    if (shared->size_bytes == 0) return;
    // A HostMemory's block is mapped as well.
    if (shared->bytes != NULL) {
        void *bytes;
        memcpy(&bytes, &shared->bytes, sizeof bytes);
        munmap(bytes, shared->size_bytes);
    }
    if (shared->file >= 0) close(shared->file);
    if (shared->sign >= 0) close(shared->sign);
    memset(shared, 0, sizeof *shared);
}
