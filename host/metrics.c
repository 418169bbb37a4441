#include "host/metrics.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"
#include "host/trace.h"

enum { ROW_MAX_BYTES = HOST_METRICS_COLUMNS_MAX * 72, FILE_MAX_BYTES = 1 << 30 };

static ssize_t write_some(int fd, const char *text, size_t length) {
    ssize_t written;
    do
        written = write(fd, text, length);
    while (written < 0 && errno == EINTR);
    return written;
}

// Appends to the file in one call; what was written in part is taken back.
static Status append(HostMetrics *metrics, const char *text, size_t length) {
    ssize_t written = write_some(metrics->fd, text, length);
    if (written == (ssize_t)length) {
        metrics->size_bytes += written;
        return STATUS_OK;
    }
    // Only the attempt to write the rest says why it did not fit.
    if (written >= 0) {
        size_t left = length - (size_t)written;
        written = write_some(metrics->fd, text + written, left);
        if (written == (ssize_t)left) {
            metrics->size_bytes += (int64_t)length;
            return STATUS_OK;
        }
    }
    int reason = written < 0 ? errno : ENOSPC;
    // If this fails too, resuming cuts the torn line off.
    if (ftruncate(metrics->fd, metrics->size_bytes) != 0) errno = 0;
    return host_fail(STATUS_IO, "cannot write %s: %s", metrics->path, strerror(reason));
}

static size_t header_text(const char *const *columns, int column_count, char text[ROW_MAX_BYTES]) {
    size_t used = 0;
    for (int i = 0; i < column_count; i++) {
        assert(strlen(columns[i]) < 64 && strpbrk(columns[i], ",\"\n") == NULL);
        used += (size_t)snprintf(text + used, ROW_MAX_BYTES - used, "%s%.63s", i == 0 ? "" : ",", columns[i]);
    }
    text[used++] = '\n';
    return used;
}

static Status open_file(HostMetrics *metrics, const char *path, int column_count, int flags) {
    *metrics = (HostMetrics){.fd = -1, .column_count = column_count};
    assert(column_count >= 1 && column_count <= HOST_METRICS_COLUMNS_MAX);
    metrics->path = strdup(path);
    if (metrics->path == NULL) return host_fail(STATUS_MEMORY, "no memory for the path %s", path);
    metrics->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
    if (metrics->fd >= 0) return STATUS_OK;
    int reason = errno;
    host_metrics_close(metrics);
    return host_fail(STATUS_IO, "cannot open %s: %s", path, strerror(reason));
}

Status host_metrics_create(HostMetrics *metrics, const char *path, const char *const *columns, int column_count) {
    char header[ROW_MAX_BYTES];
    TRY(open_file(metrics, path, column_count, O_TRUNC));
    Status status = append(metrics, header, header_text(columns, column_count, header));
    if (status != STATUS_OK) host_metrics_close(metrics);
    return status;
}

static bool is_whole_row(const char *row, const char *end, int column_count, int64_t *generation) {
    int commas = 0;
    for (const char *at = row; at < end; at++)
        commas += *at == ',';
    char *after;
    errno = 0;
    *generation = strtoll(row, &after, 10);
    return commas == column_count - 1 && errno == 0 && after > row && (after == end || *after == ',');
}

// Bytes of the header and of the rows up to the generation; stops at the first row that is torn or later.
static size_t kept_bytes(const char *text, size_t header_bytes, int column_count, int64_t last_generation) {
    size_t kept = header_bytes;
    for (;;) {
        const char *row = text + kept, *end = strchr(row, '\n');
        int64_t generation;
        if (end == NULL || !is_whole_row(row, end, column_count, &generation)) return kept;
        if (last_generation != HOST_METRICS_KEEP_ALL && generation > last_generation) return kept;
        kept += (size_t)(end - row) + 1;
    }
}

Status host_metrics_resume(HostMetrics *metrics, const char *path, const char *const *columns, int column_count,
                           int64_t last_generation) {
    *metrics = (HostMetrics){.fd = -1};
    if (!host_file_exists(path)) return host_metrics_create(metrics, path, columns, column_count);
    char *text, header[ROW_MAX_BYTES];
    size_t text_bytes, header_bytes = header_text(columns, column_count, header);
    TRY(host_file_read(path, FILE_MAX_BYTES, &text, &text_bytes));
    if (memchr(text, '\n', text_bytes) == NULL) { // not even a whole header
        free(text);
        return host_metrics_create(metrics, path, columns, column_count);
    }
    if (text_bytes < header_bytes || memcmp(text, header, header_bytes) != 0) {
        free(text);
        return host_fail(STATUS_CORRUPT, "%s: its header is not '%.*s'", path, (int)header_bytes - 1, header);
    }
    size_t kept = kept_bytes(text, header_bytes, column_count, last_generation);
    free(text);
    TRY(open_file(metrics, path, column_count, 0));
    metrics->size_bytes = (int64_t)kept;
    // One call of the system, so a kill leaves all rows or only those kept; it needs no space on a full disk.
    if (kept != text_bytes && ftruncate(metrics->fd, metrics->size_bytes) != 0) {
        int reason = errno;
        host_metrics_close(metrics);
        return host_fail(STATUS_IO, "cannot cut %s: %s", path, strerror(reason));
    }
    return STATUS_OK;
}

Status host_metrics_row(HostMetrics *metrics, const double *values) {
    HOST_TRACE_SCOPE(IO, "metrics");
    char row[ROW_MAX_BYTES];
    size_t used = 0;
    for (int i = 0; i < metrics->column_count; i++) {
        bool is_whole = fabs(values[i]) <= 9007199254740992.0 && floor(values[i]) == values[i];
        used +=
            (size_t)snprintf(row + used, sizeof row - used, "%s%.*g", i == 0 ? "" : ",", is_whole ? 17 : 9, values[i]);
    }
    row[used++] = '\n';
    return append(metrics, row, used);
}

void host_metrics_close(HostMetrics *metrics) {
    if (metrics->fd >= 0) close(metrics->fd);
    free(metrics->path);
    metrics->fd = -1;
    metrics->path = NULL;
}
