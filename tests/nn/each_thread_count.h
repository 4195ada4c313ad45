/* A test body run with 1 to 4 threads, which must give the same bits. */
#ifndef ATTN_TESTS_EACH_THREAD_COUNT_H
#define ATTN_TESTS_EACH_THREAD_COUNT_H

#include <stddef.h>

#include "nn/compute.h"

/* `body` writes result[count], which is NaN before. */
void each_thread_count(size_t count, void (*body)(const struct compute *compute, float *result));

#endif
