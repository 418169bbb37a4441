// profreport: where the time of a run went, from the traces that --profile records; several runs side by side.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host/config.h"
#include "profiler/prof_report.h"

static const char help[] = "profreport RUN...          where the time of a run went; several runs are compared\n"
                           "profreport RUN --json      everything, for programs\n"
                           "profreport RUN... --html F a page for a browser: figures, comparison, timeline\n"
                           "profreport RUN --chrome F  a timeline for Perfetto\n"
                           "profreport --calibrate     measure the profiler's own cost, for corrected times\n";

typedef struct ReportConfig {
#define OPTION  HOST_CONFIG_FIELD
#define COMMAND HOST_CONFIG_FIELD
#include "profiler/profreport.def"
} ReportConfig;

static const ConfigOption options[] = {
#define OPTION(type, name, ...)  HOST_CONFIG_ROW(ReportConfig, false, type, name, __VA_ARGS__)
#define COMMAND(type, name, ...) HOST_CONFIG_ROW(ReportConfig, true, type, name, __VA_ARGS__)
#include "profiler/profreport.def"
};
static const ConfigTable table = {"profreport", options, sizeof options / sizeof options[0], sizeof(ReportConfig)};

static Status write_chrome(const ProfRun *runs, int count, FILE *file) {
    (void)count; // one
    return prof_chrome_write(runs, file);
}

typedef Status Write(const ProfRun *runs, int count, FILE *file);

static Status write_file(const ProfRun *runs, int count, Write *write, const char *path) {
    FILE *file = fopen(path, "we");
    if (file == NULL) return host_fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    Status status = write(runs, count, file);
    bool failed = ferror(file) != 0;
    failed |= fclose(file) != 0;
    TRY(status);
    return failed ? host_fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno)) : STATUS_OK;
}

static Status print(const ReportConfig *config, const ProfRun *runs, int count) {
    if (config->chrome[0] != '\0') TRY(write_file(runs, count, write_chrome, config->chrome));
    if (config->html[0] != '\0') TRY(write_file(runs, count, prof_html_write, config->html));
    if (config->json) {
        prof_report_json(runs, count, PROF_JSON_ALL, stdout);
    } else if (config->csv) {
        prof_report_csv(runs, count, stdout);
    } else {
        for (int i = 0; i < count; i++) {
            prof_report_text(&runs[i], config->all, stdout);
            if (count > 1) fputs("\n", stdout);
        }
        if (count > 1) prof_report_compare(runs, count, stdout);
    }
    return host_file_check_stdout();
}

static void print_estimate(const char *name, const ProfEstimate *e) {
    printf("%-8s %9.2f ns (95%% interval %.2f to %.2f)\n", name, e->value, e->low, e->high);
}

static void print_costs(const ProfCost *cost, const ProfCostMissing *missing) {
    for (int i = 0; i < PROF_COSTS; i++) {
        if (cost->is_known[i]) print_estimate(prof_cost_name((ProfCostClass)i), &cost->each_ns[i]);
    }
    if (cost->has_kernel) print_estimate("kernel", &cost->kernel_ns);
    for (int i = 0; i < PROF_COSTS; i++) {
        const ProfEstimate *e = &cost->inside_ns[i];
        if (!cost->is_known[i] || (i != PROF_COST_SCOPE && i != PROF_COST_SCRIPT && i != PROF_COST_CALL)) continue;
        printf("of a %s, %.2f ns (%.2f to %.2f) count for itself\n", prof_cost_name((ProfCostClass)i), e->value, e->low,
               e->high);
    }
    if (missing->script[0] != '\0') printf("Python's scopes were not measured: %s\n", missing->script);
    if (missing->gpu[0] != '\0') printf("calls of CUDA were not measured: %s\n", missing->gpu);
}

static Status calibrate(const char *python) {
    char path[HOST_PATH_MAX];
    ProfCost cost;
    ProfCostMissing missing;
    TRY(prof_cost_path(path));
    TRY(prof_cost_measure(python, &cost, &missing));
    TRY(prof_cost_save(&cost, path));
    print_costs(&cost, &missing);
    printf("kept in %s\n", path);
    return host_file_check_stdout();
}

// What cannot be read corrects nothing, and is no reason to report nothing.
static void correct(ProfRun *run) {
    char path[HOST_PATH_MAX];
    bool has_path = prof_cost_path(path) == STATUS_OK;
    if (prof_run_correct(run, has_path ? path : NULL) != STATUS_OK)
        fprintf(stderr, "profreport: warning: %s\n", host_message());
}

static Status load_and_print(const ReportConfig *config, const ConfigArgs *args) {
    unsigned phases = config->phase == 0 ? (unsigned)PROF_ALL_PHASES : 1u << (config->phase - 1);
    ProfRun *runs = calloc((size_t)args->count, sizeof *runs);
    if (runs == NULL) return host_fail(STATUS_MEMORY, "no memory for %d runs", args->count);
    Status status = STATUS_OK;
    int loaded = 0;
    while (status == STATUS_OK && loaded < args->count) {
        status = prof_run_load(table.tool, args->positional[loaded], phases, &runs[loaded]);
        if (status != STATUS_OK) break;
        correct(&runs[loaded++]);
    }
    if (status == STATUS_OK) status = print(config, runs, loaded);
    for (int i = 0; i < loaded; i++)
        prof_run_free(&runs[i]);
    free(runs);
    return status;
}

static Status run_command(int argc, char **argv) {
    static ReportConfig values;
    HostConfig config;
    ConfigArgs args;
    TRY(host_file_hold_standard());
    signal(SIGPIPE, SIG_IGN); // so that it is an error to be reported
    host_config_init(&config, &table, &values);
    TRY(host_config_parse_args(&config, argc, argv, &args));
    if (args.help) {
        printf("%s\n", help);
        host_config_help(&table, stdout);
        return host_file_check_stdout();
    }
    if (args.version) {
        printf("profreport %s\n", SHOAL_VERSION);
        return host_file_check_stdout();
    }
    if (values.calibrate && args.count > 0)
        return host_fail(STATUS_USAGE, "--calibrate is for the machine, not for a run");
    if (values.calibrate && (values.json || values.csv || values.chrome[0] != '\0' || values.html[0] != '\0'))
        return host_fail(STATUS_USAGE, "--calibrate makes no report");
    if (values.calibrate) return calibrate(values.python);
    if (host_config_is_given(&config, "python")) return host_fail(STATUS_USAGE, "--python goes with --calibrate");
    if (args.count == 0) return host_fail(STATUS_USAGE, "which run? profreport RUN...");
    if (values.json && values.csv) return host_fail(STATUS_USAGE, "--json and --csv: one of them");
    if (values.chrome[0] != '\0' && args.count > 1) return host_fail(STATUS_USAGE, "--chrome takes one run");
    return load_and_print(&values, &args);
}

int main(int argc, char **argv) {
    Status status = run_command(argc, argv);
    if (status == STATUS_OK) return 0;
    fprintf(stderr, "profreport: %s\n", host_message());
    return status == STATUS_USAGE ? 2 : 1;
}
