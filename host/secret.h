// A run's secret: who knows it may join the run, ask for its status, and see its messages.
//
// It is a text of HOST_SECRET_MIN to HOST_SECRET_MAX characters, kept in a file that only its owner may read, or handed
// on in the environment. The keys of both ends follow from it: BLAKE2b of the text and the end's name is the seed of a
// Curve25519 key pair. It is never printed.
//
// Ownership: plain data; wipe it with host_secret_wipe(). Errors: STATUS_USAGE (too short, too long, a file that others
// may read), STATUS_IO, STATUS_SYSTEM. Thread safety: any thread.
#ifndef SHOAL_HOST_SECRET_H
#define SHOAL_HOST_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_SECRET_MIN = 16, HOST_SECRET_MAX = 511, HOST_KEY_BYTES = 32 };

#define HOST_SECRET_ENVIRONMENT "SHOAL_SECRET"

typedef struct HostSecret {
    char text[HOST_SECRET_MAX + 1];
} HostSecret;

// A fresh one, from the system's random numbers.
Status host_secret_make(HostSecret *secret) HOST_MUST_CHECK;

// That of the file, whose name may be "": then the environment's. STATUS_USAGE if there is neither.
Status host_secret_find(HostSecret *secret, const char *path) HOST_MUST_CHECK;

Status host_secret_read(HostSecret *secret, const char *path) HOST_MUST_CHECK;

// A file of mode 0600, new or replaced.
Status host_secret_write(const HostSecret *secret, const char *path) HOST_MUST_CHECK;

void host_secret_wipe(HostSecret *secret);

// Key pairs of CURVE: the master's, and the one that all workers share.
typedef struct HostKeys {
    unsigned char master_public[HOST_KEY_BYTES], master_secret[HOST_KEY_BYTES];
    unsigned char worker_public[HOST_KEY_BYTES], worker_secret[HOST_KEY_BYTES];
} HostKeys;

Status host_secret_keys(const HostSecret *secret, HostKeys *keys) HOST_MUST_CHECK;

// A number that tells runs apart, in its upper 32 bits; no secret.
int64_t host_secret_tag(const HostKeys *keys);

// Random bytes of the system.
void host_random_bytes(void *bytes, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif
