#include "base/threads.h"

#include "base/affinity.h"
#include "base/cgroup.h"

int attn_available_cpus(void)
{
    int cpus = attn_affinity_cpus();
    int quota = attn_cgroup_cpus("");
    return quota > 0 && quota < cpus ? quota : cpus;
}
