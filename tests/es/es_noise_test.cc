// What settings of a table of noise may be, and what follows from them for the kernels and for memory.
#include "tests/host/host_test.h" // before sim.h: its macro R() meets a template parameter of that name

#include <cstdio>

#include "es/es.h"

namespace {

class EsNoiseSettings : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(host_pool_create(1, HOST_BIND_NONE, &pool));
        KernCpuOptions options = {pool, "auto", 0};
        ASSERT_OK(kern_cpu_open(&options, &backend));
        HostConfig config;
        host_config_init(&config, es_config_table(), &values);
        ASSERT_OK(host_config_set(&config, CONFIG_ARGS, "env", "pendulum"));
        ASSERT_OK(host_config_set(&config, CONFIG_ARGS, "hidden", "5")); // 26 parameters
    }
    void TearDown() override {
        if (backend != nullptr) backend->ops->close(backend);
        host_pool_free(pool);
    }
    void refused(const char *words) { EXPECT_FAILS(STATUS_USAGE, words, es_config_spec(&values, &spec)); }

    HostPool *pool = nullptr;
    KernBackend *backend = nullptr;
    EsConfig values;
    KernEsSpec spec;
};

TEST_F(EsNoiseSettings, AreRefusedWhereTheyMakeNoSense) {
    values.noise_table = 640;
    refused("--noise-table 640: it needs --noise table");
    values.noise = 1;
    values.noise_table = 100;
    refused("--noise-table 100: a multiple of 64 from 64, for the policy's 26 parameters, to 4294967296");
    values.hidden = {1, {13}}; // 66 parameters
    values.noise_table = 64;
    refused("from 128, for the policy's 66 parameters");
    values.noise_table = 128;
    EXPECT_OK(es_config_spec(&values, &spec));
}

TEST_F(EsNoiseSettings, MakeTheTableAndItsMemory) {
    const char *purpose = "noise table, one for the host";
    HostPlan plan;
    host_plan_init(&plan);
    ASSERT_OK(es_config_spec(&values, &spec));
    EXPECT_EQ(0, spec.table);
    ASSERT_OK(es_plan(backend, &values, &plan));
    EXPECT_EQ(-1, host_plan_find(&plan, purpose));
    values.noise = 1;
    for (int64_t floats : {int64_t{64}, int64_t{1} << 26, KERN_ES_TABLE_MAX}) {
        values.noise_table = floats;
        ASSERT_OK(es_config_spec(&values, &spec));
        EXPECT_EQ(floats, spec.table);
        host_plan_init(&plan);
        ASSERT_OK(es_plan(backend, &values, &plan));
        int item = host_plan_find(&plan, purpose);
        ASSERT_GE(item, 0);
        EXPECT_EQ(static_cast<size_t>(floats) * 4, plan.item[item].size_bytes);
    }
    std::snprintf(values.eval, sizeof values.eval, "runs/some"); // a test has no noise
    ASSERT_OK(es_config_spec(&values, &spec));
    EXPECT_EQ(0, spec.table);
}

} // namespace
