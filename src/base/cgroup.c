/* Version 2 says "QUOTA PERIOD" in cpu.max; version 1 has cpu.cfs_quota_us and cpu.cfs_period_us,
 * and a folder of its own a controller. Memory has a limit, what is in use, and statistics that
 * tell how much of that is pages of files. Documentation/admin-guide/cgroup-v{1,2} of Linux. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/small_file.h"

static const int64_t no_limit = INT64_MAX;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ⌈quota / period⌉. */
static int64_t quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return no_limit;
    int64_t cpus = quota / period + (quota % period != 0);
    return smaller(cpus, INT_MAX);
}

static int64_t folder_cpus_version_1(const char *folder)
{
    char quota[ATTN_SMALL_FILE], period[ATTN_SMALL_FILE];
    if (!attn_small_file_read(folder, "cpu.cfs_quota_us", quota) ||
        !attn_small_file_read(folder, "cpu.cfs_period_us", period))
        return no_limit;
    return quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static int64_t folder_cpus_version_2(const char *folder)
{
    char text[ATTN_SMALL_FILE], *end;
    if (!attn_small_file_read(folder, "cpu.max", text))
        return no_limit;
    long long quota = strtoll(text, &end, 10); /* "max" reads as 0: no limit */
    return quota_cpus(quota, strtoll(end, NULL, 10));
}

/* The number behind a name at the begin of a line, 0 where there is none. */
static int64_t statistic(const char *text, const char *name)
{
    const size_t size = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, size) == 0 && line[size] == ' ')
            return strtoll(line + size, NULL, 10);
    }
    return 0;
}

/* Names of files, and of what memory.stat says of pages of files in the group and those below it.
 */
struct memory_names {
    const char *limit, *usage;
    const char *files[2];
};

/* Pages of files can be dropped when memory is short, so that they are still to be had. */
static int64_t folder_memory(const char *folder, const struct memory_names *names)
{
    char limit[ATTN_SMALL_FILE], usage[ATTN_SMALL_FILE], statistics[ATTN_SMALL_FILE];
    if (!attn_small_file_read(folder, names->limit, limit) || limit[0] < '0' || limit[0] > '9' ||
        !attn_small_file_read(folder, names->usage, usage))
        return no_limit;
    attn_small_file_read(folder, "memory.stat", statistics);
    const int64_t files =
        statistic(statistics, names->files[0]) + statistic(statistics, names->files[1]);
    const int64_t taken = strtoll(usage, NULL, 10) - files, most = strtoll(limit, NULL, 10);
    return taken <= 0 ? most : most > taken ? most - taken : 0;
}

static int64_t folder_memory_version_1(const char *folder)
{
    const struct memory_names names = {"memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       {"total_inactive_file", "total_active_file"}};
    return folder_memory(folder, &names);
}

static int64_t folder_memory_version_2(const char *folder)
{
    const struct memory_names names = {
        "memory.max", "memory.current", {"inactive_file", "active_file"}};
    return folder_memory(folder, &names);
}

/* What version 1 calls it, and how much a group's folder allows. */
struct controller {
    const char *name;
    int64_t (*version_1)(const char *folder);
    int64_t (*version_2)(const char *folder);
};

/* The tightest limit from `group` up to the mount point. */
static int64_t tightest(const char *mount, const char *group, int64_t (*folder_limit)(const char *))
{
    /* A group outside of the process's namespace reads "/../…"; only the mount point is seen. */
    bool seen = group[0] == '/' && !strstr(group, "/..");
    char folder[ATTN_SMALL_PATH];
    const int size = snprintf(folder, sizeof folder, "%s%s", mount, seen ? group : "");
    if (size < 0 || size >= (int)sizeof folder)
        return no_limit;
    int64_t limit = no_limit;
    for (;;) {
        limit = smaller(limit, folder_limit(folder));
        char *slash = strrchr(folder + strlen(mount), '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    return limit;
}

static bool list_has(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (strncmp(item, name, size) == 0 && (item[size] == ',' || item[size] == '\0'))
            return true;
    }
    return false;
}

/* One line "NUMBER:CONTROLLERS:GROUP"; version 2 has number 0 and no controllers. */
static int64_t line_limit(const struct controller *controller, const char *mount, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return no_limit;
    *controllers++ = '\0';
    *group++ = '\0';
    if (strcmp(line, "0") == 0 && *controllers == '\0')
        return tightest(mount, group, controller->version_2);
    if (!list_has(controllers, controller->name))
        return no_limit;
    /* Mounted under its controllers' names ("cpu,cpuacct") or, often by a link, under its own. */
    const char *names[] = {controllers, controller->name};
    int64_t limit = no_limit;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[ATTN_SMALL_PATH];
        const int size = snprintf(folder, sizeof folder, "%s/%s", mount, names[i]);
        if (size >= 0 && size < (int)sizeof folder)
            limit = smaller(limit, tightest(folder, group, controller->version_1));
    }
    return limit;
}

static int64_t tightest_limit(const struct controller *controller, const char *root)
{
    char mount[ATTN_SMALL_PATH], text[ATTN_SMALL_FILE];
    const int size = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
    if (size < 0 || size >= (int)sizeof mount ||
        !attn_small_file_read(root, "proc/self/cgroup", text))
        return no_limit;
    int64_t limit = no_limit;
    for (char *line = text; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        limit = smaller(limit, line_limit(controller, mount, line));
        line = end ? end + 1 : NULL;
    }
    return limit;
}

int attn_cgroup_cpus(const char *root)
{
    const struct controller cpu = {"cpu", folder_cpus_version_1, folder_cpus_version_2};
    const int64_t cpus = tightest_limit(&cpu, root);
    return cpus == no_limit ? 0 : (int)cpus;
}

int64_t attn_cgroup_memory(const char *root)
{
    const struct controller memory = {"memory", folder_memory_version_1, folder_memory_version_2};
    return tightest_limit(&memory, root);
}
