#include "profiler/prof_walk.h"

#include <math.h>
#include <string.h>

static void end_all(const ProfWalk *walk, uint32_t *depth, int64_t time_ns) {
    for (; *depth > 0; --*depth)
        walk->end(walk->self, time_ns);
}

void prof_walk_stream(ProfReader *reader, int stream, const ProfWalk *walk) {
    uint32_t depth = 0;
    int64_t last_ns = 0, end_ns;
    ProfEvent event;
    while (prof_reader_next(reader, stream, &event)) {
        last_ns = event.time_ns;
        if (event.kind == PROF_EVENT_LOST || event.kind == PROF_EVENT_RESYNC) end_all(walk, &depth, last_ns);
        if (event.kind == PROF_EVENT_BEGIN || event.kind == PROF_EVENT_JOIN) {
            walk->begin(walk->self, last_ns, event.name);
            depth++;
        } else if (event.kind == PROF_EVENT_END) {
            if (depth > 0) walk->end(walk->self, last_ns);
            depth -= depth > 0;
        } else {
            walk->other(walk->self, &event);
        }
        for (; event.kind == PROF_EVENT_RESYNC && depth < event.depth; depth++)
            walk->begin(walk->self, last_ns, event.stack[depth]);
    }
    if (prof_reader_end(reader, &end_ns) && end_ns > last_ns) last_ns = end_ns;
    end_all(walk, &depth, last_ns);
}

int64_t prof_process_shift_ns(const ProfProcess *to, const ProfProcess *from) {
    bool is_measured = from->offset_error_ns >= 0 && to->offset_error_ns >= 0;
    double shift_ns = (double)from->offset_ns - (double)to->offset_ns;
    bool is_certain = fabs(shift_ns) > (double)from->offset_error_ns + (double)to->offset_error_ns;
    bool is_same_boot = from->boot_id[0] != '\0' && strcmp(from->boot_id, to->boot_id) == 0;
    if (is_same_boot && !(is_measured && is_certain)) return 0; // a time namespace has a clock of its own
    if (is_measured) return (int64_t)((uint64_t)from->offset_ns - (uint64_t)to->offset_ns);
    uint64_t of_from = (uint64_t)from->start_unix_ns - (uint64_t)from->start_ns;
    return (int64_t)(of_from - (uint64_t)to->start_unix_ns + (uint64_t)to->start_ns);
}
