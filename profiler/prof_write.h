// Writes a trace: names are numbered, events become blocks.
//
// Every block is one write(2), whole in itself: what was written before a kill or a full disk stays readable.
//
// Ownership: the writer owns its file and memory until closed. Errors: STATUS_IO, STATUS_MEMORY; after a first failure
// everything else is ignored, and closing reports it. Thread safety: one thread at a time.
#ifndef SHOAL_PROFILER_PROF_WRITE_H
#define SHOAL_PROFILER_PROF_WRITE_H

#include "host/status.h"
#include "profiler/prof_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfWriter ProfWriter;

// Makes the file, which must not be there yet.
Status prof_writer_open(const char *path, const ProfProcess *process, ProfWriter **writer) HOST_MUST_CHECK;

void prof_writer_stream(ProfWriter *writer, const ProfStream *stream);

// The number of a name; the same name has the same number. Texts are cut to PROF_TEXT_MAX. Beyond PROF_NAMES_MAX names,
// what is new goes by the last one.
uint32_t prof_writer_name(ProfWriter *writer, int category, ProfLayer layer, const char *text);

// Adds an event to a stream that was made known. Times of a stream should not go backwards: a new block begins where
// they do, and the reader says so.
void prof_writer_put(ProfWriter *writer, uint32_t stream, const ProfEvent *event);

// Ends the block under way; what was put is then in the file.
void prof_writer_flush(ProfWriter *writer);

// One moment by both clocks of the system, for the alignment of traces of several machines.
void prof_writer_clock(ProfWriter *writer, int64_t monotonic_ns, int64_t unix_ns);

// How many env steps the trace is about; goes into its end.
void prof_writer_steps(ProfWriter *writer, int64_t env_steps);

// Ends the trace, frees the writer, and reports the first failure of all. NULL is fine.
Status prof_writer_close(ProfWriter *writer, int64_t end_ns) HOST_MUST_CHECK;

// Frees the writer without the block that ends a trace, as a killed process would leave it.
void prof_writer_abandon(ProfWriter *writer);

bool prof_writer_failed(const ProfWriter *writer);

#ifdef __cplusplus
}
#endif

#endif
