// The client's buffers: records are written into one until it is full; a thread of this library's own gives it back.
#ifndef SHOAL_TESTS_VGPU_CUPTI_BUFFERS_H
#define SHOAL_TESTS_VGPU_CUPTI_BUFFERS_H

#include <cstddef>

#include "tests/vgpu/cupti/cupti_headers.h"

namespace vgpu {

// Where there is no room and the client gives no more, the record is dropped and counted.
void put_bytes(const void *record, size_t bytes);

template <typename Record> void put(const Record &record) {
    static_assert(sizeof(Record) % ACTIVITY_RECORD_ALIGNMENT == 0);
    put_bytes(&record, sizeof record);
}

// Gives back what there is and returns when the client has it.
void flush_buffers(bool is_forced);

} // namespace vgpu

#endif
