// A report as one page: profiler/page/, as the build put it together, with the data in it as JSON.
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "profiler/prof_page.h"
#include "profiler/prof_report.h"
#include "profiler/prof_timeline.h"

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

static Status put_data(JsonText *json, const char *id, FILE *stream) {
    char *text = NULL;
    TRY(host_json_close(json, &text, NULL));
    fprintf(stream, "<script type=\"application/json\" id=\"%s\">", id);
    put_escaped(text, stream);
    fputs("</script>\n", stream);
    free(text);
    return STATUS_OK;
}

static Status put_timeline(const ProfRun *run, int index, int64_t spans_max, FILE *stream) {
    ProfTimeline timeline;
    JsonText json;
    char id[32];
    TRY(prof_timeline_make(run, spans_max, &timeline));
    Status status = host_json_open(&json);
    if (status == STATUS_OK) {
        prof_timeline_json(&timeline, json.stream);
        snprintf(id, sizeof id, "timeline-%d", index);
        status = put_data(&json, id, stream);
    }
    prof_timeline_free(&timeline);
    return status;
}

Status prof_html_write(const ProfRun *runs, int count, FILE *stream) {
    JsonText json;
    fwrite(prof_page_head, 1, prof_page_head_bytes, stream);
    TRY(host_json_open(&json));
    prof_report_json(runs, count, PROF_JSON_PAGE, json.stream);
    TRY(put_data(&json, "profile", stream));
    for (int i = 0; i < count; i++)
        TRY(put_timeline(&runs[i], i, PROF_TIMELINE_SPANS / count + 1, stream));
    fwrite(prof_page_tail, 1, prof_page_tail_bytes, stream);
    return STATUS_OK;
}
