#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT_S */
#include "base/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <unistd.h>

/* 0 where the mask cannot be read. */
static int cpus_in_mask(void)
{
    enum { MAXIMUM_CPUS = 1 << 16 };
    /* The kernel refuses a mask that is too short for the machine with EINVAL. */
    for (size_t cpus = CPU_SETSIZE; cpus <= MAXIMUM_CPUS; cpus *= 2) {
        cpu_set_t *mask = CPU_ALLOC(cpus);
        if (!mask)
            return 0;
        size_t size = CPU_ALLOC_SIZE(cpus);
        int count = sched_getaffinity(0, size, mask) == 0 ? CPU_COUNT_S(size, mask) : 0;
        int number = errno;
        CPU_FREE(mask);
        if (count > 0 || number != EINVAL)
            return count;
    }
    return 0;
}

int attn_affinity_cpus(void)
{
    long cpus = cpus_in_mask();
    if (cpus < 1)
        cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus < 1 ? 1 : (int)cpus;
}
