/* Stored types as src/format and as the kernels know them: the same blocks of the same bytes. */
#include "cmocka_test.h"
#include "model/causal_parts.h"

static void test_blocks_agree(void **state)
{
    (void)state;
    int found[ATTN_MATRIX_TYPES] = {0};
    for (int n = 0; n < STORED_TYPES; n++) {
        const enum stored_type stored = (enum stored_type)n;
        enum attn_matrix_type type;
        if (!causal_matrix_type(stored, &type)) {
            assert_int_equal(stored_type_block(stored), 1); /* no type of blocks is left out */
            continue;
        }
        found[type]++;
        assert_int_equal(stored_type_block(stored), attn_matrix_block(type));
        assert_int_equal(stored_type_size(stored), attn_matrix_block_bytes(type));
        assert_true(attn_matrix_block(type) <= ATTN_MATRIX_LARGEST_BLOCK);
    }
    for (int type = 0; type < ATTN_MATRIX_TYPES; type++)
        assert_int_equal(found[type], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
