#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/embedding_table.h"

enum { WORDS = 11, TOKENS = 40, WIDEST = 200 };

static void fill(float *numbers, size_t count, float turn)
{
    for (size_t n = 0; n < count; n++)
        numbers[n] = sinf((float)n * turn);
}

static void fill_ids(int32_t ids[TOKENS])
{
    for (int t = 0; t < TOKENS; t++)
        ids[t] = t * t % (WORDS - 1); /* many times the same, and never the last */
}

static void check_width(const struct compute *compute, int64_t width)
{
    static float table[WORDS * WIDEST], y[TOKENS * WIDEST], gradient[WORDS * WIDEST];
    int32_t ids[TOKENS];
    fill(table, (size_t)(WORDS * width), 0.7f);
    fill_ids(ids);
    for (int64_t n = 0; n < TOKENS * width; n++)
        y[n] = NAN;
    embedding_table_forward(compute, table, width, TOKENS, ids, y, GRADIENT_SET);
    for (int t = 0; t < TOKENS; t++)
        assert_memory_equal(y + t * width, table + ids[t] * width, (size_t)width * sizeof *y);
    embedding_table_forward(compute, table, width, TOKENS, ids, y, GRADIENT_ADD);
    for (int64_t n = 0; n < TOKENS * width; n++)
        assert_true(y[n] == 2.0f * table[ids[n / width] * width + n % width]);

    fill(y, (size_t)(TOKENS * width), 1.3f);
    fill(gradient, (size_t)(WORDS * width), 0.1f);
    embedding_table_backward(compute, width, TOKENS, ids, y, gradient);
    for (int64_t n = 0; n < WORDS * width; n++) {
        float sum = sinf((float)n * 0.1f); /* in the order of tokens, and so the same bits */
        for (int t = 0; t < TOKENS; t++)
            if (ids[t] == n / width)
                sum += y[t * width + n % width];
        assert_true(gradient[n] == sum);
    }
}

static void test_sizes(void **state)
{
    (void)state;
    const int64_t widths[] = {1, 7, 63, 64, 65, 128, WIDEST};
    struct compute compute = make_compute(3);
    for (size_t n = 0; n < sizeof widths / sizeof widths[0]; n++)
        check_width(&compute, widths[n]);
    compute_destroy(&compute);
}

static void backward(const struct compute *compute, float *gradient)
{
    static float dy[TOKENS * WIDEST];
    int32_t ids[TOKENS];
    fill_ids(ids);
    fill(dy, TOKENS * WIDEST, 1.3f);
    memset(gradient, 0, WORDS * WIDEST * sizeof *gradient);
    embedding_table_backward(compute, WIDEST, TOKENS, ids, dy, gradient);
}

static void test_threads_give_the_same_bits(void **state)
{
    (void)state;
    each_thread_count(WORDS * WIDEST, backward);
}

static void test_no_token(void **state)
{
    (void)state;
    float number = 3.0f;
    struct compute compute = make_compute(1);
    embedding_table_forward(&compute, &number, 1, 0, NULL, &number, GRADIENT_SET);
    embedding_table_backward(&compute, 1, 0, NULL, &number, &number);
    compute_destroy(&compute);
    assert_true(number == 3.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_threads_give_the_same_bits),
        cmocka_unit_test(test_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
