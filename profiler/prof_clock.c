#include "profiler/prof_clock.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

__extension__ typedef unsigned __int128 Wide;

bool prof_clock_has_counter(void) {
#if defined(__x86_64__)
    // "Invariant TSC": bit 8 of EDX of leaf 0x80000007 (Intel's manual, volume 3, "Invariant TSC").
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0;
#elif defined(__aarch64__)
    return true; // by its architecture
#else
    return false;
#endif
}

// Both clocks at one moment: of some tries the one in which least time went by.
static ProfSync read_clocks(bool is_counter) {
    ProfSync best = {0, host_now_ns()};
    best.ticks = (uint64_t)best.ns;
    uint64_t least = UINT64_MAX;
    for (int i = 0; is_counter && i < 4; i++) {
        uint64_t before = prof_ticks(true);
        int64_t ns = host_now_ns();
        uint64_t after = prof_ticks(true);
        if (after - before >= least) continue;
        least = after - before;
        best = (ProfSync){before + (after - before) / 2, ns};
    }
    return best;
}

uint64_t prof_clock_sync(ProfClock *clock) {
    ProfSync now = read_clocks(clock->is_counter);
    if (clock->count > 0) {
        ProfSync last = clock->sync[clock->count - 1];
        if (now.ticks <= last.ticks || now.ns <= last.ns) return last.ticks;
    }
    if (clock->count == PROF_SYNCS_MAX) {
        clock->count = PROF_SYNCS_MAX / 2;
        memmove(clock->sync, clock->sync + PROF_SYNCS_MAX / 2, sizeof clock->sync / 2);
    }
    // In the place of the last one where that is close behind the one before.
    if (clock->count > 1 && clock->sync[clock->count - 1].ns - clock->sync[clock->count - 2].ns < PROF_SYNC_EVERY_NS)
        clock->count--;
    clock->sync[clock->count++] = now;
    return now.ticks;
}

void prof_clock_init(ProfClock *clock, bool use_counter) {
    memset(clock, 0, sizeof *clock);
    clock->is_counter = use_counter && prof_clock_has_counter();
    clock->from.ticks = UINT64_MAX;
    prof_clock_sync(clock);
}

// Takes the two readings that `ticks` lies between; the nearest two where it lies outside of all.
static void choose_pair(ProfClock *clock, uint64_t ticks) {
    int low = 0, high = clock->count - 2;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (clock->sync[middle].ticks <= ticks) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    ProfSync from = clock->sync[low], to = clock->sync[low + 1];
    clock->from = from;
    clock->until = to.ticks;
    clock->rate = (uint64_t)(((Wide)(uint64_t)(to.ns - from.ns) << 32) / (to.ticks - from.ticks));
}

int64_t prof_clock_ns(ProfClock *clock, uint64_t ticks) {
    if (!clock->is_counter) return (int64_t)ticks;
    while (clock->count < 2)
        prof_clock_sync(clock);
    if (ticks < clock->from.ticks || ticks > clock->until) choose_pair(clock, ticks);
    if (ticks < clock->from.ticks) return clock->from.ns; // older than all readings
    return clock->from.ns + (int64_t)((Wide)(ticks - clock->from.ticks) * clock->rate >> 32);
}

int64_t prof_clock_span_ns(ProfClock *clock, uint64_t ticks) {
    if (!clock->is_counter) return (int64_t)ticks;
    const ProfSync *last = &clock->sync[clock->count - 1];
    return prof_clock_ns(clock, last->ticks) - prof_clock_ns(clock, last->ticks - ticks);
}
