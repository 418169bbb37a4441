// What the tests of CUPTI share. They use its API and the runtime's only. What is of the virtual GPU alone, the cost
// model, is asked for by is_virtual().
#ifndef SHOAL_TESTS_VGPU_CUPTI_CUPTI_TEST_UTIL_H
#define SHOAL_TESTS_VGPU_CUPTI_CUPTI_TEST_UTIL_H

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>

#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

#include "tests/vgpu/runtime/runtime_test_util.h"

#define EXPECT_CUPTI(expression) EXPECT_EQ(expression, CUPTI_SUCCESS)
#define ASSERT_CUPTI(expression) ASSERT_EQ(expression, CUPTI_SUCCESS)

inline uint64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

// A setting of the cost model, which the tests' environment has.
inline uint64_t cost(const char *name) {
    const char *text = getenv((std::string("VGPU_COST_") + name).c_str());
    return text != nullptr ? strtoull(text, nullptr, 10) : 0;
}

// The records that CUPTI has given back so far, in its order. One at a time.
class Records {
  public:
    static constexpr size_t BYTES = 16 << 10;

    static Records &get() {
        static Records only;
        return only;
    }

    // What is asked for next: how many bytes a buffer has, 0 for none, and how many records.
    size_t buffer_bytes = BYTES, buffer_records = 0;

    void clear() {
        std::lock_guard lock(mutex_);
        bytes_.clear();
        buffers_ = 0;
        buffer_bytes = BYTES, buffer_records = 0;
    }

    // Of a kind, whose struct is Record.
    template <typename Record> std::vector<Record> all(CUpti_ActivityKind kind) {
        std::lock_guard lock(mutex_);
        std::vector<Record> found;
        for (std::vector<uint8_t> &buffer : bytes_) {
            CUpti_Activity *record = nullptr;
            while (cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS) {
                if (record->kind != kind) continue;
                found.emplace_back();
                memcpy(&found.back(), record, sizeof(Record));
            }
        }
        return found;
    }

    std::vector<CUpti_ActivityKernel10> kernels() {
        return all<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    }
    std::vector<CUpti_ActivityAPI> calls() { return all<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME); }

    // Kinds in the order of their records.
    std::vector<CUpti_ActivityKind> kinds() {
        std::lock_guard lock(mutex_);
        std::vector<CUpti_ActivityKind> found;
        for (std::vector<uint8_t> &buffer : bytes_) {
            CUpti_Activity *record = nullptr;
            while (cuptiActivityGetNextRecord(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS)
                found.push_back(record->kind);
        }
        return found;
    }

    size_t buffers() {
        std::lock_guard lock(mutex_);
        return buffers_;
    }
    std::thread::id deliverer() {
        std::lock_guard lock(mutex_);
        return deliverer_;
    }

    static void request(uint8_t **buffer, size_t *bytes, size_t *records) {
        *bytes = get().buffer_bytes;
        *records = get().buffer_records;
        *buffer = *bytes > 0 ? static_cast<uint8_t *>(malloc(*bytes)) : nullptr;
    }

    static void complete(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
        Records &all = get();
        std::lock_guard lock(all.mutex_);
        all.bytes_.emplace_back(buffer, buffer + valid);
        all.buffers_++;
        all.deliverer_ = std::this_thread::get_id();
        free(buffer);
    }

  private:
    std::mutex mutex_;
    std::vector<std::vector<uint8_t>> bytes_;
    size_t buffers_ = 0;
    std::thread::id deliverer_;
};

class CuptiTest : public RuntimeTest {
  protected:
    void SetUp() override {
        RuntimeTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        EXPECT_CUDA(cudaFree(nullptr));
        Records::get().clear();
        static const CUptiResult has_clock = cuptiActivityRegisterTimestampCallback(monotonic_ns);
        ASSERT_CUPTI(has_clock);
        ASSERT_CUPTI(cuptiActivityRegisterCallbacks(Records::request, Records::complete));
    }

    void TearDown() override {
        RuntimeTest::TearDown();
        if (library_ == nullptr) return;
        for (CUpti_ActivityKind kind : enabled_)
            EXPECT_CUPTI(cuptiActivityDisable(kind));
        if (subscriber_ != nullptr) {
            EXPECT_CUPTI(cuptiUnsubscribe(subscriber_));
        }
        EXPECT_CUPTI(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
        size_t dropped = 0;
        EXPECT_CUPTI(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
        EXPECT_EQ(dropped, 0u);
    }

    void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
        for (CUpti_ActivityKind kind : kinds) {
            ASSERT_CUPTI(cuptiActivityEnable(kind));
            enabled_.push_back(kind);
        }
    }

    void subscribe(CUpti_CallbackFunc callback, void *data) {
        ASSERT_CUPTI(cuptiSubscribe_v2(&subscriber_, callback, data, nullptr));
    }

    // Everything that was recorded so far is in Records.
    void flush() {
        ASSERT_CUDA(cudaDeviceSynchronize());
        ASSERT_CUPTI(cuptiActivityFlushAll(0));
    }

    std::vector<CUpti_ActivityKind> enabled_;
    CUpti_SubscriberHandle subscriber_ = nullptr;
};

// Work of a stream that waits in it until it is opened, whatever comes behind.
class Gate {
  public:
    explicit Gate(cudaStream_t stream) { EXPECT_CUDA(cudaLaunchHostFunc(stream, wait, new Flag(is_open_))); }
    ~Gate() { open(); }
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;
    void open() { *is_open_ = true; }

  private:
    using Flag = std::shared_ptr<std::atomic<bool>>; // the stream may look at it when the gate is gone

    static void wait(void *data) {
        std::unique_ptr<Flag> flag(static_cast<Flag *>(data));
        while (!**flag)
            std::this_thread::yield();
    }

    Flag is_open_ = std::make_shared<std::atomic<bool>>(false);
};

// It points into the list.
template <typename Record> const Record *find_correlated(const std::vector<Record> &records, uint32_t correlation) {
    for (const Record &record : records) {
        if (record.correlationId == correlation) return &record;
    }
    return nullptr;
}
template <typename Record> const Record *find_correlated(std::vector<Record> &&, uint32_t) = delete;

#endif
