/* How much memory the caches hold: what is read from memory must be more than that. */
#ifndef ATTN_MEASURE_CACHE_SIZE_H
#define ATTN_MEASURE_CACHE_SIZE_H

#include <stdint.h>

/* Bytes of the last-level caches that `threads` threads can reach together. Where a machine has
 * several such caches, one for a group of its CPUs, threads may stand on as many of them. Reads
 * ROOT/sys/devices/system/cpu, else asks the C library, else takes 32 MiB; root is "" but in
 * tests. */
int64_t cache_size_last_level(const char *root, int threads);

#endif
