// What a GPU's monitor shows beside what the GPU did: a figure that says how long any kernel ran says nothing of how
// much of the GPU it kept busy.
#include <inttypes.h>

#include "profiler/prof_report.h"

static double share(int64_t part_ns, int64_t of_ns) { return of_ns > 0 ? (double)part_ns / (double)of_ns : 0.0; }

static void print_flattery(double shown, double is, const char *what, FILE *stream) {
    fprintf(stream, "%s %.2f%%", what, 100.0 * is);
    if (is > 0.0) fprintf(stream, " (the monitor shows %.2f times that)", shown / is);
}

void prof_report_monitor(const ProfFigures *f, FILE *stream) {
    int64_t wall_ns = prof_figures_whole_ns(f);
    if (f->monitor_samples > 0) {
        double shown = 0.01 * (double)f->monitor_percent / (double)f->monitor_samples;
        fprintf(stream, "Utilisation, as nvidia-smi shows it: %.2f%%, mean of %" PRId64 " samples", 100.0 * shown,
                f->monitor_samples);
        print_flattery(shown, share(f->kernel_busy_ns, wall_ns), "; a kernel ran", stream);
        fprintf(stream, "; kernels added up %.2f%%", 100.0 * share(f->work_ns[PROF_DEVICE_KERNEL], wall_ns));
        if (f->fill_of_ns > 0) {
            print_flattery(shown, share(f->fill_ns, wall_ns), "; of the GPU's threads there were in use", stream);
        }
        fprintf(stream, ".\n");
    }
    if (f->memory_peak_bytes > 0) {
        fprintf(stream, "GPU memory in use, by all processes: at most %.1f MiB.\n",
                (double)f->memory_peak_bytes / (1 << 20));
    }
    if (f->overhead_ns > 0) {
        fprintf(stream, "CUPTI's and the driver's own work, as CUPTI says it: %.3f ms.\n",
                1e-6 * (double)f->overhead_ns);
    }
}
