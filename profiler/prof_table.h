// A map from 64-bit keys to indices, that grows. Private to profiler/.
//
// Ownership: the table owns its memory until freed. Errors: false where memory is missing. Thread safety: none.
#ifndef SHOAL_PROFILER_PROF_TABLE_H
#define SHOAL_PROFILER_PROF_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ProfTable {
    uint64_t *keys;  // [capacity]
    int32_t *values; // [capacity] -1: free
    uint32_t capacity, count;
} ProfTable;

static inline uint32_t prof_table_slot(const ProfTable *table, uint64_t key) {
    uint64_t mixed = (key ^ key >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t slot = (uint32_t)(mixed >> 32) & (table->capacity - 1);
    while (table->values[slot] >= 0 && table->keys[slot] != key)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

// -1: not there.
static inline int32_t prof_table_get(const ProfTable *table, uint64_t key) {
    return table->capacity == 0 ? -1 : table->values[prof_table_slot(table, key)];
}

static inline bool prof_table_grow(ProfTable *table) {
    ProfTable grown = *table;
    grown.capacity = table->capacity > 0 ? 2 * table->capacity : 256;
    grown.keys = (uint64_t *)malloc(grown.capacity * sizeof *grown.keys);
    grown.values = (int32_t *)malloc(grown.capacity * sizeof *grown.values);
    if (grown.keys == NULL || grown.values == NULL) {
        free(grown.keys);
        free(grown.values);
        return false;
    }
    for (uint32_t i = 0; i < grown.capacity; i++)
        grown.values[i] = -1;
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->values[i] < 0) continue;
        uint32_t slot = prof_table_slot(&grown, table->keys[i]);
        grown.keys[slot] = table->keys[i];
        grown.values[slot] = table->values[i];
    }
    free(table->keys);
    free(table->values);
    *table = grown;
    return true;
}

// value >= 0; replaces what is there.
static inline bool prof_table_put(ProfTable *table, uint64_t key, int32_t value) {
    if (2 * table->count >= table->capacity && !prof_table_grow(table)) return false;
    uint32_t slot = prof_table_slot(table, key);
    table->count += table->values[slot] < 0;
    table->keys[slot] = key;
    table->values[slot] = value;
    return true;
}

static inline void prof_table_free(ProfTable *table) {
    free(table->keys);
    free(table->values);
    table->keys = NULL;
    table->values = NULL;
    table->capacity = table->count = 0;
}

#ifdef __cplusplus
}
#endif

#endif
