#include "host/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool host_file_exists(const char *path) { return access(path, F_OK) == 0; }

Status host_file_hold_standard(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        // The wrong way round, so that using it fails as on a closed stream. The lowest free number is this one.
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return host_fail(STATUS_SYSTEM, "cannot open /dev/null: %s", strerror(errno));
    }
    return STATUS_OK;
}

Status host_file_check_stdout(void) {
    errno = 0;
    bool lost = fflush(stdout) != 0;
    int reason = errno;
    if (!lost && !ferror(stdout)) return STATUS_OK;
    return host_fail(STATUS_IO, "cannot write to stdout: %s",
                     reason != 0 ? strerror(reason) : "an earlier write failed");
}

Status host_file_join(const char *folder, const char *name, char path[HOST_PATH_MAX]) {
    int length = snprintf(path, HOST_PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= HOST_PATH_MAX)
        return host_fail(STATUS_USAGE, "the path '%.100s.../%.100s' is longer than %d bytes", folder, name,
                         HOST_PATH_MAX - 1);
    return STATUS_OK;
}

static Status write_all(int fd, const char *path, const HostFilePart *part) {
    const char *at = part->data;
    size_t left = part->size_bytes;
    while (left > 0) {
        ssize_t written = write(fd, at, left);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return host_fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
        if (written == 0) return host_fail(STATUS_IO, "cannot write %s: the system took no bytes", path);
        at += written;
        left -= (size_t)written;
    }
    return STATUS_OK;
}

static Status sync_folder_of(const char *path) {
    char folder[HOST_PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        snprintf(folder, sizeof folder, ".");
    } else {
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return host_fail(STATUS_IO, "cannot open the folder %s: %s", folder, strerror(errno));
    // Some file systems cannot sync a folder (EINVAL); the rename is then as durable as they make it.
    bool failed = fsync(fd) != 0 && errno != EINVAL;
    int reason = errno;
    close(fd);
    if (failed) return host_fail(STATUS_IO, "cannot sync the folder %s: %s", folder, strerror(reason));
    return STATUS_OK;
}

// Closes fd in every case.
static Status fill_file(int fd, const char *path, const HostFilePart *parts, int part_count) {
    Status status = STATUS_OK;
    for (int i = 0; i < part_count && status == STATUS_OK; i++)
        status = write_all(fd, path, &parts[i]);
    if (status == STATUS_OK && fsync(fd) != 0)
        status = host_fail(STATUS_IO, "cannot sync %s: %s", path, strerror(errno));
    if (close(fd) != 0 && status == STATUS_OK)
        status = host_fail(STATUS_IO, "cannot close %s: %s", path, strerror(errno));
    return status;
}

// A rename would put a file in the place of a device or a pipe.
static Status check_replaceable(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return STATUS_OK;
    return host_fail(STATUS_IO, "cannot write %s: it is not a regular file", path);
}

Status host_file_replace(const char *path, const HostFilePart *parts, int part_count) {
    TRY(check_replaceable(path));
    char temporary[HOST_PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    if (length < 0 || length >= HOST_PATH_MAX)
        return host_fail(STATUS_USAGE, "the path '%.100s...' is longer than %d bytes", path, HOST_PATH_MAX - 1);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return host_fail(STATUS_IO, "cannot create %s: %s", temporary, strerror(errno));
    Status status = fill_file(fd, temporary, parts, part_count);
    if (status == STATUS_OK && rename(temporary, path) != 0)
        status = host_fail(STATUS_IO, "cannot rename %s to %s: %s", temporary, path, strerror(errno));
    if (status != STATUS_OK) {
        unlink(temporary);
        return status;
    }
    return sync_folder_of(path);
}

static Status read_all(int fd, const char *path, char *data, size_t size_bytes) {
    size_t done = 0;
    while (done < size_bytes) {
        ssize_t got = read(fd, data + done, size_bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return host_fail(STATUS_IO, "cannot read %s: %s", path, strerror(errno));
        if (got == 0)
            return host_fail(STATUS_IO, "%s shrank while it was read, from %zu to %zu bytes", path, size_bytes, done);
        done += (size_t)got;
    }
    return STATUS_OK;
}

static Status read_open(int fd, const char *path, size_t max_bytes, char **data, size_t *size_bytes) {
    struct stat info;
    if (fstat(fd, &info) != 0) return host_fail(STATUS_IO, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return host_fail(STATUS_IO, "cannot read %s: it is not a regular file", path);
    size_t size = (size_t)info.st_size;
    if (size > max_bytes)
        return host_fail(STATUS_IO, "cannot read %s: it has %zu bytes, more than %zu", path, size, max_bytes);
    char *buffer = malloc(size + 1);
    if (buffer == NULL) return host_fail(STATUS_MEMORY, "no memory for the %zu bytes of %s", size, path);
    Status status = read_all(fd, path, buffer, size);
    if (status != STATUS_OK) {
        free(buffer);
        return status;
    }
    buffer[size] = '\0';
    *data = buffer;
    *size_bytes = size;
    return STATUS_OK;
}

Status host_file_read(const char *path, size_t max_bytes, char **data, size_t *size_bytes) {
    // Without O_NONBLOCK, a named pipe would block the open for ever.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return host_fail(STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    Status status = read_open(fd, path, max_bytes, data, size_bytes);
    close(fd);
    return status;
}

Status host_file_make_folder(const char *path) {
    char part[HOST_PATH_MAX];
    if (path[0] == '\0' || strlen(path) >= sizeof part)
        return host_fail(STATUS_USAGE, "'%.100s' is not a usable folder name", path);
    memcpy(part, path, strlen(path) + 1);
    for (char *at = part + 1;; at++) {
        if (*at != '/' && *at != '\0') continue;
        char end = *at;
        *at = '\0';
        struct stat info;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return host_fail(STATUS_IO, "cannot make the folder %s: %s", part, strerror(errno));
        if (stat(part, &info) != 0) return host_fail(STATUS_IO, "cannot look at %s: %s", part, strerror(errno));
        if (!S_ISDIR(info.st_mode))
            return host_fail(STATUS_IO, "cannot make the folder %s: %s is a file, not a folder", path, part);
        if (end == '\0') return STATUS_OK;
        *at = end;
    }
}
