#include "host/scale.h"

#include <string.h>

#define SOON_S        2.0   // until workers that start together have come
#define SHARE         0.75  // of the workers' time on leases: what is aimed at
#define GROW          1.5   // times the present number, or more
#define SHRINK        0.5   // or less
#define WORTH_S       0.005 // shorter leases are mostly messages
#define PATIENCE_MOST 32.0

static const char *const names[] = {
#define SCALE_NAME(reason, name, text) name,
    HOST_SCALE_REASONS(SCALE_NAME)
#undef SCALE_NAME
};

static const char *const texts[] = {
#define SCALE_TEXT(reason, name, text) text,
    HOST_SCALE_REASONS(SCALE_TEXT)
#undef SCALE_TEXT
};

const char *host_scale_name(HostScaleReason reason) { return reason < HOST_SCALE_REASON_COUNT ? names[reason] : "?"; }

const char *host_scale_text(HostScaleReason reason) { return reason < HOST_SCALE_REASON_COUNT ? texts[reason] : "?"; }

static int within(const HostScale *s, int workers) {
    const HostScaleOptions *o = &s->options;
    if (o->max > 0 && workers > o->max) workers = o->max;
    return workers < o->min ? o->min : workers;
}

void host_scale_init(HostScale *s, const HostScaleOptions *options, double now_s) {
    memset(s, 0, sizeof *s);
    s->options = *options;
    s->wanted = within(s, options->started);
    s->patience = 1.0;
    s->workers_s = s->looked_s = s->reason_s = now_s;
}

static void begin_window(HostScale *s, int64_t leases) {
    s->measured_s = s->working_s = s->window_s = 0.0;
    s->leases = leases;
}

static void want(HostScale *s, int workers, HostScaleReason reason, double now_s) {
    if (reason != s->reason) s->reason_s = now_s;
    s->wanted = workers;
    s->reason = reason;
}

// ---- what the workers' time says -----------------------------------------------------------------------------------

// How many workers would spend SHARE of their time on leases.
static int fitting(const HostScale *s, const HostScaleLook *look) {
    double busy = s->working_s / s->measured_s, waiting = 1.0 - busy;
    double ratio = waiting > 1e-3 ? busy / waiting * (1.0 - SHARE) / SHARE : 2.0;
    double lease_s = s->working_s / (double)(look->leases - s->leases + 1);
    int workers = s->workers, most = look->most > workers ? look->most : workers;
    if (ratio >= GROW && lease_s >= WORTH_S) {
        int more = (int)(workers * (ratio < 2.0 ? ratio : 2.0));
        more = more > workers ? more : workers + 1;
        return within(s, more < most ? more : most);
    }
    if (ratio > SHRINK) return workers;
    int fewer = (workers + 1) / 2;
    fewer = fewer > s->options.keep ? fewer : s->options.keep;
    return fewer < workers ? within(s, fewer) : workers;
}

static void note_turn(HostScale *s, HostScaleReason reason) {
    bool is_turn = s->last != HOST_SCALE_NONE && s->last != reason;
    s->patience = !is_turn ? 1.0 : s->patience < PATIENCE_MOST ? 2.0 * s->patience : PATIENCE_MOST;
    s->last = reason;
}

// What a worker alone does is not to be seen: whether a second one helps shows when it is there.
static int try_another(const HostScale *s) {
    return s->last == HOST_SCALE_IDLE ? s->workers : within(s, s->workers + 1);
}

static void judge(HostScale *s, const HostScaleLook *look, double now_s) {
    bool is_seen = look->most > 0 || look->is_alone;
    if (!is_seen || s->window_s < s->options.interval_s * s->patience || !(s->measured_s > 0)) return;
    int workers = look->is_alone ? try_another(s) : fitting(s, look);
    HostScaleReason reason = workers > s->workers   ? HOST_SCALE_BUSY
                             : workers < s->workers ? HOST_SCALE_IDLE
                                                    : HOST_SCALE_NONE;
    bool was_judged = s->reason == HOST_SCALE_BUSY || s->reason == HOST_SCALE_IDLE;
    if (reason != HOST_SCALE_NONE && reason != s->reason) note_turn(s, reason);
    if (reason != HOST_SCALE_NONE || was_judged) want(s, workers, reason, now_s);
    begin_window(s, look->leases);
}

// ---- looking -------------------------------------------------------------------------------------------------------

static void measure(HostScale *s, const HostScaleLook *look, double now_s) {
    double passed_s = now_s - s->looked_s;
    s->looked_s = now_s;
    if (look->workers != s->workers) {
        s->workers = look->workers;
        s->workers_s = now_s;
        begin_window(s, look->leases);
        return;
    }
    if (look->most == 0 && !look->is_alone) return;
    s->window_s += passed_s;
    s->measured_s += passed_s * look->workers;
    s->working_s += passed_s * look->working;
}

static bool shrinks(const HostScale *s) { return s->reason == HOST_SCALE_IDLE || s->reason == HOST_SCALE_MAX; }

static void decide(HostScale *s, const HostScaleLook *look, double now_s) {
    const HostScaleOptions *o = &s->options;
    int workers = s->workers;
    double lasted_s = now_s - s->workers_s, soon_s = o->interval_s < SOON_S ? o->interval_s : SOON_S;
    bool is_met = shrinks(s) ? workers <= s->wanted : workers >= s->wanted;
    if (is_met) want(s, s->wanted, HOST_SCALE_NONE, now_s);
    if (o->max > 0 && workers > o->max) {
        want(s, o->max, HOST_SCALE_MAX, now_s);
        return;
    }
    if (!o->asks) return;
    if (workers > s->wanted && !shrinks(s)) s->wanted = workers; // they have come of themselves
    if (workers < o->min) {
        if (lasted_s >= soon_s) want(s, s->wanted, HOST_SCALE_MIN, now_s);
        return;
    }
    if (o->has_leases) judge(s, look, now_s);
    if (s->reason == HOST_SCALE_NONE && workers < s->wanted && lasted_s >= o->interval_s)
        want(s, s->wanted, HOST_SCALE_LOST, now_s);
}

bool host_scale_look(HostScale *s, const HostScaleLook *look, double now_s) {
    int wanted = s->wanted;
    HostScaleReason reason = s->reason;
    measure(s, look, now_s);
    decide(s, look, now_s);
    return s->wanted != wanted || s->reason != reason;
}

int host_scale_surplus(const HostScale *s, double grace_s, double now_s) {
    bool is_due = shrinks(s) && now_s - s->reason_s >= grace_s && s->workers > s->wanted;
    return is_due ? s->workers - s->wanted : 0;
}
