// libFuzzer target: any bytes given to the reader of messages are refused with a message or read; what was read is
// written back as the same bytes. Its first bytes then drive a table of leases, whose books must stay right.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/lease.h"
#include "host/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_message(const uint8_t *data, size_t size) {
    HostMessage message;
    Status status = host_wire_decode(data, size, &message);
    if (status != STATUS_OK) {
        if (status != STATUS_CORRUPT || host_message()[0] == '\0') abort();
        return;
    }
    if (host_wire_size(&message) != size) abort();
    if (host_wire_is_post(&message) && message.size_bytes > HOST_WIRE_KEY_MAX + HOST_WIRE_VALUE_MAX) abort();
    if (host_wire_is_post(&message) && message.value[1] > (int64_t)message.size_bytes) abort();
    uint8_t *again = malloc(size);
    if (again == NULL) abort();
    host_wire_encode(&message, again);
    if (memcmp(again, data, size) != 0) abort();
    free(again);
}

static void check_table(const HostLeaseTable *t) {
    int32_t free_items = 0, leased = 0;
    for (int32_t i = 0; i < t->pending_count; i++)
        free_items += t->pending[i].range.count;
    for (int32_t i = 0; i < t->active_count; i++) {
        const HostRange *range = &t->active[i].piece.range;
        for (int32_t item = range->first; item < range->first + range->count; item++)
            leased += t->state[item] == 1;
    }
    if (free_items != t->free || free_items + leased != t->open) abort();
}

static void drive_leases(const uint8_t *data, size_t size) {
    HostLeaseTable table;
    host_lease_init(&table);
    if (host_lease_begin(&table, 1, 64, 2, &(HostRange){0, 64}, 1) != STATUS_OK) abort();
    for (size_t i = 0; i + 2 < size; i += 3) {
        HostRange range = {data[i + 1] % 80 - 8, data[i + 2] % 40 - 2}, got;
        int64_t worker = data[i + 1] % 8 + 1, lease;
        HostLeaseAsk ask = {worker, (double)data[i + 2] / 255.0, data[i + 2] % 3, data[i] >= 128};
        int32_t fresh, item;
        Status status = STATUS_OK;
        switch (data[i] % 6) {
        case 0:
            host_lease_grant(&table, &ask, (double)i, &lease, &got);
            break;
        case 1:
            status = host_lease_finish(&table, range, &fresh);
            break;
        case 2:
            status = host_lease_leave(&table, worker, 0, (HostLeaseEnd)(data[i + 2] % 3));
            break;
        case 3:
            status = host_lease_want(&table, &range, 1);
            break;
        case 4:
            status = host_lease_begin(&table, data[i + 2] % 3, 64, 2, &range, 1);
            break;
        default:
            host_lease_take_lost(&table, &item);
            break;
        }
        if (status != STATUS_OK && status != STATUS_CORRUPT) abort();
        check_table(&table);
    }
    host_lease_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_message(data, size);
    drive_leases(data, size);
    return 0;
}
