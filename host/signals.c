#include "host/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stop_flag; // lock-free, so a handler may set it
static atomic_bool interrupt_flag;
static atomic_llong looks, stop_ns; // the latter: when the first signal for a stop came; 0: none did
static _Atomic(HostCrash *) crash_note;

// Signals that end a process for its own mistake, and what was done about them before.
static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASH_SIGNALS = sizeof crash_signals / sizeof crash_signals[0] };
static struct sigaction crash_before[CRASH_SIGNALS];

// What a signal to a process and to its group, one after the other, may have between them: timeout(1) sends both.
#define SAME_STOP_NS 200000000

static void on_stop(int signal_number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    long long none = 0;
    atomic_compare_exchange_strong(&stop_ns, &none, now_ns); // before the flag: another signal may come in between
    if (!atomic_exchange(&stop_flag, true) || now_ns - atomic_load(&stop_ns) < SAME_STOP_NS) return;
    // The second one: the default action, which comes when this handler returns.
    int kept = errno;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    errno = kept;
}

static Status handle(int signal_number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(signal_number, &action, NULL) != 0)
        return host_fail(STATUS_SYSTEM, "cannot handle signal %d: %s", signal_number, strerror(errno));
    return STATUS_OK;
}

Status host_signals_install(void) {
    TRY(handle(SIGINT, on_stop));
    TRY(handle(SIGTERM, on_stop));
    TRY(handle(SIGXFSZ, SIG_IGN));
    return handle(SIGPIPE, SIG_IGN);
}

bool host_stop_wanted(void) {
    return atomic_load_explicit(&stop_flag, memory_order_relaxed) ||
           atomic_load_explicit(&interrupt_flag, memory_order_relaxed);
}

bool host_stop_requested(void) {
    atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed);
    return host_stop_wanted();
}

int64_t host_stop_looks(void) { return atomic_load_explicit(&looks, memory_order_relaxed); }

bool host_stop_pending(void) { return atomic_load_explicit(&stop_flag, memory_order_relaxed); }

void host_stop_request(void) { atomic_store(&stop_flag, true); }

void host_stop_clear(void) {
    atomic_store(&stop_ns, 0);
    atomic_store(&stop_flag, false);
}

void host_interrupt(bool is_wanted) { atomic_store(&interrupt_flag, is_wanted); }

// Only what POSIX lets a handler call.
static void on_crash(int signal_number) {
    HostCrash *crash = atomic_load(&crash_note);
    const uint64_t one = 1;
    if (crash != NULL && atomic_exchange(&crash->signal_number, signal_number) == 0 &&
        write(crash->wake_fd, &one, sizeof one) == (ssize_t)sizeof one) {
        const struct timespec moment = {0, 10000000};
        for (int i = 0; i < 50 && !atomic_load(&crash->is_told); i++)
            nanosleep(&moment, NULL);
        nanosleep(&moment, NULL); // until the message has left the process
    }
    for (int i = 0; i < CRASH_SIGNALS; i++) {
        if (crash_signals[i] == signal_number) sigaction(signal_number, &crash_before[i], NULL);
    }
    // A fault comes again when this returns; a signal that was sent has to be sent again.
    raise(signal_number);
}

Status host_signals_on_crash(HostCrash *crash) {
    if (atomic_exchange(&crash_note, crash) != NULL || crash == NULL) return STATUS_OK; // handled already
    for (int i = 0; i < CRASH_SIGNALS; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_crash;
        action.sa_flags = SA_NODEFER;
        sigemptyset(&action.sa_mask);
        if (sigaction(crash_signals[i], &action, &crash_before[i]) != 0)
            return host_fail(STATUS_SYSTEM, "cannot handle signal %d: %s", crash_signals[i], strerror(errno));
    }
    return STATUS_OK;
}
