// Reads a trace, stream by stream, in bounded memory: an index of the blocks (32 bytes for each, some thousand events)
// and one block of each stream.
//
// Any bytes are read: what is whole is given, what is lost is counted and said. A file that is still being written, or
// was cut off anywhere, is read up to its last whole block.
//
// Ownership: the reader owns what it gives until closed. Errors: STATUS_IO; STATUS_CORRUPT where there is nothing to
// read (no trace, another version); STATUS_MEMORY. Thread safety: one thread at a time.
#ifndef SHOAL_PROFILER_PROF_READ_H
#define SHOAL_PROFILER_PROF_READ_H

#include <stddef.h>
#include <stdio.h>

#include "host/status.h"
#include "profiler/prof_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a trace lacks; all 0 where nothing is missing.
typedef struct ProfDamage {
    bool is_cut;              // no block says that the trace ended
    bool has_no_process;      // the block that describes the process is lost
    uint64_t damaged_blocks;  // checksum or content is wrong
    uint64_t lost_events;     // in them, and in a block that was cut off
    uint64_t missing_blocks;  // numbers that were passed over
    uint64_t skipped_bytes;   // between blocks, that belong to none
    uint64_t foreign_blocks;  // of another version or an unknown type
    uint64_t backward_clocks; // times a stream's clock went back; such times count as the last one before
} ProfDamage;

typedef struct ProfClockPair {
    int64_t monotonic_ns, unix_ns;
} ProfClockPair;

typedef struct ProfReader ProfReader;

Status prof_reader_open(const char *path, ProfReader **reader) HOST_MUST_CHECK;
// Borrows the bytes; `name` stands for the path in messages.
Status prof_reader_open_memory(const void *bytes, size_t size_bytes, const char *name,
                               ProfReader **reader) HOST_MUST_CHECK;
void prof_reader_close(ProfReader *reader); // NULL is fine

const char *prof_reader_path(const ProfReader *reader);
const ProfProcess *prof_reader_process(const ProfReader *reader);
// Complete once every stream was read to its end.
const ProfDamage *prof_reader_damage(const ProfReader *reader);
bool prof_reader_is_whole(const ProfReader *reader);

// Streams by ascending id.
int prof_reader_stream_count(const ProfReader *reader);
const ProfStream *prof_reader_stream(const ProfReader *reader, int index);

// Numbers below the count; NULL: that name is not known (its block was lost).
uint32_t prof_reader_name_count(const ProfReader *reader);
const ProfName *prof_reader_name(const ProfReader *reader, uint32_t number);

// When the trace ended; false if it does not say.
bool prof_reader_end(const ProfReader *reader, int64_t *end_ns);

// The clocks' pairs, the first and the last; returns how many there are (at most 2).
int prof_reader_clocks(const ProfReader *reader, ProfClockPair pair[2]);

// The next event of a stream, times never descending; false at its end.
bool prof_reader_next(ProfReader *reader, int stream, ProfEvent *event);

// Every stream starts again from its first event.
void prof_reader_rewind(ProfReader *reader);

// Prints a line for each kind of damage, after `prefix`; nothing where there is none.
void prof_damage_print(const ProfDamage *damage, const char *prefix, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
