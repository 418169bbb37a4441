// What a function that is not supported ends with.
#ifndef SHOAL_TESTS_VGPU_RUNTIME_UNSUPPORTED_H
#define SHOAL_TESTS_VGPU_RUNTIME_UNSUPPORTED_H

namespace vgpu {

// A line on stderr, and cudaErrorNotSupported, which it returns, as the thread's last error.
int refuse_unsupported(const char *function);

} // namespace vgpu

#endif
