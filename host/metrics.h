// metrics.csv: a header naming the columns with their units, then a row per generation or update.
//
// The first column is the generation (or update). Every row is one write, so a killed process leaves at most one torn
// last line, which opening cuts off.
//
// Ownership: HostMetrics owns the open file until host_metrics_close(); column names are borrowed. Errors: STATUS_IO
// (full disk and the like; the file is put back to its last whole row), STATUS_CORRUPT (resuming a file with another
// header). Thread safety: none.
#ifndef SHOAL_HOST_METRICS_H
#define SHOAL_HOST_METRICS_H

#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_METRICS_COLUMNS_MAX = 64, HOST_METRICS_KEEP_ALL = -1 };

typedef struct HostMetrics {
    int fd; // -1 when closed
    int column_count;
    int64_t size_bytes; // up to the last whole row
    char *path;         // a copy, owned
} HostMetrics;

// Starts a new file (replaces one that is there). Names are snake_case with a unit suffix: "wall_s", "return_mean".
Status host_metrics_create(HostMetrics *metrics, const char *path, const char *const *columns,
                           int column_count) HOST_MUST_CHECK;

// Goes on with a file, keeping rows whose generation is at most `last_generation`, the others cut off (atomically).
// A file that is missing or empty is started anew.
Status host_metrics_resume(HostMetrics *metrics, const char *path, const char *const *columns, int column_count,
                           int64_t last_generation) HOST_MUST_CHECK;

// values: [column_count]. Whole numbers up to 2^53 are written exactly, others with 9 significant digits.
Status host_metrics_row(HostMetrics *metrics, const double *values) HOST_MUST_CHECK;

void host_metrics_close(HostMetrics *metrics);

#ifdef __cplusplus
}
#endif

#endif
