#include "host/wire.h"

#include <assert.h>
#include <string.h>

static const unsigned char magic[4] = {'S', 'H', 'L', '1'};

static const struct {
    const char *name;
    int integers;
    bool has_bytes;
} types[] = {
#define WIRE_ROW(name, integers, bytes) {#name, integers, bytes},
    HOST_WIRE_LIST(WIRE_ROW)
#undef WIRE_ROW
};

const char *host_message_type_name(HostMessageType type) { return type < HOST_MESSAGE_TYPES ? types[type].name : "?"; }

static void put(unsigned char *out, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

size_t host_wire_size(const HostMessage *message) {
    return HOST_WIRE_HEADER_BYTES + 8 * (size_t)types[message->type].integers + message->size_bytes;
}

unsigned char *host_wire_encode(const HostMessage *message, unsigned char *out) {
    assert(types[message->type].has_bytes || message->size_bytes == 0);
    memcpy(out, magic, sizeof magic);
    put(out + 4, (uint64_t)message->type, 4);
    out += HOST_WIRE_HEADER_BYTES;
    for (int i = 0; i < types[message->type].integers; i++, out += 8)
        put(out, (uint64_t)message->value[i], 8);
    if (message->bytes != NULL) memcpy(out, message->bytes, message->size_bytes);
    return out;
}

Status host_wire_decode(const void *data, size_t size_bytes, HostMessage *message) {
    const unsigned char *at = data;
    memset(message, 0, sizeof *message);
    if (size_bytes < HOST_WIRE_HEADER_BYTES || memcmp(at, magic, sizeof magic) != 0)
        return host_fail(STATUS_CORRUPT, "a message of %zu bytes that is none of Shoal's", size_bytes);
    uint64_t type = get(at + 4, 4);
    if (type >= HOST_MESSAGE_TYPES)
        return host_fail(STATUS_CORRUPT, "a message of the unknown type %llu", (unsigned long long)type);
    size_t integers = 8 * (size_t)types[type].integers, left = size_bytes - HOST_WIRE_HEADER_BYTES;
    if (left < integers || (left > integers && !types[type].has_bytes))
        return host_fail(STATUS_CORRUPT, "a message %s of %zu bytes", types[type].name, size_bytes);
    message->type = (HostMessageType)type;
    at += HOST_WIRE_HEADER_BYTES;
    for (int i = 0; i < types[type].integers; i++, at += 8)
        message->value[i] = (int64_t)get(at, 8);
    message->size_bytes = left - integers;
    message->bytes = message->size_bytes > 0 ? at : NULL;
    return STATUS_OK;
}

bool host_wire_is_post(const HostMessage *message) {
    int64_t key = message->value[1];
    return message->type == HOST_MESSAGE_POST && key >= 1 && key <= HOST_WIRE_KEY_MAX &&
           message->size_bytes >= (size_t)key && message->size_bytes - (size_t)key <= HOST_WIRE_VALUE_MAX;
}

void host_wire_put_range(unsigned char *out, int64_t first, int64_t count) {
    put(out, (uint64_t)first, 8);
    put(out + 8, (uint64_t)count, 8);
}

void host_wire_get_range(const unsigned char *bytes, int64_t *first, int64_t *count) {
    *first = (int64_t)get(bytes, 8);
    *count = (int64_t)get(bytes + 8, 8);
}
