// The bytes of a trace: blocks, their headers, varints. profiler/FORMAT.md is the description.
//
// Ownership: borrows everything. Errors: none, or false. Thread safety: any thread.
#ifndef SHOAL_PROFILER_PROF_FORMAT_H
#define SHOAL_PROFILER_PROF_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "host/hash.h"
#include "profiler/prof_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PROF_MAGIC UINT32_C(0x54504853) // "SHPT"

// Versions that are read, from the first on; the last is what is written.
enum {
    PROF_VERSION_FIRST = 1,
    PROF_VERSION = 2,
    PROF_HEADER_BYTES = 40,
    PROF_PAYLOAD_MAX = 1 << 20,
    PROF_VARINT_MAX = 10
};

// Times are at most this far (2^56 ns: over two years) from the start of the trace.
#define PROF_SPAN_MAX_NS (INT64_C(1) << 56)

typedef enum ProfBlockType {
    PROF_BLOCK_PROCESS = 1,
    PROF_BLOCK_STREAM = 2,
    PROF_BLOCK_NAMES = 3,
    PROF_BLOCK_EVENTS = 4,
    PROF_BLOCK_CLOCK = 5,
    PROF_BLOCK_END = 6,
} ProfBlockType;

// Codes of the kind OTHER: O(code, kind of event)
#define PROF_OTHER_LIST(O) \
    O(1, PHASE)            \
    O(2, DROPPED)          \
    O(3, BUSY)             \
    O(4, MEMORY)           \
    O(5, OVERHEAD)         \
    O(6, STRETCH)          \
    O(7, READER)           \
    O(8, CALL)             \
    O(9, WAIT)             \
    O(10, ALLOC)           \
    O(11, RELEASE)         \
    O(12, POOL)            \
    O(13, ID)

// PROF_EVENT_OTHER: no code that is known.
static inline ProfEventKind prof_kind_of_code(uint64_t code) {
    switch (code) {
#define PROF_OTHER_KIND(code, kind) \
    case code:                      \
        return PROF_EVENT_##kind;
        PROF_OTHER_LIST(PROF_OTHER_KIND)
#undef PROF_OTHER_KIND
    default:
        return PROF_EVENT_OTHER;
    }
}

// 0: the kind has no code.
static inline uint8_t prof_code_of_kind(ProfEventKind kind) {
    switch (kind) {
#define PROF_OTHER_CODE(code, kind) \
    case PROF_EVENT_##kind:         \
        return code;
        PROF_OTHER_LIST(PROF_OTHER_CODE)
#undef PROF_OTHER_CODE
    default:
        return 0;
    }
}

typedef struct ProfBlock {
    uint16_t version, type;
    uint32_t payload_bytes, events, stream, sequence;
    uint64_t payload_hash;
} ProfBlock;

static inline uint8_t *prof_put_fixed(uint8_t *at, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(x >> (8 * i));
    return at;
}

static inline uint64_t prof_fixed_at(const uint8_t *at, int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)at[i] << (8 * i);
    return x;
}

static inline uint8_t *prof_put_varint(uint8_t *at, uint64_t x) {
    for (; x >= 128; x >>= 7)
        *at++ = (uint8_t)(x | 128);
    *at++ = (uint8_t)x;
    return at;
}

// Bytes that are still to be read; `ok` is false once one was missing, and then everything reads as 0.
typedef struct ProfBytes {
    const uint8_t *at, *end;
    bool ok;
} ProfBytes;

static inline uint64_t prof_get_varint(ProfBytes *bytes) {
    uint64_t x = 0;
    for (int shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
        uint8_t byte = *bytes->at++;
        if (shift == 63 && byte > 1) break;
        x |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return x;
    }
    bytes->ok = false;
    bytes->at = bytes->end;
    return 0;
}

static inline uint64_t prof_get_fixed(ProfBytes *bytes, int count) {
    if (bytes->end - bytes->at < count) {
        bytes->ok = false;
        bytes->at = bytes->end;
        return 0;
    }
    bytes->at += count;
    return prof_fixed_at(bytes->at - count, count);
}

static inline uint64_t prof_hash(const void *data, size_t size_bytes) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, data, size_bytes);
    return hash.state;
}

static inline void prof_put_header(uint8_t header[PROF_HEADER_BYTES], const ProfBlock *block) {
    uint8_t *at = prof_put_fixed(header, PROF_MAGIC, 4);
    at = prof_put_fixed(at, block->version, 2);
    at = prof_put_fixed(at, block->type, 2);
    at = prof_put_fixed(at, block->payload_bytes, 4);
    at = prof_put_fixed(at, block->events, 4);
    at = prof_put_fixed(at, block->stream, 4);
    at = prof_put_fixed(at, block->sequence, 4);
    at = prof_put_fixed(at, block->payload_hash, 8);
    prof_put_fixed(at, prof_hash(header, PROF_HEADER_BYTES - 8), 8);
}

// False if these bytes are no header.
static inline bool prof_get_header(const uint8_t header[PROF_HEADER_BYTES], ProfBlock *block) {
    if (prof_fixed_at(header, 4) != PROF_MAGIC) return false;
    if (prof_fixed_at(header + 32, 8) != prof_hash(header, PROF_HEADER_BYTES - 8)) return false;
    block->version = (uint16_t)prof_fixed_at(header + 4, 2);
    block->type = (uint16_t)prof_fixed_at(header + 6, 2);
    block->payload_bytes = (uint32_t)prof_fixed_at(header + 8, 4);
    block->events = (uint32_t)prof_fixed_at(header + 12, 4);
    block->stream = (uint32_t)prof_fixed_at(header + 16, 4);
    block->sequence = (uint32_t)prof_fixed_at(header + 20, 4);
    block->payload_hash = prof_fixed_at(header + 24, 8);
    return block->payload_bytes <= PROF_PAYLOAD_MAX;
}

#ifdef __cplusplus
}
#endif

#endif
