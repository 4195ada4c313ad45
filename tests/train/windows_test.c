#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "train/windows.h"

static struct windows make_windows(int64_t tokens, int64_t length, uint64_t seed)
{
    struct windows windows;
    struct attn_error error;
    if (!windows_create(&windows, tokens, length, seed, &error))
        fail_msg("%s", error.message);
    return windows;
}

/* An epoch takes each window once, none over the end, none over another. */
static void test_an_epoch_takes_each_once(void **state)
{
    (void)state;
    const int64_t sizes[][2] = {{1000, 10}, {1009, 10}, {10, 10}, {19, 10}, {20, 10}, {7, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int64_t tokens = sizes[s][0], length = sizes[s][1];
        struct windows windows = make_windows(tokens, length, 5);
        assert_true(windows.count * length + windows.slack == tokens);
        int *seen = calloc((size_t)tokens, sizeof *seen);
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            memset(seen, 0, (size_t)tokens * sizeof *seen);
            for (int64_t place = 0; place < windows.count; place++) {
                int64_t begin = windows_begin(&windows, epoch * windows.count + place);
                assert_true(begin >= 0 && begin + length <= tokens);
                for (int64_t i = begin; i < begin + length; i++)
                    assert_int_equal(seen[i]++, 0);
            }
        }
        free(seen);
        windows_destroy(&windows);
    }
}

/* Epochs and seeds have orders and shifts of their own, and a place can be asked for at any time.
 */
static void test_what_is_drawn_depends_on_the_place_alone(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    struct windows windows = make_windows(1000, 10, 5), other = make_windows(1000, 10, 6);
    int64_t begins[COUNT];
    int same_epoch = 0, same_seed = 0;
    for (int64_t n = 0; n < COUNT; n++) {
        begins[n] = windows_begin(&windows, n);
        same_epoch += n >= windows.count && begins[n] == begins[n - windows.count];
        same_seed += begins[n] == windows_begin(&other, n);
    }
    assert_true(same_epoch < COUNT / 10 && same_seed < COUNT / 10);
    for (int64_t n = COUNT - 1; n >= 0; n -= 7)
        assert_int_equal(windows_begin(&windows, n), begins[n]);
    windows_destroy(&windows);
    windows_destroy(&other);
}

/* No place in the text is left out for good: every token begins a window sooner or later. */
static void test_every_token_comes_to_every_place(void **state)
{
    (void)state;
    struct windows windows = make_windows(50, 5, 1);
    bool begun[50] = {false};
    for (int64_t n = 0; n < 9 * 400; n++)
        begun[windows_begin(&windows, n)] = true;
    for (int i = 0; i <= 45; i++)
        assert_true(begun[i]);
    windows_destroy(&windows);
}

static void test_refusals(void **state)
{
    (void)state;
    struct windows windows;
    struct attn_error error;
    assert_false(windows_create(&windows, 9, 10, 1, &error));
    assert_message(&error, "9 tokens");
    assert_false(windows_create(&windows, (int64_t)1 << 40, 2, 1, &error));
    assert_message(&error, "windows");
}

static bool create_and_destroy(void *user, struct attn_error *error)
{
    struct windows windows;
    (void)user;
    if (!windows_create(&windows, 100, 10, 1, error))
        return false;
    windows_destroy(&windows);
    return true;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    assert_int_equal(allocation_sweep(create_and_destroy, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_epoch_takes_each_once),
        cmocka_unit_test(test_what_is_drawn_depends_on_the_place_alone),
        cmocka_unit_test(test_every_token_comes_to_every_place),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
