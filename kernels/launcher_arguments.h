// Command lines that a launcher makes of its own: for the processes that it starts, and for those it tells how to.
//
// Ownership: a LaunchArguments owns its words until launch_free_arguments(). Errors: is_short is set where a word found
// no room; it is looked at once for all. Thread safety: none.
#ifndef SHOAL_KERNELS_LAUNCHER_ARGUMENTS_H
#define SHOAL_KERNELS_LAUNCHER_ARGUMENTS_H

#include "kernels/launcher_run.h"

enum { LAUNCH_ARGUMENTS_MAX = 256, LAUNCH_SETTINGS = 1, LAUNCH_COMMANDS = 2 };

// Zeros: no words.
typedef struct LaunchArguments {
    int count;
    bool is_short; // of memory
    char *at[LAUNCH_ARGUMENTS_MAX + 1];
} LaunchArguments;

void launch_add_word(LaunchArguments *arguments, const char *word);

// --name=value
void launch_add(LaunchArguments *arguments, const char *name, const char *value);

// Passes on what the command line gave, but for some. kinds: LAUNCH_SETTINGS of the run, LAUNCH_COMMANDS about this
// call; left_out: ended by a NULL.
void launch_add_given(const LaunchRun *run, LaunchArguments *arguments, unsigned kinds, const char *const *left_out);

// The options that a worker takes over from the command line that it is started by; ended by a NULL.
extern const char *const launch_of_helpers[];

// What makes a process a worker of the run whose master is at `where`; follower_at: a trainer, whose collectives listen
// there; NULL: an evaluator.
void launch_add_helper(const LaunchRun *run, LaunchArguments *arguments, const char *where, const char *follower_at);

// Where --profile was given: for a worker, whose trace goes to that folder.
void launch_add_profile(const LaunchRun *run, LaunchArguments *arguments, const char *folder);

void launch_free_arguments(LaunchArguments *arguments);

#endif
