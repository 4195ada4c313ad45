/* Memory that is left, read from folders that look like /proc and /sys/fs/cgroup. */
#include "base/available_memory.h"

#include <string.h>

#include "base/cgroup.h"
#include "base/small_file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

struct file {
    const char *name, *text;
};

/* What a tree of these files leaves. */
#define CHECK_MEMORY(expected, ...)                                                                \
    check_memory((expected), (const struct file[]){__VA_ARGS__, {NULL, NULL}})

static void check_memory(int64_t expected, const struct file *files)
{
    char *root = scratch_folder_create();
    for (; files->name; files++)
        scratch_write_text(root, files->name, files->text);
    assert_int_equal(attn_available_memory(root), expected);
    scratch_folder_remove(root);
}

#define FILE_OF(name, text)                                                                        \
    {                                                                                              \
        name, text                                                                                 \
    }
#define MACHINE                                                                                    \
    FILE_OF("proc/meminfo", "MemTotal:   9000 kB\nMemFree:  10 kB\nMemAvailable:   5000 kB\n")
#define MEMBERSHIP(text) FILE_OF("proc/self/cgroup", text)

enum { MACHINE_BYTES = 5000 * 1024 };

static void the_machine_alone(void **state)
{
    (void)state;
    CHECK_MEMORY(MACHINE_BYTES, MACHINE);
    CHECK_MEMORY(INT64_MAX, {"unrelated", ""});
    CHECK_MEMORY(INT64_MAX, FILE_OF("proc/meminfo", "MemTotal: 9000 kB\n"));
    CHECK_MEMORY(MACHINE_BYTES, MACHINE, MEMBERSHIP("0::/\n"),
                 {"sys/fs/cgroup/memory.max", "max\n"}, {"sys/fs/cgroup/memory.current", "7\n"});
}

static void version_2(void **state)
{
    (void)state;
    CHECK_MEMORY(600000, MACHINE, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/memory.max", "1000000\n"},
                 {"sys/fs/cgroup/memory.current", "400000\n"});
    /* Pages of files can be taken back. */
    CHECK_MEMORY(850000, MACHINE, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/memory.max", "1000000\n"},
                 {"sys/fs/cgroup/memory.current", "400000\n"},
                 {"sys/fs/cgroup/memory.stat",
                  "anon 1\nworkingset_inactive_file 9\ninactive_file 200000\nactive_file 50000\n"});
    /* A group above this one; and one that is full. */
    CHECK_MEMORY(30, MACHINE, MEMBERSHIP("0::/a/b\n"), {"sys/fs/cgroup/a/memory.max", "100\n"},
                 {"sys/fs/cgroup/a/memory.current", "70\n"},
                 {"sys/fs/cgroup/a/b/memory.max", "1000\n"},
                 {"sys/fs/cgroup/a/b/memory.current", "60\n"});
    CHECK_MEMORY(0, MACHINE, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/memory.max", "100\n"},
                 {"sys/fs/cgroup/memory.current", "170\n"});
}

static void version_1(void **state)
{
    (void)state;
    CHECK_MEMORY(60, MACHINE, MEMBERSHIP("4:memory:/job\n0::/\n"),
                 {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "100\n"},
                 {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "40\n"});
    /* Pages of files count with those of the groups below, as what is in use does. */
    CHECK_MEMORY(80, MACHINE, MEMBERSHIP("4:memory:/job\n0::/\n"),
                 {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "100\n"},
                 {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "40\n"},
                 {"sys/fs/cgroup/memory/job/memory.stat",
                  "inactive_file 1\nactive_file 2\ntotal_inactive_file 5\n"
                  "total_active_file 15\n"});
    /* What no limit looks like there. */
    CHECK_MEMORY(MACHINE_BYTES, MACHINE, MEMBERSHIP("4:memory:/\n"),
                 {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                 {"sys/fs/cgroup/memory/memory.usage_in_bytes", "40\n"});
    CHECK_MEMORY(MACHINE_BYTES, MACHINE, MEMBERSHIP("4:cpu:/\n"),
                 {"sys/fs/cgroup/memory/memory.limit_in_bytes", "100\n"},
                 {"sys/fs/cgroup/memory/memory.usage_in_bytes", "40\n"});
}

static void small_files(void **state)
{
    (void)state;
    char *root = scratch_folder_create();
    static char text[ATTN_SMALL_FILE], long_text[2 * ATTN_SMALL_FILE];
    memset(long_text, 'x', sizeof long_text - 1);
    scratch_write_text(root, "long", long_text);
    assert_true(attn_small_file_read(root, "long", text));
    assert_int_equal(strlen(text), ATTN_SMALL_FILE - 1);
    assert_false(attn_small_file_read(root, "missing", text));
    assert_string_equal(text, "");
    assert_false(attn_small_file_read(root, long_text, text));
    assert_false(attn_small_file_read(root, ".", text)); /* a folder */
    scratch_folder_remove(root);
}

static void this_machine_has_some(void **state)
{
    (void)state;
    assert_true(attn_available_memory("") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_machine_alone),
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(small_files),
        cmocka_unit_test(this_machine_has_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
