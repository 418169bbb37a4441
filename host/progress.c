#include "host/progress.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/trace.h"

#define BAR_INTERVAL_S  0.1
#define LINE_INTERVAL_S 2.0
enum { BAR_CELLS = 24, LINE_MAX_BYTES = 512 };

static bool is_terminal(FILE *stream) {
    const char *term = getenv("TERM");
    int fd = fileno(stream);
    return fd >= 0 && isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

static int terminal_width(FILE *stream) {
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
    return size.ws_col;
}

void host_progress_init(HostProgress *progress, HostProgressMode mode, FILE *stream, const char *unit, int64_t first,
                        int64_t total) {
    if (mode == HOST_PROGRESS_AUTO) mode = is_terminal(stream) ? HOST_PROGRESS_BAR : HOST_PROGRESS_PLAIN;
    *progress = (HostProgress){.mode = mode, .stream = stream, .unit = unit, .first = first, .total = total};
    progress->start_s = host_now_s();
    progress->last_s = -1e9;
}

// "1:05", "2:03:05"
static void duration_text(double seconds, char text[32]) {
    long long whole = seconds > 0 && seconds < 1e9 ? (long long)seconds : 0;
    if (whole >= 3600) {
        snprintf(text, 32, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    } else {
        snprintf(text, 32, "%lld:%02lld", whole / 60, whole % 60);
    }
}

static void times_text(const HostProgress *progress, double now_s, int64_t done, char text[96]) {
    char elapsed[32], left[32];
    double elapsed_s = now_s - progress->start_s;
    duration_text(elapsed_s, elapsed);
    if (done > progress->first && done < progress->total) {
        duration_text(elapsed_s * (double)(progress->total - done) / (double)(done - progress->first), left);
        snprintf(text, 96, "%s, %s left", elapsed, left);
    } else {
        snprintf(text, 96, "%s", elapsed);
    }
}

static void draw_bar(HostProgress *progress, int64_t done, const char *text, const char *times) {
    char cells[BAR_CELLS + 1], line[LINE_MAX_BYTES];
    double share = progress->total > 0 ? (double)done / (double)progress->total : 0;
    int filled = share < 0 ? 0 : share > 1 ? BAR_CELLS : (int)(share * BAR_CELLS);
    for (int i = 0; i < BAR_CELLS; i++)
        cells[i] = i < filled ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    int length = snprintf(line, sizeof line, "[%s] %s %lld/%lld  %s  %s", cells, progress->unit, (long long)done,
                          (long long)progress->total, text, times);
    int width = terminal_width(progress->stream) - 1;
    progress->line_width = length < width ? length : width;
    fprintf(progress->stream, "\r%.*s\033[K", progress->line_width, line);
    fflush(progress->stream);
}

void host_progress_update(HostProgress *progress, int64_t done, const char *text) {
    HOST_TRACE_SCOPE(HOST, "progress");
    if (progress->mode == HOST_PROGRESS_QUIET) return;
    double now_s = host_now_s();
    double interval_s = progress->mode == HOST_PROGRESS_BAR ? BAR_INTERVAL_S : LINE_INTERVAL_S;
    if (now_s - progress->last_s < interval_s && done < progress->total) return;
    progress->last_s = now_s;
    char times[96];
    times_text(progress, now_s, done, times);
    if (progress->mode == HOST_PROGRESS_BAR) {
        draw_bar(progress, done, text, times);
    } else {
        fprintf(progress->stream, "%s %lld/%lld  %s  %s\n", progress->unit, (long long)done, (long long)progress->total,
                text, times);
        fflush(progress->stream);
    }
}

void host_progress_note(HostProgress *progress, const char *format, ...) {
    if (progress->line_width > 0) fputs("\r\033[K", progress->stream);
    progress->line_width = 0;
    va_list args;
    va_start(args, format);
    vfprintf(progress->stream, format, args);
    va_end(args);
    fputc('\n', progress->stream);
    fflush(progress->stream);
    progress->last_s = -1e9; // the bar comes back with the next update
}

void host_progress_finish(HostProgress *progress) {
    if (progress->line_width > 0) fputc('\n', progress->stream);
    progress->line_width = 0;
    fflush(progress->stream);
}
