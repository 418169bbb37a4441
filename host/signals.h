// Ctrl-C and SIGTERM: the first sets a flag that loops look at, the second ends the process at once.
//
// Errors: STATUS_SYSTEM. Thread safety: host_stop_requested() and host_stop_request() from any thread; install once, at
// the start of main. The flag is one of Shoal's three mutable globals.
#ifndef SHOAL_HOST_SIGNALS_H
#define SHOAL_HOST_SIGNALS_H

#include <stdbool.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Handles SIGINT and SIGTERM, and ignores SIGXFSZ and SIGPIPE so that failing writes are reported as errors.
Status host_signals_install(void) HOST_MUST_CHECK;

bool host_stop_requested(void);
void host_stop_request(void);
void host_stop_clear(void); // for tests

#ifdef __cplusplus
}
#endif

#endif
