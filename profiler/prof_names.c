#include "profiler/prof_names.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/hash.h"

static _Atomic(ProfKeptName *) kept[PROF_NAMES_KEPT]; // by hash, then upwards
static atomic_int kept_count;
static const ProfKeptName another = {HOST_TRACE_HOST, "(another name)"};

HostTraceCategory prof_name_category(const char *text) {
    for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) {
        const char *word = host_trace_category_name((HostTraceCategory)c);
        size_t length = strlen(word);
        if (strncmp(text, word, length) != 0) continue;
        if (strchr(":/ ._-", text[length]) != NULL) return (HostTraceCategory)c; // the zero at the end is found as well
    }
    return HOST_TRACE_HOST;
}

static ProfKeptName *copy(const char *text) {
    size_t size = strlen(text) + 1;
    ProfKeptName *name = malloc(sizeof *name + size);
    if (name == NULL) return NULL;
    name->category = prof_name_category(text);
    name->text = memcpy(name + 1, text, size);
    return name;
}

const ProfKeptName *prof_name(const char *text) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, text, strlen(text));
    uint32_t slot = (uint32_t)(hash.state ^ hash.state >> 32) % PROF_NAMES_KEPT;
    ProfKeptName *mine = NULL;
    for (;; slot = (slot + 1) % PROF_NAMES_KEPT) {
        ProfKeptName *name = atomic_load_explicit(&kept[slot], memory_order_acquire);
        if (name == NULL) {
            if (mine == NULL && atomic_load(&kept_count) < PROF_NAMES_KEPT / 2) mine = copy(text);
            if (mine == NULL) return &another;
            if (atomic_compare_exchange_strong(&kept[slot], &name, mine)) {
                atomic_fetch_add(&kept_count, 1);
                return mine;
            }
        }
        if (strcmp(name->text, text) == 0) {
            free(mine); // somebody was faster
            return name;
        }
    }
}
