// What goes wrong in a kernel, and how it is told.
#ifndef SHOAL_TESTS_VGPU_EXEC_REPORT_H
#define SHOAL_TESTS_VGPU_EXEC_REPORT_H

#include <string>
#include <string_view>

#include "tests/vgpu/engine.h"
#include "tests/vgpu/exec/instr.h"

namespace vgpu {

// The checkers that VGPU_CHECK turns on: a list of their names with commas, "all" (the default) or "none".
enum Check : unsigned {
    CHECK_BOUNDS = 1,    // bounds: accesses to device memory outside of allocations, and to freed ones
    CHECK_INIT = 2,      // init: reads of memory that was never written
    CHECK_RACES = 4,     // races: two threads, no order between them, one writes
    CHECK_LEAKS = 8,     // leaks: memory not freed at exit
    CHECK_BARRIERS = 16, // barriers: aligned barriers that not all threads of a warp reach
    CHECK_LOOPS = 32,    // loops: a block that uses up its budget of instructions (VGPU_BUDGET)
    CHECK_ALL = 63,
};

// Ends the kernel. Thrown where only the lane is known; what catches it adds kernel, block, thread and PTX line.
struct Trap {
    Fault fault;
    std::string what;
    int lane; // of the warp that was running; -1: the whole block
};

// Ends the process: an environment variable's value is none of those that it may have.
[[noreturn]] void bad_setting(const char *variable, std::string_view value, const char *allowed);

// An environment variable's value; empty: it is not set.
std::string_view text_setting(const char *variable);
// One that is a number; `otherwise` where it is not set. A wrong one ends the process.
uint64_t number_setting(const char *variable, uint64_t otherwise, uint64_t least, uint64_t most);

// The checkers that are on, read from the environment once.
unsigned checks_enabled();
// VGPU_SEED: 0 runs warps and threads in their natural order, others shuffle it.
uint64_t shuffle_seed();
// VGPU_BUDGET: thread-instructions that a block may take.
uint64_t block_budget();

// VGPU_THREADS: how many threads of the host run blocks.
uint64_t worker_count(uint64_t processors);
// VGPU_STATS: whether a line at the end of the process tells of what it executed.
bool prints_stats();
// VGPU_EXIT: what a process exits with after a fault where its own status is 0.
int status_after_fault();
// Reads all of these, so that a wrong one ends the process at its start.
void check_settings();

// Writes a whole report to stderr at once.
void report(const std::string &text);
std::string demangle(const std::string &name);

} // namespace vgpu

#endif
