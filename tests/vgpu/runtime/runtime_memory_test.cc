// Memory: allocation, pools, copies of all kinds and what they refuse.
#include <algorithm>

#include "tests/vgpu/runtime/runtime_test_util.h"

namespace {

constexpr uint32_t N = 1000;

class MemoryTest : public RuntimeTest {};

TEST_F(MemoryTest, AllocationsAreAlignedAndCounted) {
    size_t before = 0, during = 0, after = 0, total = 0;
    ASSERT_CUDA(cudaMemGetInfo(&before, &total));
    void *memory = nullptr;
    constexpr size_t bytes = size_t{64} << 20;
    ASSERT_CUDA(cudaMalloc(&memory, bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0u);
    ASSERT_CUDA(cudaMemGetInfo(&during, &total));
    EXPECT_LE(during, before - bytes);
    ASSERT_CUDA(cudaFree(memory));
    ASSERT_CUDA(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(after, before);
}

TEST_F(MemoryTest, WhatAllocationRefuses) {
    size_t free_bytes = 0, total_bytes = 0;
    void *memory = nullptr;
    ASSERT_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    EXPECT_CUDA_ERROR(cudaMalloc(&memory, total_bytes + 1), cudaErrorMemoryAllocation);
    EXPECT_CUDA_ERROR(cudaMalloc(&memory, SIZE_MAX), cudaErrorMemoryAllocation);
    EXPECT_CUDA_ERROR(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaFree(nullptr));
    EXPECT_CUDA(cudaFreeHost(nullptr));
    int local = 0;
    EXPECT_CUDA_ERROR(cudaFree(&local), cudaErrorInvalidValue);
    memory = &local;
    EXPECT_CUDA(cudaMalloc(&memory, 0));
    EXPECT_EQ(memory, nullptr);
}

// Several allocations have parts of one page, which is not given back with the first of them.
TEST_F(MemoryTest, FreeingLeavesNeighboursAlone) {
    constexpr size_t count = 24, bytes = 2000;
    char *memory[count], host[bytes];
    for (size_t i = 0; i < count; i++) {
        ASSERT_CUDA(cudaMalloc(reinterpret_cast<void **>(&memory[i]), bytes));
        ASSERT_CUDA(cudaMemset(memory[i], static_cast<int>(i + 1), bytes));
    }
    for (size_t freed = 0; freed < count; freed++) {
        ASSERT_CUDA(cudaFree(memory[freed]));
        for (size_t i = freed + 1; i < count; i++) {
            ASSERT_CUDA(cudaMemcpy(host, memory[i], bytes, cudaMemcpyDeviceToHost));
            char wanted = static_cast<char>(i + 1);
            ASSERT_TRUE(std::all_of(host, host + bytes, [&](char byte) { return byte == wanted; }))
                << freed << " " << i;
        }
    }
}

TEST_F(MemoryTest, WhatFreeingRefuses) {
    char *memory = nullptr;
    ASSERT_CUDA(cudaMalloc(reinterpret_cast<void **>(&memory), 4096));
    EXPECT_CUDA_ERROR(cudaFree(memory + 256), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaFreeHost(memory), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaFree(memory));
    EXPECT_CUDA_ERROR(cudaFree(memory), cudaErrorInvalidValue);
    void *pinned = nullptr;
    ASSERT_CUDA(cudaMallocHost(&pinned, 4096));
    EXPECT_CUDA(cudaFreeHost(pinned));
    EXPECT_CUDA_ERROR(cudaFreeHost(pinned), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, CopiesOfAllKinds) {
    std::mt19937 random(20252);
    std::vector<uint32_t> source(N), target(N);
    std::generate(source.begin(), source.end(), std::ref(random));
    DeviceWords first(N), second(N);
    PinnedWords pinned(N, 0);
    ASSERT_CUDA(cudaMemcpy(first.get(), source.data(), first.bytes(), cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaMemcpy(second.get(), first.get(), first.bytes(), cudaMemcpyDeviceToDevice));
    ASSERT_CUDA(cudaMemcpy(pinned.get(), second.get(), first.bytes(), cudaMemcpyDefault));
    EXPECT_TRUE(std::equal(source.begin(), source.end(), pinned.get()));
    ASSERT_CUDA(cudaMemcpy(target.data(), pinned.get(), first.bytes(), cudaMemcpyHostToHost));
    EXPECT_EQ(target, source);
    // The last words, from within.
    ASSERT_CUDA(cudaMemcpy(target.data(), second.get() + N - 10, 40, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(std::equal(target.begin(), target.begin() + 10, source.end() - 10));
    EXPECT_CUDA(cudaMemcpy(first.get(), source.data(), 0, cudaMemcpyHostToDevice));
}

TEST_F(MemoryTest, WhatCopiesRefuse) {
    DeviceWords words(N);
    std::vector<uint32_t> host(N + 1);
    auto *bytes = reinterpret_cast<char *>(words.get());
    EXPECT_CUDA_ERROR(cudaMemcpy(words.get(), host.data(), words.bytes() + 1, cudaMemcpyHostToDevice),
                      cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaMemcpy(bytes + 4, host.data(), words.bytes(), cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaMemcpy(host.data(), words.get(), words.bytes(), cudaMemcpyHostToDevice),
                      cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaMemcpy(words.get(), host.data(), 4, static_cast<cudaMemcpyKind>(7)),
                      cudaErrorInvalidMemcpyDirection);
    EXPECT_CUDA_ERROR(cudaMemset(words.get(), 0, words.bytes() + 1), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaMemcpy2D(words.get(), 8, host.data(), 16, 12, 2, cudaMemcpyHostToDevice),
                      cudaErrorInvalidPitchValue);
    void *freed = nullptr;
    ASSERT_CUDA(cudaMalloc(&freed, 64));
    ASSERT_CUDA(cudaFree(freed));
    EXPECT_CUDA_ERROR(cudaMemcpy(freed, host.data(), 64, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, RowsAndBoxes) {
    constexpr size_t width = 100, height = 7, depth = 3, host_pitch = 128;
    std::mt19937 random(20253);
    std::vector<uint8_t> source(host_pitch * height * depth), target(source.size(), 0xee);
    for (uint8_t &byte : source)
        byte = static_cast<uint8_t>(random());
    cudaPitchedPtr box;
    ASSERT_CUDA(cudaMalloc3D(&box, {width, height, depth}));
    EXPECT_EQ(box.pitch % 32, 0u);
    ASSERT_CUDA(cudaMemset3D(box, 0x11, {width, height, depth}));
    cudaMemcpy3DParms in{};
    in.srcPtr = {source.data(), host_pitch, width, height};
    in.dstPtr = box;
    in.extent = {width, height, depth};
    in.kind = cudaMemcpyHostToDevice;
    ASSERT_CUDA(cudaMemcpy3D(&in));
    // The middle slice comes back alone, by rows.
    const char *slice = static_cast<const char *>(box.ptr) + box.pitch * height;
    ASSERT_CUDA(cudaMemcpy2D(target.data(), host_pitch, slice, box.pitch, width, height, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < target.size(); i++) {
        bool is_copied = i < host_pitch * height && i % host_pitch < width;
        ASSERT_EQ(target[i], is_copied ? source[i + host_pitch * height] : 0xee) << i;
    }
    ASSERT_CUDA(cudaMemset2D(box.ptr, box.pitch, 0x22, width, height));
    ASSERT_CUDA(cudaMemcpy(target.data(), box.ptr, width, cudaMemcpyDeviceToHost));
    EXPECT_EQ(target[width - 1], 0x22);
    ASSERT_CUDA(cudaMemcpy(target.data(), slice, width, cudaMemcpyDeviceToHost));
    EXPECT_EQ(target[0], source[host_pitch * height]);
    EXPECT_CUDA(cudaFree(box.ptr));
}

TEST_F(MemoryTest, WhatPointersSay) {
    DeviceWords words(N);
    PinnedWords pinned(N, 0);
    void *managed = nullptr;
    ASSERT_CUDA(cudaMallocManaged(&managed, 64));
    int local = 0;
    struct Expected {
        const void *pointer;
        cudaMemoryType type;
    } const rows[] = {{words.get() + 3, cudaMemoryTypeDevice},
                      {pinned.get() + 3, cudaMemoryTypeHost},
                      {managed, cudaMemoryTypeManaged},
                      {&local, cudaMemoryTypeUnregistered}};
    for (const Expected &row : rows) {
        cudaPointerAttributes attributes;
        ASSERT_CUDA(cudaPointerGetAttributes(&attributes, row.pointer));
        EXPECT_EQ(attributes.type, row.type);
        bool has_device = row.type != cudaMemoryTypeUnregistered, has_host = row.type != cudaMemoryTypeDevice;
        EXPECT_EQ(attributes.devicePointer, has_device ? row.pointer : nullptr);
        EXPECT_EQ(attributes.hostPointer, has_host ? row.pointer : nullptr);
    }
    EXPECT_CUDA(cudaFree(managed));
}

TEST_F(MemoryTest, KernelsReachPinnedAndManagedMemory) {
    PinnedWords pinned(N, 0);
    void *device_pointer = nullptr;
    uint32_t *managed = nullptr;
    ASSERT_CUDA(cudaHostGetDevicePointer(&device_pointer, pinned.get(), 0));
    ASSERT_CUDA(cudaMallocManaged(reinterpret_cast<void **>(&managed), N * 4));
    std::fill_n(managed, N, 1u);
    ASSERT_CUDA(launch("fill", static_cast<uint32_t *>(device_pointer), N, 21, nullptr));
    ASSERT_CUDA(launch("mix", managed, N, 2, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(std::vector<uint32_t>(pinned.get(), pinned.get() + N), words_of(N, 21));
    EXPECT_EQ(std::vector<uint32_t>(managed, managed + N), words_of(N, 5));
    EXPECT_CUDA(cudaFree(managed));
}

TEST_F(MemoryTest, RegisteredMemory) {
    std::vector<uint32_t> host(N, 2);
    EXPECT_CUDA_ERROR(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
    ASSERT_CUDA(cudaHostRegister(host.data(), N * 4, cudaHostRegisterDefault));
    EXPECT_CUDA_ERROR(cudaHostRegister(host.data(), N * 4, cudaHostRegisterDefault),
                      cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_CUDA_ERROR(cudaFreeHost(host.data()), cudaErrorInvalidValue);
    void *device_pointer = nullptr;
    ASSERT_CUDA(cudaHostGetDevicePointer(&device_pointer, host.data(), 0));
    ASSERT_CUDA(launch("mix", static_cast<uint32_t *>(device_pointer), N, 1, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(host, words_of(N, 7));
    ASSERT_CUDA(cudaHostUnregister(host.data()));
    EXPECT_EQ(host, words_of(N, 7));
    EXPECT_CUDA_ERROR(cudaHostGetDevicePointer(&device_pointer, host.data(), 0), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, FlagsOfPinnedMemory) {
    void *memory = nullptr;
    unsigned flags = 0;
    ASSERT_CUDA(cudaHostAlloc(&memory, 64, cudaHostAllocPortable | cudaHostAllocMapped));
    ASSERT_CUDA(cudaHostGetFlags(&flags, memory));
    EXPECT_EQ(flags, static_cast<unsigned>(cudaHostAllocPortable | cudaHostAllocMapped));
    EXPECT_CUDA(cudaFreeHost(memory));
    EXPECT_CUDA_ERROR(cudaHostAlloc(&memory, 64, 0x100), cudaErrorInvalidValue);
    EXPECT_CUDA_ERROR(cudaHostGetFlags(&flags, &flags), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, HintsForManagedMemory) {
    void *managed = nullptr;
    ASSERT_CUDA(cudaMallocManaged(&managed, 4096));
    int concurrent = 0;
    ASSERT_CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    if (concurrent != 0) {
        cudaMemLocation device{};
        device.type = cudaMemLocationTypeDevice;
        EXPECT_CUDA(cudaMemPrefetchAsync(managed, 4096, device, 0, nullptr));
        EXPECT_CUDA(cudaMemAdvise(managed, 4096, cudaMemAdviseSetPreferredLocation, device));
        EXPECT_CUDA_ERROR(cudaMemPrefetchAsync(managed, 4096, device, 7, nullptr), cudaErrorInvalidValue);
    }
    EXPECT_CUDA(cudaFree(managed));
}

// ---- pools ---------------------------------------------------------------------------------------------------------

uint64_t pool_figure(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    uint64_t value = 0;
    EXPECT_CUDA(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

cudaMemPool_t make_pool() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    EXPECT_CUDA(cudaMemPoolCreate(&pool, &properties));
    return pool;
}

TEST_F(MemoryTest, AllocationInTheOrderOfAStream) {
    Stream stream;
    uint32_t *words = nullptr;
    PinnedWords host(N, 0);
    ASSERT_CUDA(cudaMallocAsync(reinterpret_cast<void **>(&words), N * 4, stream));
    ASSERT_CUDA(launch("fill", words, N, 12, stream));
    ASSERT_CUDA(cudaMemcpyAsync(host.get(), words, N * 4, cudaMemcpyDeviceToHost, stream));
    ASSERT_CUDA(cudaFreeAsync(words, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(std::vector<uint32_t>(host.get(), host.get() + N), words_of(N, 12));
    EXPECT_CUDA_ERROR(cudaFreeAsync(words, stream), cudaErrorInvalidValue);
    EXPECT_CUDA(cudaFreeAsync(nullptr, stream));
}

TEST_F(MemoryTest, PoolsKeepAccount) {
    cudaMemPool_t pool = make_pool();
    Stream stream;
    void *memory[2] = {};
    ASSERT_CUDA(cudaMallocFromPoolAsync(&memory[0], 1000, pool, stream));
    ASSERT_CUDA(cudaMallocFromPoolAsync(&memory[1], 3000, pool, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    uint64_t used = pool_figure(pool, cudaMemPoolAttrUsedMemCurrent);
    EXPECT_GE(used, 4000u);
    EXPECT_GE(pool_figure(pool, cudaMemPoolAttrReservedMemCurrent), used);
    ASSERT_CUDA(cudaFreeAsync(memory[0], stream));
    ASSERT_CUDA(cudaFreeAsync(memory[1], stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(pool_figure(pool, cudaMemPoolAttrUsedMemCurrent), 0u);
    EXPECT_GE(pool_figure(pool, cudaMemPoolAttrUsedMemHigh), 4000u);
    ASSERT_CUDA(cudaMemPoolTrimTo(pool, 0));
    EXPECT_EQ(pool_figure(pool, cudaMemPoolAttrReservedMemCurrent), 0u);
    uint64_t reset = 0;
    ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &reset));
    EXPECT_EQ(pool_figure(pool, cudaMemPoolAttrUsedMemHigh), 0u);
    reset = 1;
    EXPECT_CUDA_ERROR(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &reset), cudaErrorInvalidValue);
    uint64_t threshold = 123456;
    ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    EXPECT_EQ(pool_figure(pool, cudaMemPoolAttrReleaseThreshold), threshold);
    EXPECT_CUDA(cudaMemPoolDestroy(pool));
}

TEST_F(MemoryTest, AllocationsThatFailAreNotInAPoolsAccount) {
    cudaMemPool_t pool = make_pool();
    Stream stream;
    void *memory = nullptr;
    ASSERT_CUDA(cudaMallocFromPoolAsync(&memory, 1000, pool, stream));
    const cudaMemPoolAttr figures[] = {cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh,
                                       cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh};
    std::vector<uint64_t> before, after;
    for (cudaMemPoolAttr figure : figures)
        before.push_back(pool_figure(pool, figure));
    void *none = nullptr;
    EXPECT_CUDA_ERROR(cudaMallocFromPoolAsync(&none, size_t{1} << 45, pool, stream), cudaErrorMemoryAllocation);
    for (cudaMemPoolAttr figure : figures)
        after.push_back(pool_figure(pool, figure));
    EXPECT_EQ(after, before);
    ASSERT_CUDA(cudaFreeAsync(memory, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_CUDA(cudaMemPoolDestroy(pool));
}

// A pool gives back what it may not have.
TEST_F(MemoryTest, PoolsHaveALimit) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.maxSize = size_t{64} << 20;
    cudaMemPool_t pool = nullptr;
    ASSERT_CUDA(cudaMemPoolCreate(&pool, &properties));
    Stream stream;
    void *memory = nullptr, *none = nullptr;
    ASSERT_CUDA(cudaMallocFromPoolAsync(&memory, size_t{40} << 20, pool, stream));
    size_t before = 0, after = 0, total = 0;
    ASSERT_CUDA(cudaMemGetInfo(&before, &total));
    EXPECT_CUDA_ERROR(cudaMallocFromPoolAsync(&none, size_t{40} << 20, pool, stream), cudaErrorMemoryAllocation);
    ASSERT_CUDA(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(after, before);
    ASSERT_CUDA(cudaFreeAsync(memory, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_CUDA(cudaMemPoolDestroy(pool));
}

// A capture of a blocking stream forbids work in the legacy default one, and then nothing is allocated.
TEST_F(MemoryTest, ACaptureForbidsAllocationInTheLegacyStream) {
    size_t before = 0, after = 0, total = 0;
    Stream stream(cudaStreamDefault);
    cudaGraph_t graph = nullptr;
    void *memory = nullptr;
    ASSERT_CUDA(cudaMemGetInfo(&before, &total));
    ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_CUDA_ERROR(cudaMallocAsync(&memory, 1 << 20, nullptr), cudaErrorStreamCaptureImplicit);
    EXPECT_CUDA_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ASSERT_CUDA(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(after, before);
}

TEST_F(MemoryTest, TheCurrentPoolIsTheOneInUse) {
    cudaMemPool_t own = make_pool(), fallback = nullptr, current = nullptr;
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&fallback, 0));
    ASSERT_CUDA(cudaDeviceGetMemPool(&current, 0));
    EXPECT_EQ(current, fallback);
    ASSERT_CUDA(cudaDeviceSetMemPool(0, own));
    ASSERT_CUDA(cudaDeviceGetMemPool(&current, 0));
    EXPECT_EQ(current, own);
    void *memory = nullptr;
    ASSERT_CUDA(cudaMallocAsync(&memory, 100, nullptr));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_GE(pool_figure(own, cudaMemPoolAttrUsedMemCurrent), 100u);
    ASSERT_CUDA(cudaFree(memory)); // which may free a pool's memory too
    EXPECT_EQ(pool_figure(own, cudaMemPoolAttrUsedMemCurrent), 0u);
    ASSERT_CUDA(cudaDeviceSetMemPool(0, fallback));
    EXPECT_CUDA(cudaMemPoolDestroy(own));
    EXPECT_CUDA_ERROR(cudaMemPoolDestroy(fallback), cudaErrorInvalidValue);
}

// Memory whose freeing waits in a stream can be had again.
TEST_F(MemoryTest, APoolWaitsForFreesWhereMemoryIsShort) {
    if (!is_virtual()) GTEST_SKIP() << "needs a device of known size";
    size_t free_bytes = 0, total_bytes = 0;
    ASSERT_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    Stream stream;
    size_t most = free_bytes / 4 * 3;
    void *first = nullptr, *second = nullptr, *third = nullptr;
    ASSERT_CUDA(cudaMallocAsync(&first, most, stream));
    ASSERT_CUDA(cudaFreeAsync(first, stream));
    ASSERT_CUDA(cudaMallocAsync(&second, most, stream));
    EXPECT_CUDA_ERROR(cudaMallocAsync(&third, most, stream), cudaErrorMemoryAllocation);
    ASSERT_CUDA(cudaFreeAsync(second, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
}

} // namespace
