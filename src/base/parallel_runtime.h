/* What parallel.c asks of the thread runtime: one of parallel_openmp.c, parallel_pthread.c and
 * parallel_none.c, which the build chooses. Each also defines attn_parallel_default_threads,
 * attn_parallel_runtime and attn_parallel_set_threads of parallel.h. */
#ifndef ATTN_BASE_PARALLEL_RUNTIME_H
#define ATTN_BASE_PARALLEL_RUNTIME_H

#include <stdatomic.h>

#include "base/parallel.h"

/* The items of one run, and the next one that nobody has taken. */
struct attn_work {
    void (*body)(void *state, int64_t item, int thread);
    void *state;
    int64_t items;
    _Atomic int64_t next;
};

/* One thread's part of a run: takes items in order until none is left, with the default
 * floating-point modes. In parallel.c, for the runtimes. */
void attn_work_take(struct attn_work *work, int thread);

/* How many threads the runtime has of `threads` that are asked for (≥ 1). */
int attn_runtime_threads(int threads);

/* Gets `threads` threads ready, the caller of each run among them. *pool is NULL where the runtime
 * keeps none a context, and with one thread. False, with nothing to undo: no memory, or no thread.
 */
bool attn_runtime_open(struct attn_pool **pool, int threads,
                       const struct attn_allocator *allocator);

/* `pool` may be NULL. After fork, in the child (`inherited`), its threads do not exist. */
void attn_runtime_close(struct attn_pool *pool, bool inherited,
                        const struct attn_allocator *allocator);

/* Calls attn_work_take(work, thread) on up to `threads` (≥ 2) threads with numbers of their own in
 * 0..threads−1, on the calling one in any case, and returns when all of these calls have. `pool` is
 * what attn_runtime_open made for at least as many threads, in this process. */
void attn_runtime_run(struct attn_pool *pool, int threads, struct attn_work *work);

#endif
