// How many workers the master wants, and asking those to leave that are too many.
#include <stdio.h>
#include <string.h>

#include "host/clock.h"
#include "host/master_parts.h"
#include "host/plural.h"

void master_open_scale(Master *m) {
    const HostMasterOptions *o = m->options;
    HostScaleOptions options = {.min = o->min_workers,
                                .max = o->max_workers,
                                .keep = o->trainers,
                                .started = o->workers > 0 ? o->workers : 1,
                                .asks = o->scales,
                                .has_leases = o->has_evaluators,
                                .interval_s = o->scale_interval_s};
    host_scale_init(&m->scale, &options, host_now_s());
}

void master_beat(Master *m) {
    char line[64];
    snprintf(line, sizeof line, HOST_MASTER_BEAT_LINE, master_present(m), m->scale.wanted, (int)m->scale.reason);
    master_tell_supervisor(m, line);
    m->beat_s = host_now_s();
}

static HostScaleLook look_at(Master *m) {
    const HostLeaseTable *t = &m->leases;
    const MasterWorker *trainer = master_trainer(m);
    int helpers = master_helpers(m);
    HostScaleLook look = {.workers = master_present(m), .leases = m->counts.leases};
    if (master_is_short(m) || trainer == NULL || trainer->is_hung) return look;
    look.is_alone = helpers == 0 && m->options->has_evaluators;
    if (m->session != 0 && t->count > 0 && helpers > 0) look.most = (t->count + t->grain - 1) / t->grain;
    for (int i = 0; i < m->worker_count; i++) {
        const MasterWorker *w = &m->workers[i];
        look.working += w->lease != 0 && !w->is_hung && !w->is_dismissed;
    }
    return look;
}

// The worker that can best be done without: an evaluator, else a follower; of those the one that came last. NULL: none.
static MasterWorker *find_spare(Master *m) {
    MasterWorker *spare = NULL;
    for (int i = 0; i < m->worker_count; i++) {
        MasterWorker *w = &m->workers[i];
        if (w->role == HOST_ROLE_TRAINER || !w->is_welcome || !w->is_ready || w->is_hung || w->is_dismissed) continue;
        bool is_better = spare == NULL || (w->role == spare->role ? w->id > spare->id : w->role == HOST_ROLE_EVALUATOR);
        if (is_better) spare = w;
    }
    return spare;
}

static void dismiss(Master *m, MasterWorker *worker) {
    char text[128];
    bool are_too_many = m->scale.reason == HOST_SCALE_MAX;
    snprintf(text, sizeof text, "%d worker%s %s %s", m->scale.wanted, host_plural(m->scale.wanted),
             m->scale.wanted == 1 ? "is" : "are", are_too_many ? "the most (--max-workers)" : "enough");
    HostMessage message = {
        .type = HOST_MESSAGE_DISMISS, .bytes = (const unsigned char *)text, .size_bytes = strlen(text)};
    master_send(m, worker, &message);
    worker->is_dismissed = true;
    worker->is_idle = false;
    m->counts.dismissals++;
    master_begin_epoch(m);
}

void master_scale(Master *m) {
    double now_s = host_now_s(), grace_s = m->options->scales ? m->options->scale_interval_s : m->options->hang_limit_s;
    HostScaleLook look = look_at(m);
    bool is_news = host_scale_look(&m->scale, &look, now_s);
    for (int left = host_scale_surplus(&m->scale, grace_s, now_s); left > 0; left--) {
        MasterWorker *spare = find_spare(m);
        if (spare == NULL) break;
        dismiss(m, spare);
    }
    if (is_news) master_beat(m);
}
