// Every checker of the virtual GPU finds a planted fault, says where it is, and is silent about correct neighbours and
// when it is turned off. Each program runs in a process of its own, because its device is of no use after an error.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

// What cudaError_t calls them; this file needs no CUDA.
enum Error {
    NONE = 0,
    ILLEGAL_ADDRESS = 700,
    TIMEOUT = 702,
    ASSERT = 710,
    ILLEGAL_INSTRUCTION = 715,
    MISALIGNED = 716,
    FAILURE = 719
};

struct Fault {
    const char *program;
    const char *what;        // a regular expression for all of the report's first line behind "ERROR: "
    const char *kernel;      // nullptr: the report has no place
    const char *thread;      // nullptr: any may be named
    const char *instruction; // the quoted line of PTX has this in it
    Error error;
    const char *source = nullptr; // the source in which the line that the report names is marked
};

std::ostream &operator<<(std::ostream &out, const Fault &fault) { return out << fault.program; }

const char MEMORY[] = "faults_memory.cu", SYNC[] = "faults_sync.cu", ORDER[] = "faults_order.cu";
const char CULPRIT[] = "block (1,0,0), thread (37,0,0)";
const char LOAD[] = "load_kernel", STORE[] = "store_kernel";
const char GLOBAL_LOAD[] = "out-of-bounds global load of 4 bytes.*";
const char GLOBAL_STORE[] = "out-of-bounds global store of 4 bytes.*";
const char SHARED_STORE[] = "out-of-bounds shared store of 4 bytes.*";
const char FREED[] = "use of freed memory.*", UNWRITTEN[] = "read of global memory that was never written.*";
const char SHARED_RACE[] = "race in shared memory.*", GLOBAL_RACE[] = "race in global memory.*";

const Fault FAULTS[] = {
    {"global_load_behind", GLOBAL_LOAD, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_load_before", GLOBAL_LOAD, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_load_far", GLOBAL_LOAD, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_load_null", GLOBAL_LOAD, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_load_host", GLOBAL_LOAD, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_store_behind", GLOBAL_STORE, STORE, CULPRIT, "st.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_store_before", GLOBAL_STORE, STORE, CULPRIT, "st.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_store_far", GLOBAL_STORE, STORE, CULPRIT, "st.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_store_null", GLOBAL_STORE, STORE, CULPRIT, "st.global", ILLEGAL_ADDRESS, MEMORY},
    {"global_store_across_end", "out-of-bounds global store of 8 bytes.*", "wide_store_kernel", CULPRIT, "st.global",
     ILLEGAL_ADDRESS, MEMORY},
    {"global_load_misaligned", "misaligned global load of 4 bytes: address 0x[0-9a-f]+", LOAD, CULPRIT, "ld.global",
     MISALIGNED, MEMORY},
    {"global_store_misaligned", "misaligned global store.*", STORE, CULPRIT, "st.global", MISALIGNED, MEMORY},
    {"freed_load", FREED, LOAD, CULPRIT, "ld.global", ILLEGAL_ADDRESS, MEMORY},
    {"freed_store", FREED, STORE, CULPRIT, "st.global", ILLEGAL_ADDRESS, MEMORY},
    {"shared_store_behind", SHARED_STORE, "shared_store_kernel", CULPRIT, "st.shared", ILLEGAL_ADDRESS, MEMORY},
    {"shared_store_before", SHARED_STORE, "shared_store_kernel", CULPRIT, "st.shared", ILLEGAL_ADDRESS, MEMORY},
    {"shared_store_far", SHARED_STORE, "shared_store_kernel", CULPRIT, "st.shared", ILLEGAL_ADDRESS, MEMORY},
    {"dynamic_shared_load_behind", "out-of-bounds shared load of 4 bytes.*", "shared_load_kernel", CULPRIT, "ld.shared",
     ILLEGAL_ADDRESS, MEMORY},
    {"shared_misaligned", "misaligned shared store of 4 bytes: offset [0-9]+", "shared_misaligned_kernel", CULPRIT,
     "st.shared", MISALIGNED, MEMORY},
    {"local_store_behind", "out-of-bounds local store of 4 bytes.*", "local_kernel", CULPRIT, "st.local",
     ILLEGAL_ADDRESS, MEMORY},
    {"local_store_before", "out-of-bounds local store of 4 bytes: offset -4 of.*", "local_kernel", CULPRIT, "st.local",
     ILLEGAL_ADDRESS, MEMORY},
    {"local_store_far", "out-of-bounds local store of 4 bytes.*", "local_kernel", CULPRIT, "st.local", ILLEGAL_ADDRESS,
     MEMORY},
    {"global_unwritten", UNWRITTEN, LOAD, CULPRIT, "ld.global", FAILURE, MEMORY},
    {"shared_unwritten", "read of shared memory that was never written.*", "shared_unwritten_kernel", CULPRIT,
     "ld.shared", FAILURE, MEMORY},
    {"local_unwritten", "read of local memory that was never written.*", "local_unwritten_kernel", CULPRIT, "ld.local",
     FAILURE, MEMORY},
    {"leak", "leak: device memory at 0x[0-9a-f]+, 1234 bytes.*", nullptr, nullptr, nullptr, NONE},
    {"divergent_barrier", "barrier divergence.*", "divergent_barrier_kernel", nullptr, "bar", FAILURE},
    {"split_barrier", "barrier divergence.*", "split_barrier_kernel", nullptr, "bar", FAILURE},
    {"deadlock", "deadlock.*", "deadlock_kernel", nullptr, "barrier.sync", FAILURE},
    {"shuffle_from_exited", "shuffle from lane 20, which has exited.*", "shuffle_from_exited_kernel", nullptr, "shfl",
     FAILURE},
    {"shuffle_from_outside", "shuffle from lane 16, which does not take part", "shuffle_from_outside_kernel", nullptr,
     "shfl", FAILURE},
    {"absent_lanes", "deadlock.*", "absent_lanes_kernel", nullptr, "sync", FAILURE},
    {"endless", "endless loop.*", "endless_kernel", "block (0,0,0), thread (37,0,0)", "", TIMEOUT, SYNC},
    {"spin", "endless loop.*", "spin_kernel", nullptr, "", TIMEOUT, SYNC},
    {"shared_write_write", SHARED_RACE, "shared_write_write_kernel", nullptr, "st.shared", FAILURE, SYNC},
    {"missing_syncthreads", SHARED_RACE, "missing_syncthreads_kernel", nullptr, ".shared", FAILURE, SYNC},
    {"missing_syncwarp", SHARED_RACE, "missing_syncwarp_kernel", nullptr, ".shared", FAILURE, SYNC},
    {"one_barrier_a_round", SHARED_RACE, "one_barrier_a_round_kernel", nullptr, ".shared", FAILURE, SYNC},
    {"global_write_write", GLOBAL_RACE, "global_write_write_kernel", nullptr, "st.global", FAILURE, SYNC},
    {"global_read_write", GLOBAL_RACE, "global_read_write_kernel", nullptr, ".global", FAILURE, SYNC},
    {"global_increment", GLOBAL_RACE, "global_increment_kernel", nullptr, ".global", FAILURE, SYNC},
    {"flag_without_fence", GLOBAL_RACE, "flag_without_fence_kernel", nullptr, ".global", FAILURE, SYNC},
    {"hand_over_unmet", GLOBAL_RACE, "hand_over_kernel", nullptr, "ld.global", FAILURE, ORDER},
    {"hand_over_unreleased", GLOBAL_RACE, "hand_over_kernel", nullptr, "ld.global", FAILURE, ORDER},
    {"hand_over_unacquired", GLOBAL_RACE, "hand_over_kernel", nullptr, "ld.global", FAILURE, ORDER},
    {"hand_over_in_block", GLOBAL_RACE, "hand_over_kernel", nullptr, "ld.global", FAILURE, ORDER},
    {"last_block_unfenced", GLOBAL_RACE, "last_block_kernel", nullptr, "ld.global", FAILURE, ORDER},
    {"lock_unfenced", GLOBAL_RACE, "lock_kernel", nullptr, ".global", FAILURE, ORDER},
    {"block_atomic", GLOBAL_RACE, "block_atomic_kernel", nullptr, ".global", FAILURE},
    {"block_flag_unfenced", SHARED_RACE, "block_flag_kernel", nullptr, "ld.shared", FAILURE, ORDER},
    {"shared_atomic_read", SHARED_RACE, "shared_atomic_kernel", nullptr, ".shared", FAILURE},
    {"other_half_warp", SHARED_RACE, "half_warp_kernel", nullptr, "ld.shared", FAILURE, ORDER},
    {"copy_unmet", SHARED_RACE, "copy_kernel", nullptr, "shared", FAILURE},
    {"memory_barrier_too_early", SHARED_RACE, "barrier_kernel", nullptr, ".shared", FAILURE, ORDER},
    {"trap", "trap.*", "trap_kernel", CULPRIT, "trap", FAILURE, SYNC},
    {"assertion", "assertion.*thread\\(\\) != 37.*", "assert_kernel", CULPRIT, "call", ASSERT},
};

// A word of which only a part was written may hold padding, which compilers copy with the rest.
const char *const CORRECT_PROGRAMS[] = {
    "global_load_last",
    "global_store_last",
    "shared_store_last",
    "local_store_last",
    "global_written",
    "shared_written",
    "local_written",
    "uniform_barrier",
    "present_lanes",
    "shuffle_in_half",
    "shared_write_atomic",
    "syncthreads",
    "two_barriers_a_round",
    "syncwarp",
    "global_atomic",
    "flag",
    "atomic_flag",
    "global_barrier",
    "global_partly_written",
    "hand_over",
    "relay",
    "last_block",
    "lock",
    "own_block_atomic",
    "grid_sync",
    "block_flag",
    "half_warp",
    "same_value",
    "bytes",
    "copy",
    "memory_barrier",
};

// Programs that run through when nobody looks, each with the checkers that are left on.
struct Unchecked {
    const char *program, *checks;
};
std::ostream &operator<<(std::ostream &out, const Unchecked &unchecked) { return out << unchecked.program; }

const char NO_BOUNDS[] = "init,races,leaks,barriers,loops", NO_INIT[] = "bounds,races,leaks,barriers,loops";
const char NO_RACES[] = "bounds,init,leaks,barriers,loops", NO_LEAKS[] = "bounds,init,races,barriers,loops";
const char NO_BARRIERS[] = "bounds,init,races,leaks,loops";

const Unchecked UNCHECKED[] = {
    {"global_store_behind", NO_BOUNDS},
    {"global_unwritten", NO_INIT},
    {"shared_unwritten", NO_INIT},
    {"local_unwritten", NO_INIT},
    {"shared_write_write", NO_RACES},
    {"missing_syncthreads", NO_RACES},
    {"missing_syncwarp", NO_RACES},
    {"one_barrier_a_round", NO_RACES},
    {"global_write_write", NO_RACES},
    {"global_increment", NO_RACES},
    {"leak", NO_LEAKS},
    {"split_barrier", NO_BARRIERS},
    {"global_increment", "none"},
};

// ---- running a program ---------------------------------------------------------------------------------------------

struct Result {
    int status = -1; // of wait()
    std::string output;

    // The first part that the pattern's parentheses match.
    std::string find(const std::string &pattern) const {
        std::smatch match;
        return std::regex_search(output, match, std::regex(pattern)) ? match[1].str() : "";
    }
    size_t reports() const {
        size_t count = 0, length = sizeof("vgpu: ERROR: ") - 1;
        for (size_t at = 0; (at = output.find("vgpu: ERROR: ", at)) != std::string::npos; at += length)
            count++;
        return count;
    }
};

Result run(const std::string &program, const std::string &checks, const std::string &settings = "") {
    Result result;
    // Enough for the programs that end, and soon used up by those that do not.
    const std::string budget = "VGPU_BUDGET=20000000 ";
    std::string command =
        budget + "VGPU_CHECK=" + checks + " " + settings + " timeout 300 " + FAULTS_PROGRAM + " " + program + " 2>&1";
    FILE *pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return result;
    char buffer[4096];
    while (size_t bytes = fread(buffer, 1, sizeof(buffer), pipe))
        result.output.append(buffer, bytes);
    result.status = pclose(pipe);
    return result;
}

std::string line_of(const std::string &path, const std::string &number) {
    std::ifstream file(path);
    std::string line;
    for (int i = atoi(number.c_str()); i > 0; i--) {
        if (!std::getline(file, line)) return path + " has no line " + number;
    }
    return line;
}

template <class Case> std::string name_of(const ::testing::TestParamInfo<Case> &info) {
    std::ostringstream name;
    name << info.param << "_" << info.index;
    return name.str();
}

// ---- the tests -----------------------------------------------------------------------------------------------------

class Planted : public ::testing::TestWithParam<Fault> {};

TEST_P(Planted, IsReportedWithItsPlace) {
    const Fault &fault = GetParam();
    Result result = run(fault.program, "all");
    SCOPED_TRACE(result.output);
    ASSERT_TRUE(WIFEXITED(result.status));
    EXPECT_EQ(WEXITSTATUS(result.status), 99);
    EXPECT_GE(result.reports(), 1u);
    EXPECT_EQ(result.find("(?:^|\n)error (\\d+)"), std::to_string(fault.error)); // "": it did not come to its end
    std::string what = result.find("vgpu: ERROR: ([^\n]*)");
    EXPECT_TRUE(std::regex_match(what, std::regex(fault.what))) << what;
    if (fault.kernel == nullptr) return;

    std::string place = result.find("\nvgpu:   in kernel ([^\n]*)");
    EXPECT_NE(place.find(fault.kernel), std::string::npos) << place;
    std::string thread = fault.thread != nullptr ? fault.thread : "block (";
    EXPECT_NE(place.find(thread), std::string::npos) << place;
    EXPECT_TRUE(std::regex_search(place, std::regex("block \\(\\d+,0,0\\), thread \\(\\d+,0,0\\)"))) << place;
    std::string quoted = result.find("\nvgpu:   in kernel [^\n]*PTX line \\d+: ([^\n]*)");
    EXPECT_NE(quoted, "");
    EXPECT_NE(quoted.find(fault.instruction), std::string::npos) << quoted;
}

// The numbers of the lines, in the PTX that nvcc wrote and in the source.
TEST_P(Planted, IsInTheLinesThatTheReportNames) {
    const Fault &fault = GetParam();
    if (fault.source == nullptr) GTEST_SKIP() << "no line to name";
    Result result = run(fault.program, "all");
    SCOPED_TRACE(result.output);
    std::string stem = std::string(fault.source).substr(0, std::string(fault.source).find('.'));
    std::string ptx = line_of(std::string(FAULTS_PTX_FOLDER) + "/" + stem + ".ptx",
                              result.find("\nvgpu:   in kernel [^\n]*PTX line (\\d+): "));
    EXPECT_NE(ptx.find(fault.instruction), std::string::npos) << ptx;
    std::string source = result.find(std::string("\nvgpu:   at [^\n]*") + fault.source + ":(\\d+)");
    ASSERT_NE(source, "");
    std::string line = line_of(std::string(FAULTS_SOURCE_FOLDER) + "/" + fault.source, source);
    EXPECT_NE(line.find("// fault"), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(Faults, Planted, ::testing::ValuesIn(FAULTS), name_of<Fault>);

void expect_silence(const Result &result) {
    SCOPED_TRACE(result.output);
    ASSERT_TRUE(WIFEXITED(result.status));
    EXPECT_EQ(WEXITSTATUS(result.status), 0);
    EXPECT_EQ(result.output, "error 0\n");
}

class Correct : public ::testing::TestWithParam<const char *> {};
TEST_P(Correct, IsNotReported) { expect_silence(run(GetParam(), "all")); }
INSTANTIATE_TEST_SUITE_P(Faults, Correct, ::testing::ValuesIn(CORRECT_PROGRAMS), name_of<const char *>);

class Disabled : public ::testing::TestWithParam<Unchecked> {};
TEST_P(Disabled, CheckersAreSilent) { expect_silence(run(GetParam().program, GetParam().checks)); }
INSTANTIATE_TEST_SUITE_P(Faults, Disabled, ::testing::ValuesIn(UNCHECKED), name_of<Unchecked>);

// Before a single thread runs, so there is none to name.
TEST(Faults, WhatIsNotKnownEndsTheLaunch) {
    const struct {
        const char *program, *report;
    } rows[] = {
        {"tensor_cores",
         "vgpu: ERROR: PTX line \\d+: the instruction is not known: mma[^\n]*\nvgpu:   in kernel .*tensor_kernel"},
        {"clusters",
         "vgpu: ERROR: PTX line \\d+: clusters of blocks are not known\nvgpu:   in kernel .*cluster_kernel"},
    };
    for (const auto &row : rows) {
        Result result = run(row.program, "none");
        SCOPED_TRACE(result.output);
        EXPECT_TRUE(std::regex_search(result.output, std::regex(row.report)));
        EXPECT_EQ(result.find("(?:^|\n)error (\\d+)"), std::to_string(ILLEGAL_INSTRUCTION));
    }
}

TEST(Faults, TheExitStatusCanBeTheProgramsOwn) {
    Result result = run("trap", "all", "VGPU_EXIT=0");
    ASSERT_TRUE(WIFEXITED(result.status));
    EXPECT_EQ(WEXITSTATUS(result.status), 0);
    EXPECT_EQ(WEXITSTATUS(run("trap", "all", "VGPU_EXIT=3").status), 3);
}

// At the start, whatever the program would do with them.
TEST(Faults, SettingsThatMakeNoSenseEndTheProcess) {
    for (const char *setting :
         {"VGPU_CHECK=bound", "VGPU_CHECK=all,none", "VGPU_SEED=18446744073709551616", "VGPU_SEED=-1",
          "VGPU_BUDGET=abc", "VGPU_BUDGET=0", "VGPU_THREADS=100000", "VGPU_THREADS=0", "VGPU_STATS=yes",
          "VGPU_EXIT=256", "VGPU_STREAMS=late", "VGPU_MODEL=abacus", "VGPU_DEVICES=17", "VGPU_MEMORY=0"}) {
        Result result = run("global_written", "all", setting);
        ASSERT_TRUE(WIFEXITED(result.status));
        EXPECT_EQ(WEXITSTATUS(result.status), 2) << setting;
        std::string name = std::string(setting).substr(0, std::string(setting).find('='));
        EXPECT_EQ(result.output.find("vgpu: " + name), 0u) << result.output;
    }
    Result misspelt = run("global_written", "all", "VGPU_CHEKC=none");
    EXPECT_EQ(WEXITSTATUS(misspelt.status), 0);
    EXPECT_EQ(misspelt.output, "vgpu: warning: there is no setting VGPU_CHEKC\nerror 0\n");
    EXPECT_EQ(run("global_written", "all", "VGPU_STATS=0").output, "error 0\n");
}

// The harness itself: a program that does not exist is no silence.
TEST(Faults, UnknownProgramFails) {
    Result result = run("no_such_program", "all");
    ASSERT_TRUE(WIFEXITED(result.status));
    EXPECT_EQ(WEXITSTATUS(result.status), 2);
}

} // namespace
