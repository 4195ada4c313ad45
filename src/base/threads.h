/* How many CPUs this process may keep busy. */
#ifndef ATTN_BASE_THREADS_H
#define ATTN_BASE_THREADS_H

/* The CPUs in the affinity mask, at most the cgroup's CPU quota (v1 or v2) rounded up; never 0. */
int attn_available_cpus(void);

#endif
