// A command of the user's that is to bring a run more workers, or take some away: run by /bin/sh now and then, one at a
// time, as long as another number is wanted than there is.
//
// It is told what is wanted by its environment, beside what the options say:
//
//     SHOAL_WORKERS   how many there are
//     SHOAL_WANTED    how many are wanted
//     SHOAL_REASON    a HostScaleReason's name
//
// SHOAL_SECRET is not in it. Its standard output goes to standard error, its input is empty, and it is the first of a
// process group. What does not end within twice the interval is ended, with its group; what it has started in the
// background lives on when it ends by itself. A failure is reported, and nothing else comes of it. Each call for the
// same number while no worker has come or gone doubles the time until the next one, up to 32 intervals.
//
// Ownership: options are borrowed. Errors: reported on stderr. Thread safety: none; the process must have one thread.
#ifndef SHOAL_HOST_HOOK_H
#define SHOAL_HOST_HOOK_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/scale.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct HostHookOptions {
    const char *tool;             // for messages
    const char *command;          // "": there is none
    const char *const *variables; // "NAME=value", ended by a NULL
    double interval_s;            // between two calls, at least
    bool quiet;                   // calls are not told of; failures are
} HostHookOptions;

// What is wanted now; reason NONE: nothing.
typedef struct HostHookWish {
    int workers, wanted;
    HostScaleReason reason;
} HostHookWish;

typedef struct HostHook {
    HostHookOptions options;
    HostHookWish wish; // of the last call
    pid_t pid;         // 0: it does not run
    double started_s, next_s;
    double delay; // intervals until the next call
    bool is_news; // another wish was seen since the last call
    bool is_late; // and was told to end
} HostHook;

void host_hook_init(HostHook *hook, const HostHookOptions *options);

// Runs the command if it is time to, and takes note of its end. wish NULL: it is not known now, and the command is not
// run. To be called often.
void host_hook_look(HostHook *hook, const HostHookWish *wish, double now_s);

// Ends the command, if it runs.
void host_hook_end(HostHook *hook);

#ifdef __cplusplus
}
#endif

#endif
