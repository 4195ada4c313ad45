/* Documentation/ABI/testing/sysfs-devices-system-cpu of Linux. */
#include "measure/cache_size.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { SMALL_FILE = 1 << 16, MAXIMUM_INDEX = 16 };

static const int64_t likely_size = INT64_C(32) << 20;
static const int64_t largest_size = INT64_C(1) << 40; /* beyond belief */

/* ROOT/sys/devices/system/cpu/NAME as text that the caller frees; NULL where it cannot be read. */
static char *read_text(const char *root, const char *name)
{
    char *folder = attn_path_join(root, "sys/devices/system/cpu");
    char *path = folder ? attn_path_join(folder, name) : NULL;
    char *text = NULL;
    size_t size;
    if (path)
        attn_file_read(path, SMALL_FILE, &text, &size, NULL);
    free(path);
    free(folder);
    return text;
}

static char *read_index(const char *root, int index, const char *field)
{
    char name[64];
    snprintf(name, sizeof name, "cpu0/cache/index%d/%s", index, field);
    return read_text(root, name);
}

/* "32768K" in bytes; 0 for anything else. */
static int64_t parse_size(const char *text)
{
    char *end;
    int64_t size = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return size > 0 && size <= largest_size >> shift ? size * (INT64_C(1) << shift) : 0;
}

/* CPUs in a list such as "0-3,8-11"; 0 where it is none. */
static int64_t count_list(const char *text)
{
    int64_t cpus = 0;
    for (;;) {
        char *end;
        int64_t first = strtoll(text, &end, 10), last = first;
        if (end == text)
            return 0;
        if (*end == '-') {
            text = end + 1;
            last = strtoll(text, &end, 10);
        }
        if (first < 0 || last < first || last > 1 << 20)
            return 0;
        cpus += last - first + 1;
        if (*end != ',')
            return cpus;
        text = end + 1;
    }
}

static int64_t count_file(char *text)
{
    int64_t cpus = text ? count_list(text) : 0;
    free(text);
    return cpus;
}

/* The largest cache of the first CPU that holds data; its index, or −1. */
static int largest_index(const char *root, int64_t *size)
{
    int largest = -1;
    *size = 0;
    for (int index = 0; index < MAXIMUM_INDEX; index++) {
        char *size_text = read_index(root, index, "size");
        char *type = read_index(root, index, "type");
        int64_t bytes = size_text ? parse_size(size_text) : 0;
        bool is_data = type && strncmp(type, "Instruction", strlen("Instruction")) != 0;
        if (is_data && bytes > *size) {
            *size = bytes;
            largest = index;
        }
        free(size_text);
        free(type);
    }
    return largest;
}

/* What the C library knows, where it asks the CPU itself. */
static int64_t library_size(void)
{
#ifdef _SC_LEVEL3_CACHE_SIZE
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (size <= 0)
        size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (size > 0)
        return size;
#endif
    return likely_size;
}

int64_t cache_size_last_level(const char *root, int threads)
{
    int64_t size;
    int index = largest_index(root, &size);
    if (index < 0)
        return library_size();
    int64_t sharing = count_file(read_index(root, index, "shared_cpu_list"));
    int64_t cpus = count_file(read_text(root, "online"));
    int64_t caches = sharing > 0 && cpus > sharing ? (cpus + sharing - 1) / sharing : 1;
    return size * (caches < threads ? caches : threads);
}
