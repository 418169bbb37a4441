// How many workers a run is to have, between bounds: no process, no socket, no clock of its own.
//
//     fewer than the least                   so many are wanted, soon
//     a trainer alone                        one more, to see; once
//     fewer than there were, for a while     as many as there were
//     workers compute nearly all the time    more, as far as a round has work for them
//     workers wait much of the time          fewer, but no trainer less
//     more than the most                     the most
//
// The share of time that n workers spend on leases says what other numbers of them would: a generation is time that all
// spend waiting and time that they share out (Amdahl's law). The number is wanted at which that share is 3/4; it stays
// where it is while that number is between half and one and a half times the present one, and is at most doubled or
// halved at once. What goes to and fro is looked at for longer and longer before the next change.
//
// Ownership: plain data. Errors: none. Thread safety: none.
#ifndef SHOAL_HOST_SCALE_H
#define SHOAL_HOST_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// S(reason, its name, for people)
#define HOST_SCALE_REASONS(S)                           \
    S(NONE, "none", "")                                 \
    S(MIN, "min", "fewer than --min-workers are there") \
    S(LOST, "lost", "workers were lost")                \
    S(BUSY, "busy", "all are busy nearly all the time") \
    S(IDLE, "idle", "they wait much of the time")       \
    S(MAX, "max", "more than --max-workers are there")

// Why another number is wanted than there is; NONE: it is not.
typedef enum HostScaleReason {
#define HOST_SCALE_ENUM(reason, name, text) HOST_SCALE_##reason,
    HOST_SCALE_REASONS(HOST_SCALE_ENUM)
#undef HOST_SCALE_ENUM
        HOST_SCALE_REASON_COUNT
} HostScaleReason;

const char *host_scale_name(HostScaleReason reason);
const char *host_scale_text(HostScaleReason reason);

typedef struct HostScaleOptions {
    int min, max;      // max 0: any number
    int keep;          // so many stay, however idle: trainers
    int started;       // with so many workers
    bool asks;         // somebody brings more and takes some away; else nothing but `max` counts
    bool has_leases;   // which show who is busy; else only what was lost is wanted again
    double interval_s; // what is reacted to has lasted so long
} HostScaleOptions;

// A look at the run.
typedef struct HostScaleLook {
    int workers;    // that are there
    int working;    // of those: on a lease
    int most;       // workers that a round has work for; 0: nothing is to be seen now
    bool is_alone;  // the one worker computes without leases
    int64_t leases; // given out so far
} HostScaleLook;

typedef struct HostScale {
    HostScaleOptions options;
    int wanted;
    HostScaleReason reason;
    double reason_s; // since when it is this one
    int workers;
    double workers_s; // since when there are so many
    double looked_s;
    // Since there are so many workers, and since the last change.
    double measured_s, working_s; // worker-seconds
    double window_s;              // seconds
    int64_t leases;               // at its beginning
    HostScaleReason last;         // BUSY or IDLE, the last change for one of them
    double patience;              // by what the interval is multiplied
} HostScale;

void host_scale_init(HostScale *scale, const HostScaleOptions *options, double now_s);

// Whether `wanted` or `reason` has changed.
bool host_scale_look(HostScale *scale, const HostScaleLook *look, double now_s);

// Workers that are to go, as nobody has taken them away for so long.
int host_scale_surplus(const HostScale *scale, double grace_s, double now_s);

#ifdef __cplusplus
}
#endif

#endif
