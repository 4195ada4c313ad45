#include <math.h>

#include "cmocka_test.h"
#include "train/random.h"

/* Where the arguments stand in counter and key: known answers of the generator's authors
 * (Random123, kat_vectors), whose last counter is no purpose of ours. */
static void test_known_answers(void **state)
{
    (void)state;
    uint32_t words[4];
    static const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    random_draw(0, RANDOM_ORDER, 0, 0, words);
    assert_memory_equal(words, zeros, sizeof words);
    static const uint32_t digits_of_pi[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    random_draw(0x299f31d0a4093822, (enum random_purpose)0x03707344, 0x13198a2e,
                (int64_t)0x85a308d3243f6a88, words);
    assert_memory_equal(words, digits_of_pi, sizeof words);
}

/* Every argument counts. */
static void test_draws_differ(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed;
        enum random_purpose purpose;
        int64_t a, b;
    } draws[] = {
        {1, RANDOM_ORDER, 0, 0},         {1ULL << 32, RANDOM_ORDER, 0, 0}, {1, RANDOM_SHIFT, 0, 0},
        {1, RANDOM_MASK, 0, 0},          {1, RANDOM_ORDER, 1, 0},          {1, RANDOM_ORDER, 0, 1},
        {1, RANDOM_ORDER, 0, 1LL << 32}, {1, RANDOM_FORCED_MASK, 0, 0},
    };
    enum { COUNT = sizeof draws / sizeof draws[0] };
    uint32_t words[COUNT][4];
    for (int i = 0; i < COUNT; i++) {
        random_draw(draws[i].seed, draws[i].purpose, draws[i].a, draws[i].b, words[i]);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(words[i], words[j], sizeof words[i]);
    }
}

static void test_below(void **state)
{
    (void)state;
    assert_int_equal(random_below(0, 7), 0);
    assert_int_equal(random_below(UINT32_MAX, 7), 6);
    assert_int_equal(random_below(UINT32_MAX, 1), 0);
    assert_int_equal(random_below(UINT32_MAX, 1LL << 32), UINT32_MAX);
    int counts[7] = {0};
    for (int64_t i = 0; i < 70000; i++) {
        uint32_t words[4];
        random_draw(3, RANDOM_ORDER, 0, i, words);
        counts[random_below(words[0], 7)]++;
    }
    for (int i = 0; i < 7; i++) /* five standard deviations */
        assert_true(fabs(counts[i] - 10000.0) <= 5.0 * 93.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_draws_differ),
        cmocka_unit_test(test_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
