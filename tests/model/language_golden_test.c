/* Losses, gradients and logits of small models against PyTorch's, on every instruction set. */
#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden_language.h"

static const char *const names[] = {"gpt2", "bert"};
static const char *name; /* of the model that a walk over the instruction sets is about */

static void assert_sum(const struct cross_entropy *sum, const struct cross_entropy *expected)
{
    assert_int_equal(sum->counts, expected->counts);
    if (!(fabs(sum->loss - expected->loss) <= 2e-6 * expected->loss))
        fail_msg("%s: the loss is %.9g, expected %.9g", name, sum->loss, expected->loss);
}

static void gradients(const struct compute *compute)
{
    struct golden_language golden = golden_language_open(name);
    const struct language_model_step step = golden_language_step(&golden);
    struct cross_entropy sum = {0};
    struct attn_error error;
    if (!language_model_learn(golden.model, compute, &golden.batch, &step, &sum, &error))
        fail_msg("%s", error.message);
    assert_sum(&sum, &golden.sum);
    golden_language_check_gradients(&golden);
    golden_language_close(&golden);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        name = names[n];
        each_isa(2, gradients);
    }
}

static void losses_and_logits(const struct compute *compute)
{
    struct golden_language golden = golden_language_open(name);
    struct cross_entropy sum = {0};
    struct attn_error error;
    assert_true(language_model_evaluate(golden.model, compute, &golden.batch, &sum, &error));
    assert_sum(&sum, &golden.sum);
    float *logits = calloc((size_t)golden.vocabulary, sizeof *logits);
    for (int64_t n = 0; n < golden.batch.batch.sequences; n++) {
        float *expected = golden_language_logits(&golden, n);
        assert_true(language_model_next(golden.model, compute, golden.ids + golden.starts[n],
                                        packed_batch_length(&golden.batch.batch, n), logits,
                                        &error));
        assert_near(logits, expected, (size_t)golden.vocabulary, 1e-5);
        free(expected);
    }
    free(logits);
    golden_language_close(&golden);
}

static void test_losses_and_logits(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        name = names[n];
        each_isa(1, losses_and_logits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_losses_and_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
