// Copies of names that last, one for each text: what a trace's scopes are known by is a name's address.
//
// Ownership: copies are never freed. Errors: where there is no room for more, prof_name() gives "(another name)".
// Thread safety: any thread; no lock, and no allocation for a text that is known.
#ifndef SHOAL_PROFILER_PROF_NAMES_H
#define SHOAL_PROFILER_PROF_NAMES_H

#include "host/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PROF_NAMES_KEPT = 1 << 15 };

typedef struct ProfKeptName {
    HostTraceCategory category; // that the text tells: see prof_name_category()
    const char *text;
} ProfKeptName;

const ProfKeptName *prof_name(const char *text);

// A name that is a category's, or begins with it and one of ":/ ._-", tells that category: "simulation: reset". All
// others tell HOST.
HostTraceCategory prof_name_category(const char *text);

#ifdef __cplusplus
}
#endif

#endif
