// The inside of a trace's reader: the index that opening makes, and where each stream is. Private to
// profiler/prof_read*.c.
//
// Ownership: ProfReader owns all of it. Errors: Status. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_SOURCE_H
#define SHOAL_PROFILER_PROF_SOURCE_H

#include "host/file.h"
#include "profiler/prof_format.h"
#include "profiler/prof_read.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_NO_BLOCK = -1 };

// A block of events.
typedef struct ProfIndexed {
    uint64_t offset; // of its payload
    uint32_t payload_bytes, events, sequence;
    bool is_damaged;
    int64_t next; // of the same stream; PROF_NO_BLOCK: the last
} ProfIndexed;

typedef struct ProfCursor {
    ProfStream stream;
    int64_t first, last; // of its blocks

    // Where reading is.
    int64_t next;      // block
    uint32_t expected; // sequence number
    bool is_started, is_lost, wants_resync;
    int64_t time_ns; // of the last event
    int64_t raw_ns;  // the same, before it was kept from descending
    uint32_t left;   // events of the block
    ProfBytes bytes;
    uint8_t *payload;
    size_t payload_bytes; // allocated
    uint32_t depth;
    uint32_t stack[PROF_DEPTH_MAX];
} ProfCursor;

struct ProfReader {
    char path[HOST_PATH_MAX];
    int fd;                // -1: memory
    const uint8_t *memory; // [size_bytes]
    uint64_t size_bytes;

    ProfProcess process;
    bool has_process, has_end;
    int64_t end_ns, first_ns; // first_ns: the earliest begin of a block
    int clock_count;
    ProfClockPair clock[2];
    ProfDamage damage, indexed; // indexed: what opening found; reading adds to the other

    ProfName *names; // [name_count]; a text "" is one that is not known
    uint32_t name_count;
    ProfIndexed *blocks;
    int64_t block_count, block_capacity;
    ProfCursor **cursors; // [cursor_count], by id
    int cursor_count;
    int32_t *cursor_of; // [PROF_STREAMS_MAX] index + 1; 0: none
};

// Bytes [offset, offset + size_bytes) of the file; false if they cannot be had.
bool prof_source_read(const ProfReader *reader, uint64_t offset, void *bytes, size_t size_bytes);

// Reads the file once, checks every block and fills in everything but the cursors' positions.
Status prof_source_index(ProfReader *reader) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
