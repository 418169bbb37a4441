// Whole files: read one, replace one atomically, make folders.
//
// Ownership: what a function gives back is the caller's to free. Errors: STATUS_IO naming the path and the system's
// reason. Thread safety: all functions may be called from any thread. A write beyond RLIMIT_FSIZE raises SIGXFSZ, which
// host_signals_install() ignores so that it becomes STATUS_IO.
#ifndef SHOAL_HOST_FILE_H
#define SHOAL_HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_PATH_MAX = 4096 };

typedef struct HostFilePart {
    const void *data;
    size_t size_bytes;
} HostFilePart;

// Writes the parts one after the other to a temporary file in the same folder, syncs it, renames it to `path` and syncs
// the folder. On failure the temporary file is gone and `path` is what it was. A device or a pipe that is there
// is refused.
Status host_file_replace(const char *path, const HostFilePart *parts, int part_count) HOST_MUST_CHECK;

// Reads a whole regular file, at most max_bytes; a zero byte follows the data. Free the data.
Status host_file_read(const char *path, size_t max_bytes, char **data, size_t *size_bytes) HOST_MUST_CHECK;

// mkdir -p. A part of the path that is not a folder is named in the message.
Status host_file_make_folder(const char *path) HOST_MUST_CHECK;

bool host_file_exists(const char *path);

// Opens /dev/null in the place of a standard stream that is closed: else the next file that is opened would get its
// number, and what is printed would go into that file. Such a stream still fails when it is used. For the start of
// main.
Status host_file_hold_standard(void) HOST_MUST_CHECK;

// Flushes stdout; STATUS_IO if anything that was printed there was lost (a full disk, a closed pipe).
Status host_file_check_stdout(void) HOST_MUST_CHECK;

// Joins two parts with a slash; STATUS_USAGE if the result is too long.
Status host_file_join(const char *folder, const char *name, char path[HOST_PATH_MAX]) HOST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
