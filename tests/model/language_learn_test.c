/* Laws of learning: threads, blocks, memory, what is told when, and what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden_language.h"
#include "model/language_parts.h"

static const char *const names[] = {"gpt2", "bert"};
enum { NAMES = 2 };

static int64_t parameter_count(const struct golden_language *golden)
{
    return language_model_parameters(golden->model)->count;
}

static void test_threads_do_not_change_bits(void **state)
{
    (void)state;
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        language_model_set_dropout(golden.model, 0.2f);
        const struct language_model_step step = golden_language_step(&golden);
        float *gradients = NULL;
        double loss = 0.0;
        for (int threads = 1; threads <= 4; threads++) {
            struct compute compute = make_compute(threads);
            const double found =
                golden_language_learn(&golden, &compute, &golden.batch, &step).loss;
            if (!gradients) {
                gradients = golden_language_copy_gradients(&golden);
                loss = found;
            }
            assert_true(found == loss);
            assert_memory_equal(language_model_parameters(golden.model)->gradients, gradients,
                                (size_t)parameter_count(&golden) * sizeof(float));
            compute_destroy(&compute);
        }
        free(gradients);
        golden_language_close(&golden);
    }
}

/* What `ready` was told, and the gradients as they were then. */
struct told {
    const struct parameters *parameters;
    float *gradients;
    int *times; /* how often each was told */
    int64_t largest_end, calls;
};

static void hear(void *user, int64_t begin, int64_t count)
{
    struct told *told = user;
    assert_true(begin >= 0 && count > 0 && begin + count <= told->parameters->count);
    memcpy(told->gradients + begin, told->parameters->gradients + begin,
           (size_t)count * sizeof(float));
    for (int64_t i = begin; i < begin + count; i++)
        told->times[i]++;
    told->calls++;
}

static void test_ready_means_final(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        struct language_model_step step = golden_language_step(&golden);
        const struct parameters *parameters = language_model_parameters(golden.model);
        struct told told = {
            .parameters = parameters,
            .gradients = calloc((size_t)parameters->count, sizeof(float)),
            .times = calloc((size_t)parameters->count, sizeof(int)),
        };
        step.ready = hear;
        step.user = &told;
        golden_language_learn(&golden, &compute, &golden.batch, &step);
        assert_int_equal(told.calls, 4); /* head, two layers, embeddings */
        for (int64_t i = 0; i < parameters->count; i++)
            assert_int_equal(told.times[i], 1);
        assert_memory_equal(told.gradients, parameters->gradients,
                            (size_t)parameters->count * sizeof(float));
        free(told.gradients);
        free(told.times);
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

/* No label at all: no loss, and gradients that are 0 or stay as they were. */
static void test_without_labels(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        struct language_model_step step = golden_language_step(&golden);
        const struct parameters *parameters = language_model_parameters(golden.model);
        struct language_batch batch = golden.batch;
        int32_t ignored[64];
        for (int t = 0; t < 64; t++)
            ignored[t] = CROSS_ENTROPY_IGNORE;
        batch.labels = ignored;

        golden_language_learn(&golden, &compute, &golden.batch, &step);
        float *gradients = golden_language_copy_gradients(&golden);
        step.mode = GRADIENT_ADD;
        struct cross_entropy sum = golden_language_learn(&golden, &compute, &batch, &step);
        assert_true(sum.loss == 0.0 && sum.counts == 0);
        assert_memory_equal(parameters->gradients, gradients,
                            (size_t)parameters->count * sizeof(float));
        step.mode = GRADIENT_SET;
        golden_language_learn(&golden, &compute, &batch, &step);
        for (int64_t i = 0; i < parameters->count; i++)
            assert_true(parameters->gradients[i] == 0.0f);
        free(gradients);
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

/* Logits are made in blocks of rows, here much smaller ones than a vocabulary of this size asks
 * for. */
static void test_logits_in_blocks(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        const struct language_model_step step = golden_language_step(&golden);
        const struct cross_entropy whole =
            golden_language_learn(&golden, &compute, &golden.batch, &step);
        float *gradients = golden_language_copy_gradients(&golden);
        const int64_t rows[] = {1, 2, 7};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            golden.model->memory.logit_rows = rows[i];
            const struct cross_entropy sum =
                golden_language_learn(&golden, &compute, &golden.batch, &step);
            assert_int_equal(sum.counts, whole.counts);
            assert_true(fabs(sum.loss - whole.loss) <= 1e-6 * whole.loss);
            assert_true(golden_language_distance(&golden, gradients) <= 1e-6);
        }
        free(gradients);
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

/* Memory grows with the batches, and with the first that learns; results do not change with it. */
static void test_memory_grows(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        const struct language_model_step step = golden_language_step(&golden);
        struct language_memory *memory = &golden.model->memory;
        int64_t starts[200] = {0};
        int32_t ids[600], labels[600];
        for (int t = 0; t < 600; t++) {
            ids[t] = t * 7 % 19;
            labels[t] = t * 5 % 19;
        }
        for (int i = 1; i < 200; i++)
            starts[i] = 3 * i;
        const struct language_batch large = {{199, starts}, ids, labels};

        struct cross_entropy sums[3] = {{0}};
        struct attn_error error;
        assert_true(
            language_model_evaluate(golden.model, &compute, &golden.batch, &sums[0], &error));
        assert_false(memory->learning);
        const int64_t first = memory->tokens;
        sums[1] = golden_language_learn(&golden, &compute, &golden.batch, &step);
        assert_true(memory->learning && memory->tokens == first);
        float *gradients = golden_language_copy_gradients(&golden);
        golden_language_learn(&golden, &compute, &large, &step);
        assert_true(memory->tokens >= 597);
        sums[2] = golden_language_learn(&golden, &compute, &golden.batch, &step);
        assert_memory_equal(language_model_parameters(golden.model)->gradients, gradients,
                            (size_t)parameter_count(&golden) * sizeof(float));
        assert_true(sums[0].loss == sums[1].loss && sums[1].loss == sums[2].loss);
        free(gradients);
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

static void test_refused(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct golden_language golden = golden_language_open("gpt2");
    const struct language_model_step step = golden_language_step(&golden);
    const int64_t two[] = {0, 2}, long_one[] = {0, 13}, empty[] = {0, 2, 2};
    const int32_t good[13] = {0}, high[] = {0, 23}, negative[] = {-1, 0}, minus_4[] = {0, -4};
    const struct {
        struct language_batch batch;
        const char *message;
    } cases[] = {
        {{{1, two}, high, good}, "token id 23 is outside the model's vocabulary of 23 (token 1"},
        {{{1, two}, negative, good},
         "token id -1 is outside the model's vocabulary of 23 (token 0"},
        {{{1, two}, good, high}, "label 23 of token 1 is outside the model's vocabulary of 23"},
        {{{1, two}, good, minus_4}, "label -4 of token 1"},
        {{{1, long_one}, good, good}, "a text has 13 tokens, the model has 12 positions"},
        {{{2, empty}, good, good}, "a text has no token"},
        {{{0, two}, good, good}, "the batch has no text"},
    };
    golden_language_learn(&golden, &compute, &golden.batch, &step);
    float *gradients = golden_language_copy_gradients(&golden);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct cross_entropy sum = {1.0, 2};
        struct attn_error error;
        assert_false(
            language_model_learn(golden.model, &compute, &cases[n].batch, &step, &sum, &error));
        assert_message(&error, cases[n].message);
        assert_false(
            language_model_evaluate(golden.model, &compute, &cases[n].batch, &sum, &error));
        assert_message(&error, cases[n].message);
        assert_true(sum.loss == 1.0 && sum.counts == 2);
    }
    assert_memory_equal(language_model_parameters(golden.model)->gradients, gradients,
                        (size_t)parameter_count(&golden) * sizeof(float));
    float logits[23];
    struct attn_error error;
    assert_false(language_model_next(golden.model, &compute, good, 0, logits, &error));
    assert_message(&error, "a text has no token");
    free(gradients);
    golden_language_close(&golden);
    compute_destroy(&compute);
}

static void test_times_are_told(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct golden_language golden = golden_language_open("gpt2");
    struct language_model_times times = {0};
    struct language_model_step step = golden_language_step(&golden);
    step.times = &times;
    golden_language_learn(&golden, &compute, &golden.batch, &step);
    const struct language_model_times first = times;
    assert_true(first.attention > 0.0 && first.linear > 0.0 && first.rest > 0.0);
    golden_language_learn(&golden, &compute, &golden.batch, &step);
    assert_true(times.attention > first.attention && times.linear > first.linear &&
                times.rest > first.rest);
    golden_language_close(&golden);
    compute_destroy(&compute);
}

/* A weight that is not a number is one loss that is not: for the caller to see. */
static void test_nan_reaches_the_loss(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        const struct language_model_step step = golden_language_step(&golden);
        const struct parameters *parameters = language_model_parameters(golden.model);
        parameters->values[parameters->items[parameters->item_count / 2].begin] = NAN;
        assert_true(isnan(golden_language_learn(&golden, &compute, &golden.batch, &step).loss));
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_change_bits),
        cmocka_unit_test(test_ready_means_final),
        cmocka_unit_test(test_without_labels),
        cmocka_unit_test(test_logits_in_blocks),
        cmocka_unit_test(test_memory_grows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_times_are_told),
        cmocka_unit_test(test_nan_reaches_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
