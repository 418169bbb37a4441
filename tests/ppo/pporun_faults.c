// pporun for the tests of several trainers: linked so that all learning on the CPU goes through here (--wrap).
//
// SHOAL_TEST_SLOW_MS=N makes every update take so much longer; SHOAL_TEST_COUNT=FILE has every process add a byte to
// the file for every update that it begins; SHOAL_TEST_SPIN=FILE has the first process that makes the file compute for
// ever, in its fourth update.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/cpu/ppo_cpu.h"
#include "tests/linger.h"

Status __real_cpu_ppo_learn(CpuPpo *ppo, const KernPpoStep *step, KernPpoReport *report);
Status __wrap_cpu_ppo_learn(CpuPpo *ppo, const KernPpoStep *step, KernPpoReport *report);

static void spin(const char *marker) {
    static int updates;
    int fd = ++updates == 4 ? open(marker, O_WRONLY | O_CREAT | O_EXCL, 0600) : -1;
    if (fd < 0) return;
    close(fd);
    for (volatile unsigned turns = 0;; turns++) {
    }
}

static Status count(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ssize_t written = fd >= 0 ? write(fd, ".", 1) : -1;
    if (fd >= 0) close(fd);
    return written == 1 ? STATUS_OK : host_fail(STATUS_SYSTEM, "cannot count in '%s'", path);
}

Status __wrap_cpu_ppo_learn(CpuPpo *ppo, const KernPpoStep *step, KernPpoReport *report) {
    const char *counted = getenv("SHOAL_TEST_COUNT");
    if (counted != NULL) TRY(count(counted));
    const char *marker = getenv("SHOAL_TEST_SPIN");
    if (marker != NULL) spin(marker);
    linger_as_told();
    return __real_cpu_ppo_learn(ppo, step, report);
}
