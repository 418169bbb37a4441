// What handing out work costs: 5 workers and tasks that only sleep, 5 s of sleep in all, so that 1 s is ideal. The test
// and its durations are those of Fiber (Zhi et al., 2020): 1 s, 100 ms, 10 ms and 1 ms. Python's multiprocessing does
// the same beside it, in turn (perf/peers/pool_tasks.py), where the name of a Python is given: perf_workers python3
// SCRIPT.
//
// The processes are those of a run with --workers: a supervisor, a master, a trainer, four evaluators.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/address.h"
#include "host/clock.h"
#include "host/master.h"
#include "host/member.h"
#include "host/signals.h"
#include "host/supervise.h"
#include "perf/perf.h"

enum { WORKERS = 5, REPEATS = 5, TASK_KINDS = 4, TASKS_MAX = 5000 };

static const int task_ms[TASK_KINDS] = {1000, 100, 10, 1};

static void sleep_ms(int ms) {
    const struct timespec duration = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&duration, NULL);
}

// One record of a byte for each task: done.
static Status do_tasks(HostMember *member, const HostTask *task, int ms) {
    static unsigned char done[TASKS_MAX];
    const void *records[HOST_MEMBER_RECORDS] = {done, NULL};
    const size_t bytes[HOST_MEMBER_RECORDS] = {1, 0};
    for (int i = 0; i < task->count && !host_stop_requested(); i++)
        sleep_ms(ms);
    memset(done, 1, sizeof done);
    if (host_stop_requested()) return host_member_broken_off(member, task);
    return host_member_finish(member, task, records, bytes);
}

static Status evaluate(HostMember *member) {
    for (;;) {
        HostTask task;
        int ms;
        TRY(host_member_next(member, &task));
        if (task.count == 0) return STATUS_OK;
        memcpy(&ms, task.payload, sizeof ms);
        TRY(do_tasks(member, &task, ms));
    }
}

static Status run_round(HostMember *member, int64_t label, int ms, double *seconds) {
    static unsigned char done[TASKS_MAX];
    int32_t tasks = WORKERS * 1000 / ms;
    memset(done, 0, sizeof done);
    HostRound round = {.label = label,
                       .count = tasks,
                       .grain = 1,
                       .payload = &ms,
                       .payload_bytes = sizeof ms,
                       .records = {done, NULL},
                       .record_bytes = {1, 0}};
    double start_s = host_now_s();
    TRY(host_member_begin(member, &round));
    for (;;) {
        HostTask task;
        TRY(host_member_next(member, &task));
        if (task.count == 0) break;
        TRY(do_tasks(member, &task, ms));
    }
    *seconds = host_now_s() - start_s;
    host_member_end(member);
    for (int32_t i = 0; i < tasks; i++)
        if (!done[i]) return host_fail(STATUS_SYSTEM, "task %d was not done", i);
    return STATUS_OK;
}

// Seconds that a worker's share of the sleeps takes without anything else: a sleep is longer than it was asked to be.
static double sleep_seconds(int ms) {
    double start_s = host_now_s();
    for (int i = 0; i < 1000 / ms; i++)
        sleep_ms(ms);
    return host_now_s() - start_s;
}

// Seconds that the peer takes for the same tasks; NaN without one.
static double peer_seconds(const char *python, const char *script, int ms) {
    char command[512];
    double seconds = 0.0 / 0.0;
    snprintf(command, sizeof command, "%s %s %d %d", python, script, WORKERS, ms);
    FILE *pipe = popen(command, "r");
    if (pipe == NULL) return seconds;
    if (fscanf(pipe, "%lf", &seconds) != 1) seconds = 0.0 / 0.0;
    pclose(pipe);
    return seconds;
}

static Status train(HostMember *member, int count, char **peer) {
    double ours[REPEATS], theirs[REPEATS], floor_s[REPEATS];
    int64_t label = 0;
    while (host_member_figures(member).evaluators < WORKERS - 1)
        sleep_ms(10);
    for (int kind = 0; kind < TASK_KINDS; kind++) {
        char name[64];
        for (int i = 0; i < REPEATS; i++) {
            TRY(run_round(member, label++, task_ms[kind], &ours[i]));
            floor_s[i] = sleep_seconds(task_ms[kind]);
            if (count == 2) theirs[i] = peer_seconds(peer[0], peer[1], task_ms[kind]);
        }
        snprintf(name, sizeof name, "5 workers; %d tasks of %d ms", WORKERS * 1000 / task_ms[kind], task_ms[kind]);
        perf_print(name, ours, REPEATS, "s");
        snprintf(name, sizeof name, "what one worker's sleeps take; %d ms", task_ms[kind]);
        perf_print(name, floor_s, REPEATS, "s");
        snprintf(name, sizeof name, "the same by multiprocessing.Pool; %d ms", task_ms[kind]);
        if (count == 2) perf_print(name, theirs, REPEATS, "s");
    }
    return STATUS_OK;
}

static int file_number(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL ? (int)strtol(value, NULL, 10) : -1;
}

static Status work(const char *role, const char *endpoint, int count, char **peer) {
    HostSecret secret;
    HostKeys keys;
    TRY(host_secret_find(&secret, ""));
    TRY(host_secret_keys(&secret, &keys));
    if (strcmp(role, "master") == 0) {
        HostMasterOptions options = {
            .endpoint = endpoint, .keys = &keys, .build = "perf", .min_workers = WORKERS, .hang_limit_s = 60};
        options.listen_fd = file_number(HOST_LISTEN_FD_ENVIRONMENT);
        options.supervisor_fd = file_number(HOST_SUPERVISOR_FD_ENVIRONMENT);
        return host_master_run(&options);
    }
    bool is_trainer = strcmp(role, "trainer") == 0;
    HostMemberOptions options = {.endpoint = endpoint,
                                 .keys = &keys,
                                 .role = is_trainer ? HOST_ROLE_TRAINER : HOST_ROLE_EVALUATOR,
                                 .build = "perf",
                                 .device = "sleep",
                                 .settings = is_trainer ? "{}" : NULL,
                                 .threads = 1,
                                 .min_workers = WORKERS,
                                 .patience_s = 60};
    HostMember *member;
    TRY(host_member_open(&options, &member));
    Status status = is_trainer ? train(member, count, peer) : evaluate(member);
    host_member_close(member, is_trainer);
    return status;
}

static Status supervise(char **argv, int argc, int *exit_status) {
    HostSecret secret;
    char endpoint[128];
    char *master[] = {argv[0], "master", endpoint, NULL}, *evaluator[] = {argv[0], "evaluator", endpoint, NULL};
    char *trainer[] = {argv[0], "trainer", endpoint, argc == 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL, NULL};
    HostSupervision options = {.tool = "perf_workers",
                               .run = "no folder",
                               .master = master,
                               .trainer = trainer,
                               .trainer_again = trainer,
                               .evaluator = evaluator,
                               .evaluators = WORKERS - 1};
    TRY(host_secret_make(&secret));
    setenv(HOST_SECRET_ENVIRONMENT, secret.text, 1);
    TRY(host_listen("tcp://127.0.0.1:*", &options.listen_fd, endpoint, sizeof endpoint));
    return host_supervise(&options, exit_status);
}

int main(int argc, char **argv) {
    int exit_status = 0;
    Status status = host_signals_install();
    bool is_child = argc >= 3 && strncmp(argv[2], "tcp://", 6) == 0;
    if (status == STATUS_OK && is_child) status = work(argv[1], argv[2], argc - 3, argv + 3);
    if (status == STATUS_OK && !is_child) status = supervise(argv, argc, &exit_status);
    if (status != STATUS_OK) fprintf(stderr, "perf_workers: %s\n", host_message());
    return status == STATUS_OK ? exit_status : 1;
}
