// Ctrl-C and SIGTERM: the first sets a flag that loops look at, the second, 0.2 s later or more, ends
// the process at once.
//
// A thread of the process may ask for less: that the present computation is broken off, and another one is begun.
//
// Errors: STATUS_SYSTEM. Thread safety: everything from any thread, but for installing: once, at the start of main. The
// flag, with the count of looks at it and what crashes are told to, is one of Shoal's three mutable globals.
#ifndef SHOAL_HOST_SIGNALS_H
#define SHOAL_HOST_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
#include <atomic>
typedef std::atomic<int> HostAtomicInt;
typedef std::atomic<bool> HostAtomicBool;
#else
#include <stdatomic.h>
typedef atomic_int HostAtomicInt;
typedef atomic_bool HostAtomicBool;
#endif

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Handles SIGINT and SIGTERM, and ignores SIGXFSZ and SIGPIPE so that failing writes are reported as errors.
Status host_signals_install(void) HOST_MUST_CHECK;

// Looked at by every loop that computes: whether to end now, be it for a stop or for an interruption.
bool host_stop_requested(void);
bool host_stop_pending(void); // whether a stop was asked for; no loop that computes looks
// The same as host_stop_requested(), but no look: for waits for what may hang.
bool host_stop_wanted(void);
void host_stop_request(void);
void host_stop_clear(void); // for tests

// Breaks the present computation off, until it is cleared; no stop.
void host_interrupt(bool is_wanted);

// How often the flag was looked at, by all threads: it stands still while they hang.
int64_t host_stop_looks(void);

// Who is told, from within the signal's handler, that a thread is about to end the process by SIGSEGV, SIGBUS, SIGFPE,
// SIGILL or SIGABRT: `signal_number` is set and 8 bytes are written to wake_fd, an eventfd; the thread then waits until
// `is_told` is set, half a second at most, and dies as it would have.
typedef struct HostCrash {
    int wake_fd;
    HostAtomicInt signal_number;
    HostAtomicBool is_told;
} HostCrash;

// `crash` must last as long as the process, or until another, or NULL, takes its place.
Status host_signals_on_crash(HostCrash *crash) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
