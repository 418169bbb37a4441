// The small services: hash, clock, files, progress, signals, trace, comm, status.
#include <chrono>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "host/clock.h"
#include "host/comm.h"
#include "host/file.h"
#include "host/hash.h"
#include "host/progress.h"
#include "host/signals.h"
#include "host/trace.h"
#include "tests/host/host_test.h"

namespace {

std::string hash_of(const std::string &text) {
    HostHash hash = host_hash_start();
    host_hash_add(&hash, text.data(), text.size());
    char digits[17];
    return host_hash_text(hash, digits);
}

// The published vectors of 64-bit FNV-1a.
TEST(Hash, KnownAnswers) {
    EXPECT_EQ("cbf29ce484222325", hash_of(""));
    EXPECT_EQ("af63dc4c8601ec8c", hash_of("a"));
    EXPECT_EQ("af63df4c8601f1a5", hash_of("b"));
    EXPECT_EQ("85944171f73967e8", hash_of("foobar"));
    EXPECT_EQ("46810940eff5f915", hash_of("chongo was here!\n"));
}

TEST(Hash, PiecesAddUp) {
    const std::string text = "the same bytes, however they are cut";
    for (size_t cut = 0; cut <= text.size(); cut++) {
        HostHash hash = host_hash_start();
        host_hash_add(&hash, text.data(), cut);
        host_hash_add(&hash, text.data() + cut, text.size() - cut);
        char digits[17];
        EXPECT_EQ(hash_of(text), host_hash_text(hash, digits));
    }
}

TEST(Clock, RunsForward) {
    int64_t before_ns = host_now_ns();
    usleep(2000);
    EXPECT_GE(host_now_ns() - before_ns, 2000000);
    EXPECT_GT(host_now_s(), 0);
}

TEST(File, ReplaceJoinsPartsAndKeepsNothingElse) {
    TempFolder folder;
    std::string path = folder / "f";
    const HostFilePart parts[] = {{"ab", 2}, {nullptr, 0}, {"c", 1}};
    ASSERT_OK(host_file_replace(path.c_str(), parts, 3));
    EXPECT_EQ("abc", read_file(path));
    ASSERT_OK(host_file_replace(path.c_str(), parts, 1));
    EXPECT_EQ("ab", read_file(path));
    EXPECT_EQ(1, count_entries(folder.path()));
    // A killed process of the same number may have left a longer temporary file.
    write_file(path + ".tmp-" + std::to_string(getpid()), "longer than the new content");
    ASSERT_OK(host_file_replace(path.c_str(), parts, 3));
    EXPECT_EQ("abc", read_file(path));
    // Renaming a file onto a folder fails: the temporary file must go.
    std::filesystem::create_directory(folder / "d");
    EXPECT_FAILS(STATUS_IO, "cannot rename", host_file_replace((folder / "d").c_str(), parts, 1));
    EXPECT_EQ(2, count_entries(folder.path()));
    // A pipe or a device stays what it is.
    ASSERT_EQ(0, mkfifo((folder / "p").c_str(), 0600));
    EXPECT_FAILS(STATUS_IO, "not a regular file", host_file_replace((folder / "p").c_str(), parts, 1));
    EXPECT_TRUE(std::filesystem::is_fifo(folder / "p"));
    EXPECT_EQ(3, count_entries(folder.path()));
}

TEST(File, ReadHasLimits) {
    TempFolder folder;
    std::string path = folder / "f";
    write_file(path, std::string("a\0b", 3));
    char *data;
    size_t size;
    ASSERT_OK(host_file_read(path.c_str(), 3, &data, &size));
    EXPECT_EQ(std::string("a\0b\0", 4), std::string(data, size + 1));
    free(data);
    EXPECT_FAILS(STATUS_IO, "it has 3 bytes, more than 2", host_file_read(path.c_str(), 2, &data, &size));
    char joined[HOST_PATH_MAX];
    EXPECT_FAILS(STATUS_USAGE, "longer than 4095", host_file_join("a", std::string(4094, 'b').c_str(), joined));
    ASSERT_OK(host_file_join("a", std::string(4093, 'b').c_str(), joined));
}

TEST(Progress, PlainLinesComeNowAndThenAndAtTheEnd) {
    std::string text = printed([](FILE *stream) {
        HostProgress progress;
        host_progress_init(&progress, HOST_PROGRESS_AUTO, stream, "generation", 0, 1000);
        EXPECT_EQ(HOST_PROGRESS_PLAIN, progress.mode); // a memory stream is no terminal
        for (int i = 1; i <= 1000; i++)
            host_progress_update(&progress, i, "return 4.2");
        host_progress_finish(&progress);
    });
    EXPECT_EQ(0u, text.find("generation 1/1000  return 4.2  0:00"));
    EXPECT_NE(std::string::npos, text.find("\ngeneration 1000/1000  return 4.2"));
    EXPECT_EQ(std::string::npos, text.find('\r'));
}

TEST(Progress, TheBarKeepsToOneLineAndMakesRoomForNotes) {
    std::string text = printed([](FILE *stream) {
        HostProgress progress;
        host_progress_init(&progress, HOST_PROGRESS_BAR, stream, "generation", 10, 20);
        host_progress_update(&progress, 15, std::string(300, 'x').c_str());
        host_progress_note(&progress, "warning: %d", 7);
        host_progress_update(&progress, 20, "done");
        host_progress_finish(&progress);
    });
    EXPECT_EQ(0u, text.find("\r[##################......] generation 15/20")) << text;
    EXPECT_NE(std::string::npos, text.find("\r\033[Kwarning: 7\n")) << text;
    EXPECT_LT(text.find('\033'), 82u);
    EXPECT_EQ('\n', text.back());
}

TEST(Progress, QuietStillShowsNotes) {
    std::string text = printed([](FILE *stream) {
        HostProgress progress;
        host_progress_init(&progress, HOST_PROGRESS_QUIET, stream, "generation", 0, 0);
        host_progress_update(&progress, 0, "x");
        host_progress_note(&progress, "warning");
        host_progress_finish(&progress);
    });
    EXPECT_EQ("warning\n", text);
}

TEST(Signals, TheFirstAsksTheSecondKills) {
    void *shared = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    volatile int &marker = *static_cast<int *>(shared); // that the second one was not taken for the first
    for (int number : {SIGINT, SIGTERM}) {
        marker = 0;
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            if (host_signals_install() != STATUS_OK || host_stop_requested()) _exit(1);
            raise(number);
            if (!host_stop_requested()) _exit(2);
            raise(number); // at once it is the same stop
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            marker = 1;
            raise(number);
            _exit(3);
        }
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
        EXPECT_EQ(number, WTERMSIG(status));
        EXPECT_EQ(1, marker);
    }
    munmap(shared, sizeof(int));
    EXPECT_FALSE(host_stop_requested());
    host_stop_request();
    EXPECT_TRUE(host_stop_requested());
    host_stop_clear();
    EXPECT_FALSE(host_stop_requested());
}

std::vector<std::string> seen;

TEST(Trace, ScopesReachTheHooksOnlyWhenAttached) {
    static const HostTraceHooks hooks = {
        [](const HostTraceHooks *, HostTraceCategory category, const char *name) {
            seen.push_back(std::string(host_trace_category_name(category)) + ":" + name);
        },
        [](const HostTraceHooks *) { seen.emplace_back("end"); },
        [](const HostTraceHooks *) {
            return HostTraceMark{"marked", HOST_TRACE_POLICY, 7};
        },
        [](const HostTraceHooks *, HostTraceMark mark) { seen.push_back("join:" + std::string(mark.name)); },
        [](const HostTraceHooks *, const uint64_t *weight) { seen.push_back("split:" + std::to_string(weight[1])); },
        [](const HostTraceHooks *, HostTracePhase phase) {
            seen.push_back("phase:" + std::string(host_trace_phase_name(phase)));
        },
        [](const HostTraceHooks *, HostTraceStretch what, bool is_plain, uint64_t units) {
            seen.push_back("stretch:" + std::to_string(what) + (is_plain ? " plain " : " ") + std::to_string(units));
        },
        false};
    auto others = [] {
        const HostTraceHooks *joined = host_trace_join(host_trace_mark());
        const uint64_t weight[HOST_TRACE_CATEGORIES] = {1, 2};
        host_trace_split(weight);
        host_trace_phase(HOST_PHASE_WARM_UP);
        host_trace_stretch(HOST_STRETCH_NEXT, true, 5);
        host_trace_end(joined);
        host_trace_end(host_trace_join(HostTraceMark()));
    };
    auto work = [] {
        HOST_TRACE_SCOPE(SIMULATION, "rollout");
        { HOST_TRACE_SCOPE(IO, "metrics"); }
        seen.emplace_back("after");
    };
    work();
    others();
    EXPECT_EQ(std::vector<std::string>{"after"}, seen);
    seen.clear();
    host_trace_attach(&hooks);
    work();
    host_trace_attach(nullptr);
    work();
    EXPECT_EQ((std::vector<std::string>{"simulation:rollout", "io:metrics", "end", "after", "end", "after"}), seen);
    seen.clear();
    host_trace_attach(&hooks);
    others();
    host_trace_attach(nullptr);
    EXPECT_EQ((std::vector<std::string>{"join:marked", "split:2", "phase:warm-up", "stretch:0 plain 5", "end"}), seen);
    EXPECT_STREQ("evaluate", host_trace_phase_name(HOST_PHASE_EVALUATE));
    EXPECT_STREQ("?", host_trace_phase_name(HOST_TRACE_PHASES));
    EXPECT_STREQ("idle", host_trace_category_name(HOST_TRACE_IDLE));
    EXPECT_STREQ("?", host_trace_category_name(HOST_TRACE_CATEGORIES));
}

TEST(Comm, AGroupOfOneCopies) {
    HostComm *comm;
    ASSERT_OK(host_comm_self(&comm));
    EXPECT_EQ(0, comm->rank);
    EXPECT_EQ(1, comm->size);
    int part = 7, all = 0;
    double deadline_s = host_now_s() + 1;
    ASSERT_OK(host_comm_all_gather(comm, &part, &all, sizeof part, deadline_s));
    EXPECT_EQ(7, all);
    ASSERT_OK(host_comm_all_gather(comm, &all, &all, sizeof all, deadline_s));
    ASSERT_OK(host_comm_broadcast(comm, &all, sizeof all, 0, deadline_s));
    EXPECT_EQ(7, all);
    ASSERT_OK(host_comm_barrier(comm, deadline_s));
    EXPECT_FAILS(STATUS_SYSTEM, "rank 1 of a group of 1", host_comm_broadcast(comm, &all, 4, 1, deadline_s));
    EXPECT_FAILS(STATUS_SYSTEM, "rank -1", host_comm_send(comm, &all, 4, -1, deadline_s));
    EXPECT_FAILS(STATUS_SYSTEM, "the sender itself", host_comm_send(comm, &all, 4, 0, deadline_s));
    EXPECT_FAILS(STATUS_SYSTEM, "the receiver itself", host_comm_recv(comm, &all, 4, 0, deadline_s));
    host_comm_abort(comm);
    EXPECT_FAILS(STATUS_STOPPED, "aborted", host_comm_barrier(comm, deadline_s));
    host_comm_abort(comm);
    host_comm_free(comm);
    host_comm_free(nullptr);
}

TEST(StatusMessage, KeepsTheLastFailureOfThisThread) {
    EXPECT_EQ(STATUS_IO, host_fail(STATUS_IO, "first %d", 1));
    EXPECT_EQ(STATUS_IO, host_fail(STATUS_IO, "second: %s", host_message()));
    EXPECT_STREQ("second: first 1", host_message());
    EXPECT_NE(nullptr, strstr(host_message_origin(), "services_test.cc:"));
    EXPECT_STREQ("CORRUPT", host_status_name(STATUS_CORRUPT));
}

} // namespace
