/* A build without threads: what the caller of a context brings is all there is. */
#include "base/parallel_runtime.h"

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

int attn_runtime_threads(int threads)
{
    (void)threads;
    return 1;
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

void attn_runtime_run(struct attn_pool *pool, int threads, struct attn_work *work)
{
    (void)pool, (void)threads;
    attn_work_take(work, 0);
}
