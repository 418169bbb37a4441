#define _GNU_SOURCE // sched_setaffinity, pipe2
#include "host/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/master.h"
#include "host/member.h"
#include "host/plural.h"
#include "host/run_dir.h"
#include "host/signals.h"

#define SHORT_LIFE_S    5.0
#define DELAY_STEP_S    0.05 // before the next life, for each short one in a row
#define DELAY_MOST_S    1.0
#define FAREWELL_S      1.0 // until evaluators are told to end, which they were by the master
#define KILL_AFTER_S    3.0
#define MISSING_S       2.0 // that workers may take to come before people are told
#define MISSING_AGAIN_S 30.0
enum { LIVES_MAX = 40, FRUITLESS_MAX = 10, POLL_MS = 20, EXIT_USAGE = 2 };

// ---- children ------------------------------------------------------------------------------------------------------

typedef enum Kind { KIND_MASTER, KIND_TRAINER, KIND_FOLLOWER, KIND_EVALUATOR } Kind;

typedef struct Child {
    Kind kind;
    int place; // of a worker: 0 is the trainer's
    pid_t pid; // 0: not alive
    double born_s, next_s;
    bool is_hung;    // this life: it is ended for that
    int short_lives; // in a row, and attempts to start it
    bool is_over;    // not to be started again
} Child;

typedef struct Supervisor {
    const HostSupervision *options;
    Child *children; // [count]: master, trainer, followers, evaluators
    int count;
    int pipe_fd; // from the master
    double beat_s;
    double hang_limit_s; // of this life of the master, by now
    char line[64];
    size_t line_bytes;
    int64_t checkpoint; // newest, when the trainer last died
    int fruitless;      // lives of the trainer without a newer one
    bool is_stopping, has_begun;
    int exit_status;
    bool is_over;
    double over_s;
    int farewell;      // signals sent to those that stay
    HostHookWish wish; // as this life of the master says
    bool has_wish;     // it has said so
    HostHook hook;
    double missing_s; // when people are to be told next that workers are missing
} Supervisor;

static const char *name_of(Kind kind) {
    static const char *const names[] = {"master", "trainer", "follower", "evaluator"};
    return names[kind];
}

// Processors that are the worker's own.
static void take_cores(const HostSupervision *o, int place) {
    cpu_set_t allowed, mine;
    CPU_ZERO(&mine);
    if (o->cores == 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    int at = 0, first = place * o->cores;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        if (at >= first && at < first + o->cores) CPU_SET(cpu, &mine);
        at++;
    }
    // Without processors of its own a worker still works.
    if (CPU_COUNT(&mine) > 0 && sched_setaffinity(0, sizeof mine, &mine) != 0) return;
}

static void set_number(const char *variable, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(variable, text, 1);
}

static void keep_open(int fd, const char *variable) {
    if (fcntl(fd, F_SETFD, 0) == 0) set_number(variable, fd);
}

// In the child: becomes the program; returns only if it cannot.
static void become(const Supervisor *s, const Child *child, int pipe_fd, pid_t parent) {
    const HostSupervision *o = s->options;
    // A group of its own: what a terminal sends reaches the supervisor alone.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, child->kind == KIND_TRAINER ? SIGTERM : SIGKILL);
    if (getppid() != parent) _exit(1);
    char *const *argv = child->kind == KIND_FOLLOWER ? o->follower : o->evaluator;
    if (child->kind == KIND_MASTER) {
        argv = o->master;
        keep_open(o->listen_fd, HOST_LISTEN_FD_ENVIRONMENT);
        keep_open(pipe_fd, HOST_SUPERVISOR_FD_ENVIRONMENT);
    } else {
        take_cores(o, child->place);
        set_number(HOST_PLACE_ENVIRONMENT, child->place);
        if (child->kind == KIND_TRAINER) argv = s->has_begun ? o->trainer_again : o->trainer;
    }
    execv("/proc/self/exe", argv);
}

static void end_run(Supervisor *s, int exit_status) {
    s->is_over = true;
    s->over_s = host_now_s();
    s->exit_status = exit_status;
}

// When its next life may begin.
static void put_off(Child *child) {
    double delay_s = DELAY_STEP_S * child->short_lives;
    child->next_s = host_now_s() + (delay_s < DELAY_MOST_S ? delay_s : DELAY_MOST_S);
}

// The system has no room for another process, which may be so for a moment.
static void on_no_start(Supervisor *s, Child *child, int reason) {
    bool is_first = child->short_lives++ == 0;
    put_off(child);
    child->is_over = child->short_lives > LIVES_MAX;
    if (is_first || child->is_over) {
        fprintf(stderr, "%s: cannot start the %s: %s; %s\n", s->options->tool, name_of(child->kind), strerror(reason),
                child->is_over ? "it is given up" : "it is tried again");
    }
    if (child->is_over && child->kind == KIND_TRAINER) end_run(s, 1);
}

// The pipe by which a master's new life speaks.
static bool open_pipe(Supervisor *s, int ends[2]) {
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    if (s->pipe_fd >= 0) close(s->pipe_fd);
    s->pipe_fd = ends[0];
    s->line_bytes = 0;
    s->has_wish = false;
    s->beat_s = host_now_s();
    s->hang_limit_s = s->options->hang_limit_s;
    return true;
}

static void start(Supervisor *s, Child *child) {
    int ends[2] = {-1, -1};
    if (child->kind == KIND_MASTER && !open_pipe(s, ends)) {
        on_no_start(s, child, errno);
        return;
    }
    pid_t parent = getpid();
    fflush(NULL);
    child->pid = fork();
    if (child->pid == 0) {
        become(s, child, ends[1], parent);
        fprintf(stderr, "%s: cannot start the %s: %s\n", s->options->tool, name_of(child->kind), strerror(errno));
        _exit(EXIT_USAGE);
    }
    int reason = errno;
    if (ends[1] >= 0) close(ends[1]);
    if (child->pid < 0) {
        child->pid = 0;
        on_no_start(s, child, reason);
        return;
    }
    child->born_s = host_now_s();
    child->is_hung = false;
}

static bool hung(const Child *child, int how) {
    return child->is_hung || (WIFEXITED(how) && WEXITSTATUS(how) == HOST_EXIT_HANGS);
}

static void note(const Supervisor *s, const Child *child, pid_t pid, int how, const char *then) {
    char why[64] = "";
    if (hung(child, how)) snprintf(why, sizeof why, ", for it hung (--hang-limit %g)", s->options->hang_limit_s);
    if (WIFSIGNALED(how)) {
        fprintf(stderr, "%s: the %s (process %d) was ended by signal %d (%s)%s; %s\n", s->options->tool,
                name_of(child->kind), (int)pid, WTERMSIG(how), strsignal(WTERMSIG(how)), why, then);
    } else {
        fprintf(stderr, "%s: the %s (process %d) ended with status %d%s; %s\n", s->options->tool, name_of(child->kind),
                (int)pid, WEXITSTATUS(how), why, then);
    }
}

static bool run_has_begun(const Supervisor *s) {
    char path[HOST_PATH_MAX];
    return host_run_config_path(s->options->run, path) == STATUS_OK && host_file_exists(path);
}

// Whether the trainer's death leaves hope: not where it dies again and again before the next checkpoint.
static bool trainer_goes_on(Supervisor *s, const Child *child, int how) {
    char path[HOST_PATH_MAX];
    int64_t checkpoint;
    bool died = WIFSIGNALED(how) || hung(child, how);
    if (!died || s->is_stopping) return false;
    if (host_run_newest_checkpoint(s->options->run, &checkpoint, path) != STATUS_OK) return false;
    s->fruitless = checkpoint > s->checkpoint ? 0 : s->fruitless + 1;
    s->checkpoint = checkpoint;
    s->has_begun = run_has_begun(s);
    return s->fruitless < FRUITLESS_MAX;
}

// From where a trainer that is started again goes on.
static const char *start_of_next(const Supervisor *s) {
    for (int i = 0; i < s->count; i++) {
        if (s->children[i].kind == KIND_FOLLOWER && s->children[i].pid > 0)
            return "it goes on from where the other trainers are";
    }
    return s->checkpoint >= 0 ? "it goes on from the last checkpoint"
                              : "it goes on from the beginning: there is no checkpoint yet";
}

static void on_trainers_death(Supervisor *s, Child *child, pid_t pid, int how) {
    bool died = WIFSIGNALED(how) || hung(child, how);
    char last[96] = "this ends the run";
    child->is_over = !trainer_goes_on(s, child, how);
    if (s->fruitless == FRUITLESS_MAX)
        snprintf(last, sizeof last, "it has died %d times without a newer checkpoint: this ends the run",
                 FRUITLESS_MAX);
    if (died) note(s, child, pid, how, child->is_over ? last : start_of_next(s));
    if (child->is_over) end_run(s, died ? 1 : WEXITSTATUS(how));
}

// A worker hangs only after a while.
static bool was_short(const Supervisor *s, const Child *child, int how) {
    double most_s = SHORT_LIFE_S;
    if (hung(child, how)) most_s += 2 * HOST_MASTER_RAISE_MOST * s->options->hang_limit_s;
    return host_now_s() - child->born_s < most_s;
}

static void on_death(Supervisor *s, Child *child, int how) {
    pid_t pid = child->pid;
    bool ended_well = WIFEXITED(how) && WEXITSTATUS(how) == 0;
    child->pid = 0;
    child->short_lives = was_short(s, child, how) ? child->short_lives + 1 : 0;
    put_off(child);
    if (s->is_over) {
        child->is_over = true;
    } else if (child->kind == KIND_TRAINER) {
        on_trainers_death(s, child, pid, how);
    } else {
        bool was_wrong = WIFEXITED(how) && WEXITSTATUS(how) == EXIT_USAGE;
        // A master that ends well has been told of the run's end, which the trainer's will show; or somebody has ended
        // it.
        bool is_done = ended_well && child->kind != KIND_MASTER;
        if (ended_well && child->kind == KIND_MASTER) child->next_s = host_now_s() + DELAY_MOST_S;
        child->is_over = is_done || was_wrong || child->short_lives > LIVES_MAX;
        if (!ended_well) note(s, child, pid, how, child->is_over ? "it is given up" : "another one is started");
    }
}

static void reap(Supervisor *s) {
    for (int i = 0; i < s->count; i++) {
        Child *child = &s->children[i];
        int how;
        if (child->pid > 0 && waitpid(child->pid, &how, WNOHANG) == child->pid) on_death(s, child, how);
    }
}

static void send_signal(const Supervisor *s, Kind kind, int signal_number) {
    for (int i = 0; i < s->count; i++)
        if (s->children[i].kind == kind && s->children[i].pid > 0) kill(s->children[i].pid, signal_number);
}

// ---- what the master says ------------------------------------------------------------------------------------------

static void tell_slow(Supervisor *s, long long needed_ms, long long limit_ms) {
    s->hang_limit_s = 1e-3 * (double)limit_ms;
    if (s->options->quiet) return;
    fprintf(stderr,
            "%s: a worker needed %.3g s between two looks for a stop: from now on hangs are noticed after %g s "
            "(--hang-limit %g)\n",
            s->options->tool, 1e-3 * (double)needed_ms, s->hang_limit_s, s->options->hang_limit_s);
}

static void end_hung(Supervisor *s, Child *child) {
    fprintf(stderr,
            "%s: the %s (process %d) showed no progress for %g s, twice the limit (--hang-limit %g): it is ended\n",
            s->options->tool, name_of(child->kind), (int)child->pid, 2 * s->hang_limit_s, s->options->hang_limit_s);
    child->is_hung = true;
    kill(child->pid, SIGKILL);
}

static void on_line(Supervisor *s) {
    long long pid, needed_ms, limit_ms;
    int workers, wanted, reason;
    s->beat_s = host_now_s();
    if (sscanf(s->line, HOST_MASTER_BEAT_LINE, &workers, &wanted, &reason) == 3) {
        s->wish = (HostHookWish){workers, wanted, (HostScaleReason)reason};
        s->has_wish = true;
        return;
    }
    if (sscanf(s->line, HOST_MASTER_SLOW_LINE, &needed_ms, &limit_ms) == 2) tell_slow(s, needed_ms, limit_ms);
    if (sscanf(s->line, HOST_MASTER_HUNG_LINE, &pid) != 1) return;
    for (int i = 0; i < s->count; i++) // a number of this host's only if it is a child's
        if (s->children[i].kind != KIND_MASTER && s->children[i].pid == pid) end_hung(s, &s->children[i]);
}

static void read_master(Supervisor *s) {
    char byte;
    while (s->pipe_fd >= 0) {
        ssize_t got = read(s->pipe_fd, &byte, 1);
        if (got == 0) { // it has died
            close(s->pipe_fd);
            s->pipe_fd = -1;
            s->has_wish = false;
        }
        if (got <= 0) return;
        if (s->line_bytes < sizeof s->line - 1) s->line[s->line_bytes++] = byte;
        if (byte != '\n') continue;
        s->line[s->line_bytes] = '\0';
        on_line(s);
        s->line_bytes = 0;
    }
}

// ---- the loop ------------------------------------------------------------------------------------------------------

static void start_due(Supervisor *s) {
    for (int i = 0; i < s->count; i++) {
        Child *child = &s->children[i];
        if (child->pid == 0 && !child->is_over && !s->is_over && host_now_s() >= child->next_s) start(s, child);
    }
}

// Now and then, how many workers are missing.
static void tell_missing(Supervisor *s, double now_s) {
    const HostSupervision *o = s->options;
    int there = s->wish.workers;
    if (!s->has_wish || there >= o->min_workers) {
        s->missing_s = now_s + MISSING_S;
        return;
    }
    if (o->quiet || now_s < s->missing_s) return;
    s->missing_s = now_s + MISSING_AGAIN_S;
    fprintf(stderr, "%s: %d of %d worker%s %s there: nothing is computed until %d more %s\n", o->tool, there,
            o->min_workers, host_plural(o->min_workers), there == 1 ? "is" : "are", o->min_workers - there,
            o->min_workers - there == 1 ? "has come" : "have come");
}

static bool all_gone(const Supervisor *s) {
    for (int i = 0; i < s->count; i++)
        if (s->children[i].pid > 0) return false;
    return true;
}

// The trainer has ended: the master told the others so. Who stays is asked, and then made to go.
static void send_home(Supervisor *s, double since_s) {
    int wanted = since_s > KILL_AFTER_S ? 2 : since_s > FAREWELL_S ? 1 : 0;
    if (wanted <= s->farewell) return;
    s->farewell = wanted;
    send_signal(s, KIND_FOLLOWER, wanted == 1 ? SIGTERM : SIGKILL);
    send_signal(s, KIND_EVALUATOR, wanted == 1 ? SIGTERM : SIGKILL);
    send_signal(s, KIND_MASTER, wanted == 1 ? SIGTERM : SIGKILL);
}

static void stop(Supervisor *s) {
    char path[HOST_PATH_MAX];
    int64_t checkpoint;
    s->is_stopping = true;
    send_signal(s, KIND_TRAINER, SIGTERM);
    if (s->is_over || s->children[1].pid > 0) return;
    if (host_run_newest_checkpoint(s->options->run, &checkpoint, path) != STATUS_OK) checkpoint = -1;
    fprintf(stderr, "%s: stopped while there was no trainer; %s\n", s->options->tool,
            checkpoint >= 0 ? "its last checkpoint stays" : "there is no checkpoint yet");
    end_run(s, 1);
}

static void watch(Supervisor *s) {
    s->missing_s = host_now_s() + MISSING_S;
    while (!s->is_over || !all_gone(s)) {
        start_due(s);
        struct pollfd item = {.fd = s->pipe_fd, .events = POLLIN};
        poll(&item, 1, POLL_MS);
        read_master(s);
        reap(s);
        double now_s = host_now_s();
        if (host_stop_requested() && !s->is_stopping) stop(s);
        if (now_s - s->beat_s > s->options->master_silence_s) {
            send_signal(s, KIND_MASTER, SIGKILL);
            s->beat_s = now_s;
        }
        if (!s->is_over && !s->is_stopping) {
            tell_missing(s, now_s);
            host_hook_look(&s->hook, s->has_wish ? &s->wish : NULL, now_s);
        }
        if (s->is_over) send_home(s, now_s - s->over_s);
    }
    host_hook_end(&s->hook);
}

Status host_supervise(const HostSupervision *options, int *exit_status) {
    Supervisor s = {
        .options = options, .count = 2 + options->followers + options->evaluators, .pipe_fd = -1, .checkpoint = -1};
    s.children = calloc((size_t)s.count, sizeof *s.children);
    if (s.children == NULL) return host_fail(STATUS_MEMORY, "no memory for %d processes", s.count);
    s.has_begun = run_has_begun(&s);
    for (int i = 0; i < s.count; i++) {
        bool follows = i < 2 + options->followers;
        s.children[i].kind = i == 0 ? KIND_MASTER : i == 1 ? KIND_TRAINER : follows ? KIND_FOLLOWER : KIND_EVALUATOR;
        s.children[i].place = i - 1;
    }
    host_hook_init(&s.hook, &options->hook);
    watch(&s);
    if (s.pipe_fd >= 0) close(s.pipe_fd);
    free(s.children);
    *exit_status = s.exit_status;
    return STATUS_OK;
}
