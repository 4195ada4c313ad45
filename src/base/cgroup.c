/* Version 2 says "QUOTA PERIOD" in cpu.max; version 1 has cpu.cfs_quota_us and cpu.cfs_period_us,
 * and a folder of its own a controller. Documentation/admin-guide/cgroup-v{1,2} of Linux. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { SMALL_FILE = 1 << 16 };

/* The file's text, NULL where it cannot be read; the caller frees it. */
static char *read_small(const char *folder, const char *name)
{
    char *path = attn_path_join(folder, name);
    char *text = NULL;
    size_t size;
    if (path)
        attn_file_read(path, SMALL_FILE, &text, &size, NULL);
    free(path);
    return text;
}

/* ⌈quota / period⌉, or 0 for no limit. */
static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

static int folder_cpus_version_1(const char *folder)
{
    char *quota = read_small(folder, "cpu.cfs_quota_us");
    char *period = read_small(folder, "cpu.cfs_period_us");
    int cpus =
        quota && period ? quota_cpus(strtoll(quota, NULL, 10), strtoll(period, NULL, 10)) : 0;
    free(quota);
    free(period);
    return cpus;
}

static int folder_cpus_version_2(const char *folder)
{
    char *text = read_small(folder, "cpu.max");
    char *end = text;
    int cpus = 0;
    if (text) {
        long long quota = strtoll(text, &end, 10); /* "max" reads as 0: no limit */
        cpus = quota_cpus(quota, strtoll(end, NULL, 10));
    }
    free(text);
    return cpus;
}

/* The tighter of two limits, 0 being none. */
static int tighter(int a, int b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* The tightest limit from `group` up to the mount point. */
static int tightest_cpus(const char *mount, const char *group, int (*folder_cpus)(const char *))
{
    /* A group outside of the process's namespace reads "/../…"; only the mount point is seen. */
    bool seen = group[0] == '/' && !strstr(group, "/..");
    size_t mount_size = strlen(mount);
    size_t size = mount_size + strlen(group) + 1;
    char *folder = malloc(size);
    if (!folder)
        return 0;
    snprintf(folder, size, "%s%s", mount, seen ? group : "");
    int cpus = 0;
    for (;;) {
        cpus = tighter(cpus, folder_cpus(folder));
        char *slash = strrchr(folder + mount_size, '/');
        if (!slash)
            break;
        *slash = '\0';
    }
    free(folder);
    return cpus;
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
static int line_cpus(const char *mount, char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *controllers++ = '\0';
    *group++ = '\0';
    if (strcmp(line, "0") == 0 && *controllers == '\0')
        return tightest_cpus(mount, group, folder_cpus_version_2);
    if (!list_has(controllers, "cpu"))
        return 0;
    /* Mounted under its controllers' names ("cpu,cpuacct") or, often by a link, under "cpu". */
    const char *names[] = {controllers, "cpu"};
    int cpus = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *folder = attn_path_join(mount, names[i]);
        if (folder)
            cpus = tighter(cpus, tightest_cpus(folder, group, folder_cpus_version_1));
        free(folder);
    }
    return cpus;
}

int attn_cgroup_cpus(const char *root)
{
    char *mount = attn_path_join(root, "sys/fs/cgroup");
    char *text = read_small(root, "proc/self/cgroup");
    int cpus = 0;
    for (char *line = text; mount && line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        cpus = tighter(cpus, line_cpus(mount, line));
        line = end ? end + 1 : NULL;
    }
    free(text);
    free(mount);
    return cpus;
}
