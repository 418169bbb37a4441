// What the checkpoint's writer and reader must agree on. Private to host/checkpoint*.c.
//
// Ownership: borrows everything. Errors: none. Thread safety: any thread.
#ifndef SHOAL_HOST_CHECKPOINT_FORMAT_H
#define SHOAL_HOST_CHECKPOINT_FORMAT_H

#include <stdbool.h>

#include "host/checkpoint.h"

#define HOST_CHECKPOINT_FORMAT_KEY "shoal_format"
#define HOST_CHECKPOINT_HASH_KEY   "content_hash"

enum { HOST_CHECKPOINT_LENGTH_BYTES = 8, HOST_CHECKPOINT_HEADER_MAX = 16 << 20, HOST_META_MAX = 64 };

// The hash of all tensors and texts. They must be sorted by name and key (bytewise), so that a tool that reorders them
// leaves the hash as it is; texts of our own are not among them. Returns 16 hex digits in `text`.
const char *host_checkpoint_hash(const HostTensor *tensors, int tensor_count, const HostMeta *meta, int meta_count,
                                 char text[17]);

// Elements x bytes; false on overflow or a negative size.
bool host_tensor_bytes(const HostTensor *tensor, size_t *size_bytes);

// For qsort.
int host_tensor_compare(const void *a, const void *b);
int host_meta_compare(const void *a, const void *b);

#endif
