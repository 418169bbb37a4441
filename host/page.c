#include "host/page.h"

#include <stdlib.h>
#include <string.h>

void host_page_begin(const HostPage *page, FILE *stream) { fwrite(page->head, 1, page->head_bytes, stream); }

// In JSON, `<` is within texts only, where \u003c says the same: so no name ends the element that it is in, or begins a
// comment. The two line separators (U+2028, U+2029; e2 80 a8, e2 80 a9) end a line in some scripts.
static void put_escaped(const char *json, FILE *stream) {
    for (const char *at = json; *at != '\0'; at++) {
        if (*at == '<') {
            fputs("\\u003c", stream);
        } else if (strncmp(at, "\xe2\x80\xa8", 3) == 0 || strncmp(at, "\xe2\x80\xa9", 3) == 0) {
            fputs(at[2] == '\xa8' ? "\\u2028" : "\\u2029", stream);
            at += 2;
        } else {
            fputc(*at, stream);
        }
    }
}

Status host_page_data(JsonText *json, const char *id, FILE *stream) {
    char *text = NULL;
    TRY(host_json_close(json, &text, NULL));
    fprintf(stream, "<script type=\"application/json\" id=\"%s\">", id);
    put_escaped(text, stream);
    fputs("</script>\n", stream);
    free(text);
    return STATUS_OK;
}

void host_page_end(const HostPage *page, FILE *stream) { fwrite(page->tail, 1, page->tail_bytes, stream); }
