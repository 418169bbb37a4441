#include <cstdint>
#include <cstring>

#include "host/plan.h"
#include "tests/host/host_test.h"

namespace {

TEST(Plan, ItemsAreAlignedAndDoNotOverlap) {
    HostPlan plan;
    host_plan_init(&plan);
    const size_t sizes[] = {1, 0, 64, 65, 1000003};
    for (size_t size : sizes) {
        int item = -1;
        ASSERT_OK(host_plan_add(&plan, ("purpose " + std::to_string(size)).c_str(), size, 1, &item));
        EXPECT_EQ(plan.count - 1, item);
    }
    for (int i = 0; i < plan.count; i++) {
        EXPECT_EQ(0u, plan.item[i].offset_bytes % 64);
        size_t end = plan.item[i].offset_bytes + plan.item[i].size_bytes;
        EXPECT_LE(end, i + 1 < plan.count ? plan.item[i + 1].offset_bytes : host_plan_total(&plan));
    }
    EXPECT_EQ(64u + 0 + 64 + 128 + 1000064, host_plan_total(&plan));
    EXPECT_EQ(3, host_plan_find(&plan, "purpose 65"));
    EXPECT_EQ(-1, host_plan_find(&plan, "purpose"));
}

TEST(Plan, OverflowIsRefusedAndChangesNothing) {
    HostPlan plan;
    host_plan_init(&plan);
    ASSERT_OK(host_plan_add(&plan, "first", 100, 4, nullptr));
    const size_t huge = SIZE_MAX;
    EXPECT_FAILS(STATUS_MEMORY, "'noise'", host_plan_add(&plan, "noise", huge / 4 + 1, 4, nullptr));
    EXPECT_FAILS(STATUS_MEMORY, "'noise'", host_plan_add(&plan, "noise", huge, 1, nullptr));
    EXPECT_FAILS(STATUS_MEMORY, "'noise'", host_plan_add(&plan, "noise", huge / 2, 1, nullptr));
    EXPECT_FAILS(STATUS_MEMORY, "too long", host_plan_add(&plan, std::string(48, 'p').c_str(), 1, 1, nullptr));
    EXPECT_EQ(1, plan.count);
    EXPECT_EQ(448u, plan.total_bytes);
    while (plan.count < HOST_PLAN_ITEMS_MAX)
        ASSERT_OK(host_plan_add(&plan, "more", 1, 1, nullptr));
    EXPECT_FAILS(STATUS_MEMORY, "after 64 purposes", host_plan_add(&plan, "last", 1, 1, nullptr));
}

TEST(Plan, OneAllocationIsCarved) {
    HostPlan plan;
    host_plan_init(&plan);
    int floats, bytes;
    ASSERT_OK(host_plan_add(&plan, "floats", 1 << 20, sizeof(float), &floats));
    ASSERT_OK(host_plan_add(&plan, "bytes", 7, 1, &bytes));
    HostMemory memory = host_memory_cpu();
    HostBlock block;
    ASSERT_OK(host_plan_alloc(&plan, &memory, &block));
    auto *values = static_cast<float *>(host_block_at(&block, &plan, floats));
    auto *tail = static_cast<unsigned char *>(host_block_at(&block, &plan, bytes));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(values) % 64);
    for (int i = 0; i < 1 << 20; i++)
        ASSERT_EQ(0.0f, values[i]);
    memset(values, 0xff, sizeof(float) << 20);
    for (int i = 0; i < 7; i++)
        EXPECT_EQ(0, tail[i]);
    host_block_free(&block);
    EXPECT_EQ(nullptr, block.base);
    host_block_free(&block);
}

TEST(Plan, ImpossibleAllocationNamesItsSize) {
    HostPlan plan;
    host_plan_init(&plan);
    ASSERT_OK(host_plan_add(&plan, "too much", size_t{1} << 60, 1, nullptr));
    HostMemory memory = host_memory_cpu();
    HostBlock block;
    EXPECT_FAILS(STATUS_MEMORY, "1.0 EiB (1152921504606846976 bytes) of CPU memory",
                 host_plan_alloc(&plan, &memory, &block));
    EXPECT_EQ(nullptr, block.base);
    host_block_free(&block);
}

TEST(Plan, EmptyPlanNeedsNoMemory) {
    HostPlan plan;
    host_plan_init(&plan);
    HostMemory memory = {"none", nullptr, nullptr, nullptr};
    HostBlock block;
    ASSERT_OK(host_plan_alloc(&plan, &memory, &block));
    host_block_free(&block);
}

TEST(Plan, Printing) {
    HostPlan plan;
    host_plan_init(&plan);
    ASSERT_OK(host_plan_add(&plan, "noise \"table\"", 3 << 20, 1, nullptr));
    ASSERT_OK(host_plan_add(&plan, "flags", 10, 1, nullptr));
    std::string text = printed([&](FILE *stream) { host_plan_print(&plan, "Memory (CPU)", stream); });
    EXPECT_NE(std::string::npos, text.find("3.0 MiB")) << text;
    EXPECT_NE(std::string::npos, text.find("10 B")) << text;
    EXPECT_NE(std::string::npos, text.find("total")) << text;
    char *json;
    ASSERT_OK(host_plan_to_json(&plan, &json));
    EXPECT_STREQ("{\"total_bytes\": 3145792, \"items\": [{\"purpose\": \"noise \\\"table\\\"\", \"offset_bytes\": 0, "
                 "\"size_bytes\": 3145728}, {\"purpose\": \"flags\", \"offset_bytes\": 3145728, \"size_bytes\": 10}]}",
                 json);
    free(json);
}

TEST(Plan, BytesText) {
    char text[16];
    EXPECT_STREQ("0 B", host_bytes_text(0, text));
    EXPECT_STREQ("1023 B", host_bytes_text(1023, text));
    EXPECT_STREQ("1.5 KiB", host_bytes_text(1536, text));
    EXPECT_STREQ("1.0 MiB", host_bytes_text((1 << 20) - 1, text));
    EXPECT_STREQ("16.0 EiB", host_bytes_text(SIZE_MAX, text));
}

} // namespace
