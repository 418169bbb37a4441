// The page of profiler/page/ as bytes, cut where the data belongs. Made by the build: cmake/ShoalPage.cmake.
//
// Ownership: static. Errors: none. Thread safety: any thread.
#ifndef SHOAL_PROFILER_PROF_PAGE_H
#define SHOAL_PROFILER_PROF_PAGE_H

#include <stddef.h>

extern const unsigned char prof_page_head[], prof_page_tail[];
extern const size_t prof_page_head_bytes, prof_page_tail_bytes;

#endif
