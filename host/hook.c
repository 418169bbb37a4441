#include "host/hook.h"
#include "host/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/secret.h"

#define DELAY_MOST 32.0
#define LIMIT      2.0 // intervals that a call may take
#define KILL_S     1.0 // after it was told to end

void host_hook_init(HostHook *hook, const HostHookOptions *options) {
    *hook = (HostHook){.options = *options, .delay = 1.0};
}

// ---- a call --------------------------------------------------------------------------------------------------------

static int set_number(const char *name, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    return setenv(name, text, 1);
}

static int set_environment(const HostHook *hook, const HostHookWish *wish) {
    int failed = unsetenv(HOST_SECRET_ENVIRONMENT);
    failed |= set_number("SHOAL_WORKERS", wish->workers) | set_number("SHOAL_WANTED", wish->wanted);
    failed |= setenv("SHOAL_REASON", host_scale_name(wish->reason), 1);
    for (const char *const *at = hook->options.variables; *at != NULL; at++) {
        char name[64];
        const char *equals = strchr(*at, '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - *at), *at);
        failed |= setenv(name, equals + 1, 1);
    }
    return failed;
}

// In the child: becomes the command; returns only if it cannot.
static void become(const HostHook *hook, const HostHookWish *wish, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return;
    if (set_environment(hook, wish) != 0) return;
    // What this process ignores, and handlers' signals, are a command's as ever.
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    execl("/bin/sh", "sh", "-c", hook->options.command, (char *)NULL);
}

static void report(const HostHook *hook, const char *what) {
    fprintf(stderr, "%s: --scale-hook %s; it was to make %d worker%s of %d. The next call is in %.3g s or later\n",
            hook->options.tool, what, hook->wish.wanted, host_plural(hook->wish.wanted), hook->wish.workers,
            hook->options.interval_s * hook->delay);
}

static void start(HostHook *hook, const HostHookWish *wish, double now_s) {
    hook->delay = hook->is_news ? 1.0 : hook->delay < DELAY_MOST ? 2.0 * hook->delay : DELAY_MOST;
    hook->is_news = false;
    hook->wish = *wish;
    hook->started_s = now_s;
    hook->next_s = now_s + hook->options.interval_s * hook->delay;
    hook->is_late = false;
    if (!hook->options.quiet) {
        fprintf(stderr, "%s: %d worker%s wanted, and %d there (%s): calls --scale-hook\n", hook->options.tool,
                wish->wanted, wish->wanted == 1 ? " is" : "s are", wish->workers, host_scale_text(wish->reason));
    }
    pid_t parent = getpid();
    fflush(NULL);
    hook->pid = fork();
    if (hook->pid == 0) {
        become(hook, wish, parent);
        fprintf(stderr, "%s: cannot run --scale-hook: %s\n", hook->options.tool, strerror(errno));
        _exit(126);
    }
    if (hook->pid > 0) {
        setpgid(hook->pid, hook->pid); // whoever of the two comes first
        return;
    }
    hook->pid = 0;
    char what[128];
    snprintf(what, sizeof what, "cannot be started: %s", strerror(errno));
    report(hook, what);
}

// ---- its end -------------------------------------------------------------------------------------------------------

static void on_end(HostHook *hook, int how) {
    char what[128];
    hook->pid = 0;
    if (WIFEXITED(how) && WEXITSTATUS(how) == 0 && !hook->is_late) return;
    if (hook->is_late) {
        snprintf(what, sizeof what, "took more than %.3g s and was ended", LIMIT * hook->options.interval_s);
    } else if (WIFSIGNALED(how)) {
        snprintf(what, sizeof what, "was ended by signal %d (%s)", WTERMSIG(how), strsignal(WTERMSIG(how)));
    } else {
        snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(how));
    }
    report(hook, what);
}

static void watch(HostHook *hook, double now_s) {
    int how;
    if (waitpid(hook->pid, &how, WNOHANG) == hook->pid) {
        if (hook->is_late) kill(-hook->pid, SIGKILL); // whatever it was waiting for
        on_end(hook, how);
        return;
    }
    double late_s = now_s - hook->started_s - LIMIT * hook->options.interval_s;
    if (late_s > 0 && !hook->is_late) kill(-hook->pid, SIGTERM);
    if (late_s > KILL_S) kill(-hook->pid, SIGKILL);
    hook->is_late = late_s > 0;
}

void host_hook_look(HostHook *hook, const HostHookWish *wish, double now_s) {
    if (hook->options.command[0] == '\0') return;
    if (wish != NULL && (wish->workers != hook->wish.workers || wish->wanted != hook->wish.wanted))
        hook->is_news = true;
    if (hook->is_news && hook->started_s > 0) hook->next_s = hook->started_s + hook->options.interval_s;
    if (hook->pid > 0) {
        watch(hook, now_s);
    } else if (wish != NULL && wish->reason != HOST_SCALE_NONE && wish->wanted != wish->workers &&
               now_s >= hook->next_s) {
        start(hook, wish, now_s);
    }
}

void host_hook_end(HostHook *hook) {
    if (hook->pid <= 0) return;
    kill(-hook->pid, SIGKILL);
    while (waitpid(hook->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    hook->pid = 0;
}
