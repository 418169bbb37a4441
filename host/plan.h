// Memory plan: what the program will need, by purpose, known before anything is allocated; then one allocation, carved.
//
// Add every purpose to a HostPlan, print it (--dry-run), allocate it once with host_plan_alloc() from a HostMemory (the
// CPU's, or a GPU library's), and take each piece with host_block_at(). Pieces start at multiples of 64 bytes and hold
// zeros at first.
//
// Ownership: HostPlan is plain data; HostBlock owns the allocation until host_block_free(). Errors: STATUS_MEMORY where
// sizes overflow or memory cannot be had. Thread safety: none; read-only use of a finished plan from any thread.
#ifndef SHOAL_HOST_PLAN_H
#define SHOAL_HOST_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_PLAN_ITEMS_MAX = 64, HOST_PLAN_PURPOSE_MAX = 48, HOST_PLAN_ALIGN_BYTES = 64 };

typedef struct HostPlanItem {
    char purpose[HOST_PLAN_PURPOSE_MAX];
    size_t offset_bytes;
    size_t size_bytes; // as asked for, before rounding up
} HostPlanItem;

typedef struct HostPlan {
    int count;
    size_t total_bytes; // all items, each rounded up to 64 bytes
    HostPlanItem item[HOST_PLAN_ITEMS_MAX];
} HostPlan;

// Where memory comes from. `alloc` gives zeroed memory, aligned to at least 64 bytes; `release` takes it back.
typedef struct HostMemory {
    const char *name; // "CPU memory", "GPU 0 memory"
    void *self;
    Status (*alloc)(void *self, size_t size_bytes, void **block);
    void (*release)(void *self, void *block, size_t size_bytes);
} HostMemory;

typedef struct HostBlock {
    unsigned char *base; // may be a device pointer; NULL when the plan is empty
    size_t size_bytes;
    HostMemory memory;
} HostBlock;

void host_plan_init(HostPlan *plan);

// Adds count x item_bytes under a purpose. `item` (may be NULL) receives its index. Zero bytes are allowed.
Status host_plan_add(HostPlan *plan, const char *purpose, size_t count, size_t item_bytes, int *item) HOST_MUST_CHECK;

size_t host_plan_total(const HostPlan *plan);

// The index of the first item with that purpose, or -1.
int host_plan_find(const HostPlan *plan, const char *purpose);

// A line per purpose and the total, in human units, under `title`.
void host_plan_print(const HostPlan *plan, const char *title, FILE *stream);

// {"total_bytes": N, "items": [{"purpose": ..., "offset_bytes": ..., "size_bytes": ...}, ...]}. Free the text.
Status host_plan_to_json(const HostPlan *plan, char **json) HOST_MUST_CHECK;

Status host_plan_alloc(const HostPlan *plan, const HostMemory *memory, HostBlock *block) HOST_MUST_CHECK;
void host_block_free(HostBlock *block);

// The start of one item. Aligned to 64 bytes.
static inline void *host_block_at(const HostBlock *block, const HostPlan *plan, int item) {
    return block->base + plan->item[item].offset_bytes;
}

// The CPU's memory: mmap; large blocks ask for huge pages.
HostMemory host_memory_cpu(void);

// "96 B", "1.5 KiB", "64.0 MiB". Returns `text`.
const char *host_bytes_text(size_t size_bytes, char text[16]);

#ifdef __cplusplus
}
#endif

#endif
