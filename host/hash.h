// 64-bit FNV-1a, fed in pieces: params_hash, and the content hash of checkpoints.
//
// A change within one byte always changes the hash (each step is a bijection of the state). Not cryptographic.
// Errors: none. Thread safety: any thread.
// Source: http://www.isthe.com/chongo/tech/comp/fnv (draft-eastlake-fnv).
#ifndef SHOAL_HOST_HASH_H
#define SHOAL_HOST_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostHash {
    uint64_t state;
} HostHash;

static inline HostHash host_hash_start(void) {
    HostHash hash = {UINT64_C(0xcbf29ce484222325)};
    return hash;
}

static inline void host_hash_add(HostHash *hash, const void *data, size_t size_bytes) {
    const unsigned char *bytes = (const unsigned char *)data;
    uint64_t state = hash->state;
    for (size_t i = 0; i < size_bytes; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    hash->state = state;
}

// As 16 lower-case hex digits and a zero byte. Returns `text`.
static inline const char *host_hash_text(HostHash hash, char text[17]) {
    for (int i = 0; i < 16; i++)
        text[i] = "0123456789abcdef"[(hash.state >> (60 - 4 * i)) & 15];
    text[16] = '\0';
    return text;
}

#ifdef __cplusplus
}
#endif

#endif
