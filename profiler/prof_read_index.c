// The first pass over a trace: what blocks there are, and what is wrong with the others.
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/json_text.h"
#include "profiler/prof_source.h"

bool prof_source_read(const ProfReader *reader, uint64_t offset, void *bytes, size_t size_bytes) {
    if (offset > reader->size_bytes || reader->size_bytes - offset < size_bytes) return false;
    if (size_bytes == 0) return true;
    if (reader->fd < 0) {
        memcpy(bytes, reader->memory + offset, size_bytes);
        return true;
    }
    uint8_t *at = bytes;
    while (size_bytes > 0) {
        ssize_t done = pread(reader->fd, at, size_bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        offset += (uint64_t)done;
        size_bytes -= (size_t)done;
    }
    return true;
}

// A text of the file: valid UTF-8 without control characters, whatever it was.
static void take_text(ProfBytes *bytes, char text[PROF_TEXT_MAX]) {
    uint64_t length = prof_get_varint(bytes);
    text[0] = '\0';
    if (length > (uint64_t)(bytes->end - bytes->at)) {
        bytes->ok = false;
        return;
    }
    size_t kept = length < PROF_TEXT_MAX - 1 ? (size_t)length : PROF_TEXT_MAX - 1;
    memcpy(text, bytes->at, kept);
    text[kept] = '\0';
    bytes->at += length;
    bool is_valid = strlen(text) == kept && host_json_is_valid(text);
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 32 || c == 127 || (!is_valid && c >= 128)) text[i] = '?';
    }
}

// ---- what blocks hold ----------------------------------------------------------------------------------------------

static void take_member(const json_t *json, const char *key, char text[PROF_TEXT_MAX]) {
    const char *value = json_string_value(json_object_get(json, key));
    uint8_t copy[PROF_VARINT_MAX + 4 * PROF_TEXT_MAX];
    size_t length = value != NULL ? strnlen(value, PROF_TEXT_MAX - 1) : 0;
    uint8_t *end = prof_put_varint(copy, length);
    if (length > 0) memcpy(end, value, length);
    ProfBytes bytes = {copy, end + length, true};
    take_text(&bytes, text);
}

// A number of things: what it says, or 0 where that cannot be.
static int64_t take_count(const json_t *json, const char *key) {
    json_int_t value = json_integer_value(json_object_get(json, key));
    return value >= 0 && value <= PROF_COUNT_MAX ? (int64_t)value : 0;
}

static bool take_process(ProfReader *r, const uint8_t *payload, size_t size_bytes) {
    json_t *json = json_loadb((const char *)payload, size_bytes, 0, NULL);
    const json_t *start = json_object_get(json, "start_ns");
    bool ok = json_is_integer(start) && json_integer_value(start) >= 0 && json_integer_value(start) < INT64_MAX / 2;
    if (ok && !r->has_process) {
        ProfProcess *p = &r->process;
        take_member(json, "tool", p->tool);
        take_member(json, "host", p->host);
        take_member(json, "boot_id", p->boot_id);
        take_member(json, "device", p->device);
        take_member(json, "device_kind", p->device_kind);
        take_member(json, "clock", p->clock);
        take_member(json, "no_device", p->no_device);
        p->pid = json_integer_value(json_object_get(json, "pid"));
        p->rank = json_integer_value(json_object_get(json, "rank"));
        p->workers = json_integer_value(json_object_get(json, "workers"));
        p->devices = take_count(json, "devices");
        p->threads = take_count(json, "threads");
        p->envs = take_count(json, "envs");
        p->start_ns = json_integer_value(start);
        p->start_unix_ns = json_integer_value(json_object_get(json, "start_unix_ns"));
        p->offset_ns = json_integer_value(json_object_get(json, "offset_ns"));
        p->offset_error_ns = json_integer_value(json_object_get(json, "offset_error_ns"));
        r->has_process = true;
    }
    json_decref(json);
    return ok;
}

static ProfCursor *cursor_of(ProfReader *r, uint32_t id) {
    if (r->cursor_of[id] != 0) return r->cursors[r->cursor_of[id] - 1];
    ProfCursor *cursor = calloc(1, sizeof *cursor);
    ProfCursor **cursors = realloc(r->cursors, ((size_t)r->cursor_count + 1) * sizeof(ProfCursor *));
    if (cursors != NULL) r->cursors = cursors;
    if (cursor == NULL || cursors == NULL) {
        free(cursor);
        return NULL;
    }
    cursor->stream = (ProfStream){.id = id, .kind = PROF_STREAM_THREAD};
    snprintf(cursor->stream.name, sizeof cursor->stream.name, "stream %u", id);
    cursor->first = cursor->last = PROF_NO_BLOCK;
    r->cursors[r->cursor_count++] = cursor;
    r->cursor_of[id] = r->cursor_count;
    return cursor;
}

static Status no_memory(const ProfReader *r) { return host_fail(STATUS_MEMORY, "no memory to read %s", r->path); }

static Status take_stream(ProfReader *r, uint32_t id, ProfBytes bytes, bool *ok) {
    ProfStream stream = {.id = id};
    uint64_t kind = prof_get_fixed(&bytes, 1), is_main = prof_get_fixed(&bytes, 1);
    stream.kind = kind == PROF_STREAM_DEVICE ? PROF_STREAM_DEVICE : PROF_STREAM_THREAD;
    stream.is_main = is_main == 1 && kind == PROF_STREAM_THREAD;
    stream.os_id = prof_get_varint(&bytes);
    stream.device = prof_get_varint(&bytes);
    stream.capacity = prof_get_varint(&bytes);
    take_text(&bytes, stream.name);
    *ok = bytes.ok && kind <= PROF_STREAM_DEVICE && is_main <= 1 && id < PROF_STREAMS_MAX;
    if (!*ok) return STATUS_OK;
    ProfCursor *cursor = cursor_of(r, id);
    if (cursor == NULL) return no_memory(r);
    cursor->stream = stream;
    return STATUS_OK;
}

static Status take_names(ProfReader *r, ProfBytes bytes, bool *ok) {
    while (*ok && bytes.at < bytes.end) {
        ProfName name;
        memset(&name, 0, sizeof name);
        uint64_t number = prof_get_varint(&bytes);
        name.category = (uint8_t)prof_get_fixed(&bytes, 1);
        name.layer = (uint8_t)prof_get_fixed(&bytes, 1);
        take_text(&bytes, name.text);
        *ok = bytes.ok && number < PROF_NAMES_MAX && name.layer < PROF_LAYERS &&
              (name.category < HOST_TRACE_CATEGORIES || name.category == PROF_CATEGORY_ENCLOSING);
        if (!*ok) return STATUS_OK;
        if (number >= r->name_count) {
            ProfName *names = realloc(r->names, ((size_t)number + 1) * sizeof *names);
            if (names == NULL) return no_memory(r);
            r->names = names;
            memset(names + r->name_count, 0, ((size_t)number + 1 - r->name_count) * sizeof *names);
            r->name_count = (uint32_t)number + 1;
        }
        if (name.text[0] == '\0') snprintf(name.text, sizeof name.text, "(no name)");
        r->names[number] = name;
    }
    return STATUS_OK;
}

static Status take_events(ProfReader *r, const ProfBlock *block, uint64_t offset, const uint8_t *payload) {
    bool is_damaged = payload == NULL || block->payload_bytes < 9;
    if (block->stream >= PROF_STREAMS_MAX) return STATUS_OK;
    ProfCursor *cursor = cursor_of(r, block->stream);
    if (r->block_count == r->block_capacity) {
        int64_t capacity = r->block_capacity > 0 ? 2 * r->block_capacity : 256;
        ProfIndexed *blocks = realloc(r->blocks, (size_t)capacity * sizeof *blocks);
        if (blocks == NULL) return no_memory(r);
        r->blocks = blocks;
        r->block_capacity = capacity;
    }
    if (cursor == NULL) return no_memory(r);
    int64_t at = r->block_count++;
    r->blocks[at] =
        (ProfIndexed){offset, block->payload_bytes, block->events, block->sequence, is_damaged, PROF_NO_BLOCK};
    if (cursor->last != PROF_NO_BLOCK) {
        r->blocks[cursor->last].next = at;
    } else {
        cursor->first = at;
    }
    cursor->last = at;
    if (is_damaged) return STATUS_OK;
    uint64_t first_ns = prof_fixed_at(payload, 8);
    if (first_ns < (uint64_t)r->first_ns) r->first_ns = (int64_t)first_ns;
    return STATUS_OK;
}

static void take_clock(ProfReader *r, ProfBytes bytes, bool *ok) {
    ProfClockPair pair = {(int64_t)prof_get_fixed(&bytes, 8), (int64_t)prof_get_fixed(&bytes, 8)};
    *ok = bytes.ok;
    if (!*ok) return;
    r->clock[r->clock_count > 0] = pair;
    if (r->clock_count < 2) r->clock_count++;
}

static void take_end(ProfReader *r, ProfBytes bytes, bool *ok) {
    uint64_t end_ns = prof_get_fixed(&bytes, 8);
    *ok = bytes.ok && end_ns < (uint64_t)INT64_MAX;
    if (!*ok) return;
    r->has_end = true;
    r->end_ns = (int64_t)end_ns;
    (void)prof_get_varint(&bytes); // events, and those that were dropped, are counted where they are
    (void)prof_get_varint(&bytes);
    uint64_t env_steps = prof_get_varint(&bytes); // older traces have none
    if (bytes.ok && env_steps <= PROF_COUNT_MAX) r->process.env_steps = (int64_t)env_steps;
}

static Status take_block(ProfReader *r, const ProfBlock *block, uint64_t offset, const uint8_t *payload, bool *ok) {
    ProfBytes bytes = {payload, payload + block->payload_bytes, true};
    *ok = true;
    switch (block->type) {
    case PROF_BLOCK_PROCESS:
        *ok = take_process(r, payload, block->payload_bytes);
        return STATUS_OK;
    case PROF_BLOCK_STREAM:
        return take_stream(r, block->stream, bytes, ok);
    case PROF_BLOCK_NAMES:
        return take_names(r, bytes, ok);
    case PROF_BLOCK_EVENTS:
        *ok = block->stream < PROF_STREAMS_MAX && block->payload_bytes >= 9;
        return take_events(r, block, offset, payload);
    case PROF_BLOCK_CLOCK:
        take_clock(r, bytes, ok);
        return STATUS_OK;
    case PROF_BLOCK_END:
        take_end(r, bytes, ok);
        return STATUS_OK;
    default:
        r->damage.foreign_blocks++;
        return STATUS_OK;
    }
}

// ---- the pass ------------------------------------------------------------------------------------------------------

// The next offset from `from` on at which there is a block's header; the size of the file if there is none.
static uint64_t find_header(const ProfReader *r, uint64_t from) {
    enum { WINDOW = 1 << 16 };
    uint8_t window[WINDOW + PROF_HEADER_BYTES];
    while (from < r->size_bytes && r->size_bytes - from >= PROF_HEADER_BYTES) {
        uint64_t left = r->size_bytes - from;
        size_t size = left < sizeof window ? (size_t)left : sizeof window;
        if (!prof_source_read(r, from, window, size)) break;
        for (size_t i = 0; i + PROF_HEADER_BYTES <= size; i++) {
            ProfBlock block;
            if (window[i] == (PROF_MAGIC & 255) && prof_get_header(window + i, &block)) return from + i;
        }
        from += size - PROF_HEADER_BYTES + 1;
    }
    return r->size_bytes;
}

static Status index_block(ProfReader *r, const ProfBlock *block, uint64_t offset, uint8_t *payload) {
    bool ok = false;
    Status status = STATUS_OK;
    if (prof_source_read(r, offset, payload, block->payload_bytes) &&
        prof_hash(payload, block->payload_bytes) == block->payload_hash) {
        status = take_block(r, block, offset, payload, &ok);
    } else if (block->type == PROF_BLOCK_EVENTS) {
        status = take_events(r, block, offset, NULL);
    }
    if (!ok) r->damage.damaged_blocks++;
    if (!ok) r->damage.lost_events += block->events;
    return status;
}

static Status index_blocks(ProfReader *r, uint8_t *payload, int *other_version, int64_t *known) {
    for (uint64_t at = 0; at < r->size_bytes;) {
        uint8_t header[PROF_HEADER_BYTES];
        ProfBlock block;
        if (!prof_source_read(r, at, header, sizeof header) || !prof_get_header(header, &block)) {
            uint64_t next = find_header(r, at + 1);
            r->damage.skipped_bytes += next - at;
            at = next;
            continue;
        }
        uint64_t offset = at + PROF_HEADER_BYTES;
        at = offset + block.payload_bytes;
        if (block.version < PROF_VERSION_FIRST || block.version > PROF_VERSION) {
            r->damage.foreign_blocks++;
            *other_version = block.version;
        } else if (at > r->size_bytes) {
            r->damage.lost_events += block.events;
            at = r->size_bytes;
        } else {
            ++*known;
            TRY(index_block(r, &block, offset, payload));
        }
    }
    return STATUS_OK;
}

static int compare_ids(const void *a, const void *b) {
    uint32_t x = (*(ProfCursor *const *)a)->stream.id, y = (*(ProfCursor *const *)b)->stream.id;
    return (x > y) - (x < y);
}

Status prof_source_index(ProfReader *r) {
    r->first_ns = INT64_MAX;
    r->cursor_of = calloc(PROF_STREAMS_MAX, sizeof *r->cursor_of);
    uint8_t *payload = malloc(PROF_PAYLOAD_MAX);
    int other_version = 0;
    int64_t known = 0;
    Status status =
        r->cursor_of == NULL || payload == NULL ? no_memory(r) : index_blocks(r, payload, &other_version, &known);
    free(payload);
    TRY(status);
    if (known == 0 && other_version != 0) {
        return host_fail(STATUS_CORRUPT, "%s: a trace of version %d; this program reads versions %d to %d", r->path,
                         other_version, PROF_VERSION_FIRST, PROF_VERSION);
    }
    if (known == 0) {
        return host_fail(STATUS_CORRUPT, "%s: no trace: %s", r->path,
                         r->size_bytes == 0 ? "it is empty" : "there is no whole block in it");
    }
    if (r->cursor_count > 0) qsort(r->cursors, (size_t)r->cursor_count, sizeof(ProfCursor *), compare_ids);
    if (!r->has_process) r->process.start_ns = r->first_ns < INT64_MAX / 2 ? r->first_ns : 0;
    r->damage.has_no_process = !r->has_process;
    if (r->has_end && (r->end_ns < r->process.start_ns || r->end_ns - r->process.start_ns > PROF_SPAN_MAX_NS)) {
        r->has_end = false;
    }
    r->damage.is_cut = !r->has_end;
    return STATUS_OK;
}
