#include <math.h>

#include "cmocka_test.h"
#include "train/random.h"

/* The known answers of the generator's authors (Random123, kat_vectors). */
static void test_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t key[2], counter[4], words[4];
    } known[] = {
        {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0xa4093822, 0x299f31d0},
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t words[4];
        random_philox(known[i].key, known[i].counter, words);
        assert_memory_equal(words, known[i].words, sizeof words);
    }
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
        {1, RANDOM_ORDER, 0, 1LL << 32}, {1, RANDOM_SAMPLE, 0, 0},
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
