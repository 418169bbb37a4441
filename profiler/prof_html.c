// A report as one page: profiler/page/, as the build put it together, with the data in it as JSON.
#include "host/page.h"
#include "profiler/prof_report.h"
#include "profiler/prof_timeline.h"

extern const HostPage prof_page; // profiler/page/, by the build

static Status put_timeline(const ProfRun *run, int index, int64_t spans_max, FILE *stream) {
    ProfTimeline timeline;
    JsonText json;
    char id[32];
    TRY(prof_timeline_make(run, spans_max, &timeline));
    Status status = host_json_open(&json);
    if (status == STATUS_OK) {
        prof_timeline_json(&timeline, json.stream);
        snprintf(id, sizeof id, "timeline-%d", index);
        status = host_page_data(&json, id, stream);
    }
    prof_timeline_free(&timeline);
    return status;
}

Status prof_html_write(const ProfRun *runs, int count, FILE *stream) {
    JsonText json;
    host_page_begin(&prof_page, stream);
    TRY(host_json_open(&json));
    prof_report_json(runs, count, PROF_JSON_PAGE, json.stream);
    TRY(host_page_data(&json, "profile", stream));
    for (int i = 0; i < count; i++)
        TRY(put_timeline(&runs[i], i, PROF_TIMELINE_SPANS / count + 1, stream));
    host_page_end(&prof_page, stream);
    return STATUS_OK;
}
