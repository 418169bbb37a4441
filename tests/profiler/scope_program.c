// A program of a user's own, annotated with profiler/shoal_scope.h: two threads, a fork, names made at run time. The
// test that runs it reads the trace.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/shoal_scope.h"

static void *work(void *unused) {
    for (int i = 0; i < 10; i++) {
        SHOAL_SCOPE(IO, "log");
        (void)i;
    }
    return unused;
}

static void check(int code) {
    if (code == 0) return;
    printf("%s\n", shoal_profile_message());
    exit(3);
}

// scope_program FOLDER: records there. Without an argument it leaves that to SHOAL_PROFILE.
int main(int argc, char **argv) {
    shoal_scope_begin(SHOAL_HOST, "before the start");
    if (argc > 1) check(shoal_profile_start(argv[1], "scope_program"));
    shoal_scope_end();
    shoal_scope_end(); // one too many
    shoal_phase(SHOAL_TRAIN);
    shoal_phase(99);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
    for (int i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "level %d", i % 3);
        shoal_scope_begin(SHOAL_POLICY, shoal_scope_name(name));
        shoal_scope_begin(SHOAL_SIMULATION, "env step");
        shoal_scope_end();
        shoal_scope_begin(99, "of no category");
        shoal_scope_end();
        shoal_scope_end();
    }
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        shoal_scope_begin(SHOAL_HOST, "in the child");
        shoal_scope_end();
        exit(0); // with what runs at the end of a process
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
    shoal_scope_begin(SHOAL_LEARNING, "after the fork");
    shoal_scope_end();
    return 0; // the profile ends with the process
}
