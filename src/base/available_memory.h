/* How much memory a process may still take. */
#ifndef ATTN_BASE_AVAILABLE_MEMORY_H
#define ATTN_BASE_AVAILABLE_MEMORY_H

#include <stdint.h>

/* Bytes, without swapping: what the machine has available (MemAvailable of ROOT/proc/meminfo), or
 * what the process's control groups leave it if that is less. INT64_MAX where neither says
 * anything. root is "" but in tests. */
int64_t attn_available_memory(const char *root);

#endif
