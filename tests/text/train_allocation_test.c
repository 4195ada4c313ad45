/* Each allocation of a training fails in turn: a message, and nothing leaks. */
#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "text/tokenizer_train.h"

static const char text[] = "the cat sat on the mat, the rat sat on the cat; the caf\xC3\xA9 sat "
                           "uneasily beside a hundred rather different words 1234567890";

static bool train_bytes(void *user, struct attn_error *error)
{
    struct attn_buffer json = {0};
    bool done = byte_pair_train(text, sizeof text - 1, *(const int32_t *)user, &json, error);
    attn_buffer_release(&json);
    return done;
}

static bool train_words(void *user, struct attn_error *error)
{
    struct attn_buffer json = {0};
    bool done = word_piece_train(text, sizeof text - 1, *(const int32_t *)user, &json, error);
    attn_buffer_release(&json);
    return done;
}

static void test_bytes(void **state)
{
    (void)state;
    int32_t size = 290;
    assert_true(allocation_sweep(train_bytes, &size) > 10);
}

static void test_words(void **state)
{
    (void)state;
    int32_t size = 100;
    assert_true(allocation_sweep(train_words, &size) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
