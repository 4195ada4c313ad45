/* OpenMP: its threads belong to the process, and a BLAS of the same runtime uses the same ones. */
#include <omp.h>
#include <unistd.h>

#include "base/parallel_runtime.h"

int attn_parallel_default_threads(void)
{
    return omp_get_max_threads();
}

const char *attn_parallel_runtime(void)
{
    return "OpenMP";
}

void attn_parallel_set_threads(int threads)
{
    omp_set_num_threads(threads);
}

int attn_runtime_threads(int threads)
{
    return threads;
}

bool attn_runtime_open(struct attn_pool **pool, int threads, const struct attn_allocator *allocator)
{
    (void)threads, (void)allocator;
    *pool = NULL;
    return true;
}

void attn_runtime_close(struct attn_pool *pool, bool inherited,
                        const struct attn_allocator *allocator)
{
    (void)pool, (void)inherited, (void)allocator;
}

/* libgomp keeps its threads for the next parallel region, and after fork waits for them in the
 * child, where they do not exist, for ever. So a child may open regions only if no process before
 * it did, and that no context can know that was made after the fork: this is the one thing that
 * libattn keeps beside its contexts. Regions of the host itself are not seen here. */
static bool may_open_region(void)
{
    static _Atomic int64_t first_process; /* that ran a region of libattn; 0 for none yet */
    int64_t this_process = getpid(), first = 0;
    return atomic_compare_exchange_strong(&first_process, &first, this_process) ||
           first == this_process;
}

void attn_runtime_run(struct attn_pool *pool, int threads, struct attn_work *work)
{
    (void)pool;
    /* Inside a host's own parallel region its other threads keep the cores busy already. */
    if (omp_in_parallel() || !may_open_region()) {
        attn_work_take(work, 0);
        return;
    }
#pragma omp parallel num_threads(threads)
    attn_work_take(work, omp_get_thread_num());
}
