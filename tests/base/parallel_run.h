/* A loop over threads that is watched: what the tests of base/parallel.h share. */
#ifndef ATTN_TESTS_PARALLEL_RUN_H
#define ATTN_TESTS_PARALLEL_RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/parallel.h"

enum { MOST_ITEMS = 1000, MOST_THREADS = 8 };

/* What a run did. Bodies run on many threads, where cmocka's assertions may not be used. */
struct parallel_run {
    atomic_int times[MOST_ITEMS];    /* that an item was done */
    atomic_int inside[MOST_THREADS]; /* bodies that run with a thread's number */
    int64_t previous[MOST_THREADS];  /* a thread's last item */
    atomic_int faults;               /* a number out of range or used twice at a time, disorder,
                                        modes that are not the default */
    int threads;
};

void parallel_run_begin(struct parallel_run *run, int threads);

/* The body of a loop; `state` is the struct parallel_run. */
void parallel_run_item(void *state, int64_t item, int thread);

/* True iff each of the items was done once, and nothing else happened. */
bool parallel_run_is_complete(struct parallel_run *run, int64_t items);

/* False in a build without threads. */
bool parallel_run_has_threads(void);

/* Over the runtime of the build and the C library's memory. */
void parallel_run_open(struct attn_parallel *parallel, int threads);
void parallel_run_close(struct attn_parallel *parallel);

#endif
