// What a process exits with in which a kernel, a copy or a fill failed, so that whoever runs it notices.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_EXIT_STATUS_H
#define SHOAL_TESTS_VGPU_RUNTIME_EXIT_STATUS_H

namespace vgpu {

// Something has failed.
void exit_after_fault();
// At the process's end: the status that replaces its own; 0: none.
int exit_replacement();

} // namespace vgpu

#endif
