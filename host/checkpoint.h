// Checkpoints: one safetensors file with named tensors and text metadata.
//
// Layout: 8 bytes header length (little endian), a JSON header, the tensors' bytes without gaps. The header's
// "__metadata__" holds the caller's texts and two of ours: "shoal_format" (the version) and "content_hash" (64-bit
// FNV-1a over every name, type, shape, text and tensor byte, so that any flipped bit is found). Other tools can read
// it.
//
// Writing is atomic: after a failure or a kill at any moment the path holds either the old file or the new one, whole.
// Reading validates everything before giving anything, and never writes.
//
// Ownership: the writer borrows everything; the reader owns a copy of the file until closed. Errors: STATUS_IO (could
// not be read or written), STATUS_CORRUPT (names the file and what is wrong), STATUS_MEMORY. Thread safety: an open
// checkpoint may be read from any thread.
// Source: https://github.com/huggingface/safetensors (format description in its README).
#ifndef SHOAL_HOST_CHECKPOINT_H
#define SHOAL_HOST_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_CHECKPOINT_FORMAT = 1, HOST_TENSOR_RANK_MAX = 4, HOST_TENSORS_MAX = 1024 };

// D(name, bytes per element)
#define HOST_DTYPE_LIST(D) \
    D(F32, 4)              \
    D(F64, 8)              \
    D(I32, 4)              \
    D(I64, 8)              \
    D(U8, 1)               \
    D(U32, 4)              \
    D(U64, 8)

typedef enum HostDtype {
#define HOST_DTYPE_ENUM(name, size) HOST_DTYPE_##name,
    HOST_DTYPE_LIST(HOST_DTYPE_ENUM)
#undef HOST_DTYPE_ENUM
} HostDtype;

typedef struct HostTensor {
    const char *name;
    HostDtype dtype;
    int rank;                            // 0 is a scalar
    int64_t shape[HOST_TENSOR_RANK_MAX]; // [rank]
    const void *data;                    // row-major, little endian; from a reader possibly unaligned
} HostTensor;

typedef struct HostMeta {
    const char *key;   // not "shoal_format", not "content_hash"
    const char *value; // UTF-8
} HostMeta;

Status host_checkpoint_write(const char *path, const HostTensor *tensors, int tensor_count, const HostMeta *meta,
                             int meta_count) HOST_MUST_CHECK;

// What host_checkpoint_write() would write, in memory; free the bytes.
Status host_checkpoint_pack(const HostTensor *tensors, int tensor_count, const HostMeta *meta, int meta_count,
                            void **bytes, size_t *size_bytes) HOST_MUST_CHECK;

typedef struct HostCheckpoint HostCheckpoint;

Status host_checkpoint_open(const char *path, HostCheckpoint **checkpoint) HOST_MUST_CHECK;
// Copies the bytes; `name` stands for the path in messages.
Status host_checkpoint_open_memory(const void *bytes, size_t size_bytes, const char *name,
                                   HostCheckpoint **checkpoint) HOST_MUST_CHECK;
void host_checkpoint_close(HostCheckpoint *checkpoint); // NULL is fine

// What there is. Valid until the checkpoint is closed.
int host_checkpoint_tensor_count(const HostCheckpoint *checkpoint);
const HostTensor *host_checkpoint_tensor_at(const HostCheckpoint *checkpoint, int index);
const HostTensor *host_checkpoint_find(const HostCheckpoint *checkpoint, const char *name); // NULL: none
const char *host_checkpoint_meta(const HostCheckpoint *checkpoint, const char *key);        // NULL: none

// Copies a tensor out. It must have exactly this type and shape, else STATUS_CORRUPT says what is there and what was
// expected ("params: F32 [4610] in the file, F32 [4738] expected").
Status host_checkpoint_read(const HostCheckpoint *checkpoint, const char *name, HostDtype dtype, int rank,
                            const int64_t *shape, void *data) HOST_MUST_CHECK;

const char *host_dtype_name(HostDtype dtype);
size_t host_dtype_bytes(HostDtype dtype);

#ifdef __cplusplus
}
#endif

#endif
