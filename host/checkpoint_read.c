#include "host/checkpoint_format.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"

struct HostCheckpoint {
    char *name; // for messages
    char *bytes;
    size_t size_bytes;
    const char *data; // the tensors' bytes, data_bytes of them
    size_t data_bytes;
    json_t *header; // owns all names and texts below
    int tensor_count, meta_count;
    HostTensor *tensors; // [tensor_count], sorted by name
    HostMeta *meta;      // [meta_count], sorted by key, without our own two
};

// The status is spelled out here, so that the static analyser sees that it is a failure.
#define CORRUPT(checkpoint, ...) (corrupt_at(checkpoint, __LINE__, __VA_ARGS__), STATUS_CORRUPT)
static void corrupt_at(const HostCheckpoint *checkpoint, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void corrupt_at(const HostCheckpoint *checkpoint, int line, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)!host_fail_at(__FILE__, line, STATUS_CORRUPT, "%s: not a valid checkpoint: %s", checkpoint->name, text);
}

static Status no_memory(const HostCheckpoint *checkpoint) {
    (void)!host_fail(STATUS_MEMORY, "no memory to read %s", checkpoint->name);
    return STATUS_MEMORY;
}

static Status parse_header(HostCheckpoint *checkpoint) {
    if (checkpoint->size_bytes < HOST_CHECKPOINT_LENGTH_BYTES)
        return CORRUPT(checkpoint, "it has only %zu bytes", checkpoint->size_bytes);
    uint64_t length = 0;
    for (int i = 0; i < HOST_CHECKPOINT_LENGTH_BYTES; i++)
        length |= (uint64_t)(unsigned char)checkpoint->bytes[i] << (8 * i);
    size_t left = checkpoint->size_bytes - HOST_CHECKPOINT_LENGTH_BYTES;
    if (length > left)
        return CORRUPT(checkpoint, "its header of %" PRIu64 " bytes goes beyond the end (%zu bytes)", length,
                       checkpoint->size_bytes);
    if (length > HOST_CHECKPOINT_HEADER_MAX)
        return CORRUPT(checkpoint, "its header of %" PRIu64 " bytes is longer than %d", length,
                       HOST_CHECKPOINT_HEADER_MAX);
    json_error_t error;
    const char *json = checkpoint->bytes + HOST_CHECKPOINT_LENGTH_BYTES;
    if (length == 0 || json[0] != '{') return CORRUPT(checkpoint, "its header is not a JSON object");
    checkpoint->header = json_loadb(json, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (checkpoint->header == NULL)
        return CORRUPT(checkpoint, "malformed JSON in its header at line %d, column %d: %s", error.line, error.column,
                       error.text);
    checkpoint->data = json + length;
    checkpoint->data_bytes = left - (size_t)length;
    return STATUS_OK;
}

static bool dtype_from(const char *name, HostDtype *dtype) {
#define DTYPE_MATCH(dtype_name, size)     \
    if (strcmp(name, #dtype_name) == 0) { \
        *dtype = HOST_DTYPE_##dtype_name; \
        return true;                      \
    }
    HOST_DTYPE_LIST(DTYPE_MATCH)
#undef DTYPE_MATCH
    return false;
}

static Status parse_shape(const HostCheckpoint *checkpoint, const json_t *shape, HostTensor *tensor) {
    if (!json_is_array(shape)) return CORRUPT(checkpoint, "tensor '%.60s' has no shape", tensor->name);
    if (json_array_size(shape) > HOST_TENSOR_RANK_MAX)
        return CORRUPT(checkpoint, "tensor '%.60s' has %zu dimensions, more than %d", tensor->name,
                       json_array_size(shape), HOST_TENSOR_RANK_MAX);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return CORRUPT(checkpoint, "tensor '%.60s' has a size that is not a whole number", tensor->name);
        tensor->shape[i] = json_integer_value(size);
    }
    return STATUS_OK;
}

static Status parse_tensor(const HostCheckpoint *checkpoint, const json_t *entry, HostTensor *tensor) {
    const json_t *dtype = json_object_get(entry, "dtype"), *offsets = json_object_get(entry, "data_offsets");
    if (!json_is_object(entry) || json_object_size(entry) != 3 || !json_is_string(dtype))
        return CORRUPT(checkpoint, "the entry of tensor '%.60s' is not dtype, shape and data_offsets", tensor->name);
    if (!dtype_from(json_string_value(dtype), &tensor->dtype))
        return CORRUPT(checkpoint, "tensor '%.60s' has the unknown type '%.20s'", tensor->name,
                       json_string_value(dtype));
    TRY(parse_shape(checkpoint, json_object_get(entry, "shape"), tensor));
    size_t size_bytes;
    if (!host_tensor_bytes(tensor, &size_bytes))
        return CORRUPT(checkpoint, "tensor '%.60s' is larger than can be addressed", tensor->name);
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return CORRUPT(checkpoint, "tensor '%.60s' has no pair of offsets", tensor->name);
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > checkpoint->data_bytes)
        return CORRUPT(checkpoint,
                       "tensor '%.60s' lies at bytes %" PRId64 " to %" PRId64
                       " of %zu: the file is truncated or damaged",
                       tensor->name, (int64_t)begin, (int64_t)end, checkpoint->data_bytes);
    if ((uint64_t)(end - begin) != size_bytes)
        return CORRUPT(checkpoint, "tensor '%.60s' has %" PRId64 " bytes where its shape needs %zu", tensor->name,
                       (int64_t)(end - begin), size_bytes);
    tensor->data = checkpoint->data + begin;
    return STATUS_OK;
}

static int place_compare(const void *a, const void *b) {
    const HostTensor *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    size_t x_bytes = 0, y_bytes = 0;
    (void)host_tensor_bytes(x, &x_bytes);
    (void)host_tensor_bytes(y, &y_bytes);
    return (x_bytes > y_bytes) - (x_bytes < y_bytes); // empty ones first
}

// No gap, no overlap, nothing after the last.
static Status check_layout(HostCheckpoint *checkpoint) {
    const char *at = checkpoint->data;
    qsort(checkpoint->tensors, (size_t)checkpoint->tensor_count, sizeof(HostTensor), place_compare);
    for (int i = 0; i < checkpoint->tensor_count; i++) {
        const HostTensor *tensor = &checkpoint->tensors[i];
        size_t size_bytes = 0;
        (void)host_tensor_bytes(tensor, &size_bytes);
        if (tensor->data != at) return CORRUPT(checkpoint, "a gap or an overlap before tensor '%.60s'", tensor->name);
        at += size_bytes;
    }
    size_t used = (size_t)(at - checkpoint->data);
    if (used != checkpoint->data_bytes)
        return CORRUPT(checkpoint, "%zu bytes after its last tensor", checkpoint->data_bytes - used);
    return STATUS_OK;
}

static Status parse_tensors(HostCheckpoint *checkpoint) {
    size_t count = json_object_size(checkpoint->header);
    if (count > HOST_TENSORS_MAX + 1)
        return CORRUPT(checkpoint, "it has %zu tensors, more than %d", count - 1, HOST_TENSORS_MAX);
    checkpoint->tensors = calloc(count + 1, sizeof(HostTensor));
    if (checkpoint->tensors == NULL) return no_memory(checkpoint);
    const char *name;
    json_t *entry;
    json_object_foreach(checkpoint->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        HostTensor *tensor = &checkpoint->tensors[checkpoint->tensor_count++];
        tensor->name = name;
        TRY(parse_tensor(checkpoint, entry, tensor));
    }
    return check_layout(checkpoint);
}

static Status parse_meta(HostCheckpoint *checkpoint, const char **hash) {
    json_t *texts = json_object_get(checkpoint->header, "__metadata__");
    if (!json_is_object(texts)) return CORRUPT(checkpoint, "it has no metadata, so it is not Shoal's");
    const char *format = json_string_value(json_object_get(texts, HOST_CHECKPOINT_FORMAT_KEY));
    *hash = json_string_value(json_object_get(texts, HOST_CHECKPOINT_HASH_KEY));
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%d", HOST_CHECKPOINT_FORMAT);
    if (format == NULL) return CORRUPT(checkpoint, "it has no format version, so it is not Shoal's");
    if (strcmp(format, wanted) != 0)
        return CORRUPT(checkpoint, "it has format version '%.20s'; this program reads %s", format, wanted);
    if (*hash == NULL) return CORRUPT(checkpoint, "it has no content hash");
    size_t count = json_object_size(texts);
    if (count > HOST_META_MAX) return CORRUPT(checkpoint, "it has %zu texts, more than %d", count, HOST_META_MAX);
    checkpoint->meta = calloc(count, sizeof(HostMeta));
    if (checkpoint->meta == NULL) return no_memory(checkpoint);
    const char *key;
    json_t *value;
    json_object_foreach(texts, key, value) {
        if (!json_is_string(value)) return CORRUPT(checkpoint, "the metadata '%.60s' is not a text", key);
        if (strcmp(key, HOST_CHECKPOINT_FORMAT_KEY) == 0 || strcmp(key, HOST_CHECKPOINT_HASH_KEY) == 0) continue;
        checkpoint->meta[checkpoint->meta_count++] = (HostMeta){key, json_string_value(value)};
    }
    return STATUS_OK;
}

static Status parse(HostCheckpoint *checkpoint) {
    const char *hash = NULL;
    char computed[17];
    TRY(parse_header(checkpoint));
    TRY(parse_meta(checkpoint, &hash));
    TRY(parse_tensors(checkpoint));
    qsort(checkpoint->tensors, (size_t)checkpoint->tensor_count, sizeof(HostTensor), host_tensor_compare);
    if (checkpoint->meta_count > 0)
        qsort(checkpoint->meta, (size_t)checkpoint->meta_count, sizeof(HostMeta), host_meta_compare);
    host_checkpoint_hash(checkpoint->tensors, checkpoint->tensor_count, checkpoint->meta, checkpoint->meta_count,
                         computed);
    if (strcmp(hash, computed) != 0)
        return CORRUPT(checkpoint, "its content has the hash %s, recorded is %.20s: the file is damaged", computed,
                       hash);
    return STATUS_OK;
}

// Takes the bytes over, also on failure.
static Status open_bytes(const char *name, char *bytes, size_t size_bytes, HostCheckpoint **checkpoint) {
    HostCheckpoint *made = calloc(1, sizeof *made);
    if (made == NULL) {
        free(bytes);
        return host_fail(STATUS_MEMORY, "no memory to open %s", name);
    }
    made->bytes = bytes;
    made->size_bytes = size_bytes;
    made->name = strdup(name);
    Status status = made->name == NULL ? host_fail(STATUS_MEMORY, "no memory to open %s", name) : parse(made);
    if (status != STATUS_OK) {
        host_checkpoint_close(made);
        return status;
    }
    *checkpoint = made;
    return STATUS_OK;
}

Status host_checkpoint_open(const char *path, HostCheckpoint **checkpoint) {
    char *bytes;
    size_t size_bytes;
    TRY(host_file_read(path, PTRDIFF_MAX - 1, &bytes, &size_bytes));
    return open_bytes(path, bytes, size_bytes, checkpoint);
}

Status host_checkpoint_open_memory(const void *bytes, size_t size_bytes, const char *name,
                                   HostCheckpoint **checkpoint) {
    char *copy = malloc(size_bytes > 0 ? size_bytes : 1);
    if (copy == NULL) return host_fail(STATUS_MEMORY, "no memory for the %zu bytes of %s", size_bytes, name);
    if (size_bytes > 0) memcpy(copy, bytes, size_bytes);
    return open_bytes(name, copy, size_bytes, checkpoint);
}

void host_checkpoint_close(HostCheckpoint *checkpoint) {
    if (checkpoint == NULL) return;
    json_decref(checkpoint->header);
    free(checkpoint->tensors);
    free(checkpoint->meta);
    free(checkpoint->bytes);
    free(checkpoint->name);
    free(checkpoint);
}

int host_checkpoint_tensor_count(const HostCheckpoint *checkpoint) { return checkpoint->tensor_count; }

const HostTensor *host_checkpoint_tensor_at(const HostCheckpoint *checkpoint, int index) {
    return index >= 0 && index < checkpoint->tensor_count ? &checkpoint->tensors[index] : NULL;
}

const HostTensor *host_checkpoint_find(const HostCheckpoint *checkpoint, const char *name) {
    for (int i = 0; i < checkpoint->tensor_count; i++) {
        if (strcmp(checkpoint->tensors[i].name, name) == 0) return &checkpoint->tensors[i];
    }
    return NULL;
}

const char *host_checkpoint_meta(const HostCheckpoint *checkpoint, const char *key) {
    for (int i = 0; i < checkpoint->meta_count; i++) {
        if (strcmp(checkpoint->meta[i].key, key) == 0) return checkpoint->meta[i].value;
    }
    return NULL;
}

static const char *shape_text(HostDtype dtype, int rank, const int64_t *shape, char text[128]) {
    size_t used = (size_t)snprintf(text, 128, "%s [", host_dtype_name(dtype));
    for (int i = 0; i < rank && used < 100; i++)
        used += (size_t)snprintf(text + used, 128 - used, "%s%" PRId64, i == 0 ? "" : ", ", shape[i]);
    snprintf(text + used, 128 - used, "]");
    return text;
}

Status host_checkpoint_read(const HostCheckpoint *checkpoint, const char *name, HostDtype dtype, int rank,
                            const int64_t *shape, void *data) {
    char found[128], expected[128];
    const HostTensor *tensor = host_checkpoint_find(checkpoint, name);
    shape_text(dtype, rank, shape, expected);
    if (tensor == NULL)
        return host_fail(STATUS_CORRUPT, "%s: it has no tensor '%s' (%s expected)", checkpoint->name, name, expected);
    bool same = tensor->dtype == dtype && tensor->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = tensor->shape[i] == shape[i];
    if (!same)
        return host_fail(STATUS_CORRUPT, "%s: tensor %s: %s in the file, %s expected", checkpoint->name, name,
                         shape_text(tensor->dtype, tensor->rank, tensor->shape, found), expected);
    size_t size_bytes = 0;
    (void)host_tensor_bytes(tensor, &size_bytes);
    if (size_bytes > 0) memcpy(data, tensor->data, size_bytes);
    return STATUS_OK;
}
