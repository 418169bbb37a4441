// "1 worker", "2 workers": the s of a noun that is counted. Errors: none. Thread safety: any thread.
#ifndef SHOAL_HOST_PLURAL_H
#define SHOAL_HOST_PLURAL_H

#include <stdint.h>

static inline const char *host_plural(int64_t count) { return count == 1 ? "" : "s"; }

#endif
