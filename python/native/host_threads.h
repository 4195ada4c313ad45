/* host_threads.h: loops on the threads of an OpenMP runtime that the process has already. */
#ifndef ATTN_PYTHON_HOST_THREADS_H
#define ATTN_PYTHON_HOST_THREADS_H

#include <attn.h>
#include <stdbool.h>

/* Looks for a runtime that is loaded for all to see, as PyTorch's is: two pools of threads that
 * take turns would wait for each other's cores. False where there is none. */
bool host_threads_find(void);

/* How many threads it would use now. After host_threads_find was true. */
int host_threads_default(void);

/* An attn_parallel_loop; `user` points to an int, the number of threads. */
void host_threads_loop(void *user, int64_t items,
                       void (*body)(void *state, int64_t item, int thread), void *state);

#endif
