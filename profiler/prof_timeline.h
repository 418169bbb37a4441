// A run's threads and device queues as intervals to draw, a bounded number of them for a trace of any length.
//
// Traces are read stream by stream. As long as the intervals fit, each is there as it was; where they no longer do,
// those that are shorter than a "pixel" are merged with their neighbours of the same lane and depth as far as the whole
// is no longer than a pixel, and the pixel doubles until they fit. A merged interval goes by the name that the longest
// of its parts has. So memory and size are bounded, and nothing that lasts is lost from sight.
//
// Times are nanoseconds on the axis of the run's first trace, from its start.
//
// Ownership: the timeline owns everything until freed. Errors: STATUS_MEMORY, and those of the reader. Thread safety:
// none.
#ifndef SHOAL_PROFILER_PROF_TIMELINE_H
#define SHOAL_PROFILER_PROF_TIMELINE_H

#include "profiler/prof_report.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PROF_TIMELINE_SPANS = 1 << 17, // of a page
    PROF_TIMELINE_LANES = 512,     // of a run; main threads and queues come first
    PROF_TIMELINE_ROWS = 64,       // of a lane
    PROF_TIMELINE_LAUNCHES = 8192, // that are tied to their intervals; one of `launch_stride`
    PROF_TIMELINE_NAMES = 16384,   // what is beyond goes by "(other)"
};

typedef struct ProfSpan {
    int64_t begin_ns, end_ns;
    int64_t busy_ns, longest_ns; // of its parts: sum, and the longest
    uint32_t name, count;        // of the longest part; parts
} ProfSpan;

typedef struct ProfSpanRow {
    ProfSpan *spans; // [count] by time
    int32_t count, capacity;
} ProfSpanRow;

typedef enum ProfLaneKind { PROF_LANE_PHASES, PROF_LANE_THREAD, PROF_LANE_QUEUE } ProfLaneKind;

typedef struct ProfLane {
    ProfLaneKind kind;
    int32_t worker;
    char name[PROF_TEXT_MAX];
    ProfSpanRow *rows; // [row_count] by depth
    int32_t row_count;
} ProfLane;

typedef struct ProfLaneName {
    char text[PROF_TEXT_MAX];
    uint8_t category; // PROF_NO_CATEGORY: none
} ProfLaneName;

// A launch and the first interval that it made.
typedef struct ProfTie {
    int32_t from, to;               // lanes
    int64_t launch_ns, interval_ns; // begin
} ProfTie;

typedef struct ProfTimeline {
    ProfLane *lanes; // [lane_count]
    int32_t lane_count;
    int64_t hidden_lanes; // that found no room
    ProfLaneName *names;  // [name_count]
    int32_t name_count;
    ProfTable name_table;
    ProfTie *ties; // [tie_count]
    int32_t tie_count;
    uint64_t launch_stride;
    int64_t begin_ns, end_ns; // of all there is
    int64_t spans_max, spans, spans_seen;
    int64_t pixel_ns; // 0: nothing was merged
} ProfTimeline;

// At most `spans_max` intervals.
Status prof_timeline_make(const ProfRun *run, int64_t spans_max, ProfTimeline *timeline) HOST_MUST_CHECK;
void prof_timeline_free(ProfTimeline *timeline);

// As JSON; prof_timeline_json.c describes its members.
void prof_timeline_json(const ProfTimeline *timeline, FILE *stream);

// prof_timeline_rows.c: adds an interval to a lane's row and merges where there are too many.
Status prof_timeline_add(ProfTimeline *timeline, ProfLane *lane, int32_t row, ProfSpan span) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
