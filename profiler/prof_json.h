// Members of JSON objects, written one after the other: `first` says whether the object is still empty. Private to
// profiler/.
//
// Ownership: none kept. Errors: the stream's. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_JSON_H
#define SHOAL_PROFILER_PROF_JSON_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "host/json_text.h"

static inline void prof_json_key(FILE *stream, bool *first, const char *key) {
    fputs(*first ? "" : ", ", stream);
    host_json_put(stream, key);
    fputs(": ", stream);
    *first = false;
}

static inline void prof_json_text(FILE *stream, bool *first, const char *key, const char *text) {
    prof_json_key(stream, first, key);
    host_json_put(stream, text);
}

static inline void prof_json_int(FILE *stream, bool *first, const char *key, int64_t value) {
    prof_json_key(stream, first, key);
    fprintf(stream, "%" PRId64, value);
}

// null where it is not finite.
static inline void prof_json_real(FILE *stream, bool *first, const char *key, double value) {
    prof_json_key(stream, first, key);
    if (isfinite(value)) {
        fprintf(stream, "%.17g", value);
    } else {
        fputs("null", stream);
    }
}

#endif
