#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "self_attention_learner.h"

/* 4, 1 and 7 tokens, and a sequence without any. */
static const int64_t starts[] = {0, 4, 5, 5, 12};

static const struct learner_settings plain = {
    .width = 10, .heads = 3, .d = 4, .batch = {4, starts}};

static const struct attention_dropout third = {0.3f, 77, 0};

/* The same seed draws the same, another one other weights; a rate of 0 none, and of 1 all. */
static void test_dropout_seed(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    const struct attention_dropout dropouts[] = {
        third, third, {0.3f, 78, 0}, {0.3f, 77, 1}, {0.0f, 77, 0}, {0.0f, 0, 0}, {1.0f, 77, 0}};
    enum { RUNS = sizeof dropouts / sizeof dropouts[0] };
    float *gradients[RUNS], y[RUNS][12 * 10];
    for (int n = 0; n < RUNS; n++) {
        struct learner_settings settings = plain;
        settings.dropout = dropouts[n];
        struct learner learner = make_learner(&settings);
        learner_step(&compute, &learner);
        gradients[n] = learner_gradients(&learner);
        memcpy(y[n], learner.y, sizeof y[n]);
        if (n == 6)
            for (int64_t i = 0; i < 12 * 10; i++)
                assert_true(y[n][i] == learner.layer.output.bias[i % 10]);
        if (n == 1 || n == 5) {
            assert_memory_equal(y[n], y[n - 1], sizeof y[n]);
            assert_memory_equal(gradients[n], gradients[n - 1],
                                (size_t)learner.number_count * sizeof(float));
        } else if (n > 0) {
            assert_memory_not_equal(y[n], y[n - 1], sizeof y[n]);
        }
        free_learner(&learner);
    }
    for (int n = 0; n < RUNS; n++)
        free(gradients[n]);
    compute_destroy(&compute);
}

/* A batch in two parts, the second ADDed and told where it begins: what the whole batch gives. */
static void test_dropout_of_parts(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    struct learner_settings settings = plain;
    settings.dropout = third;
    struct learner whole = make_learner(&settings);
    learner_step(&compute, &whole);
    float *expected = learner_gradients(&whole);

    const int64_t first_starts[] = {0, 4, 5}, second_starts[] = {0, 0, 7};
    struct learner parts = make_learner(&settings);
    struct attn_error error;
    float *const x = parts.x, *const y = parts.y, *const dy = parts.dy, *const dx = parts.dx;
    for (int n = 0; n < 2; n++) {
        const int64_t first = n == 0 ? 0 : 5 * settings.width;
        parts.settings.batch = (struct packed_batch){2, n == 0 ? first_starts : second_starts};
        parts.settings.dropout.first_sequence = 2 * n;
        parts.x = x + first, parts.y = y + first, parts.dy = dy + first, parts.dx = dx + first;
        learner_set_mode(&parts, n == 0 ? GRADIENT_SET : GRADIENT_ADD);
        assert_true(learner_forward(&compute, &parts, &error));
        assert_true(learner_backward(&compute, &parts, GRADIENT_SET, &error));
    }
    parts.x = x, parts.y = y, parts.dy = dy, parts.dx = dx;
    float *found = learner_gradients(&parts);
    assert_near(y, whole.y, (size_t)(12 * settings.width), 1e-6);
    assert_near(found, expected, (size_t)whole.number_count, 1e-5);
    free(found);
    free(expected);
    free_learner(&parts);
    free_learner(&whole);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropout_seed),
        cmocka_unit_test(test_dropout_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
