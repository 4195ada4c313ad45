/* POSIX threads: a pool a context. Its threads, the workers, are made with it and wait for runs: at
 * first awake, as calls mostly come in quick succession, then asleep.
 *
 * A run offers its work to as many workers as it has items for, takes part itself, and takes back
 * what it offered to workers that have not begun when no item is left: nobody waits for a worker
 * that is still waking up. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/affinity.h"
#include "base/checked.h"
#include "base/parallel_runtime.h"

/* What a worker does. Only the caller of a run goes from IDLE or ASLEEP to OFFERED, back to IDLE,
 * and from BUSY to AWAITED; only the worker goes any other way. */
enum worker_state {
    WORKER_IDLE,    /* awake, looks for an offer */
    WORKER_ASLEEP,  /* waits on `changed` for an offer */
    WORKER_OFFERED, /* has an offer that it has not seen */
    WORKER_BUSY,    /* takes items */
    WORKER_AWAITED, /* the same, and the caller waits on `changed` for its end */
    WORKER_STOPPED  /* the pool closes */
};

struct worker {
    _Alignas(
        ATTN_ALIGNMENT) _Atomic int state; /* on a cache line of its own: it is looked at often */
    int number;
    struct attn_pool *pool;
    pthread_t thread;
    pthread_mutex_t mutex; /* for sleeping only */
    pthread_cond_t changed;
};

struct attn_pool {
    struct attn_work *work; /* of the run; read by workers that took its offer */
    int64_t patience;       /* nanoseconds that one waits awake */
    int workers;
    struct worker worker[];
};

/* Waiting awake saves the tens of microseconds that waking takes, and costs no more than about
 * them. With more threads than CPUs it would keep those who have work from theirs. */
enum { PATIENCE = 30 * 1000 };

static _Atomic int chosen_threads; /* by attn_parallel_set_threads; 0 for none */

int attn_parallel_default_threads(void)
{
    int chosen = atomic_load(&chosen_threads);
    return chosen ? chosen : attn_affinity_cpus();
}

const char *attn_parallel_runtime(void)
{
    return "POSIX threads";
}

void attn_parallel_set_threads(int threads)
{
    atomic_store(&chosen_threads, threads);
}

int attn_runtime_threads(int threads)
{
    return threads;
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Waits awake while the worker's state is `state`, as long as the pool's patience lasts. */
static void wait_awake(struct worker *worker, int state)
{
    int64_t patience = worker->pool->patience;
    if (!patience)
        return;
    int64_t end = now() + patience;
    do {
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(&worker->state, memory_order_relaxed) != state)
                return;
            relax();
        }
    } while (now() < end);
}

/* Waits asleep until the worker's state is no longer `waking`, after an attempt to replace `awake`
 * by it. Whoever changes the state from `waking` calls wake. */
static void wait_asleep(struct worker *worker, int awake, int waking)
{
    pthread_mutex_lock(&worker->mutex);
    if (atomic_compare_exchange_strong(&worker->state, &awake, waking))
        while (atomic_load(&worker->state) == waking)
            pthread_cond_wait(&worker->changed, &worker->mutex);
    pthread_mutex_unlock(&worker->mutex);
}

static void wake(struct worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

static void *work_until_stopped(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        int state = WORKER_OFFERED;
        if (atomic_compare_exchange_strong(&worker->state, &state, WORKER_BUSY)) {
            attn_work_take(worker->pool->work, worker->number);
            if (atomic_exchange(&worker->state, WORKER_IDLE) == WORKER_AWAITED)
                wake(worker);
        } else if (state == WORKER_STOPPED) {
            return NULL;
        }
        wait_awake(worker, WORKER_IDLE);
        wait_asleep(worker, WORKER_IDLE, WORKER_ASLEEP);
    }
}

/* Gives the worker, which is idle or asleep, another state. */
static void tell(struct worker *worker, int state)
{
    if (atomic_exchange(&worker->state, state) == WORKER_ASLEEP)
        wake(worker);
}

static void wait_for_end(struct worker *worker)
{
    int state = WORKER_OFFERED;
    if (atomic_compare_exchange_strong(&worker->state, &state, WORKER_IDLE) || state != WORKER_BUSY)
        return;
    wait_awake(worker, WORKER_BUSY);
    wait_asleep(worker, WORKER_BUSY, WORKER_AWAITED);
}

void attn_runtime_run(struct attn_pool *pool, int threads, struct attn_work *work)
{
    pool->work = work;
    for (int i = 0; i < threads - 1; i++)
        tell(&pool->worker[i], WORKER_OFFERED);
    attn_work_take(work, 0);
    for (int i = 0; i < threads - 1; i++)
        wait_for_end(&pool->worker[i]);
}

static bool start(struct worker *worker, struct attn_pool *pool, int number)
{
    worker->number = number;
    worker->pool = pool;
    atomic_init(&worker->state, WORKER_IDLE);
    if (pthread_mutex_init(&worker->mutex, NULL) != 0)
        return false;
    if (pthread_cond_init(&worker->changed, NULL) == 0) {
        if (pthread_create(&worker->thread, NULL, work_until_stopped, worker) == 0)
            return true;
        pthread_cond_destroy(&worker->changed);
    }
    pthread_mutex_destroy(&worker->mutex);
    return false;
}

static void stop(struct worker *worker)
{
    tell(worker, WORKER_STOPPED);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
}

bool attn_runtime_open(struct attn_pool **pool, int threads, const struct attn_allocator *allocator)
{
    *pool = NULL;
    if (threads < 2)
        return true;
    size_t bytes;
    if (!attn_checked_size_multiply((size_t)threads, sizeof(struct worker), &bytes) ||
        bytes > SIZE_MAX - sizeof(struct attn_pool))
        return false;
    struct attn_pool *made =
        allocator->allocate(allocator->user, bytes + sizeof *made, ATTN_ALIGNMENT);
    if (!made)
        return false;
    *made = (struct attn_pool){.patience = threads <= attn_affinity_cpus() ? PATIENCE : 0};

    /* Signals are for the host's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (made->workers < threads - 1 &&
           start(&made->worker[made->workers], made, made->workers + 1))
        made->workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (made->workers < threads - 1) {
        attn_runtime_close(made, false, allocator);
        return false;
    }
    *pool = made;
    return true;
}

void attn_runtime_close(struct attn_pool *pool, bool inherited,
                        const struct attn_allocator *allocator)
{
    if (!pool)
        return;
    for (int i = 0; !inherited && i < pool->workers; i++)
        stop(&pool->worker[i]);
    allocator->release(allocator->user, pool);
}
