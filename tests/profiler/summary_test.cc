// The figures of a report: they add up, splits are shared out, workers are merged; and what the report says of a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "profiler/prof_report.h"
#include "tests/kernels/fresh_seed.h"
#include "tests/profiler/random_trace.h"

namespace profiler_test {
namespace {

class Summary {
  public:
    Summary(const std::vector<std::unique_ptr<Analysed>> &workers, unsigned phases) {
        prof_summary_init(&summary_, phases);
        for (const auto &worker : workers)
            EXPECT_EQ(STATUS_OK, prof_summary_add(&summary_, &**worker)) << host_message();
        prof_summary_finish(&summary_);
    }
    ~Summary() { prof_summary_free(&summary_); }
    Summary(const Summary &) = delete;
    Summary &operator=(const Summary &) = delete;
    const ProfSummary *operator->() const { return &summary_; }

  private:
    ProfSummary summary_;
};

template <size_t N> int64_t sum_of(const int64_t (&x)[N]) { return std::accumulate(x, x + N, int64_t(0)); }

void expect_sums(const ProfFigures &f, unsigned phases) {
    EXPECT_EQ(f.wall_ns, sum_of(f.bound_ns));
    EXPECT_EQ(f.thread_ns, sum_of(f.category_thread_ns));
    EXPECT_EQ(f.bound_ns[PROF_BOUND_GPU], sum_of(f.gpu_bound_ns));
    EXPECT_EQ(f.bound_ns[PROF_BOUND_OVERLAPPED], sum_of(f.overlapped_ns));
    if (phases == PROF_ALL_PHASES) {
        EXPECT_EQ(f.device_sum_ns, sum_of(f.category_device_ns));
        EXPECT_EQ(f.wall_ns, sum_of(f.phase_ns));
    }
    EXPECT_LE(f.outside_ns + f.lost_ns, f.thread_ns);
}

// Threads' time by category as it should be, in double: nodes' times by their weights.
void expect_categories(const ProfAnalysis &a, const ProfFigures &f, unsigned phases) {
    double expected[HOST_TRACE_CATEGORIES + 1] = {};
    for (int32_t i = 0; i < a.node_count; i++) {
        const ProfNode &node = a.nodes[i];
        double ns = 0, weights = 0;
        for (int p = 0; p < HOST_TRACE_PHASES; p++)
            ns += phases >> p & 1 ? static_cast<double>(node.cell[p].thread_ns) : 0.0;
        for (uint64_t weight : node.split)
            weights += static_cast<double>(weight);
        if (weights == 0.0) expected[node.category] += ns;
        for (int c = 0; weights > 0.0 && c < HOST_TRACE_CATEGORIES; c++)
            expected[c] += ns * static_cast<double>(node.split[c]) / weights;
    }
    for (int c = 0; c <= HOST_TRACE_CATEGORIES; c++)
        EXPECT_NEAR(expected[c], static_cast<double>(f.category_thread_ns[c]), a.node_count) << c;
}

TEST(Summary, AddsUpOnRandomTraces) {
    uint64_t seed = fresh_seed();
    for (uint64_t i = 0; i < 500; i++) {
        std::vector<std::unique_ptr<Analysed>> workers;
        RandomTrace random(seed + i);
        for (int64_t w = random.draw(1, 4); w > 0; w--)
            workers.push_back(std::make_unique<Analysed>(random.trace()));
        for (unsigned phases : {unsigned(PROF_ALL_PHASES), 1u, 2u, 4u, 8u}) {
            Summary s(workers, phases);
            ProfFigures total = {};
            ASSERT_EQ(static_cast<int32_t>(workers.size()), s->worker_count);
            for (int32_t w = 0; w < s->worker_count; w++) {
                const ProfFigures &f = s->workers[w].figures;
                expect_sums(f, phases);
                expect_categories(**workers[static_cast<size_t>(w)], f, phases);
                int64_t pool = std::max(total.pool_peak_bytes, f.pool_peak_bytes);
                for (size_t k = 0; k < sizeof total / sizeof(int64_t); k++)
                    reinterpret_cast<int64_t *>(&total)[k] += reinterpret_cast<const int64_t *>(&f)[k];
                total.pool_peak_bytes = pool; // of one pool
            }
            EXPECT_EQ(0, memcmp(&total, &s->total, sizeof total));
            int64_t of_scopes = 0, of_roots = 0;
            for (int32_t k = 0; k < s->scope_count; k++) {
                of_scopes += s->scopes[k].thread_ns;
                if (s->scopes[k].parent < 0) of_roots += s->scopes[k].within_ns;
            }
            EXPECT_EQ(s->total.thread_ns, of_scopes);
            EXPECT_EQ(s->total.thread_ns, of_roots);
        }
        if (testing::Test::HasFailure()) FAIL() << "traces " << i << " of seed " << seed;
    }
}

Trace gpu_trace() {
    Trace t;
    t.process = make_process(0);
    t.end_ns = 1000;
    t.names = {make_name("fused", HOST_TRACE_SIMULATION), make_name("learn", HOST_TRACE_LEARNING),
               make_name("sync", HOST_TRACE_IDLE, PROF_LAYER_API), make_name("kernel", HOST_TRACE_HOST)};
    ProfEvent split = make_event(PROF_EVENT_SPLIT, 190);
    split.weight[HOST_TRACE_SIMULATION] = 30;
    split.weight[HOST_TRACE_POLICY] = 10;
    t.streams = {{make_stream(0, PROF_STREAM_THREAD, true),
                  {begin(0, 0), launch(10, 1), begin(100, 2), end(180), split, end(200), begin(200, 1), end(1000)}},
                 {make_stream(1, PROF_STREAM_DEVICE, false, 100), {interval(50, 400, 1)}}};
    return t;
}

TEST(Summary, ASplitScopeCountsForItsParts) {
    std::vector<std::unique_ptr<Analysed>> workers;
    workers.push_back(std::make_unique<Analysed>(gpu_trace()));
    Summary s(workers, PROF_ALL_PHASES);
    const ProfFigures &f = s->total;
    EXPECT_EQ(90, f.category_thread_ns[HOST_TRACE_SIMULATION]); // 120 ns, 3 to 1
    EXPECT_EQ(30, f.category_thread_ns[HOST_TRACE_POLICY]);
    EXPECT_EQ(800, f.category_thread_ns[HOST_TRACE_LEARNING]);
    EXPECT_EQ(80, f.category_thread_ns[HOST_TRACE_IDLE]);
    EXPECT_EQ(80, f.layer_ns[PROF_LAYER_API]);
    EXPECT_EQ(300, f.category_device_ns[HOST_TRACE_SIMULATION]);
    EXPECT_EQ(100, f.category_device_ns[HOST_TRACE_POLICY]);
    EXPECT_EQ(60, f.gpu_bound_ns[HOST_TRACE_SIMULATION]); // 80 ns in which the main thread waits
    EXPECT_EQ(20, f.gpu_bound_ns[HOST_TRACE_POLICY]);
    EXPECT_EQ(320, f.bound_ns[PROF_BOUND_OVERLAPPED]);
    EXPECT_EQ(37, f.bound_ns[PROF_BOUND_SIMULATION]); // the first 50 ns: 37.5, rounded down
    EXPECT_EQ(13 + 550, f.bound_ns[PROF_BOUND_HOST]);
    EXPECT_EQ(0, f.outside_ns);
}

// Weights are in units of their trace: what traces' scopes have in common is time.
TEST(Summary, SplitsOfSeveralTracesAddUpAsTime) {
    std::vector<std::unique_ptr<Analysed>> workers;
    for (uint64_t unit : {uint64_t(1), uint64_t(1) << 40}) {
        Trace t = gpu_trace();
        for (ProfEvent &event : t.streams[0].events) {
            if (event.kind != PROF_EVENT_SPLIT) continue;
            if (unit == 1) std::swap(event.weight[HOST_TRACE_SIMULATION], event.weight[HOST_TRACE_POLICY]);
            for (uint64_t &weight : event.weight)
                weight *= unit;
        }
        workers.push_back(std::make_unique<Analysed>(t));
    }
    Summary s(workers, PROF_ALL_PHASES);
    for (int32_t i = 0; i < s->scope_count; i++) {
        const ProfScope &scope = s->scopes[i];
        bool is_fused = strcmp(scope.name, "fused") == 0;
        for (int c = 0; c < HOST_TRACE_CATEGORIES; c++) { // 120 ns, 1 to 3, and 120 ns, 3 to 1
            bool is_part = is_fused && (c == HOST_TRACE_SIMULATION || c == HOST_TRACE_POLICY);
            EXPECT_EQ(is_part ? 120u : 0u, scope.split[c]) << scope.name << " " << c;
        }
    }
}

TEST(Summary, MeanAndSpreadOfWorkers) {
    std::vector<std::unique_ptr<Analysed>> workers;
    for (int64_t wait : {100, 300, 500}) {
        Trace t = gpu_trace();
        t.streams[1].events.clear();
        t.streams[0].events = {begin(0, 2), end(wait), begin(wait, 1), end(1000)};
        workers.push_back(std::make_unique<Analysed>(t));
    }
    Summary s(workers, PROF_ALL_PHASES);
    double deviation = 0;
    EXPECT_NEAR(0.3, prof_summary_bound(s.operator->(), PROF_BOUND_IDLE, &deviation), 1e-12);
    EXPECT_NEAR(0.2, deviation, 1e-12);
    EXPECT_NEAR(0.7, prof_summary_bound(s.operator->(), PROF_BOUND_HOST, &deviation), 1e-12);
}

std::string printed(const std::vector<Trace> &traces) {
    TraceFile folder; // a path
    ProfRun run;
    mkdir(folder.path(), 0700);
    std::vector<std::string> files;
    for (const Trace &trace : traces) {
        files.push_back(std::string(folder.path()) + "/" + std::to_string(files.size()) + ".trace");
        write_trace(trace, files.back().c_str());
    }
    Status status = prof_run_load("test", folder.path(), PROF_ALL_PHASES, &run);
    for (const std::string &file : files)
        unlink(file.c_str());
    rmdir(folder.path());
    if (status != STATUS_OK) return host_message();
    char *text = nullptr;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    prof_report_text(&run, true, stream);
    fclose(stream);
    std::string result(text, size);
    free(text);
    prof_run_free(&run);
    return result;
}

std::string printed(const Trace &trace) { return printed(std::vector<Trace>{trace}); }

TEST(Summary, TheReportOfAGpu) {
    Trace t = gpu_trace();
    t.streams[1].events.push_back(interval(600, 100, 1));
    t.streams[1].events.push_back(interval(900, 50, 77));
    std::string text = printed(t);
    for (const char *words :
         {"GPU: 3 intervals; busy 0.550 us, 55.00% of the wall clock", "2 gaps between intervals",
          "1 device intervals have no launch", "= 75.0% simulation 25.0% policy", "(unknown launch)", "GPU time"})
        EXPECT_NE(std::string::npos, text.find(words)) << words << "\n" << text;
    EXPECT_EQ(std::string::npos, text.find("No GPU time")) << text;
}

ProfEvent change(ProfEventKind kind, int64_t time_ns, uint64_t correlation, uint64_t count) {
    ProfEvent event = make_event(kind, time_ns);
    event.correlation = correlation;
    event.count = count;
    return event;
}

TEST(Summary, TheReportOfCalls) {
    Trace t = gpu_trace();
    t.names.push_back(make_name("wait for a stream", HOST_TRACE_IDLE, PROF_LAYER_API));
    ProfEvent call = launch(20, 5), wait = change(PROF_EVENT_WAIT, 40, 5, 0);
    call.kind = PROF_EVENT_CALL;
    wait.duration_ns = 30;
    wait.name = static_cast<uint32_t>(t.names.size() - 1);
    t.streams[0].events = {begin(0, 0), launch(10, 1), call, end(100)};
    t.streams[1].events = {change(PROF_EVENT_ID, 10, 1, 7),
                           change(PROF_EVENT_ALLOC, 30, 5, 3 << 20),
                           change(PROF_EVENT_POOL, 35, 5, 1 << 20),
                           wait,
                           change(PROF_EVENT_RELEASE, 50, 5, 3 << 20),
                           interval(60, 100, 1)};
    std::string text = printed(t);
    for (const char *words :
         {"Threads waited for it 1 times within calls, 0.000 ms in all.", "wait for a stream",
          "Memory that was allocated: device 1 times, 3.000 MiB, at most 3.000 MiB held.", " 1 times, 3.000 MiB.\n",
          "Pools: 1 made, 0 trimmed, 0 destroyed; none had more than 1.000 MiB.",
          "Launches were made under 1 ids of another tool; --json has them."})
        EXPECT_NE(std::string::npos, text.find(words)) << words << "\n" << text;
    // Of several workers: a pool is one worker's, and what they held is added up.
    Trace other = t;
    other.streams[1].events[2].count = 5 << 20;
    text = printed({t, other});
    for (const char *words : {"Pools: 2 made, 0 trimmed, 0 destroyed; none had more than 5.000 MiB.",
                              "at most 6.000 MiB held (each worker at most, added up).\n"})
        EXPECT_NE(std::string::npos, text.find(words)) << words << "\n" << text;
}

TEST(Summary, DenseScopesAreNotCorrectedFor) {
    char host[PROF_TEXT_MAX] = "";
    gethostname(host, sizeof host - 1);
    ProfCost cost = {};
    TraceFile file, costs;
    ProfCostMissing missing;
    ASSERT_EQ(STATUS_OK, prof_cost_measure("/no/python", &cost, &missing)) << host_message();
    for (ProfEstimate &e : cost.each_ns)
        e = {10, 10, 10};
    cost.is_known[PROF_COST_CALL] = false;
    const struct {
        int scopes; // of 1000 ns
        bool is_known;
        double script_ns;
        bool is_elsewhere, is_too_dense;
    } cases[] = {{4, true, 10, false, false},  {4, true, 21, false, true}, // each class at its own cost
                 {6, true, -10, false, false},                             //
                 {4, false, 21, false, false},                             // that of a scope where its own is not known
                 {6, false, 0, false, true},   {5, true, 100, true, false}};
    for (const auto &[scopes, is_known, script_ns, is_elsewhere, is_too_dense] : cases) {
        cost.is_known[PROF_COST_SCRIPT] = is_known;
        cost.each_ns[PROF_COST_SCRIPT] = {script_ns, script_ns, script_ns};
        ASSERT_EQ(STATUS_OK, prof_cost_save(&cost, costs.path())) << host_message();
        Trace t = gpu_trace();
        t.names.push_back(make_name("step", HOST_TRACE_HOST, PROF_LAYER_SCRIPT));
        const uint32_t names[] = {0, 2, 4}; // the program's own, a call, an interpreter's
        set_text(t.process.host, is_elsewhere ? "elsewhere" : host);
        t.streams[0].events.clear();
        for (int i = 0; i < scopes; i++) {
            t.streams[0].events.push_back(begin(10 * i, names[i % 3]));
            t.streams[0].events.push_back(end(10 * i + 5));
        }
        unlink(file.path());
        write_trace(t, file.path());
        ProfRun run;
        ASSERT_EQ(STATUS_OK, prof_run_load("test", file.path(), PROF_ALL_PHASES, &run));
        ASSERT_EQ(STATUS_OK, prof_run_correct(&run, costs.path())) << host_message();
        EXPECT_EQ(!is_elsewhere && !is_too_dense, run.has_cost) << scopes << " " << script_ns;
        EXPECT_EQ(is_too_dense, run.is_too_dense) << scopes << " " << script_ns;
        EXPECT_EQ(scopes, prof_run_main_scopes(&run));
        prof_run_free(&run);
    }
}

TEST(Summary, MoreTracesThanAreReadAreSaid) {
    TraceFile folder; // a path
    std::vector<std::string> files;
    mkdir(folder.path(), 0700);
    for (int i = 0; i <= PROF_TRACES_MAX; i++) {
        files.push_back(std::string(folder.path()) + "/" + std::to_string(i) + ".trace");
        std::ofstream(files.back()).flush();
    }
    ProfRun run;
    testing::internal::CaptureStderr();
    EXPECT_NE(STATUS_OK, prof_run_load("test", folder.path(), PROF_ALL_PHASES, &run)); // each one is empty
    std::string said = testing::internal::GetCapturedStderr();
    std::string words = "test: left out: all but 4096 of the traces in " + std::string(folder.path());
    EXPECT_EQ(0u, said.find(words)) << said.substr(0, 1000);
    EXPECT_EQ(1 + PROF_TRACES_MAX, std::count(said.begin(), said.end(), '\n'));
    for (const std::string &file : files)
        unlink(file.c_str());
    EXPECT_EQ(0, rmdir(folder.path()));
}

// What a corrected run is not corrected for.
TEST(Summary, WhatIsNotCorrectedForIsSaid) {
    ProfRun run = {};
    char text[512];
    int64_t *costs = run.summary.total.costs;
    run.has_cost = true;
    EXPECT_STREQ("", prof_run_unknown(&run, text));
    costs[PROF_COST_CALL] = 1;
    const char calls[] = "Not corrected for: calls of CUDA; profreport --calibrate has not measured what they cost.";
    EXPECT_STREQ(calls, prof_run_unknown(&run, text));
    run.summary.total.ids = 3;
    EXPECT_EQ(std::string(calls) + " Not measured, and not corrected for: that CUPTI records each call once more, for "
                                   "ids of another tool.",
              prof_run_unknown(&run, text));
    costs[PROF_COST_SCRIPT] = 1;
    EXPECT_EQ(0u,
              std::string(prof_run_unknown(&run, text)).find("Not corrected for: Python's scopes and calls of CUDA;"));
    run.has_cost = false;
    EXPECT_EQ(0u, std::string(prof_run_unknown(&run, text)).find("Scopes elsewhere are not corrected for: "));
}

TEST(Summary, WhyThereIsNoGpuTime) {
    Trace t = gpu_trace();
    t.streams[1].events.clear();
    EXPECT_NE(std::string::npos, printed(t).find("No GPU time: no reason."));
    set_text(t.process.no_device, "");
    EXPECT_NE(std::string::npos, printed(t).find("has queues of a device, but no work on them"));
    t.streams.pop_back();
    EXPECT_NE(std::string::npos, printed(t).find("the trace holds no device intervals: they were not recorded"));
    set_text(t.process.device_kind, "cpu");
    EXPECT_NE(std::string::npos, printed(t).find("the run computed on the CPU (no \"device\")"));
    t.streams.clear();
    EXPECT_NE(std::string::npos, printed(t).find("0 threads"));
}

} // namespace
} // namespace profiler_test
