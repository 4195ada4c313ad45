/* SplitMix64 against numbers that others have published (S. Vigna's generator, seed 1234567). */
#include "base/splitmix.h"

#include "cmocka_test.h"

static void test_known_answers(void **state)
{
    (void)state;
    static const uint64_t known[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                     UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                     UINT64_C(16408922859458223821)};
    for (uint64_t n = 0; n < sizeof known / sizeof known[0]; n++)
        assert_true(attn_splitmix(1234567 + (n + 1) * ATTN_SPLITMIX_STEP) == known[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
