// A process that is asked line by line: /bin/sh -c COMMAND, with a pipe to its standard input and one from its standard
// output; its standard error is this process's.
//
// It is started by the first question, and again by the first one after it has ended. It has a process group of its
// own, which ends with it, and with the process that started it however that ends: a shell in the group waits for the
// end of a pipe that is open as long, and then kills the group.
//
// Ownership: host_dialogue_open()/host_dialogue_close(). Errors: STATUS_SYSTEM where the command cannot be started,
// STATUS_CORRUPT where it ends or says what it should not, STATUS_STOPPED. Thread safety: one thread at a time per
// dialogue. SIGPIPE must be ignored (host/signals.h).
#ifndef SHOAL_HOST_DIALOGUE_H
#define SHOAL_HOST_DIALOGUE_H

#include <stddef.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HOST_ANSWER_MAX = 256 }; // bytes, with the zero at the end

typedef struct HostDialogue HostDialogue;

// Starts nothing yet. environment: [count] of "NAME=VALUE", which the command has besides this process's environment,
// from which the run's secret is taken.
Status host_dialogue_open(const char *command, const char *const *environment, int count,
                          HostDialogue **dialogue) HOST_MUST_CHECK;

// Writes a question, lines with their ends, and waits for a line. What the command prints without being asked is an
// error. The wait counts as no look for a stop (host/signals.h), so that a command that hangs is seen to; a stop or an
// interruption ends it. The next question first waits for the answer that is owed, and passes it over; after a second,
// or if the command has failed meanwhile, it goes to a new process.
Status host_dialogue_ask(HostDialogue *dialogue, const char *question, size_t size_bytes,
                         char answer[HOST_ANSWER_MAX]) HOST_MUST_CHECK;

// Closes the commands' inputs, gives all of them half a second to end, and kills those that are left. [count]; NULLs
// are fine.
void host_dialogue_close(HostDialogue *const *dialogues, int count);

#ifdef __cplusplus
}
#endif

#endif
