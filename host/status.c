#include "host/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message_text[1024];
static _Thread_local char message_origin[128];

Status host_fail_at(const char *file, int line, Status status, const char *format, ...) {
    // Formatted into a buffer of its own first: the arguments may quote the message being replaced.
    char text[sizeof message_text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(message_text, text, sizeof text);
    snprintf(message_origin, sizeof message_origin, "%s:%d", file, line);
    return status;
}

const char *host_message(void) { return message_text; }

const char *host_message_origin(void) { return message_origin; }

const char *host_status_name(Status status) {
    static const char *const names[] = {
#define STATUS_NAME(name, meaning) #name,
        STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    };
    return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "?";
}
