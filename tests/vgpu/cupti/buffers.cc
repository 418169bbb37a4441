#include "tests/vgpu/cupti/buffers.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "tests/vgpu/cupti/identifiers.h"
#include "tests/vgpu/cupti/kinds.h"
#include "tests/vgpu/cupti/records.h"
#include "tests/vgpu/runtime/observer.h"

namespace vgpu {
namespace {

struct Buffer {
    uint8_t *bytes = nullptr; // null: none
    size_t size = 0, used = 0;
    size_t records = 0, most_records = 0; // 0: as many as there is room for

    bool has_room(size_t wanted) const {
        return bytes != nullptr && size - used >= wanted && (most_records == 0 || records < most_records);
    }
};

// Never destroyed: its thread runs to the end of the process.
class Buffers {
  public:
    void set_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
        std::lock_guard lock(mutex_);
        request_ = request, complete_ = complete;
        if (has_thread_) return;
        has_thread_ = true;
        std::thread thread(&Buffers::deliver, this);
        thread_ = thread.get_id();
        thread.detach();
    }

    bool has_callbacks() {
        std::lock_guard lock(mutex_);
        return request_ != nullptr;
    }

    // The client is asked for a buffer under the mutex: it may not call this library then.
    void put(const void *record, size_t bytes) {
        std::lock_guard lock(mutex_);
        if (!current_.has_room(bytes)) next_buffer();
        if (!current_.has_room(bytes)) {
            dropped_++;
            return;
        }
        memcpy(current_.bytes + current_.used, record, bytes);
        current_.used += bytes;
        current_.records++;
    }

    void flush(bool is_forced) {
        std::unique_lock lock(mutex_);
        if (current_.bytes != nullptr && (current_.records > 0 || is_forced)) give_back();
        if (std::this_thread::get_id() == thread_) return; // it is called by the client's own callback
        uint64_t last = given_back_;
        delivered_.wait(lock, [&] { return delivered_count_ >= last; });
    }

    size_t take_dropped() { return dropped_.exchange(0); }

  private:
    void give_back() {
        full_.push_back(current_);
        current_ = {};
        given_back_++;
        wake_.notify_one();
    }

    void next_buffer() {
        if (current_.bytes != nullptr) give_back();
        if (request_ == nullptr) return;
        request_(&current_.bytes, &current_.size, &current_.most_records);
        if (current_.bytes == nullptr) current_ = {};
    }

    void deliver() {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return !full_.empty(); });
            Buffer buffer = full_.front();
            full_.pop_front();
            CUpti_BuffersCallbackCompleteFunc complete = complete_;
            lock.unlock();
            uint64_t begin = vgpu_now();
            complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
            // An overhead's record must not bring about the next one for ever.
            if (buffer.records > 1) record_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, begin, vgpu_now());
            lock.lock();
            delivered_count_++;
            delivered_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, delivered_;
    CUpti_BuffersCallbackRequestFunc request_ = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
    Buffer current_;
    std::deque<Buffer> full_;
    uint64_t given_back_ = 0, delivered_count_ = 0;
    std::atomic<size_t> dropped_{0};
    bool has_thread_ = false;
    std::thread::id thread_;
};

Buffers &buffers() {
    static auto *const only = new Buffers;
    return *only;
}

} // namespace

void put_bytes(const void *record, size_t bytes) { buffers().put(record, bytes); }

void flush_buffers(bool is_forced) { buffers().flush(is_forced); }

} // namespace vgpu

using namespace vgpu;

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
    if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    buffers().set_callbacks(request, complete);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    if (!buffers().has_callbacks()) return CUPTI_ERROR_INVALID_OPERATION;
    flush_buffers((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
    return CUPTI_SUCCESS;
}

// What is full is given back at once here, so that there is nothing left to do at intervals.
CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *dropped) {
    if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *dropped = buffers().take_dropped();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record) {
    if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    uint8_t *next = buffer;
    if (*record != nullptr) {
        size_t bytes = record_size((*record)->kind);
        if (bytes == 0) return CUPTI_ERROR_INVALID_KIND;
        next = reinterpret_cast<uint8_t *>(*record) + bytes;
    }
    if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    auto *found = reinterpret_cast<CUpti_Activity *>(next);
    if (record_size(found->kind) == 0) return CUPTI_ERROR_INVALID_KIND;
    *record = found;
    return CUPTI_SUCCESS;
}
