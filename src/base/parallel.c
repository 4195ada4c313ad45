#include "base/parallel.h"

#ifdef _OPENMP

#include <omp.h>

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

void attn_parallel_for(int threads, int64_t items,
                       void (*body)(void *user, int64_t item, int thread), void *user)
{
    /* Inside a host's own parallel region its other threads keep the cores busy already. */
    if (threads <= 1 || items <= 1 || omp_in_parallel()) {
        for (int64_t item = 0; item < items; item++)
            body(user, item, 0);
        return;
    }
    if (threads > items)
        threads = (int)items;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t item = 0; item < items; item++)
        body(user, item, omp_get_thread_num());
}

#else

int attn_parallel_default_threads(void)
{
    return 1;
}

const char *attn_parallel_runtime(void)
{
    return "none";
}

void attn_parallel_set_threads(int threads)
{
    (void)threads;
}

void attn_parallel_for(int threads, int64_t items,
                       void (*body)(void *user, int64_t item, int thread), void *user)
{
    (void)threads;
    for (int64_t item = 0; item < items; item++)
        body(user, item, 0);
}

#endif
