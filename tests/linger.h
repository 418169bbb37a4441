// Making a program slow, for tests that have to hit a moment in it.
#ifndef SHOAL_TESTS_LINGER_H
#define SHOAL_TESTS_LINGER_H

#include <stdlib.h>
#include <time.h>

#include "host/signals.h"

// Takes that long, and looks for a stop as all long work does.
static inline void linger(int ms) {
    const struct timespec moment = {0, 1000000};
    for (int i = 0; i < ms && !host_stop_requested(); i++)
        nanosleep(&moment, NULL);
}

// As long as SHOAL_TEST_SLOW_MS says.
static inline void linger_as_told(void) {
    const char *ms = getenv("SHOAL_TEST_SLOW_MS");
    if (ms != NULL) linger(atoi(ms));
}

#endif
