/* CPU quotas, read from folders that look like /proc and /sys/fs/cgroup. */
#include "base/threads.h"

#include <unistd.h>

#include "base/cgroup.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

struct file {
    const char *name, *text;
};

/* The limit that a tree of these files gives. */
#define CHECK_CPUS(expected, ...)                                                                  \
    check_cpus((expected), (const struct file[]){__VA_ARGS__, {NULL, NULL}})

static void check_cpus(int expected, const struct file *files)
{
    char *root = scratch_folder_create();
    for (; files->name; files++)
        scratch_write_text(root, files->name, files->text);
    assert_int_equal(attn_cgroup_cpus(root), expected);
    scratch_folder_remove(root);
}

#define MEMBERSHIP(text)                                                                           \
    {                                                                                              \
        "proc/self/cgroup", text                                                                   \
    }

static void no_quota(void **state)
{
    (void)state;
    CHECK_CPUS(0, {"unrelated", ""});
    CHECK_CPUS(0, MEMBERSHIP(""));
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"));
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "max 100000\n"});
    CHECK_CPUS(0, MEMBERSHIP("4:cpu,cpuacct:/\n"),
               {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
               {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"});
}

static void version_2(void **state)
{
    (void)state;
    CHECK_CPUS(2, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "200000 100000\n"});
    CHECK_CPUS(3, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "200001 100000\n"});
    CHECK_CPUS(1, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "5000 100000\n"});
    CHECK_CPUS(4, MEMBERSHIP("0::/app/job\n"), {"sys/fs/cgroup/app/job/cpu.max", "100000 25000"});
}

static void the_tightest_group_on_the_way_up_counts(void **state)
{
    (void)state;
    CHECK_CPUS(2, MEMBERSHIP("0::/a/b/c\n"), {"sys/fs/cgroup/a/b/c/cpu.max", "800000 100000"},
               {"sys/fs/cgroup/a/b/cpu.max", "max 100000"},
               {"sys/fs/cgroup/a/cpu.max", "200000 100000"});
    CHECK_CPUS(2, MEMBERSHIP("0::/a/b\n"), {"sys/fs/cgroup/a/b/cpu.max", "200000 100000"},
               {"sys/fs/cgroup/a/cpu.max", "800000 100000"});
    CHECK_CPUS(5, MEMBERSHIP("0::/a/b\n"), {"sys/fs/cgroup/cpu.max", "500000 100000"},
               {"sys/fs/cgroup/a/b/x", ""});
    CHECK_CPUS(0, MEMBERSHIP("0::/a\n"), {"sys/fs/cgroup/b/cpu.max", "100000 100000"});
}

static void version_1(void **state)
{
    (void)state;
    CHECK_CPUS(3, MEMBERSHIP("9:memory:/x\n4:cpuacct,cpu:/job\n0::/\n"),
               {"sys/fs/cgroup/cpuacct,cpu/job/cpu.cfs_quota_us", "250000\n"},
               {"sys/fs/cgroup/cpuacct,cpu/job/cpu.cfs_period_us", "100000\n"});
    CHECK_CPUS(2, MEMBERSHIP("1:cpu:/\n"), {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
               {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n"});
    /* The group's own folder is outside of a container; the mount shows the group as its top. */
    CHECK_CPUS(7, MEMBERSHIP("1:cpu,cpuacct:/docker/1234\n"),
               {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "700000\n"},
               {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"});
    /* cpuset and cpuacct are other controllers. */
    CHECK_CPUS(0, MEMBERSHIP("1:cpuset,cpuacct:/\n"),
               {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n"},
               {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"});
}

static void both_versions_at_once(void **state)
{
    (void)state;
    CHECK_CPUS(2, MEMBERSHIP("1:cpu:/\n0::/\n"), {"sys/fs/cgroup/cpu.max", "200000 100000"},
               {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000"},
               {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"});
}

static void strange_content_is_no_limit(void **state)
{
    (void)state;
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", ""});
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "100000"});
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "100000 0"});
    CHECK_CPUS(0, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "-5 -1"});
    CHECK_CPUS(0, MEMBERSHIP("\n:\nno colons\n0:/\n"), {"sys/fs/cgroup/cpu.max", "100000 100000"});
    CHECK_CPUS(INT32_MAX, MEMBERSHIP("0::/\n"), {"sys/fs/cgroup/cpu.max", "9223372036854775807 1"});
}

static void a_group_outside_of_the_namespace_is_not_followed(void **state)
{
    (void)state;
    CHECK_CPUS(6, MEMBERSHIP("0::/../../other\n"), {"sys/fs/cgroup/cpu.max", "600000 100000"},
               {"sys/other/cpu.max", "100000 100000"}, {"other/cpu.max", "100000 100000"});
}

static void this_process_has_at_least_one(void **state)
{
    (void)state;
    int cpus = attn_available_cpus();
    assert_true(cpus >= 1);
    assert_true(cpus <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_quota),
        cmocka_unit_test(version_2),
        cmocka_unit_test(the_tightest_group_on_the_way_up_counts),
        cmocka_unit_test(version_1),
        cmocka_unit_test(both_versions_at_once),
        cmocka_unit_test(strange_content_is_no_limit),
        cmocka_unit_test(a_group_outside_of_the_namespace_is_not_followed),
        cmocka_unit_test(this_process_has_at_least_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
