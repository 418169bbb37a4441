#define _GNU_SOURCE // pthread_setname_np
#include "host/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/pool_cpu.h"
#include "host/trace.h"

enum { CACHE_LINE_BYTES = 64, SPIN_ROUNDS = 2000, STACK_BYTES = 8 << 20 };

// A 32-bit word that threads wait on: they spin a little, then sleep in the kernel.
typedef struct Gate {
    _Alignas(CACHE_LINE_BYTES) _Atomic uint32_t word;
    _Atomic uint32_t sleepers;
} Gate;

typedef struct Worker {
    pthread_t thread;
    HostPool *pool;
    int index;
    Status status; // of pinning
    char message[256];
} Worker;

struct HostPool { // NOLINT(clang-analyzer-optin.performance.Padding): lines that threads contend for lie apart
    int threads;
    int spin_rounds;
    bool is_oversubscribed;
    HostCores *cores; // NULL when not bound
    Worker *workers;  // [threads]; [0] is the caller's and has no thread
    int started;      // threads that exist besides the caller

    // The loop, written by the caller before it opens `start`.
    HostPoolBody *body;
    void *context;
    int64_t count, grain;
    HostTraceMark scope; // the caller's
    bool stop;

    _Alignas(CACHE_LINE_BYTES) _Atomic int64_t next; // first index not handed out
    Gate start;                                      // counts the loops
    Gate running;                                    // workers that have not finished the present loop
    _Alignas(CACHE_LINE_BYTES) atomic_bool busy;
};

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Returns once the word differs from `value`. The sleeper count and the word are sequentially consistent: either the
// changer sees the sleeper and wakes it, or the sleeper's futex call sees the change.
static uint32_t gate_wait(Gate *gate, uint32_t value, int spin_rounds) {
    for (int i = 0; i < spin_rounds; i++) {
        uint32_t now = atomic_load_explicit(&gate->word, memory_order_acquire);
        if (now != value) return now;
        pause_briefly();
    }
    atomic_fetch_add(&gate->sleepers, 1);
    uint32_t now;
    while ((now = atomic_load(&gate->word)) == value)
        syscall(SYS_futex, &gate->word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    atomic_fetch_sub(&gate->sleepers, 1);
    return now;
}

static void gate_wake(Gate *gate) {
    if (atomic_load(&gate->sleepers) != 0)
        syscall(SYS_futex, &gate->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void work(HostPool *pool, int worker) {
    // Compared by subtraction: begin + grain may overflow where count is near the largest integer.
    int64_t count = pool->count, grain = pool->grain;
    int64_t pieces = count / grain + (count % grain != 0);
    for (;;) {
        int64_t piece = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (piece >= pieces) return;
        int64_t begin = piece * grain;
        pool->body(pool->context, begin, count - begin < grain ? count : begin + grain, worker);
    }
}

static void *worker_main(void *argument) {
    Worker *self = argument;
    HostPool *pool = self->pool;
    if (pool->cores != NULL) {
        self->status = host_cores_pin(pool->cores, self->index);
        snprintf(self->message, sizeof self->message, "%.255s", host_message());
    }
    const HostTraceHooks *waiting = NULL;
    // The first loop is the creator's own, to learn how pinning went.
    for (uint32_t seen = 0;;) {
        seen = gate_wait(&pool->start, seen, pool->spin_rounds);
        host_trace_end(waiting);
        if (pool->stop) return NULL;
        const HostTraceHooks *joined = host_trace_join(pool->scope);
        work(pool, self->index);
        host_trace_end(joined);
        waiting = host_trace_begin(HOST_TRACE_IDLE, "wait for a loop"); // before the caller may go on, and detach
        if (atomic_fetch_sub(&pool->running.word, 1) == 1) gate_wake(&pool->running);
    }
}

static void wait_for_workers(HostPool *pool) {
    HOST_TRACE_SCOPE(IDLE, "wait for workers");
    for (;;) {
        uint32_t left = atomic_load_explicit(&pool->running.word, memory_order_acquire);
        if (left == 0) return;
        gate_wait(&pool->running, left, pool->spin_rounds);
    }
}

void host_pool_for(HostPool *pool, int64_t count, int64_t grain, HostPoolBody *body, void *context) {
    // Checked in release builds too: going on would corrupt the loop that runs.
    if (atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
        fputs("host_pool_for: a loop was started while another runs on the same pool\n", stderr);
        abort();
    }
    if (grain < 1) grain = 1;
    pool->body = body;
    pool->context = context;
    pool->scope = host_trace_mark();
    pool->count = count > 0 ? count : 0;
    pool->grain = grain;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    bool is_shared = pool->started > 0 && count > grain;
    if (is_shared) {
        atomic_store_explicit(&pool->running.word, (uint32_t)pool->started, memory_order_relaxed);
        atomic_fetch_add(&pool->start.word, 1);
        gate_wake(&pool->start);
    }
    work(pool, 0);
    if (is_shared) wait_for_workers(pool);
    atomic_store_explicit(&pool->busy, false, memory_order_release);
}

static void nothing(void *context, int64_t begin, int64_t end, int worker) {
    (void)context, (void)begin, (void)end, (void)worker;
}

static Status start_threads(HostPool *pool) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return host_fail(STATUS_MEMORY, "no memory for thread attributes");
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = 0;
    for (int i = 1; i < pool->threads && !failed; i++) {
        pool->workers[i] = (Worker){.pool = pool, .index = i};
        failed = pthread_create(&pool->workers[i].thread, &attributes, worker_main, &pool->workers[i]);
        if (failed) break;
        pool->started++;
        char name[24]; // for debuggers and profiles
        snprintf(name, sizeof name, "worker %d", i);
        pthread_setname_np(pool->workers[i].thread, name);
    }
    pthread_attr_destroy(&attributes);
    if (failed)
        return host_fail(STATUS_SYSTEM, "cannot start thread %d of %d: %s", pool->started + 1, pool->threads,
                         strerror(failed));
    if (pool->cores != NULL) TRY(host_cores_pin(pool->cores, 0));
    host_pool_for(pool, 2, 1, nothing, NULL); // after it, every worker's status is there to read
    for (int i = 1; i < pool->threads; i++) {
        if (pool->workers[i].status != STATUS_OK)
            return host_fail(pool->workers[i].status, "%s", pool->workers[i].message);
    }
    return STATUS_OK;
}

Status host_pool_create(int threads, HostBind bind, HostPool **pool) {
    int allowed = host_cpu_allowed();
    if (threads == 0) threads = allowed;
    if (threads < 1 || threads > HOST_THREADS_MAX)
        return host_fail(STATUS_USAGE, "%d threads; allowed: 1 to %d", threads, HOST_THREADS_MAX);
    HostPool *made = aligned_alloc(CACHE_LINE_BYTES, sizeof *made);
    if (made == NULL) return host_fail(STATUS_MEMORY, "no memory for a thread pool");
    memset(made, 0, sizeof *made);
    made->threads = threads;
    made->is_oversubscribed = threads > allowed;
    made->spin_rounds = made->is_oversubscribed ? 0 : SPIN_ROUNDS; // a spinner would keep the worker it waits for out
    made->workers = calloc((size_t)threads, sizeof made->workers[0]);
    if (made->workers == NULL) {
        free(made);
        return host_fail(STATUS_MEMORY, "no memory for %d threads", threads);
    }
    Status status = STATUS_OK;
    if (bind == HOST_BIND_CORE) status = host_cores_init(&made->cores);
    if (status == STATUS_OK) status = start_threads(made);
    if (status != STATUS_OK) {
        host_pool_free(made);
        return status;
    }
    *pool = made;
    return STATUS_OK;
}

void host_pool_free(HostPool *pool) {
    if (pool == NULL) return;
    pool->stop = true;
    atomic_fetch_add(&pool->start.word, 1);
    gate_wake(&pool->start);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    if (pool->cores != NULL) host_cores_unpin(pool->cores);
    host_cores_free(pool->cores);
    free(pool->workers);
    free(pool);
}

int host_pool_threads(const HostPool *pool) { return pool->threads; }

bool host_pool_is_oversubscribed(const HostPool *pool) { return pool->is_oversubscribed; }
