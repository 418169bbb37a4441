// JSON text by hand, where Jansson's own writer does not keep the order, the line breaks or the shortest doubles.
//
// Every JSON text that Shoal writes goes through here, so that a quote in a folder's name never breaks one.
//
// Ownership: none kept. Errors: see each function. Thread safety: any thread.
#ifndef SHOAL_HOST_JSON_TEXT_H
#define SHOAL_HOST_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Whether the text is valid UTF-8 and so can be written as a JSON string.
bool host_json_is_valid(const char *text);

// Writes text as a JSON string with its quotes. The text must be valid UTF-8.
void host_json_put(FILE *stream, const char *text);

// A text being written to `stream`: host_json_close() reports for all writes at once.
typedef struct JsonText {
    FILE *stream;
    char *text;
    size_t size_bytes;
} JsonText;

Status host_json_open(JsonText *json) HOST_MUST_CHECK;
// Gives the finished text, the caller's to free; size_bytes may be NULL.
Status host_json_close(JsonText *json, char **text, size_t *size_bytes) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
