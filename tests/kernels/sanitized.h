// Whether this is a sanitizer's build, which is slow and needs more memory.
#ifndef SHOAL_TESTS_KERNELS_SANITIZED_H
#define SHOAL_TESTS_KERNELS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

#endif
