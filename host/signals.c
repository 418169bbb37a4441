#include "host/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool stop_flag; // lock-free, so a handler may set it

static void on_stop(int signal_number) {
    if (!atomic_exchange(&stop_flag, true)) return;
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

bool host_stop_requested(void) { return atomic_load_explicit(&stop_flag, memory_order_relaxed); }

void host_stop_request(void) { atomic_store(&stop_flag, true); }

void host_stop_clear(void) { atomic_store(&stop_flag, false); }
