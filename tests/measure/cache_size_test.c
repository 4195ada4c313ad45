/* Sizes of caches, read from folders that look like /sys/devices/system/cpu. */
#include "measure/cache_size.h"

#include <stdio.h>

#include "cmocka_test.h"
#include "scratch_folder.h"

struct cache {
    const char *size, *type, *shared_cpu_list; /* NULL: no such file */
};

enum { KIB = 1 << 10, MIB = 1 << 20 };

static void write_field(const char *root, int index, const char *field, const char *text)
{
    char name[96];
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu0/cache/index%d/%s", index, field);
    if (text)
        scratch_write_text(root, name, text);
}

static void check_size(int64_t expected, int threads, const char *online,
                       const struct cache *caches, int count)
{
    char *root = scratch_folder_create();
    if (online)
        scratch_write_text(root, "sys/devices/system/cpu/online", online);
    for (int i = 0; i < count; i++) {
        write_field(root, i, "size", caches[i].size);
        write_field(root, i, "type", caches[i].type);
        write_field(root, i, "shared_cpu_list", caches[i].shared_cpu_list);
    }
    assert_int_equal(cache_size_last_level(root, threads), expected);
    scratch_folder_remove(root);
}

static const struct cache three_levels[] = {
    {"32K\n", "Data\n", "0\n"},
    {"64M\n", "Instruction\n", "0\n"},
    {"512K\n", "Unified\n", "0\n"},
    {"32768K\n", "Unified\n", "0-3,8-11\n"},
};

static void the_largest_that_holds_data(void **state)
{
    (void)state;
    check_size(32 * MIB, 1, "0-15\n", three_levels, 4);
    check_size(512 * KIB, 1, "0-15\n", three_levels, 3);
    check_size(32 * KIB, 1, "0-15\n", three_levels, 2);
}

static void threads_reach_as_many_as_there_are(void **state)
{
    (void)state;
    check_size(64 * MIB, 2, "0-15\n", three_levels, 4);
    check_size(64 * MIB, 9, "0-15\n", three_levels, 4);
    check_size(96 * MIB, 9, "0-16\n", three_levels, 4);
    check_size(32 * MIB, 9, "0-7\n", three_levels, 4);
    check_size(32 * MIB, 9, "0-3\n", three_levels, 4);
    check_size(5 * 512 * KIB, 5, "0,2,4-9\n", three_levels, 3);
}

static void what_is_not_known_counts_once(void **state)
{
    (void)state;
    check_size(32 * MIB, 9, NULL, three_levels, 4);
    for (int i = 0; i < 4; i++) {
        const char *lists[] = {NULL, "", "x", "3-1"};
        struct cache cache = {"1M\n", "Unified\n", lists[i]};
        check_size(MIB, 9, "0-15\n", &cache, 1);
        cache.shared_cpu_list = "0\n";
        check_size(MIB, 9, lists[i], &cache, 1);
    }
}

static void strange_sizes_are_none(void **state)
{
    (void)state;
    char *root = scratch_folder_create();
    int64_t without = cache_size_last_level(root, 1);
    scratch_folder_remove(root);
    const char *sizes[] = {"", "0K", "-4M", "many", "99999999999999999999G", "1025G"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct cache cache = {sizes[i], "Unified\n", "0\n"};
        check_size(without, 1, "0\n", &cache, 1);
    }
    struct cache untyped = {"1M\n", NULL, "0\n"};
    check_size(without, 1, "0\n", &untyped, 1);
}

static void this_machine_has_some(void **state)
{
    (void)state;
    int64_t size = cache_size_last_level("", 1);
    assert_true(size >= 16 * KIB);
    assert_true(size <= INT64_C(1) << 40);
    assert_true(cache_size_last_level("", 1000) >= size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_that_holds_data),
        cmocka_unit_test(threads_reach_as_many_as_there_are),
        cmocka_unit_test(what_is_not_known_counts_once),
        cmocka_unit_test(strange_sizes_are_none),
        cmocka_unit_test(this_machine_has_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
