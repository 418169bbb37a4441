#include "host/checkpoint_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"
#include "host/json_text.h"

// The writer's own copies, sorted.
typedef struct Content {
    int tensor_count, meta_count;
    HostTensor tensors[HOST_TENSORS_MAX];
    HostMeta meta[HOST_META_MAX];
    HostFilePart parts[HOST_TENSORS_MAX + 2];
} Content;

// A caller's mistake, not a user's, but better told than asserted: the names may be built from settings.
static Status check_content(const char *path, const Content *content) {
    for (int i = 0; i < content->tensor_count; i++) {
        const HostTensor *tensor = &content->tensors[i];
        size_t size_bytes;
        if (tensor->rank < 0 || tensor->rank > HOST_TENSOR_RANK_MAX || !host_tensor_bytes(tensor, &size_bytes))
            return host_fail(STATUS_SYSTEM, "%s: tensor '%s' has an impossible shape", path, tensor->name);
        if (!host_json_is_valid(tensor->name) || strcmp(tensor->name, "__metadata__") == 0 ||
            (i > 0 && strcmp(tensor->name, tensor[-1].name) == 0))
            return host_fail(STATUS_SYSTEM, "%s: tensor name '%s' is reserved, repeated or not UTF-8", path,
                             tensor->name);
    }
    for (int i = 0; i < content->meta_count; i++) {
        const HostMeta *meta = &content->meta[i];
        if (!host_json_is_valid(meta->key) || !host_json_is_valid(meta->value) ||
            strcmp(meta->key, HOST_CHECKPOINT_FORMAT_KEY) == 0 || strcmp(meta->key, HOST_CHECKPOINT_HASH_KEY) == 0 ||
            (i > 0 && strcmp(meta->key, meta[-1].key) == 0))
            return host_fail(STATUS_SYSTEM, "%s: text '%s' is reserved, repeated or not UTF-8", path, meta->key);
    }
    return STATUS_OK;
}

// Wider types first, as safetensors does, so that a mapped file's tensors are aligned.
static int layout_compare(const void *a, const void *b) {
    size_t a_bytes = host_dtype_bytes(((const HostTensor *)a)->dtype);
    size_t b_bytes = host_dtype_bytes(((const HostTensor *)b)->dtype);
    if (a_bytes != b_bytes) return a_bytes < b_bytes ? 1 : -1;
    return host_tensor_compare(a, b);
}

static void put_tensor(FILE *stream, const HostTensor *tensor, size_t begin, size_t end) {
    fputc(',', stream);
    host_json_put(stream, tensor->name);
    fprintf(stream, ":{\"dtype\":\"%s\",\"shape\":[", host_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++)
        fprintf(stream, "%s%" PRId64, i == 0 ? "" : ",", tensor->shape[i]);
    fprintf(stream, "],\"data_offsets\":[%zu,%zu]}", begin, end);
}

// The header, padded with spaces to a multiple of 8; also fills the parts of the tensors' bytes.
static Status make_header(Content *content, const char *hash, char **header, size_t *header_bytes) {
    JsonText json;
    TRY(host_json_open(&json));
    fprintf(json.stream, "{\"__metadata__\":{\"%s\":\"%d\",\"%s\":\"%s\"", HOST_CHECKPOINT_FORMAT_KEY,
            HOST_CHECKPOINT_FORMAT, HOST_CHECKPOINT_HASH_KEY, hash);
    for (int i = 0; i < content->meta_count; i++) {
        fputc(',', json.stream);
        host_json_put(json.stream, content->meta[i].key);
        fputc(':', json.stream);
        host_json_put(json.stream, content->meta[i].value);
    }
    fputc('}', json.stream);
    size_t offset = 0;
    for (int i = 0; i < content->tensor_count; i++) {
        size_t size_bytes = 0;
        (void)host_tensor_bytes(&content->tensors[i], &size_bytes);
        put_tensor(json.stream, &content->tensors[i], offset, offset + size_bytes);
        content->parts[2 + i] = (HostFilePart){content->tensors[i].data, size_bytes};
        offset += size_bytes;
    }
    fputc('}', json.stream);
    for (long at = ftell(json.stream); at % 8 != 0; at++)
        fputc(' ', json.stream);
    return host_json_close(&json, header, header_bytes);
}

// All parts, one after the other, in memory of their own.
static Status join_parts(const HostFilePart *parts, int count, void **bytes, size_t *size_bytes) {
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += parts[i].size_bytes;
    unsigned char *at = malloc(total + 1);
    if (at == NULL) return host_fail(STATUS_MEMORY, "no memory for a checkpoint of %zu bytes", total);
    *bytes = at;
    *size_bytes = total;
    for (int i = 0; i < count; i++) {
        if (parts[i].size_bytes > 0) memcpy(at, parts[i].data, parts[i].size_bytes);
        at += parts[i].size_bytes;
    }
    return STATUS_OK;
}

// Into the file; or into `bytes`, where that is not NULL, and `path` is what messages call it.
static Status write_content(const char *path, Content *content, void **bytes, size_t *size_bytes) {
    size_t tensor_count = (size_t)content->tensor_count;
    qsort(content->tensors, tensor_count, sizeof content->tensors[0], host_tensor_compare);
    qsort(content->meta, (size_t)content->meta_count, sizeof content->meta[0], host_meta_compare);
    TRY(check_content(path, content));
    char hash[17];
    host_checkpoint_hash(content->tensors, content->tensor_count, content->meta, content->meta_count, hash);
    qsort(content->tensors, tensor_count, sizeof content->tensors[0], layout_compare);
    char *header = NULL;
    size_t header_bytes = 0;
    TRY(make_header(content, hash, &header, &header_bytes));
    unsigned char length[HOST_CHECKPOINT_LENGTH_BYTES];
    for (int i = 0; i < HOST_CHECKPOINT_LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)header_bytes >> (8 * i));
    content->parts[0] = (HostFilePart){length, sizeof length};
    content->parts[1] = (HostFilePart){header, header_bytes};
    Status status;
    if (header_bytes > HOST_CHECKPOINT_HEADER_MAX) {
        status = host_fail(STATUS_SYSTEM, "%s: a header of %zu bytes is too long", path, header_bytes);
    } else if (bytes != NULL) {
        status = join_parts(content->parts, content->tensor_count + 2, bytes, size_bytes);
    } else {
        status = host_file_replace(path, content->parts, content->tensor_count + 2);
    }
    free(header);
    return status;
}

static Status write_checkpoint(const char *path, const HostTensor *tensors, int tensor_count, const HostMeta *meta,
                               int meta_count, void **bytes, size_t *size_bytes) {
    if (tensor_count < 0 || tensor_count > HOST_TENSORS_MAX || meta_count < 0 || meta_count > HOST_META_MAX - 2)
        return host_fail(STATUS_SYSTEM, "%s: %d tensors and %d texts are more than a checkpoint holds", path,
                         tensor_count, meta_count);
    Content *content = calloc(1, sizeof *content);
    if (content == NULL) return host_fail(STATUS_MEMORY, "%s: no memory to write a checkpoint", path);
    content->tensor_count = tensor_count;
    content->meta_count = meta_count;
    if (tensor_count > 0) memcpy(content->tensors, tensors, (size_t)tensor_count * sizeof tensors[0]);
    if (meta_count > 0) memcpy(content->meta, meta, (size_t)meta_count * sizeof meta[0]);
    Status status = write_content(path, content, bytes, size_bytes);
    free(content);
    return status;
}

Status host_checkpoint_write(const char *path, const HostTensor *tensors, int tensor_count, const HostMeta *meta,
                             int meta_count) {
    return write_checkpoint(path, tensors, tensor_count, meta, meta_count, NULL, NULL);
}

Status host_checkpoint_pack(const HostTensor *tensors, int tensor_count, const HostMeta *meta, int meta_count,
                            void **bytes, size_t *size_bytes) {
    return write_checkpoint("a checkpoint in memory", tensors, tensor_count, meta, meta_count, bytes, size_bytes);
}
