// Whether this is a sanitizer's build, which is slow and needs more memory.
#ifndef SHOAL_TESTS_KERNELS_SANITIZED_H
#define SHOAL_TESTS_KERNELS_SANITIZED_H

#ifdef __SANITIZE_THREAD__
constexpr bool is_for_threads = true; // it looks for races, of which a thread alone has none
#else
constexpr bool is_for_threads = false;
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

#endif
