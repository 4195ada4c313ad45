#include <math.h>

#include "cmocka_test.h"
#include "train/sample.h"

enum { COUNT = 6 };

/* By rank: 3, 1, 4, 0, 5, 2; equal logits keep their order. */
static const float logits[COUNT] = {0.5f, 2.0f, -INFINITY, 3.0f, 2.0f, 0.25f};

static int32_t draw(double temperature, int64_t top, double chance)
{
    int32_t places[COUNT];
    return sample_draw(logits, COUNT, temperature, top, chance, places);
}

static void test_the_likeliest_of_one(void **state)
{
    (void)state;
    for (double chance = 0.0; chance < 1.0; chance += 0.1)
        assert_int_equal(draw(1.0, 1, chance), 3);
}

static void test_the_order_of_the_top(void **state)
{
    (void)state;
    /* Probabilities of 3, 1, 4 at temperature 1: e^0, e^-1, e^-1 over their sum. */
    double sum = 1.0 + 2.0 * exp(-1.0);
    assert_int_equal(draw(1.0, 3, 0.0), 3);
    assert_int_equal(draw(1.0, 3, 1.0 / sum - 1e-6), 3);
    assert_int_equal(draw(1.0, 3, 1.0 / sum + 1e-6), 1);
    assert_int_equal(draw(1.0, 3, (1.0 + exp(-1.0)) / sum + 1e-6), 4);
    assert_int_equal(draw(1.0, 3, 0.999999), 4);
}

static void test_shares(void **state)
{
    (void)state;
    enum { DRAWS = 100000 };
    int counts[COUNT] = {0};
    const double temperature = 0.8;
    double sum = 0.0;
    for (int i = 0; i < DRAWS; i++)
        counts[draw(temperature, 100, (i + 0.5) / DRAWS)]++;
    for (int i = 0; i < COUNT; i++)
        sum += exp((double)logits[i] / temperature);
    for (int i = 0; i < COUNT; i++) {
        double expected = exp((double)logits[i] / temperature) / sum * DRAWS;
        assert_true(fabs(counts[i] - expected) <= 2.0);
    }
    assert_int_equal(counts[2], 0);
}

static void test_cold_is_greedy_and_nan_comes_last(void **state)
{
    (void)state;
    assert_int_equal(draw(1e-3, COUNT, 0.99), 3);
    const float with_nan[3] = {NAN, 1.0f, NAN};
    int32_t places[3];
    assert_int_equal(sample_draw(with_nan, 3, 1.0, 1, 0.5, places), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_likeliest_of_one),
        cmocka_unit_test(test_the_order_of_the_top),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_cold_is_greedy_and_nan_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
