/* The CPU quota that control groups put on this process. */
#ifndef ATTN_BASE_CGROUP_H
#define ATTN_BASE_CGROUP_H

/* CPUs that the tightest quota of the process's groups and of all groups above them allows, rounded
 * up; 0 where there is none. Reads ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup; root is "" but in
 * tests. */
int attn_cgroup_cpus(const char *root);

#endif
