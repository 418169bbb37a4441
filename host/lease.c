#include "host/lease.h"

#include <stdlib.h>
#include <string.h>

// State of an item. WANTED ones lie in exactly one piece, pending or active. KEPT is added for a moment, to those that
// the trainer says it wants.
enum { ITEM_SETTLED, ITEM_WANTED, ITEM_LOST, KEPT = 4 };

#define LEASE_LEAST_S 0.002 // a lease's work should be worth its message
#define LATE_S        0.02  // a lease is late after twice its time and this

void host_lease_init(HostLeaseTable *table) {
    memset(table, 0, sizeof *table);
    table->next_lease = 1;
}

void host_lease_free(HostLeaseTable *table) {
    free(table->state);
    free(table->pending);
    free(table->active);
    free(table->memory);
    free(table->lost);
    host_lease_init(table);
}

// Room for one more element.
static Status grow(void **array, int32_t count, int32_t *room, size_t element_bytes) {
    if (count < *room) return STATUS_OK;
    int32_t more = *room > 0 ? 2 * *room : 16;
    void *grown = realloc(*array, (size_t)more * element_bytes);
    if (grown == NULL) return host_fail(STATUS_MEMORY, "no memory for %d leases", more);
    *array = grown;
    *room = more;
    return STATUS_OK;
}

static Status add_pending(HostLeaseTable *t, HostLeasePiece piece) {
    void *array = t->pending;
    TRY(grow(&array, t->pending_count, &t->pending_room, sizeof *t->pending));
    t->pending = array;
    t->pending[t->pending_count++] = piece;
    t->free += piece.range.count;
    return STATUS_OK;
}

static void remove_pending(HostLeaseTable *t, int32_t at) {
    t->free -= t->pending[at].range.count;
    memmove(&t->pending[at], &t->pending[at + 1], (size_t)(--t->pending_count - at) * sizeof *t->pending);
}

// The runs of wanted items within a piece become pending; what is known against the piece is known against each.
static Status add_wanted(HostLeaseTable *t, HostLeasePiece piece) {
    int32_t end = piece.range.first + piece.range.count;
    for (int32_t first = piece.range.first; first < end;) {
        int32_t last = first;
        while (last < end && t->state[last] == ITEM_WANTED)
            last++;
        if (last > first) {
            piece.range = (HostRange){first, last - first};
            TRY(add_pending(t, piece));
        }
        first = last + 1;
    }
    return STATUS_OK;
}

static Status add_lost(HostLeaseTable *t, int32_t item) {
    void *array = t->lost;
    TRY(grow(&array, t->lost_count, &t->lost_room, sizeof *t->lost));
    t->lost = array;
    t->lost[t->lost_count++] = item;
    t->state[item] = ITEM_LOST;
    t->open--;
    return STATUS_OK;
}

// ---- what is remembered about rounds -------------------------------------------------------------------------------

static Status remember(HostLeaseTable *t, const HostLeasePiece *piece, bool is_lost) {
    if (!is_lost && piece->points == 0 && piece->crashes + piece->deaths == 0) return STATUS_OK;
    void *array = t->memory;
    TRY(grow(&array, t->memory_count, &t->memory_room, sizeof *t->memory));
    t->memory = array;
    t->memory[t->memory_count++] = (HostLeaseMemory){t->label, *piece, is_lost};
    return STATUS_OK;
}

// Keeps what is known about the present round, and of others what may still be of use: rounds that come later.
static Status remember_round(HostLeaseTable *t, int64_t next_label) {
    int32_t kept = 0;
    for (int32_t i = 0; i < t->memory_count; i++) {
        if (t->memory[i].label >= next_label && t->memory[i].label != t->label) t->memory[kept++] = t->memory[i];
    }
    t->memory_count = kept;
    if (t->label < next_label) return STATUS_OK;
    for (int32_t i = 0; i < t->pending_count; i++)
        TRY(remember(t, &t->pending[i], false));
    for (int32_t i = 0; i < t->active_count; i++)
        TRY(remember(t, &t->active[i].piece, false));
    for (int32_t i = 0; i < t->lost_count; i++)
        TRY(remember(t, &(HostLeasePiece){.range = {t->lost[i], 1}}, true));
    return STATUS_OK;
}

// Makes pending what is wanted, with what is remembered about this round.
static Status recall_round(HostLeaseTable *t, const HostRange *wanted, int32_t wanted_count) {
    for (int32_t i = 0; i < t->memory_count; i++) {
        const HostLeaseMemory *m = &t->memory[i];
        int32_t first = m->piece.range.first, end = first + m->piece.range.count;
        if (m->label != t->label || end > t->count) continue;
        if (m->is_lost) {
            if (t->state[first] == ITEM_WANTED) TRY(add_lost(t, first));
            continue;
        }
        TRY(add_wanted(t, m->piece));
        for (int32_t item = first; item < end; item++) // taken: not again below
            if (t->state[item] == ITEM_WANTED) t->state[item] = ITEM_SETTLED;
    }
    int32_t recalled = t->pending_count;
    for (int32_t i = 0; i < wanted_count; i++)
        TRY(add_wanted(t, (HostLeasePiece){.range = wanted[i]}));
    for (int32_t i = 0; i < recalled; i++)
        memset(t->state + t->pending[i].range.first, ITEM_WANTED, (size_t)t->pending[i].range.count);
    return STATUS_OK;
}

// ---- rounds --------------------------------------------------------------------------------------------------------

static Status check_ranges(int32_t count, const HostRange *ranges, int32_t range_count) {
    for (int32_t i = 0; i < range_count; i++) {
        if (ranges[i].first >= 0 && ranges[i].count > 0 && ranges[i].count <= count &&
            ranges[i].first <= count - ranges[i].count)
            continue;
        return host_fail(STATUS_CORRUPT, "items %d and %d more, of a round of %d", ranges[i].first, ranges[i].count,
                         count);
    }
    return STATUS_OK;
}

void host_lease_stop(HostLeaseTable *t) {
    t->pending_count = t->active_count = 0;
    t->lost_count = t->lost_told = 0;
    t->open = t->free = t->count = 0;
}

Status host_lease_begin(HostLeaseTable *t, int64_t label, int32_t count, int32_t grain, const HostRange *wanted,
                        int32_t wanted_count) {
    if (count < 1 || count > HOST_LEASE_ITEMS_MAX || grain < 1)
        return host_fail(STATUS_CORRUPT, "a round of %d items in leases of %d", count, grain);
    TRY(check_ranges(count, wanted, wanted_count));
    TRY(remember_round(t, label));
    host_lease_stop(t);
    if (count > t->state_room) {
        uint8_t *state = realloc(t->state, (size_t)count);
        if (state == NULL) return host_fail(STATUS_MEMORY, "no memory for a round of %d items", count);
        t->state = state;
        t->state_room = count;
    }
    memset(t->state, ITEM_SETTLED, (size_t)count);
    t->label = label;
    t->count = count;
    t->grain = grain;
    for (int32_t i = 0; i < wanted_count; i++) {
        for (int32_t item = wanted[i].first; item < wanted[i].first + wanted[i].count; item++) {
            t->open += t->state[item] != ITEM_WANTED;
            t->state[item] = ITEM_WANTED;
        }
    }
    return recall_round(t, wanted, wanted_count);
}

static bool all_settled(const HostLeaseTable *t, HostRange range) {
    for (int32_t item = range.first; item < range.first + range.count; item++)
        if (t->state[item] == ITEM_WANTED) return false;
    return true;
}

// Takes what is settled out of the pieces.
static Status trim(HostLeaseTable *t) {
    for (int32_t i = t->pending_count - 1; i >= 0; i--) {
        HostLeasePiece piece = t->pending[i];
        bool is_whole = true;
        for (int32_t item = piece.range.first; is_whole && item < piece.range.first + piece.range.count; item++)
            is_whole = t->state[item] == ITEM_WANTED;
        if (is_whole) continue;
        remove_pending(t, i);
        TRY(add_wanted(t, piece));
    }
    int32_t kept = 0;
    for (int32_t i = 0; i < t->active_count; i++) {
        if (!all_settled(t, t->active[i].piece.range)) t->active[kept++] = t->active[i];
    }
    t->active_count = kept;
    return STATUS_OK;
}

// Items from `first` to `end` that are settled and marked as wanted once more become wanted.
static void want_again(HostLeaseTable *t, int32_t first, int32_t end) {
    for (int32_t item = first; item < end; item++) {
        if (t->state[item] != (ITEM_SETTLED | KEPT)) continue;
        t->state[item] = ITEM_WANTED;
        t->open++;
    }
}

Status host_lease_want(HostLeaseTable *t, const HostRange *wanted, int32_t wanted_count) {
    TRY(check_ranges(t->count, wanted, wanted_count));
    for (int32_t i = 0; i < wanted_count; i++) {
        for (int32_t item = wanted[i].first; item < wanted[i].first + wanted[i].count; item++)
            t->state[item] |= KEPT;
    }
    for (int32_t item = 0; item < t->count; item++) {
        bool is_wanted = (t->state[item] & KEPT) != 0;
        uint8_t state = t->state[item] & (KEPT - 1);
        if (state == ITEM_WANTED && !is_wanted) t->open--;
        t->state[item] = state == ITEM_WANTED && !is_wanted ? ITEM_SETTLED : state;
        if (state == ITEM_SETTLED && is_wanted) t->state[item] |= KEPT; // wanted once more
    }
    TRY(trim(t));
    // Within a lease that goes on, they come with its results.
    for (int32_t i = 0; i < t->active_count; i++) {
        const HostRange *range = &t->active[i].piece.range;
        want_again(t, range->first, range->first + range->count);
    }
    for (int32_t first = 0; first < t->count; first++) {
        int32_t end = first;
        while (end < t->count && t->state[end] == (ITEM_SETTLED | KEPT))
            end++;
        if (end == first) continue;
        want_again(t, first, end);
        TRY(add_pending(t, (HostLeasePiece){.range = {first, end - first}}));
        first = end - 1;
    }
    t->lost_told = 0;
    return STATUS_OK;
}

// ---- granting ------------------------------------------------------------------------------------------------------

static int32_t lease_size(const HostLeaseTable *t, const HostLeaseAsk *ask) {
    double fair = (double)t->free * ask->share, least = ask->rate * LEASE_LEAST_S;
    double size = fair / 2 > least ? fair / 2 : least < fair ? least : fair;
    int32_t grains = (int32_t)(size / t->grain);
    return (grains > 0 ? grains : 1) * t->grain;
}

static bool hold(HostLeaseTable *t, HostLeaseActive *active, const HostLeaseAsk *ask, double now_s, int64_t *lease,
                 HostRange *range) {
    *lease = t->next_lease++;
    *range = active->piece.range;
    double expected_s = ask->rate > 0 ? (double)range->count / ask->rate : 1.0;
    active->holder[active->holders++] = (HostLeaseHolder){ask->worker, *lease, now_s, expected_s};
    return true;
}

static HostLeaseActive *find_late(HostLeaseTable *t, const HostLeaseAsk *ask, double now_s) {
    HostLeaseActive *latest = NULL;
    double most = 1.0;
    for (int32_t i = 0; i < t->active_count; i++) {
        HostLeaseActive *a = &t->active[i];
        if (a->holders != 1 || a->holder[0].worker == ask->worker || (ask->must_live && a->piece.is_suspect)) continue;
        double late = (now_s - a->holder[0].since_s) / (2 * a->holder[0].expected_s + LATE_S);
        if (late <= most) continue;
        most = late;
        latest = a;
    }
    return latest;
}

bool host_lease_grant(HostLeaseTable *t, const HostLeaseAsk *ask, double now_s, int64_t *lease, HostRange *range) {
    int32_t at = 0;
    while (at < t->pending_count && ask->must_live && t->pending[at].is_suspect)
        at++;
    if (at == t->pending_count) {
        HostLeaseActive *late = find_late(t, ask, now_s);
        return late != NULL && hold(t, late, ask, now_s, lease, range);
    }
    void *array = t->active;
    if (grow(&array, t->active_count, &t->active_room, sizeof *t->active) != STATUS_OK) return false;
    t->active = array;
    HostLeaseActive *active = &t->active[t->active_count++];
    *active = (HostLeaseActive){.piece = t->pending[at]};
    int32_t size = lease_size(t, ask), whole = active->piece.range.count;
    if (active->piece.points > 0 || size >= whole) {
        remove_pending(t, at);
    } else {
        active->piece.range.count = size;
        t->pending[at].range.first += size;
        t->pending[at].range.count -= size;
        t->free -= size;
    }
    return hold(t, active, ask, now_s, lease, range);
}

const HostLeaseHolder *host_lease_find(const HostLeaseTable *t, int64_t lease, HostRange *range) {
    for (int32_t i = 0; i < t->active_count; i++) {
        for (int h = 0; h < t->active[i].holders; h++) {
            if (t->active[i].holder[h].lease != lease) continue;
            *range = t->active[i].piece.range;
            return &t->active[i].holder[h];
        }
    }
    return NULL;
}

// ---- ends ----------------------------------------------------------------------------------------------------------

Status host_lease_finish(HostLeaseTable *t, HostRange range, int32_t *fresh) {
    TRY(check_ranges(t->count, &range, 1));
    *fresh = 0;
    for (int32_t item = range.first; item < range.first + range.count; item++) {
        if (t->state[item] != ITEM_WANTED) continue; // a lost one stays lost: it may have been told
        t->state[item] = ITEM_SETTLED;
        (*fresh)++;
    }
    t->open -= *fresh;
    return *fresh > 0 ? trim(t) : STATUS_OK;
}

// A piece that has cost a worker.
static Status blame(HostLeaseTable *t, HostLeasePiece piece, HostLeaseEnd end) {
    bool crashed = end == HOST_LEASE_CRASHED;
    piece.points += crashed ? 2 : 1;
    if (piece.range.count == 1) {
        piece.crashes += crashed;
        piece.deaths += !crashed;
        piece.is_suspect = piece.is_suspect || piece.points > 1;
        bool is_lost = piece.crashes >= HOST_LEASE_CRASHES || piece.deaths >= HOST_LEASE_DEATHS;
        if (t->state[piece.range.first] != ITEM_WANTED) return STATUS_OK;
        return is_lost ? add_lost(t, piece.range.first) : add_pending(t, piece);
    }
    if (piece.points < 2) return add_wanted(t, piece);
    HostLeasePiece half = {.range = piece.range, .points = 1, .is_suspect = true};
    half.range.count = piece.range.count / 2;
    TRY(add_wanted(t, half));
    half.range = (HostRange){piece.range.first + half.range.count, piece.range.count - half.range.count};
    return add_wanted(t, half);
}

// Takes a holder off the lease; gives the lease back if nobody else holds it.
static Status leave(HostLeaseTable *t, int32_t at, int holder, HostLeaseEnd end) {
    HostLeaseActive *a = &t->active[at];
    a->holder[holder] = a->holder[--a->holders];
    if (a->holders > 0) {
        if (end != HOST_LEASE_RETURNED) a->piece.points++;
        return STATUS_OK;
    }
    HostLeasePiece piece = a->piece;
    *a = t->active[--t->active_count];
    return end == HOST_LEASE_RETURNED ? add_wanted(t, piece) : blame(t, piece, end);
}

Status host_lease_leave(HostLeaseTable *t, int64_t worker, int64_t lease, HostLeaseEnd end) {
    for (int32_t i = t->active_count - 1; i >= 0; i--) {
        for (int h = t->active[i].holders - 1; h >= 0; h--) {
            const HostLeaseHolder *holder = &t->active[i].holder[h];
            if (holder->worker != worker || (lease != 0 && holder->lease != lease)) continue;
            TRY(leave(t, i, h, end));
            break;
        }
    }
    return STATUS_OK;
}

bool host_lease_take_lost(HostLeaseTable *t, int32_t *item) {
    if (t->lost_told == t->lost_count) return false;
    *item = t->lost[t->lost_told++];
    return true;
}
