#define _GNU_SOURCE // pipe2, environ
#include "host/dialogue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/secret.h"
#include "host/signals.h"

#define FAREWELL_S 0.5
#define OWED_S     1.0 // for what is owed, before another process is the quicker way
enum { POLL_MS = 20, LIFE_FD = 3, CANNOT_RUN = 126, NOT_FOUND = 127 };

// $1 is the command. The first line stays behind and waits for the end of LIFE_FD.
static const char guard[] = "{ read _; kill -9 $$ -$$; } <&3 3<&- >/dev/null 2>&1 &\n"
                            "exec 3<&-; exec /bin/sh -c \"$1\"\n";

struct HostDialogue {
    char *command;
    char **environment;
    pid_t pid;    // 0: not alive
    int to, from; // its input and its output
    int life;     // open as long as the group is to live
    int owed;     // answers to questions that were broken off
    bool is_cut;  // a question was broken off half-way: it cannot be asked any more
    size_t have;
    char text[HOST_ANSWER_MAX]; // [have] of what it has printed
};

// ---- starting ------------------------------------------------------------------------------------------------------

static bool is_secret(const char *entry) {
    size_t length = strlen(HOST_SECRET_ENVIRONMENT);
    return strncmp(entry, HOST_SECRET_ENVIRONMENT, length) == 0 && entry[length] == '=';
}

// This process's, without the secret, and then what was given. NULL: no memory.
static char **copy_environment(const char *const *more, int count) {
    size_t own = 0, at = 0;
    while (environ[own] != NULL)
        own++;
    char **copy = calloc(own + (size_t)count + 1, sizeof *copy);
    bool is_short = copy == NULL;
    for (size_t i = 0; !is_short && i < own + (size_t)count; i++) {
        const char *entry = i < own ? environ[i] : more[i - own];
        if (is_secret(entry)) continue;
        copy[at] = strdup(entry);
        is_short = copy[at++] == NULL;
    }
    if (!is_short) return copy;
    for (size_t i = 0; copy != NULL && i < at; i++)
        free(copy[i]);
    free(copy);
    return NULL;
}

static void free_dialogue(HostDialogue *d) {
    for (char **entry = d->environment; entry != NULL && *entry != NULL; entry++)
        free(*entry);
    free(d->environment);
    free(d->command);
    free(d);
}

Status host_dialogue_open(const char *command, const char *const *environment, int count, HostDialogue **dialogue) {
    HostDialogue *d = calloc(1, sizeof *d);
    if (d == NULL) return host_fail(STATUS_MEMORY, "no memory for a command");
    d->to = d->from = d->life = -1;
    d->command = strdup(command);
    d->environment = copy_environment(environment, count);
    if (d->command == NULL || d->environment == NULL) {
        free_dialogue(d);
        return host_fail(STATUS_MEMORY, "no memory for a command's environment");
    }
    *dialogue = d;
    return STATUS_OK;
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

// As a program expects to be started: no signal ignored or blocked, a group of its own.
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    int error =
        posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (error == 0) error = posix_spawnattr_setpgroup(attributes, 0);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &usual);
    return error != 0 ? error : posix_spawnattr_setsigmask(attributes, &none);
}

// fds: its input, its output, its LIFE_FD; all of them above LIFE_FD.
static int spawn(HostDialogue *d, const int fds[3]) {
    char *const argv[] = {"sh", "-c", (char *)guard, "sh", d->command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        const int places[3] = {STDIN_FILENO, STDOUT_FILENO, LIFE_FD};
        error = set_attributes(&attributes);
        for (int i = 0; i < 3 && error == 0; i++)
            error = posix_spawn_file_actions_adddup2(&actions, fds[i], places[i]);
        if (error == 0) error = posix_spawn(&d->pid, "/bin/sh", &actions, &attributes, argv, d->environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

// A pipe whose ends are above LIFE_FD, so that none is in another's place in the new process.
static int make_pipe(int ends[2]) {
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0) return errno;
    int error = 0;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, LIFE_FD + 1);
        if (ends[i] < 0) error = errno;
        close(low[i]);
    }
    return error;
}

// Kills what is left of it; how it ended, as waitpid() says.
static int give_up(HostDialogue *d) {
    int how = 0;
    if (d->pid > 0) {
        kill(d->pid, SIGKILL);  // it may have left the group
        kill(-d->pid, SIGKILL); // which lives on, be it only by what waits for the end of d->life
        waitpid(d->pid, &how, 0);
    }
    d->pid = 0;
    d->is_cut = false;
    close_fd(&d->to);
    close_fd(&d->from);
    close_fd(&d->life);
    return how;
}

static Status start(HostDialogue *d) {
    int ends[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++)
        error = make_pipe(ends[i]);
    const int fds[3] = {ends[0][0], ends[1][1], ends[2][0]};
    if (error == 0) error = spawn(d, fds);
    d->to = ends[0][1];
    d->from = ends[1][0];
    d->life = ends[2][1];
    for (int i = 0; i < 3; i++) {
        int fd = fds[i];
        close_fd(&fd);
    }
    d->have = 0;
    d->owed = 0;
    if (error == 0 && fcntl(d->to, F_SETFL, O_NONBLOCK) == 0) return STATUS_OK;
    if (error == 0) error = errno;
    give_up(d);
    return host_fail(STATUS_SYSTEM, "cannot start a shell for '%s': %s", d->command, strerror(error));
}

// ---- ending --------------------------------------------------------------------------------------------------------

// Whether it has ended by itself until then, not yet reaped: its group is still its own.
static bool has_ended(const HostDialogue *d, double until_s) {
    const struct timespec moment = {0, 2000000};
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)d->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == d->pid) return true;
        if (host_now_s() >= until_s) return false;
        nanosleep(&moment, NULL);
    }
}

void host_dialogue_close(HostDialogue *const *dialogues, int count) {
    double until_s = host_now_s() + FAREWELL_S;
    for (int i = 0; i < count; i++)
        if (dialogues[i] != NULL) close_fd(&dialogues[i]->to);
    for (int i = 0; i < count; i++) {
        if (dialogues[i] == NULL) continue;
        if (dialogues[i]->pid > 0) has_ended(dialogues[i], until_s);
        give_up(dialogues[i]);
        free_dialogue(dialogues[i]);
    }
}

static Status fail_ended(HostDialogue *d) {
    bool ended = has_ended(d, host_now_s() + FAREWELL_S);
    int how = give_up(d);
    if (!ended) return host_fail(STATUS_CORRUPT, "the command closed its output without an answer");
    if (WIFSIGNALED(how))
        return host_fail(STATUS_CORRUPT, "the command was ended by signal %d (%s) without an answer", WTERMSIG(how),
                         strsignal(WTERMSIG(how)));
    int code = WEXITSTATUS(how);
    if (code == NOT_FOUND || code == CANNOT_RUN)
        return host_fail(STATUS_SYSTEM, "the shell cannot run '%s' (status %d)", d->command, code);
    return host_fail(STATUS_CORRUPT, "the command ended with status %d without an answer", code);
}

static Status fail_said(HostDialogue *d, const char *what) {
    char shown[64];
    size_t length = 0;
    while (length < d->have && length < sizeof shown - 1 && d->text[length] != '\n') {
        char c = d->text[length];
        shown[length++] = c;
        if ((unsigned char)c < ' ' || c == 127) shown[length - 1] = '?';
    }
    shown[length] = '\0';
    give_up(d);
    return host_fail(STATUS_CORRUPT, "the command printed %s: '%s'", what, shown);
}

// ---- talking -------------------------------------------------------------------------------------------------------

// Waits for what it prints, or for room for what it is told, and takes in the former.
static Status turn(HostDialogue *d, bool wants_room, int wait_ms) {
    struct pollfd items[2] = {{.fd = d->from, .events = POLLIN}, {.fd = d->to, .events = POLLOUT}};
    if (poll(items, wants_room ? 2 : 1, wait_ms) <= 0 || items[0].revents == 0) return STATUS_OK;
    if (d->have == sizeof d->text) return fail_said(d, "a line too long for a number");
    ssize_t got = read(d->from, d->text + d->have, sizeof d->text - d->have);
    if (got <= 0) return fail_ended(d);
    d->have += (size_t)got;
    return STATUS_OK;
}

// Takes the first line, without its end, if it is there.
static bool take_line(HostDialogue *d, char answer[HOST_ANSWER_MAX]) {
    const char *line_end = memchr(d->text, '\n', d->have);
    if (line_end == NULL) return false;
    size_t length = (size_t)(line_end - d->text);
    memcpy(answer, d->text, length);
    answer[length] = '\0';
    d->have -= length + 1;
    memmove(d->text, line_end + 1, d->have);
    return true;
}

static void skip_owed(HostDialogue *d) {
    char passed_over[HOST_ANSWER_MAX];
    while (d->owed > 0 && take_line(d, passed_over))
        d->owed--;
}

static Status tell(HostDialogue *d, const char *question, size_t size_bytes) {
    for (size_t told = 0; told < size_bytes;) {
        ssize_t took = write(d->to, question + told, size_bytes - told);
        if (took > 0) {
            told += (size_t)took;
            continue;
        }
        if (took < 0 && errno != EAGAIN && errno != EINTR) return fail_ended(d);
        d->is_cut = told > 0;
        if (host_stop_wanted()) return host_fail(STATUS_STOPPED, "stopped while a command is told something");
        TRY(turn(d, true, POLL_MS));
    }
    d->is_cut = false;
    return STATUS_OK;
}

// Waits for the answers to what was broken off.
static Status settle(HostDialogue *d) {
    double until_s = host_now_s() + OWED_S;
    while (d->owed > 0) {
        skip_owed(d);
        if (d->owed == 0) break;
        if (host_stop_wanted()) return host_fail(STATUS_STOPPED, "stopped while a command computes");
        if (host_now_s() >= until_s) return host_fail(STATUS_CORRUPT, "the command owes an answer");
        TRY(turn(d, false, POLL_MS));
    }
    return STATUS_OK;
}

Status host_dialogue_ask(HostDialogue *d, const char *question, size_t size_bytes, char answer[HOST_ANSWER_MAX]) {
    if (d->pid > 0 && d->owed > 0) {
        Status status = settle(d);
        if (status == STATUS_STOPPED) return status;
        d->is_cut = d->is_cut || status != STATUS_OK; // whatever went wrong there is of the earlier question
    }
    if (d->is_cut) give_up(d);
    if (d->pid == 0) TRY(start(d));
    TRY(turn(d, false, 0));
    if (d->have > 0) return fail_said(d, "what it was not asked for");
    TRY(tell(d, question, size_bytes));
    while (!take_line(d, answer)) {
        if (host_stop_wanted()) {
            d->owed++;
            return host_fail(STATUS_STOPPED, "stopped while a command computes");
        }
        TRY(turn(d, false, POLL_MS));
    }
    return d->have > 0 ? fail_said(d, "what it was not asked for") : STATUS_OK;
}
