#include "host/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "host/json_text.h"

enum { HUGE_PAGE_BYTES = 2 << 20 };

void host_plan_init(HostPlan *plan) { memset(plan, 0, sizeof *plan); }

Status host_plan_add(HostPlan *plan, const char *purpose, size_t count, size_t item_bytes, int *item) {
    size_t size, rounded, total;
    if (plan->count == HOST_PLAN_ITEMS_MAX)
        return host_fail(STATUS_MEMORY, "memory plan: no room for '%s' after %d purposes", purpose, plan->count);
    if (strlen(purpose) >= HOST_PLAN_PURPOSE_MAX)
        return host_fail(STATUS_MEMORY, "memory plan: the purpose '%.60s' is too long", purpose);
    // PTRDIFF_MAX is the most that one object may have.
    if (__builtin_mul_overflow(count, item_bytes, &size) ||
        __builtin_add_overflow(size, HOST_PLAN_ALIGN_BYTES - 1, &rounded) ||
        __builtin_add_overflow(plan->total_bytes, rounded & ~(size_t)(HOST_PLAN_ALIGN_BYTES - 1), &total) ||
        total > PTRDIFF_MAX)
        return host_fail(STATUS_MEMORY, "memory plan: %zu x %zu bytes for '%s' are more than can be addressed", count,
                         item_bytes, purpose);
    HostPlanItem *to = &plan->item[plan->count];
    memcpy(to->purpose, purpose, strlen(purpose) + 1);
    to->offset_bytes = plan->total_bytes;
    to->size_bytes = size;
    plan->total_bytes = total;
    if (item != NULL) *item = plan->count;
    plan->count++;
    return STATUS_OK;
}

size_t host_plan_total(const HostPlan *plan) { return plan->total_bytes; }

int host_plan_find(const HostPlan *plan, const char *purpose) {
    for (int i = 0; i < plan->count; i++) {
        if (strcmp(plan->item[i].purpose, purpose) == 0) return i;
    }
    return -1;
}

const char *host_bytes_text(size_t size_bytes, char text[16]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (size_bytes < 1024) {
        snprintf(text, 16, "%zu B", size_bytes);
        return text;
    }
    double value = (double)size_bytes / 1024;
    int unit = 0;
    for (; value >= 1023.95 && unit < 5; unit++)
        value /= 1024;
    snprintf(text, 16, "%.1f %s", value, units[unit]);
    return text;
}

void host_plan_print(const HostPlan *plan, const char *title, FILE *stream) {
    char bytes[16];
    fprintf(stream, "%s\n", title);
    for (int i = 0; i < plan->count; i++)
        fprintf(stream, "  %-40s %12s\n", plan->item[i].purpose, host_bytes_text(plan->item[i].size_bytes, bytes));
    fprintf(stream, "  %-40s %12s\n", "total", host_bytes_text(plan->total_bytes, bytes));
}

Status host_plan_to_json(const HostPlan *plan, char **json) {
    JsonText text;
    TRY(host_json_open(&text));
    fprintf(text.stream, "{\"total_bytes\": %zu, \"items\": [", plan->total_bytes);
    for (int i = 0; i < plan->count; i++) {
        const HostPlanItem *item = &plan->item[i];
        fprintf(text.stream, "%s{\"purpose\": ", i == 0 ? "" : ", ");
        host_json_put(text.stream, item->purpose);
        fprintf(text.stream, ", \"offset_bytes\": %zu, \"size_bytes\": %zu}", item->offset_bytes, item->size_bytes);
    }
    fputs("]}", text.stream);
    return host_json_close(&text, json, NULL);
}

Status host_plan_alloc(const HostPlan *plan, const HostMemory *memory, HostBlock *block) {
    *block = (HostBlock){.memory = *memory};
    if (plan->total_bytes == 0) return STATUS_OK;
    void *base = NULL;
    TRY(memory->alloc(memory->self, plan->total_bytes, &base));
    block->base = base;
    block->size_bytes = plan->total_bytes;
    return STATUS_OK;
}

void host_block_free(HostBlock *block) {
    if (block->base != NULL) block->memory.release(block->memory.self, block->base, block->size_bytes);
    block->base = NULL;
    block->size_bytes = 0;
}

static Status cpu_alloc(void *self, size_t size_bytes, void **block) {
    (void)self;
    void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        char text[16];
        return host_fail(STATUS_MEMORY, "cannot allocate %s (%zu bytes) of CPU memory: %s",
                         host_bytes_text(size_bytes, text), size_bytes, strerror(errno));
    }
    // Advice only: without huge pages it is slower, not wrong.
    if (size_bytes >= HUGE_PAGE_BYTES) (void)madvise(base, size_bytes, MADV_HUGEPAGE);
    *block = base;
    return STATUS_OK;
}

static void cpu_release(void *self, void *block, size_t size_bytes) {
    (void)self;
    munmap(block, size_bytes);
}

HostMemory host_memory_cpu(void) {
    return (HostMemory){.name = "CPU memory", .alloc = cpu_alloc, .release = cpu_release};
}
