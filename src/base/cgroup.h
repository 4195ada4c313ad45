/* What control groups allow this process. */
#ifndef ATTN_BASE_CGROUP_H
#define ATTN_BASE_CGROUP_H

#include <stdint.h>

/* CPUs that the tightest quota of the process's groups and of all groups above them allows, rounded
 * up; 0 where there is none. Reads ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup; root is "" but in
 * tests. */
int attn_cgroup_cpus(const char *root);

/* Bytes that the process may still take before the tightest memory limit of those groups, pages of
 * files not counted as taken; INT64_MAX where there is no limit. */
int64_t attn_cgroup_memory(const char *root);

#endif
