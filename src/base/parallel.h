/* One loop over independent items, shared by threads: the host's, or the runtime of the build
 * (OpenMP, POSIX threads, none). */
#ifndef ATTN_BASE_PARALLEL_H
#define ATTN_BASE_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "attn.h"
#include "base/memory.h"

struct attn_pool; /* POSIX threads that wait for work; only that runtime has any */

/* What a context knows of its threads. */
struct attn_parallel {
    int threads; /* what was asked for; 1 in a build without threads, unless the host brings some */
    attn_parallel_loop *host; /* NULL: the runtime of the build */
    void *host_user;
    struct attn_pool *pool;
    int64_t process; /* that made it: another one is a child after fork, and works alone */
};

/* Threads that the runtime would use by itself. */
int attn_parallel_default_threads(void);

/* What the runtime is, for `attn info`: "OpenMP", "POSIX threads" or "none". */
const char *attn_parallel_runtime(void);

/* Sets how many threads the runtime uses from here on in this process, CBLAS built on the same
 * runtime included; with OpenMP, in loops that this thread begins. For the tool; libattn itself
 * never calls it. */
void attn_parallel_set_threads(int threads);

/* threads ≥ 1. False: no memory, or no thread could be started; nothing is to be undone then. */
bool attn_parallel_open(struct attn_parallel *parallel, int threads, attn_parallel_loop *host,
                        void *host_user, const struct attn_allocator *allocator);
void attn_parallel_close(struct attn_parallel *parallel, const struct attn_allocator *allocator);

/* Calls body(state, item, thread) for each item in 0..items−1, with 0 ≤ thread < threads; the
 * runtimes hand items out in order, one at a time, to whichever thread is free. Each body runs with
 * the default floating-point modes. Returns when all are done. */
void attn_parallel_run(const struct attn_parallel *parallel, int64_t items,
                       void (*body)(void *state, int64_t item, int thread), void *state);

#endif
