#include "host/json_text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Length of the UTF-8 sequence at `s`, or 0 if it is not one (overlong forms, surrogates and > U+10FFFF are not).
static size_t sequence_bytes(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    size_t length = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    uint32_t code = s[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))) return 0;
    if (length == 4 && (code < 0x10000 || code > 0x10FFFF)) return 0;
    return length;
}

bool host_json_is_valid(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    while (*s != 0) {
        size_t length = sequence_bytes(s);
        if (length == 0) return false;
        s += length;
    }
    return true;
}

void host_json_put(FILE *stream, const char *text) {
    fputc('"', stream);
    for (const unsigned char *s = (const unsigned char *)text; *s != 0; s++) {
        if (*s == '"' || *s == '\\') {
            fputc('\\', stream);
            fputc(*s, stream);
        } else if (*s == '\n') {
            fputs("\\n", stream);
        } else if (*s < 0x20) {
            fprintf(stream, "\\u%04x", *s);
        } else {
            fputc(*s, stream);
        }
    }
    fputc('"', stream);
}

Status host_json_open(JsonText *json) {
    *json = (JsonText){0};
    json->stream = open_memstream(&json->text, &json->size_bytes);
    if (json->stream == NULL) return host_fail(STATUS_MEMORY, "no memory for a JSON text: %s", strerror(errno));
    return STATUS_OK;
}

Status host_json_close(JsonText *json, char **text, size_t *size_bytes) {
    int failed = ferror(json->stream);
    failed |= fclose(json->stream);
    if (failed) {
        free(json->text);
        return host_fail(STATUS_MEMORY, "no memory for a JSON text");
    }
    *text = json->text;
    if (size_bytes != NULL) *size_bytes = json->size_bytes;
    return STATUS_OK;
}
