// Pages for a browser that need nothing else: HTML, CSS and JavaScript as the build put them together
// (cmake/ShoalPage.cmake: shoal_page), with data in them as JSON.
//
// host_page_begin(), host_page_data() for each element, host_page_end().
//
// Ownership: a page is static. Errors: whether the stream took everything is the caller's to check. Thread safety: any
// thread.
#ifndef SHOAL_HOST_PAGE_H
#define SHOAL_HOST_PAGE_H

#include <stddef.h>
#include <stdio.h>

#include "host/json_text.h"

#ifdef __cplusplus
extern "C" {
#endif

// The two sides of where the data belongs.
typedef struct HostPage {
    const unsigned char *head;
    size_t head_bytes;
    const unsigned char *tail;
    size_t tail_bytes;
} HostPage;

void host_page_begin(const HostPage *page, FILE *stream);

// Closes the JSON text and puts it into an element of that id, from where no text in it gets out.
Status host_page_data(JsonText *json, const char *id, FILE *stream) HOST_MUST_CHECK;

void host_page_end(const HostPage *page, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
