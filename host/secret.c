#include "host/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRESH_BYTES = 32 };

static Status check_length(const char *what, size_t length) {
    if (length >= HOST_SECRET_MIN && length <= HOST_SECRET_MAX) return STATUS_OK;
    return host_fail(STATUS_USAGE, "%s: a secret has %d to %d characters, this one has %zu", what, HOST_SECRET_MIN,
                     HOST_SECRET_MAX, length);
}

void host_random_bytes(void *bytes, size_t size_bytes) { randombytes_buf(bytes, size_bytes); }

Status host_secret_make(HostSecret *secret) {
    if (sodium_init() < 0) return host_fail(STATUS_SYSTEM, "libsodium cannot be initialised");
    unsigned char bytes[FRESH_BYTES];
    memset(secret, 0, sizeof *secret);
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(secret->text, sizeof secret->text, bytes, sizeof bytes);
    sodium_memzero(bytes, sizeof bytes);
    return STATUS_OK;
}

static Status read_open(HostSecret *secret, const char *path, int fd) {
    struct stat info;
    if (fstat(fd, &info) != 0) return host_fail(STATUS_IO, "cannot read %s: %s", path, strerror(errno));
    if ((info.st_mode & 077) != 0)
        return host_fail(STATUS_USAGE, "%s: others may read the secret (mode %03o); chmod 600 %s", path,
                         (unsigned)info.st_mode & 0777u, path);
    ssize_t size = read(fd, secret->text, sizeof secret->text);
    if (size < 0) return host_fail(STATUS_IO, "cannot read %s: %s", path, strerror(errno));
    size_t length = (size_t)size;
    while (length > 0 && (secret->text[length - 1] == '\n' || secret->text[length - 1] == '\r'))
        length--;
    TRY(check_length(path, length));
    secret->text[length] = '\0';
    return STATUS_OK;
}

Status host_secret_read(HostSecret *secret, const char *path) {
    memset(secret, 0, sizeof *secret);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return host_fail(STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    Status status = read_open(secret, path, fd);
    close(fd);
    return status;
}

Status host_secret_find(HostSecret *secret, const char *path) {
    const char *given = getenv(HOST_SECRET_ENVIRONMENT);
    if (path[0] != '\0') return host_secret_read(secret, path);
    if (given == NULL)
        return host_fail(STATUS_USAGE, "no secret: set " HOST_SECRET_ENVIRONMENT ", or name the run's file with "
                                       "--secret (RUN/secret)");
    memset(secret, 0, sizeof *secret);
    TRY(check_length(HOST_SECRET_ENVIRONMENT, strlen(given)));
    snprintf(secret->text, sizeof secret->text, "%s", given);
    return STATUS_OK;
}

Status host_secret_write(const HostSecret *secret, const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return host_fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    char line[sizeof secret->text + 1];
    int length = snprintf(line, sizeof line, "%s\n", secret->text);
    bool is_written = fchmod(fd, 0600) == 0 && write(fd, line, (size_t)length) == length;
    int reason = errno;
    sodium_memzero(line, sizeof line);
    close(fd);
    return is_written ? STATUS_OK : host_fail(STATUS_IO, "cannot write %s: %s", path, strerror(reason));
}

void host_secret_wipe(HostSecret *secret) { sodium_memzero(secret, sizeof *secret); }

static void key_pair(const HostSecret *secret, const char *end, unsigned char *public_key, unsigned char *secret_key) {
    unsigned char seed[crypto_box_SEEDBYTES];
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof seed);
    crypto_generichash_update(&state, (const unsigned char *)end, strlen(end) + 1);
    crypto_generichash_update(&state, (const unsigned char *)secret->text, strlen(secret->text));
    crypto_generichash_final(&state, seed, sizeof seed);
    crypto_box_seed_keypair(public_key, secret_key, seed);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(&state, sizeof state);
}

Status host_secret_keys(const HostSecret *secret, HostKeys *keys) {
    if (sodium_init() < 0) return host_fail(STATUS_SYSTEM, "libsodium cannot be initialised");
    key_pair(secret, "shoal master", keys->master_public, keys->master_secret);
    key_pair(secret, "shoal worker", keys->worker_public, keys->worker_secret);
    return STATUS_OK;
}

int64_t host_secret_tag(const HostKeys *keys) {
    uint32_t tag;
    memcpy(&tag, keys->worker_public, sizeof tag);
    return (int64_t)((uint64_t)tag << 32);
}
