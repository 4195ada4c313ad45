/* One loop over independent items, shared by threads. OpenMP where the build has it, else serial.
 */
#ifndef ATTN_BASE_PARALLEL_H
#define ATTN_BASE_PARALLEL_H

#include <stdint.h>

/* Threads that the runtime would use by itself. */
int attn_parallel_default_threads(void);

/* What the runtime is, for `attn info`: "OpenMP" or "none". */
const char *attn_parallel_runtime(void);

/* Sets how many threads the runtime uses from here on in this process, CBLAS built on the same
 * runtime included. For the tool; libattn itself never calls it. */
void attn_parallel_set_threads(int threads);

/* Calls body(user, item, thread) for each item in 0..items−1, with 0 ≤ thread < threads; items are
 * handed out in order, one at a time, to whichever thread is free. Returns when all are done. */
void attn_parallel_for(int threads, int64_t items,
                       void (*body)(void *user, int64_t item, int thread), void *user);

#endif
