/* The CPUs that the operating system lets this process run on. */
#ifndef ATTN_BASE_AFFINITY_H
#define ATTN_BASE_AFFINITY_H

/* How many are in its affinity mask; where that cannot be read, how many are online; never 0. */
int attn_affinity_cpus(void);

#endif
