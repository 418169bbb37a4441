#include "host/payload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 64, HEADER_BYTES = 64, READY = 0x4c444852 };

// What shared memory begins with; the payload follows HEADER_BYTES later.
typedef struct Header {
    _Atomic uint32_t state; // READY when all is there
    uint32_t padding;
    uint64_t size_bytes;
} Header;

static void name_of(int64_t session, int64_t round, char name[NAME_MAX_BYTES]) {
    snprintf(name, NAME_MAX_BYTES, "/shoal-%016" PRIx64 "-%" PRId64, (uint64_t)session, round);
}

static bool is_ours(int fd, struct stat *info) { return fstat(fd, info) == 0 && info->st_uid == geteuid(); }

HostPayloadState host_payload_look(HostPayload *payload, int64_t session, int64_t round) {
    char name[NAME_MAX_BYTES];
    name_of(session, round, name);
    int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return HOST_PAYLOAD_ABSENT;
    struct stat info;
    if (!is_ours(fd, &info)) {
        close(fd);
        return HOST_PAYLOAD_ABSENT;
    }
    if (info.st_size <= HEADER_BYTES) {
        close(fd);
        return HOST_PAYLOAD_COMING;
    }
    size_t map_bytes = (size_t)info.st_size;
    void *map = mmap(NULL, map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return HOST_PAYLOAD_ABSENT;
    const Header *header = map;
    bool is_ready = atomic_load_explicit(&header->state, memory_order_acquire) == READY;
    if (!is_ready || header->size_bytes > map_bytes - HEADER_BYTES) {
        munmap(map, map_bytes);
        return is_ready ? HOST_PAYLOAD_ABSENT : HOST_PAYLOAD_COMING;
    }
    *payload =
        (HostPayload){session, round, (unsigned char *)map + HEADER_BYTES, (size_t)header->size_bytes, map, map_bytes};
    return HOST_PAYLOAD_READY;
}

HostPayloadState host_payload_open(HostPayload *payload, int64_t session, int64_t round) {
    char name[NAME_MAX_BYTES];
    name_of(session, round, name);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return HOST_PAYLOAD_CLAIMED;
    }
    return errno == EEXIST ? host_payload_look(payload, session, round) : HOST_PAYLOAD_ABSENT;
}

// False where the memory cannot be had: the payload is then this process's own.
static bool fill_shared(HostPayload *payload, int64_t session, int64_t round, const void *bytes, size_t size_bytes) {
    char name[NAME_MAX_BYTES];
    name_of(session, round, name);
    size_t map_bytes = HEADER_BYTES + size_bytes;
    int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return false;
    // Space is taken here and now: touching memory that a full file system cannot give ends a process.
    struct stat info;
    void *map = MAP_FAILED;
    if (is_ours(fd, &info) && posix_fallocate(fd, 0, (off_t)map_bytes) == 0)
        map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return false;
    Header *header = map;
    header->size_bytes = size_bytes;
    if (size_bytes > 0) memcpy((unsigned char *)map + HEADER_BYTES, bytes, size_bytes);
    atomic_store_explicit(&header->state, READY, memory_order_release);
    *payload = (HostPayload){session, round, (unsigned char *)map + HEADER_BYTES, size_bytes, map, map_bytes};
    return true;
}

Status host_payload_fill(HostPayload *payload, int64_t session, int64_t round, bool is_claimed, const void *bytes,
                         size_t size_bytes) {
    if (is_claimed && fill_shared(payload, session, round, bytes, size_bytes)) return STATUS_OK;
    if (is_claimed) host_payload_unclaim(session, round);
    unsigned char *copy = malloc(size_bytes > 0 ? size_bytes : 1);
    if (copy == NULL) return host_fail(STATUS_MEMORY, "no memory for %zu bytes of parameters", size_bytes);
    if (size_bytes > 0) memcpy(copy, bytes, size_bytes);
    *payload = (HostPayload){session, round, copy, size_bytes, copy, 0};
    return STATUS_OK;
}

void host_payload_unclaim(int64_t session, int64_t round) {
    char name[NAME_MAX_BYTES];
    name_of(session, round, name);
    shm_unlink(name);
}

void host_payload_close(HostPayload *payload, bool remove) {
    if (payload->round == 0) return;
    if (payload->map_bytes > 0) {
        munmap(payload->memory, payload->map_bytes);
        if (remove) host_payload_unclaim(payload->session, payload->round);
    } else {
        free(payload->memory);
    }
    *payload = (HostPayload){0};
}

void host_payload_sweep(int64_t session) {
    char prefix[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    snprintf(prefix, sizeof prefix, "shoal-%08" PRIx64, (uint64_t)session >> 32);
    DIR *folder = opendir("/dev/shm");
    if (folder == NULL) return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
        int length = snprintf(name, sizeof name, "/%s", entry->d_name);
        if (length < (int)sizeof name) shm_unlink(name);
    }
    closedir(folder);
}
