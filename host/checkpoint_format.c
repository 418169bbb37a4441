#include "host/checkpoint_format.h"

#include <string.h>

#include "host/hash.h"

const char *host_dtype_name(HostDtype dtype) {
    static const char *const names[] = {
#define DTYPE_NAME(name, size) #name,
        HOST_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    };
    return (unsigned)dtype < sizeof names / sizeof names[0] ? names[dtype] : "?";
}

size_t host_dtype_bytes(HostDtype dtype) {
    static const size_t sizes[] = {
#define DTYPE_SIZE(name, size) size,
        HOST_DTYPE_LIST(DTYPE_SIZE)
#undef DTYPE_SIZE
    };
    return (unsigned)dtype < sizeof sizes / sizeof sizes[0] ? sizes[dtype] : 0;
}

bool host_tensor_bytes(const HostTensor *tensor, size_t *size_bytes) {
    size_t total = host_dtype_bytes(tensor->dtype);
    bool is_empty = false;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0) return false;
        if (tensor->shape[i] == 0) {
            is_empty = true;
        } else if (__builtin_mul_overflow(total, (size_t)tensor->shape[i], &total) || total > PTRDIFF_MAX) {
            return false;
        }
    }
    *size_bytes = is_empty ? 0 : total;
    return true;
}

int host_tensor_compare(const void *a, const void *b) {
    return strcmp(((const HostTensor *)a)->name, ((const HostTensor *)b)->name);
}

int host_meta_compare(const void *a, const void *b) {
    return strcmp(((const HostMeta *)a)->key, ((const HostMeta *)b)->key);
}

static void add_number(HostHash *hash, uint64_t number) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    host_hash_add(hash, bytes, sizeof bytes);
}

// With its length first, so that no two lists of texts feed the same bytes.
static void add_text(HostHash *hash, const char *text) {
    size_t length = strlen(text);
    add_number(hash, length);
    host_hash_add(hash, text, length);
}

const char *host_checkpoint_hash(const HostTensor *tensors, int tensor_count, const HostMeta *meta, int meta_count,
                                 char text[17]) {
    HostHash hash = host_hash_start();
    add_number(&hash, HOST_CHECKPOINT_FORMAT);
    add_number(&hash, (uint64_t)tensor_count);
    for (int i = 0; i < tensor_count; i++) {
        size_t size_bytes = 0;
        (void)host_tensor_bytes(&tensors[i], &size_bytes);
        add_text(&hash, tensors[i].name);
        add_text(&hash, host_dtype_name(tensors[i].dtype));
        add_number(&hash, (uint64_t)tensors[i].rank);
        for (int j = 0; j < tensors[i].rank; j++)
            add_number(&hash, (uint64_t)tensors[i].shape[j]);
        host_hash_add(&hash, tensors[i].data, size_bytes);
    }
    add_number(&hash, (uint64_t)meta_count);
    for (int i = 0; i < meta_count; i++) {
        add_text(&hash, meta[i].key);
        add_text(&hash, meta[i].value);
    }
    return host_hash_text(hash, text);
}
