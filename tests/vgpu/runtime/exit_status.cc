#include "tests/vgpu/runtime/exit_status.h"

#include <atomic>
#include <cstdlib>

#include "tests/vgpu/exec/report.h"

namespace vgpu {
namespace {

std::atomic<bool> has_fault{false};
std::atomic<int> own_status{0};

void keep_status(int status, void *) { own_status = status; }

} // namespace

// What is registered while the program runs is called before the libraries are taken down.
void exit_after_fault() {
    if (!has_fault.exchange(true)) on_exit(keep_status, nullptr);
}

int exit_replacement() { return has_fault && own_status == 0 ? status_after_fault() : 0; }

} // namespace vgpu
