// Progress for people, on stderr: a bar on a terminal, a plain line every few seconds elsewhere, nothing when quiet.
//
// Ownership: plain data; the stream and the unit are borrowed. Errors: none (a broken terminal stops no run). Thread
// safety: none.
#ifndef SHOAL_HOST_PROGRESS_H
#define SHOAL_HOST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum HostProgressMode {
    HOST_PROGRESS_AUTO,
    HOST_PROGRESS_BAR,
    HOST_PROGRESS_PLAIN,
    HOST_PROGRESS_QUIET
} HostProgressMode;

typedef struct HostProgress {
    HostProgressMode mode; // never AUTO after init
    FILE *stream;
    const char *unit; // "generation"
    int64_t first, total;
    double start_s, last_s; // host_now_s()
    int line_width;         // characters of the bar's line now on the screen
} HostProgress;

// `first` is the count already done (a resumed run), for the estimate of the time left.
void host_progress_init(HostProgress *progress, HostProgressMode mode, FILE *stream, const char *unit, int64_t first,
                        int64_t total);

// Shows `done` of total and the text after it ("return 412.3"). Cheap when called often: it draws at most 10 times a
// second on a terminal, and every 2 s elsewhere (the first and the last call always).
void host_progress_update(HostProgress *progress, int64_t done, const char *text);

// Prints a line of its own, above the bar; also when quiet (warnings).
void host_progress_note(HostProgress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Ends the bar's line.
void host_progress_finish(HostProgress *progress);

#ifdef __cplusplus
}
#endif

#endif
