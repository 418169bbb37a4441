#include "profiler/prof_write.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"
#include "profiler/prof_format.h"

// A block is written when less than an event's largest size is free. Small: it is what a kill loses.
enum { PAYLOAD_BYTES = 64 << 10, EVENT_BYTES_MAX = 128, GIVE_BACK_BYTES = 1 << 20 };

typedef struct StreamState {
    bool known;
    uint32_t sequence; // of its next block
    uint32_t depth;    // of open scopes; those beyond PROF_DEPTH_MAX are not in `stack`
    uint32_t *stack;   // [PROF_DEPTH_MAX] names
} StreamState;

struct ProfWriter {
    int fd;
    Status status; // of the first failure
    char message[512];
    char path[HOST_PATH_MAX];

    ProfName *names;
    uint32_t name_count, name_capacity;
    uint32_t *slots; // [slot_count] number + 1 of a name, by its hash; 0: free
    uint32_t slot_count;

    StreamState *streams; // [PROF_STREAMS_MAX]
    uint64_t events, dropped, env_steps;

    // The block under way.
    uint32_t stream, count; // PROF_STREAMS_MAX: none
    int64_t last_ns;
    uint8_t *at;
    uint8_t block[PROF_HEADER_BYTES + PAYLOAD_BYTES];
};

static void fail(ProfWriter *w, Status status) {
    if (w->status != STATUS_OK) return;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%.*s", (int)sizeof w->message - 1, host_message());
}

// A trace that found no space leaves some for the run's own files, which may be beside it.
static void give_back(const ProfWriter *w, int error) {
    if (error != ENOSPC && error != EDQUOT && error != EFBIG) return;
    const off_t size = lseek(w->fd, 0, SEEK_END), back = size / 4 < GIVE_BACK_BYTES ? size / 4 : GIVE_BACK_BYTES;
    if (size > 0 && ftruncate(w->fd, size - back) != 0) return; // it is cut off in any case
}

static void write_all(ProfWriter *w, const uint8_t *data, size_t size_bytes) {
    while (w->status == STATUS_OK && size_bytes > 0) {
        ssize_t done = write(w->fd, data, size_bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            const int error = done < 0 ? errno : ENOSPC;
            fail(w, host_fail(STATUS_IO, "cannot write %s: %s", w->path, strerror(error)));
            give_back(w, error);
            return;
        }
        data += done;
        size_bytes -= (size_t)done;
    }
}

// Writes a block whose payload follows its header's place in `block`.
static void write_block(ProfWriter *w, uint8_t *block, ProfBlockType type, size_t payload_bytes, uint32_t stream,
                        uint32_t sequence, uint32_t events) {
    ProfBlock header = {.version = PROF_VERSION,
                        .type = (uint16_t)type,
                        .payload_bytes = (uint32_t)payload_bytes,
                        .events = events,
                        .stream = stream,
                        .sequence = sequence,
                        .payload_hash = prof_hash(block + PROF_HEADER_BYTES, payload_bytes)};
    prof_put_header(block, &header);
    write_all(w, block, PROF_HEADER_BYTES + payload_bytes);
}

static uint8_t *put_text(uint8_t *at, const char *text) {
    at = prof_put_varint(at, strlen(text));
    while (*text != '\0')
        *at++ = (uint8_t)*text++;
    return at;
}

static void write_process(ProfWriter *w, const ProfProcess *p) {
    json_t *json = json_pack("{ss ss ss ss ss ss ss sI sI sI sI sI sI sI sI sI sI}", "tool", p->tool, "host", p->host,
                             "boot_id", p->boot_id, "device", p->device, "device_kind", p->device_kind, "clock",
                             p->clock, "no_device", p->no_device, "pid", (json_int_t)p->pid, "rank",
                             (json_int_t)p->rank, "workers", (json_int_t)p->workers, "devices", (json_int_t)p->devices,
                             "threads", (json_int_t)p->threads, "envs", (json_int_t)p->envs, "start_ns",
                             (json_int_t)p->start_ns, "start_unix_ns", (json_int_t)p->start_unix_ns, "offset_ns",
                             (json_int_t)p->offset_ns, "offset_error_ns", (json_int_t)p->offset_error_ns);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL) {
        fail(w, host_fail(STATUS_MEMORY, "%s: the process cannot be described (not UTF-8?)", w->path));
        return;
    }
    size_t length = strlen(text);
    memcpy(w->block + PROF_HEADER_BYTES, text, length);
    free(text);
    write_block(w, w->block, PROF_BLOCK_PROCESS, length, 0, 0, 0);
}

static Status open_parts(ProfWriter *w, const char *path, const ProfProcess *process) {
    if ((size_t)snprintf(w->path, sizeof w->path, "%s", path) >= sizeof w->path) {
        return host_fail(STATUS_USAGE, "the path of the trace is too long");
    }
    w->streams = calloc(PROF_STREAMS_MAX, sizeof *w->streams);
    if (w->streams == NULL) return host_fail(STATUS_MEMORY, "no memory for a trace");
    w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->fd < 0) return host_fail(STATUS_IO, "cannot make %s: %s", path, strerror(errno));
    write_process(w, process);
    return w->status;
}

Status prof_writer_open(const char *path, const ProfProcess *process, ProfWriter **writer) {
    ProfWriter *w = calloc(1, sizeof *w);
    if (w == NULL) return host_fail(STATUS_MEMORY, "no memory for a trace");
    w->fd = -1;
    w->stream = PROF_STREAMS_MAX;
    Status status = open_parts(w, path, process);
    if (status != STATUS_OK) {
        if (w->fd >= 0) unlink(path); // nobody could read it
        prof_writer_abandon(w);
        return status;
    }
    *writer = w;
    return STATUS_OK;
}

bool prof_writer_failed(const ProfWriter *writer) { return writer->status != STATUS_OK; }

void prof_writer_stream(ProfWriter *w, const ProfStream *stream) {
    StreamState *state = &w->streams[stream->id];
    if (!state->known) state->stack = calloc(PROF_DEPTH_MAX, sizeof *state->stack);
    if (state->stack == NULL) {
        fail(w, host_fail(STATUS_MEMORY, "no memory for a trace"));
        return;
    }
    state->known = true;
    uint8_t block[PROF_HEADER_BYTES + 4 * PROF_VARINT_MAX + 2 + PROF_VARINT_MAX + PROF_TEXT_MAX];
    uint8_t *payload = block + PROF_HEADER_BYTES, *at = payload;
    *at++ = (uint8_t)stream->kind;
    *at++ = stream->is_main;
    at = prof_put_varint(at, stream->os_id);
    at = prof_put_varint(at, stream->device);
    at = prof_put_varint(at, stream->capacity);
    at = put_text(at, stream->name);
    write_block(w, block, PROF_BLOCK_STREAM, (size_t)(at - payload), stream->id, 0, 0);
}

// ---- names ---------------------------------------------------------------------------------------------------------

static uint32_t name_hash(const ProfName *name) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, name, sizeof *name);
    return (uint32_t)(hash.state ^ (hash.state >> 32));
}

static void put_slot(ProfWriter *w, uint32_t number) {
    uint32_t slot = name_hash(&w->names[number]) & (w->slot_count - 1);
    while (w->slots[slot] != 0)
        slot = (slot + 1) & (w->slot_count - 1);
    w->slots[slot] = number + 1;
}

static bool grow_names(ProfWriter *w) {
    uint32_t capacity = w->name_capacity > 0 ? 2 * w->name_capacity : 64;
    ProfName *names = realloc(w->names, capacity * sizeof *names);
    if (names != NULL) w->names = names;
    uint32_t *slots = calloc((size_t)2 * capacity, sizeof *slots);
    if (names == NULL || slots == NULL) {
        free(slots);
        fail(w, host_fail(STATUS_MEMORY, "no memory for the names of a trace"));
        return false;
    }
    free(w->slots);
    w->slots = slots;
    w->slot_count = 2 * capacity;
    w->name_capacity = capacity;
    for (uint32_t i = 0; i < w->name_count; i++)
        put_slot(w, i);
    return true;
}

static void write_name(ProfWriter *w, uint32_t number) {
    const ProfName *name = &w->names[number];
    uint8_t block[PROF_HEADER_BYTES + 3 * PROF_VARINT_MAX + 2 + PROF_TEXT_MAX];
    uint8_t *payload = block + PROF_HEADER_BYTES, *at = prof_put_varint(payload, number);
    *at++ = name->category;
    *at++ = name->layer;
    at = put_text(at, name->text);
    write_block(w, block, PROF_BLOCK_NAMES, (size_t)(at - payload), 0, number, 0);
}

uint32_t prof_writer_name(ProfWriter *w, int category, ProfLayer layer, const char *text) {
    ProfName name;
    memset(&name, 0, sizeof name); // hashed and compared as bytes
    name.category = (uint8_t)category;
    name.layer = (uint8_t)layer;
    snprintf(name.text, sizeof name.text, "%s", text);
    for (uint32_t slot = name_hash(&name), i = 0; i < w->slot_count; i++, slot++) {
        uint32_t number = w->slots[slot & (w->slot_count - 1)];
        if (number == 0) break;
        if (memcmp(&w->names[number - 1], &name, sizeof name) == 0) return number - 1;
    }
    if (w->name_count == PROF_NAMES_MAX) return PROF_NAMES_MAX - 1;
    if (w->name_count == w->name_capacity && !grow_names(w)) return 0;
    w->names[w->name_count] = name;
    put_slot(w, w->name_count);
    write_name(w, w->name_count);
    return w->name_count++;
}

// ---- events --------------------------------------------------------------------------------------------------------

void prof_writer_flush(ProfWriter *w) {
    if (w->stream == PROF_STREAMS_MAX) return;
    if (w->count > 0) {
        write_block(w, w->block, PROF_BLOCK_EVENTS, (size_t)(w->at - w->block) - PROF_HEADER_BYTES, w->stream,
                    w->streams[w->stream].sequence++, w->count);
        w->events += w->count;
    }
    w->stream = PROF_STREAMS_MAX;
}

static void begin_block(ProfWriter *w, uint32_t stream, int64_t time_ns) {
    const StreamState *state = &w->streams[stream];
    uint32_t depth = state->depth < PROF_DEPTH_MAX ? state->depth : PROF_DEPTH_MAX;
    w->stream = stream;
    w->count = 0;
    w->last_ns = time_ns;
    w->at = prof_put_fixed(w->block + PROF_HEADER_BYTES, (uint64_t)time_ns, 8);
    w->at = prof_put_varint(w->at, depth);
    for (uint32_t i = 0; i < depth; i++)
        w->at = prof_put_varint(w->at, state->stack[i]);
}

static void follow_scopes(StreamState *state, const ProfEvent *event) {
    if (event->kind == PROF_EVENT_END) {
        state->depth -= state->depth > 0;
    } else if (event->kind == PROF_EVENT_BEGIN || event->kind == PROF_EVENT_JOIN) {
        if (state->depth < PROF_DEPTH_MAX) state->stack[state->depth] = event->name;
        state->depth++;
    }
}

static uint8_t *put_interval(uint8_t *at, const ProfEvent *event) {
    at = prof_put_varint(at, (uint64_t)event->duration_ns);
    at = prof_put_varint(at, event->correlation);
    at = prof_put_varint(at, event->node);
    *at++ = (uint8_t)event->work;
    at = prof_put_varint(at, event->name);
    return prof_put_varint(at, event->threads);
}

static uint8_t *put_split(uint8_t *at, const ProfEvent *event) {
    uint8_t *mask = at++;
    *mask = 0;
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        if (event->weight[c] == 0) continue;
        *mask |= (uint8_t)(1 << c);
        at = prof_put_varint(at, event->weight[c]);
    }
    return at;
}

// What comes behind an OTHER's code and length.
static uint8_t *put_note(uint8_t *at, const ProfEvent *event) {
    switch (event->kind) {
    case PROF_EVENT_PHASE:
        return prof_put_varint(at, (uint64_t)event->phase);
    case PROF_EVENT_CALL:
        return prof_put_varint(at, event->correlation);
    case PROF_EVENT_STRETCH:
        *at++ = event->is_plain;
        at = prof_put_varint(prof_put_varint(at, event->count), (uint64_t)event->duration_ns);
        return prof_put_varint(prof_put_varint(at, (uint64_t)event->processor_ns), event->pauses);
    case PROF_EVENT_READER:
        return prof_put_varint(at, (uint64_t)event->processor_ns);
    case PROF_EVENT_WAIT:
        at = prof_put_varint(prof_put_varint(at, (uint64_t)event->duration_ns), event->correlation);
        return prof_put_varint(at, event->name);
    case PROF_EVENT_ALLOC:
    case PROF_EVENT_RELEASE:
    case PROF_EVENT_POOL:
    case PROF_EVENT_ID:
        *at++ = event->kind == PROF_EVENT_POOL ? (uint8_t)event->change
                : event->kind == PROF_EVENT_ID ? event->id_kind
                                               : (uint8_t)event->memory;
        return prof_put_varint(prof_put_varint(at, event->count), event->correlation);
    default:
        return prof_put_varint(at, event->count);
    }
}

static uint8_t *put_other(ProfWriter *w, uint8_t *at, const ProfEvent *event) {
    uint8_t bytes[1 + 4 * PROF_VARINT_MAX];
    size_t length = (size_t)(put_note(bytes, event) - bytes);
    if (event->kind == PROF_EVENT_DROPPED) w->dropped += event->count;
    *at++ = prof_code_of_kind(event->kind);
    at = prof_put_varint(at, length);
    memcpy(at, bytes, length);
    return at + length;
}

static uint8_t *put_content(ProfWriter *w, uint8_t *at, const ProfEvent *event) {
    switch (event->kind) {
    case PROF_EVENT_BEGIN:
        return prof_put_varint(at, event->name);
    case PROF_EVENT_JOIN:
        return prof_put_varint(prof_put_varint(at, event->name), event->stream);
    case PROF_EVENT_LAUNCH:
        return prof_put_varint(at, event->correlation);
    case PROF_EVENT_INTERVAL:
        return put_interval(at, event);
    case PROF_EVENT_SPLIT:
        return put_split(at, event);
    case PROF_EVENT_CAPTURE:
        return prof_put_varint(at, event->node);
    default:
        return event->kind > PROF_EVENT_OTHER ? put_other(w, at, event) : at;
    }
}

void prof_writer_put(ProfWriter *w, uint32_t stream, const ProfEvent *event) {
    if (w->status != STATUS_OK || stream >= PROF_STREAMS_MAX || !w->streams[stream].known) return;
    bool is_full = w->stream != PROF_STREAMS_MAX && w->at > w->block + sizeof w->block - EVENT_BYTES_MAX;
    if (w->stream != stream || is_full || event->time_ns < w->last_ns) {
        prof_writer_flush(w);
        begin_block(w, stream, event->time_ns);
    }
    uint64_t kind = event->kind < PROF_EVENT_OTHER ? (uint64_t)event->kind : PROF_EVENT_OTHER;
    w->at = prof_put_varint(w->at, (uint64_t)(event->time_ns - w->last_ns) << 3 | kind);
    w->at = put_content(w, w->at, event);
    w->last_ns = event->time_ns;
    w->count++;
    follow_scopes(&w->streams[stream], event);
}

void prof_writer_clock(ProfWriter *w, int64_t monotonic_ns, int64_t unix_ns) {
    uint8_t block[PROF_HEADER_BYTES + 16];
    uint8_t *at = prof_put_fixed(block + PROF_HEADER_BYTES, (uint64_t)monotonic_ns, 8);
    prof_put_fixed(at, (uint64_t)unix_ns, 8);
    write_block(w, block, PROF_BLOCK_CLOCK, 16, 0, 0, 0);
}

void prof_writer_steps(ProfWriter *w, int64_t env_steps) { w->env_steps = env_steps > 0 ? (uint64_t)env_steps : 0; }

static void write_end(ProfWriter *w, int64_t end_ns) {
    uint8_t block[PROF_HEADER_BYTES + 8 + 3 * PROF_VARINT_MAX];
    uint8_t *payload = block + PROF_HEADER_BYTES, *at = prof_put_fixed(payload, (uint64_t)end_ns, 8);
    at = prof_put_varint(at, w->events);
    at = prof_put_varint(at, w->dropped);
    at = prof_put_varint(at, w->env_steps);
    write_block(w, block, PROF_BLOCK_END, (size_t)(at - payload), 0, 0, 0);
}

Status prof_writer_close(ProfWriter *w, int64_t end_ns) {
    if (w == NULL) return STATUS_OK;
    prof_writer_flush(w);
    write_end(w, end_ns);
    if (close(w->fd) != 0) fail(w, host_fail(STATUS_IO, "cannot close %s: %s", w->path, strerror(errno)));
    w->fd = -1;
    Status status = w->status;
    if (status != STATUS_OK) status = host_fail(status, "%s", w->message);
    prof_writer_abandon(w);
    return status;
}

void prof_writer_abandon(ProfWriter *w) {
    if (w == NULL) return;
    if (w->fd >= 0) close(w->fd);
    for (uint32_t i = 0; w->streams != NULL && i < PROF_STREAMS_MAX; i++)
        free(w->streams[i].stack);
    free(w->streams);
    free(w->names);
    free(w->slots);
    free(w);
}
