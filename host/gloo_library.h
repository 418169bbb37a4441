// What the program and libshoal_gloo.so know of each other. Gloo is C++ and a library that few runs need, so it is
// linked to a library of its own, which is opened with dlopen when a group of several CPUs is formed; nothing else of
// Shoal is in it. host/comm_gloo.c makes a HostComm of it.
//
// Ownership: the caller closes what it opened. Errors: a GlooResult, with a text for people. Thread safety: one call at
// a time, except abort().
#ifndef SHOAL_HOST_GLOO_LIBRARY_H
#define SHOAL_HOST_GLOO_LIBRARY_H

#include <stddef.h>

#include "host/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever what follows changes.
enum { GLOO_LIBRARY_VERSION = 1 };

#define GLOO_LIBRARY       "libshoal_gloo.so"
#define GLOO_LIBRARY_ENTRY "shoal_gloo_library"

typedef enum GlooResult { GLOO_OK, GLOO_ABORTED, GLOO_FAILED } GlooResult;

enum { GLOO_TEXT_MAX = 256 };

typedef struct GlooGroup GlooGroup;

// timeout_s > 0. text: [GLOO_TEXT_MAX], filled in where the result is GLOO_FAILED.
typedef struct GlooLibrary {
    int version;
    GlooResult (*open)(const HostCommOptions *options, double timeout_s, GlooGroup **group, char *text);
    void (*close)(GlooGroup *group);
    void (*abort)(GlooGroup *group);
    GlooResult (*all_gather)(GlooGroup *group, const void *part, void *all, size_t part_bytes, double timeout_s,
                             char *text);
    GlooResult (*broadcast)(GlooGroup *group, void *data, size_t size_bytes, int root, double timeout_s, char *text);
    GlooResult (*send)(GlooGroup *group, const void *data, size_t size_bytes, int to, double timeout_s, char *text);
    GlooResult (*recv)(GlooGroup *group, void *data, size_t size_bytes, int from, double timeout_s, char *text);
    GlooResult (*barrier)(GlooGroup *group, double timeout_s, char *text);
} GlooLibrary;

// The type of the library's entry.
typedef const GlooLibrary *GlooLibraryEntry(void);

#ifdef __cplusplus
}
#endif

#endif
