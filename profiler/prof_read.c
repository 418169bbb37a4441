#include "profiler/prof_read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/prof_source.h"

// NULL: no memory.
static ProfReader *make_reader(const char *name) {
    ProfReader *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->fd = -1;
    snprintf(made->path, sizeof made->path, "%s", name);
    return made;
}

static Status index_or_close(ProfReader *made, ProfReader **reader) {
    Status status = prof_source_index(made);
    if (status != STATUS_OK) {
        prof_reader_close(made);
        return status;
    }
    made->indexed = made->damage;
    prof_reader_rewind(made);
    *reader = made;
    return STATUS_OK;
}

Status prof_reader_open_memory(const void *bytes, size_t size_bytes, const char *name, ProfReader **reader) {
    ProfReader *made = make_reader(name);
    if (made == NULL) return host_fail(STATUS_MEMORY, "no memory to read %s", name);
    made->memory = bytes;
    made->size_bytes = size_bytes;
    return index_or_close(made, reader);
}

static Status open_file(ProfReader *r) {
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe would wait for its other end
    if (r->fd < 0) return host_fail(STATUS_IO, "cannot open %s: %s", r->path, strerror(errno));
    struct stat info;
    if (fstat(r->fd, &info) != 0) return host_fail(STATUS_IO, "cannot read %s: %s", r->path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return host_fail(STATUS_IO, "cannot read %s: it is no regular file", r->path);
    r->size_bytes = (uint64_t)info.st_size;
    return STATUS_OK;
}

Status prof_reader_open(const char *path, ProfReader **reader) {
    ProfReader *made = make_reader(path);
    if (made == NULL) return host_fail(STATUS_MEMORY, "no memory to read %s", path);
    Status status = open_file(made);
    if (status != STATUS_OK) {
        prof_reader_close(made);
        return status;
    }
    return index_or_close(made, reader);
}

void prof_reader_close(ProfReader *r) {
    if (r == NULL) return;
    if (r->fd >= 0) close(r->fd);
    for (int i = 0; i < r->cursor_count; i++) {
        free(r->cursors[i]->payload);
        free(r->cursors[i]);
    }
    free(r->cursors);
    free(r->cursor_of);
    free(r->names);
    free(r->blocks);
    free(r);
}

void prof_reader_rewind(ProfReader *r) {
    r->damage = r->indexed;
    for (int i = 0; i < r->cursor_count; i++) {
        ProfCursor *c = r->cursors[i];
        c->next = c->first;
        c->expected = 0;
        c->is_started = c->is_lost = c->wants_resync = false;
        c->time_ns = c->raw_ns = 0;
        c->left = 0;
    }
}

const char *prof_reader_path(const ProfReader *r) { return r->path; }
const ProfProcess *prof_reader_process(const ProfReader *r) { return &r->process; }
const ProfDamage *prof_reader_damage(const ProfReader *r) { return &r->damage; }
int prof_reader_stream_count(const ProfReader *r) { return r->cursor_count; }
const ProfStream *prof_reader_stream(const ProfReader *r, int index) { return &r->cursors[index]->stream; }

bool prof_reader_is_whole(const ProfReader *r) {
    const ProfDamage *d = &r->damage;
    return !d->is_cut && !d->has_no_process && d->damaged_blocks == 0 && d->lost_events == 0 &&
           d->missing_blocks == 0 && d->skipped_bytes == 0 && d->foreign_blocks == 0 && d->backward_clocks == 0;
}

uint32_t prof_reader_name_count(const ProfReader *r) { return r->name_count; }

const ProfName *prof_reader_name(const ProfReader *r, uint32_t number) {
    return number < r->name_count && r->names[number].text[0] != '\0' ? &r->names[number] : NULL;
}

bool prof_reader_end(const ProfReader *r, int64_t *end_ns) {
    if (r->has_end) *end_ns = r->end_ns;
    return r->has_end;
}

int prof_reader_clocks(const ProfReader *r, ProfClockPair pair[2]) {
    memcpy(pair, r->clock, sizeof r->clock);
    return r->clock_count;
}

// ---- events --------------------------------------------------------------------------------------------------------

static bool get_duration(ProfBytes *bytes, int64_t *ns) {
    uint64_t duration = prof_get_varint(bytes);
    *ns = (int64_t)duration;
    return bytes->ok && duration <= (uint64_t)PROF_SPAN_MAX_NS;
}

static bool get_interval(ProfBytes *bytes, ProfEvent *event) {
    bool is_sound = get_duration(bytes, &event->duration_ns);
    event->correlation = prof_get_varint(bytes);
    event->node = prof_get_varint(bytes);
    uint64_t work = prof_get_fixed(bytes, 1), name = prof_get_varint(bytes);
    event->threads = prof_get_varint(bytes);
    event->work = (ProfDeviceWork)work;
    event->name = (uint32_t)name;
    return is_sound && work < PROF_DEVICE_WORKS && name < PROF_NAMES_MAX;
}

static bool get_split(ProfBytes *bytes, ProfEvent *event) {
    uint64_t mask = prof_get_fixed(bytes, 1);
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        event->weight[c] = mask >> c & 1 ? prof_get_varint(bytes) : 0;
        if (event->weight[c] > UINT64_C(1) << 56) return false;
    }
    return mask >> HOST_TRACE_CATEGORIES == 0;
}

static bool get_stretch(ProfBytes *bytes, ProfEvent *event) {
    uint64_t is_plain = prof_get_fixed(bytes, 1);
    event->is_plain = is_plain == 1;
    event->count = prof_get_varint(bytes);
    bool is_sound = get_duration(bytes, &event->duration_ns) && get_duration(bytes, &event->processor_ns);
    event->pauses = prof_get_varint(bytes);
    return is_sound && is_plain <= 1;
}

static bool get_phase(ProfBytes *bytes, ProfEvent *event) {
    uint64_t phase = prof_get_varint(bytes);
    event->phase = (HostTracePhase)phase;
    return phase < HOST_TRACE_PHASES;
}

static bool get_wait(ProfBytes *bytes, ProfEvent *event) {
    bool is_sound = get_duration(bytes, &event->duration_ns);
    event->correlation = prof_get_varint(bytes);
    uint64_t name = prof_get_varint(bytes);
    event->name = (uint32_t)name;
    return is_sound && name < PROF_NAMES_MAX;
}

// u8 which one, varint count, varint correlation.
static bool get_counted(ProfBytes *bytes, ProfEvent *event, uint64_t *which) {
    *which = prof_get_fixed(bytes, 1);
    event->count = prof_get_varint(bytes);
    event->correlation = prof_get_varint(bytes);
    return event->kind == PROF_EVENT_ID || event->count <= INT64_MAX;
}

static bool get_note(ProfBytes *bytes, ProfEvent *event) {
    uint64_t which = 0;
    bool is_sound;
    switch (event->kind) {
    case PROF_EVENT_PHASE:
        return get_phase(bytes, event);
    case PROF_EVENT_CALL:
        event->correlation = prof_get_varint(bytes);
        return true;
    case PROF_EVENT_STRETCH:
        return get_stretch(bytes, event);
    case PROF_EVENT_READER:
        return get_duration(bytes, &event->processor_ns);
    case PROF_EVENT_WAIT:
        return get_wait(bytes, event);
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_RELEASE:
        is_sound = get_counted(bytes, event, &which);
        event->memory = (ProfMemory)which;
        return is_sound && which < PROF_MEMORIES;
    case PROF_EVENT_POOL:
        is_sound = get_counted(bytes, event, &which);
        event->change = (ProfPoolChange)which;
        return is_sound && which < PROF_POOL_CHANGES;
    case PROF_EVENT_ID:
        is_sound = get_counted(bytes, event, &which);
        event->id_kind = (uint8_t)which;
        return is_sound;
    default:
        event->count = prof_get_varint(bytes);
        return event->kind != PROF_EVENT_BUSY || event->count <= 100;
    }
}

// Events of codes that are not known stay PROF_EVENT_OTHER.
static bool get_other(const ProfCursor *c, ProfBytes *bytes, ProfEvent *event) {
    uint64_t code = prof_get_fixed(bytes, 1), length = prof_get_varint(bytes);
    if (length > (uint64_t)(bytes->end - bytes->at)) return false;
    ProfBytes content = {bytes->at, bytes->at + length, true};
    bytes->at += length;
    event->kind = prof_kind_of_code(code);
    if (event->kind == PROF_EVENT_OTHER) return true;
    bool is_threads = event->kind == PROF_EVENT_STRETCH || event->kind == PROF_EVENT_CALL;
    bool is_queues = event->kind == PROF_EVENT_BUSY || event->kind == PROF_EVENT_MEMORY ||
                     event->kind == PROF_EVENT_OVERHEAD || event->kind >= PROF_EVENT_WAIT;
    bool is_thread = c->stream.kind == PROF_STREAM_THREAD;
    return get_note(&content, event) && content.ok && !(is_thread ? is_queues : is_threads);
}

static bool get_content(const ProfCursor *c, ProfBytes *bytes, ProfEvent *event) {
    uint64_t name = 0, stream = 0;
    bool is_thread = c->stream.kind == PROF_STREAM_THREAD;
    switch (event->kind) {
    case PROF_EVENT_END:
        return is_thread;
    case PROF_EVENT_BEGIN:
    case PROF_EVENT_JOIN:
        name = prof_get_varint(bytes);
        if (event->kind == PROF_EVENT_JOIN) stream = prof_get_varint(bytes);
        event->name = (uint32_t)name;
        event->stream = (uint32_t)stream;
        return is_thread && name < PROF_NAMES_MAX && stream < PROF_STREAMS_MAX;
    case PROF_EVENT_LAUNCH:
        event->correlation = prof_get_varint(bytes);
        return is_thread;
    case PROF_EVENT_INTERVAL:
        return get_interval(bytes, event) && !is_thread;
    case PROF_EVENT_SPLIT:
        return get_split(bytes, event) && is_thread;
    case PROF_EVENT_CAPTURE:
        event->node = prof_get_varint(bytes);
        return is_thread;
    default:
        return get_other(c, bytes, event);
    }
}

static bool decode(const ProfReader *r, ProfCursor *c, ProfEvent *event) {
    uint64_t head = prof_get_varint(&c->bytes);
    uint64_t limit = (uint64_t)(r->process.start_ns + PROF_SPAN_MAX_NS - c->raw_ns);
    event->kind = (ProfEventKind)(head & 7);
    if (head >> 3 > limit) return false;
    if (!get_content(c, &c->bytes, event) || !c->bytes.ok) return false;
    c->raw_ns += (int64_t)(head >> 3);
    if (c->raw_ns > c->time_ns) c->time_ns = c->raw_ns;
    event->time_ns = c->time_ns;
    return true;
}

// Reads a block and what stands before its events.
static bool load_block(ProfReader *r, ProfCursor *c, const ProfIndexed *block) {
    if (block->payload_bytes > c->payload_bytes) {
        uint8_t *payload = realloc(c->payload, block->payload_bytes);
        if (payload == NULL) return false;
        c->payload = payload;
        c->payload_bytes = block->payload_bytes;
    }
    if (!prof_source_read(r, block->offset, c->payload, block->payload_bytes)) return false;
    c->bytes = (ProfBytes){c->payload, c->payload + block->payload_bytes, true};
    uint64_t base_ns = prof_get_fixed(&c->bytes, 8), depth = prof_get_varint(&c->bytes);
    if (!c->bytes.ok || depth > PROF_DEPTH_MAX) return false;
    if (base_ns > (uint64_t)(r->process.start_ns + PROF_SPAN_MAX_NS)) return false;
    for (uint64_t i = 0; i < depth; i++) {
        uint64_t name = prof_get_varint(&c->bytes);
        if (!c->bytes.ok || name >= PROF_NAMES_MAX) return false;
        c->stack[i] = (uint32_t)name;
    }
    c->depth = (uint32_t)depth;
    c->left = block->events;
    c->raw_ns = (int64_t)base_ns;
    if (c->is_started && c->raw_ns < c->time_ns) r->damage.backward_clocks++;
    if (c->raw_ns > c->time_ns) c->time_ns = c->raw_ns;
    return true;
}

// Goes on to the next block that can be read. False at the stream's end.
static bool next_block(ProfReader *r, ProfCursor *c) {
    while (c->next != PROF_NO_BLOCK) {
        const ProfIndexed *block = &r->blocks[c->next];
        c->next = block->next;
        bool is_next = block->sequence == c->expected;
        if (!is_next && block->sequence > c->expected) {
            r->damage.missing_blocks += block->sequence - c->expected;
            c->wants_resync = true;
        } else if (!is_next) { // a copy of one that was read
            r->damage.damaged_blocks++;
            r->damage.lost_events += block->events;
            continue;
        }
        c->expected = block->sequence + 1;
        if (!block->is_damaged && load_block(r, c, block)) return true;
        if (!block->is_damaged) r->damage.damaged_blocks++, r->damage.lost_events += block->events;
        c->wants_resync = true;
    }
    return false;
}

bool prof_reader_next(ProfReader *r, int stream, ProfEvent *event) {
    ProfCursor *c = r->cursors[stream];
    for (;;) {
        int64_t last_ns = c->time_ns;
        if (c->left == 0 && !c->wants_resync && !next_block(r, c)) {
            // What was lost at the end.
            if (!c->wants_resync || !c->is_started || c->is_lost) return false;
        }
        if (c->wants_resync && c->is_started && !c->is_lost) { // the loss begins where the last event was
            c->is_lost = true;
            *event = (ProfEvent){.kind = PROF_EVENT_LOST, .time_ns = last_ns};
            return true;
        }
        if (c->left == 0 && !next_block(r, c)) return false;
        if (c->wants_resync) {
            c->wants_resync = c->is_lost = false;
            c->is_started = true;
            *event =
                (ProfEvent){.kind = PROF_EVENT_RESYNC, .time_ns = c->time_ns, .depth = c->depth, .stack = c->stack};
            return true;
        }
        c->left--;
        c->is_started = true;
        if (decode(r, c, event)) {
            if (event->kind == PROF_EVENT_OTHER) continue;
            return true;
        }
        r->damage.damaged_blocks++;
        r->damage.lost_events += (uint64_t)c->left + 1;
        c->left = 0;
        c->wants_resync = true;
    }
}

void prof_damage_print(const ProfDamage *d, const char *prefix, FILE *stream) {
    if (d->is_cut) fprintf(stream, "%sthe trace was cut off: it is analysed up to its last event\n", prefix);
    if (d->has_no_process) fprintf(stream, "%sthe description of the process is lost\n", prefix);
    if (d->damaged_blocks + d->missing_blocks + d->lost_events > 0) {
        fprintf(stream, "%slost: %" PRIu64 " damaged blocks, %" PRIu64 " missing ones, at least %" PRIu64 " events\n",
                prefix, d->damaged_blocks, d->missing_blocks, d->lost_events);
    }
    if (d->skipped_bytes > 0) {
        fprintf(stream, "%s%" PRIu64 " bytes belong to no block\n", prefix, d->skipped_bytes);
    }
    if (d->foreign_blocks > 0) {
        fprintf(stream, "%s%" PRIu64 " blocks are of another version or an unknown type\n", prefix, d->foreign_blocks);
    }
    if (d->backward_clocks > 0) {
        fprintf(stream, "%sclocks ran backwards %" PRIu64 " times: such times count as the last one before\n", prefix,
                d->backward_clocks);
    }
}
