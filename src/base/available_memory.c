#include "base/available_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/small_file.h"

/* Of the whole machine; INT64_MAX where it is not told (Linux tells it since 3.14). */
static int64_t machine_memory(const char *root)
{
    const char name[] = "MemAvailable:";
    const int64_t kilobyte = 1024;
    char text[ATTN_SMALL_FILE];
    attn_small_file_read(root, "proc/meminfo", text);
    const char *line = strstr(text, name);
    const int64_t kilobytes = line ? strtoll(line + sizeof name - 1, NULL, 10) : INT64_MAX;
    return kilobytes < INT64_MAX / kilobyte ? kilobytes * kilobyte : INT64_MAX;
}

int64_t attn_available_memory(const char *root)
{
    const int64_t machine = machine_memory(root), groups = attn_cgroup_memory(root);
    return machine < groups ? machine : groups;
}
