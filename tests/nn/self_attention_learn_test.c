#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "each_thread_count.h"
#include "nn/self_attention_joined.h"
#include "self_attention_learner.h"

/* 4, 1 and 7 tokens, and a sequence without any. */
static const int64_t starts[] = {0, 4, 5, 5, 12};
enum { WIDTH = 10, ROWS = 12 * WIDTH };

static const struct learner_settings plain = {
    .width = WIDTH, .heads = 3, .d = 4, .batch = {4, starts}};

/* Σ dy∘y of the reference. */
static double reference_loss(const struct learner *learner, double *y)
{
    const struct packed_batch *batch = &learner->settings.batch;
    reference_self_attention(&learner->reference, batch,
                             learner->numbers + learner->begin[LEARNER_X], y);
    double sum = 0.0;
    for (int64_t n = 0; n < packed_batch_tokens(batch) * learner->settings.width; n++)
        sum += (double)learner->dy[n] * y[n];
    return sum;
}

/* The derivative of reference_loss by each number, from differences. */
static double *finite_differences(struct learner *learner)
{
    const int64_t rows = packed_batch_tokens(&learner->settings.batch) * learner->settings.width;
    double *gradient = malloc((size_t)(learner->number_count + rows) * sizeof *gradient);
    assert_non_null(gradient);
    double *y = gradient + learner->number_count;
    const double step = 1e-5;
    for (int64_t n = 0; n < learner->number_count; n++) {
        const double number = learner->numbers[n];
        learner->numbers[n] = number + step;
        const double above = reference_loss(learner, y);
        learner->numbers[n] = number - step;
        const double below = reference_loss(learner, y);
        learner->numbers[n] = number;
        gradient[n] = (above - below) / (2.0 * step);
    }
    return gradient;
}

/* ‖actual − expected‖ ≤ 1e-5·‖expected‖ for numbers begin..end−1. */
static void assert_numbers(const struct learner *learner, const double *expected, int64_t begin,
                           int64_t end)
{
    double error = 0.0, norm = 0.0;
    for (int64_t n = begin; n < end; n++) {
        const float actual = n < learner->begin[LEARNER_X]
                                 ? *learner_number(learner, LEARNER_GRADIENTS, n)
                                 : learner->dx[n - learner->begin[LEARNER_X]];
        error += pow((double)actual - expected[n], 2.0);
        norm += pow(expected[n], 2.0);
    }
    if (!(sqrt(error) <= 1e-5 * sqrt(norm)))
        fail_msg("arrangement %d: numbers %lld to %lld are off by %g of their norm",
                 (int)learner->settings.arrangement, (long long)begin, (long long)end,
                 sqrt(error / norm));
}

/* y of the reference and the gradients expected are those of any arrangement. */
static void follows_differences(const struct compute *compute,
                                const struct learner_settings *settings, const float *y,
                                const double *gradients)
{
    struct learner learner = make_learner(settings);
    learner_step(compute, &learner);
    assert_near(learner.y, y, ROWS, 1e-5);
    const int64_t *begin = learner.begin;
    for (int kind = 0; kind < LEARNER_BIASES; kind++)
        assert_numbers(&learner, gradients, begin[kind], begin[kind + 1]);
    /* The softmax does not see a key's bias, whose gradient is 0: the three count as one. */
    assert_numbers(&learner, gradients, begin[LEARNER_BIASES],
                   begin[LEARNER_BIASES + REFERENCE_OUTPUT]);
    assert_numbers(&learner, gradients, begin[LEARNER_BIASES + REFERENCE_OUTPUT], begin[LEARNER_X]);
    assert_numbers(&learner, gradients, begin[LEARNER_X], begin[LEARNER_END]);
    free_learner(&learner);
}

static void all_arrangements(const struct compute *compute)
{
    for (int n = 0; n < 4; n++) {
        struct learner_settings settings = plain;
        settings.sight = n % 2 ? SELF_ATTENTION_CAUSAL : SELF_ATTENTION_ALL;
        if (n / 2)
            settings.dropout = (struct attention_dropout){0.3f, UINT64_C(0x123456789a), 5};
        struct learner learner = make_learner(&settings);
        double y[ROWS], *gradients = finite_differences(&learner);
        float rounded[ROWS];
        reference_loss(&learner, y);
        for (int64_t row = 0; row < ROWS; row++)
            rounded[row] = (float)y[row];
        free_learner(&learner);
        for (settings.arrangement = 0; settings.arrangement < ARRANGEMENTS; settings.arrangement++)
            follows_differences(compute, &settings, rounded, gradients);
        free(gradients);
    }
}

static void test_finite_differences(void **state)
{
    (void)state;
    each_isa(2, all_arrangements);
}

/* y of learning and what self_attention_forward adds to a y of the output's bias are the same bits.
 */
static void learns_forward(const struct compute *compute)
{
    for (enum arrangement arrangement = 0; arrangement < ARRANGEMENTS; arrangement++) {
        struct learner_settings settings = plain;
        settings.arrangement = arrangement;
        settings.sight = SELF_ATTENTION_CAUSAL;
        struct learner learner = make_learner(&settings);
        learner_step(compute, &learner);
        const int64_t tokens = packed_batch_tokens(&settings.batch), width = settings.width;
        float *y = malloc((size_t)(tokens * width) * sizeof *y);
        assert_non_null(y);
        for (int64_t n = 0; n < tokens * width; n++)
            y[n] = learner.layer.output.bias[n % width];
        struct attn_error error;
        assert_true(self_attention_forward(compute, &learner.layer, &settings.batch, learner.x, y,
                                           learner.saved, NULL, &error));
        assert_memory_equal(y, learner.y, (size_t)(tokens * width) * sizeof *y);
        free(y);
        free_learner(&learner);
    }
}

static void test_learns_forward(void **state)
{
    (void)state;
    each_isa(2, learns_forward);
}

/* A second pass that adds doubles all; so does dx in place of dy, which is how a residual sum's
 * gradient comes about. */
static void test_added(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct attn_error error;
    for (enum arrangement arrangement = 0; arrangement < ARRANGEMENTS; arrangement++) {
        struct learner_settings settings = plain;
        settings.arrangement = arrangement;
        struct learner learner = make_learner(&settings);
        learner_step(&compute, &learner);
        float *once = learner_gradients(&learner);
        learner_set_mode(&learner, GRADIENT_ADD);
        assert_true(learner_backward(&compute, &learner, GRADIENT_ADD, &error));
        float *twice = learner_gradients(&learner);
        for (int64_t n = 0; n < learner.number_count; n++)
            assert_true(fabsf(twice[n] - 2.0f * once[n]) <= 1e-5f);

        const size_t rows = (size_t)(learner.number_count - learner.begin[LEARNER_X]);
        float *residual = malloc(rows * sizeof *residual);
        assert_non_null(residual);
        for (size_t n = 0; n < rows; n++)
            residual[n] = learner.dy[n] + once[learner.begin[LEARNER_X] + (int64_t)n];
        free(learner.dx);
        learner.dx = learner.dy;
        assert_true(learner_backward(&compute, &learner, GRADIENT_ADD, &error));
        assert_near(learner.dx, residual, rows, 1e-5);
        learner.dx = NULL;
        free(residual);
        free(twice);
        free(once);
        free_learner(&learner);
    }
    compute_destroy(&compute);
}

/* What is not wanted is not written, and the rest stays as it is. */
static void test_not_wanted(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct learner_settings settings = plain;
    settings.arrangement = PACKED;
    struct learner learner = make_learner(&settings);
    learner_step(&compute, &learner);
    float *wanted = learner_gradients(&learner);
    for (int64_t n = 0; n < learner.begin[LEARNER_X]; n++)
        *learner_number(&learner, LEARNER_GRADIENTS, n) = NAN;
    learner.gradient.key.weight = NULL;
    learner.gradient.query.bias = NULL;
    float *dx = learner.dx;
    learner.dx = NULL;
    struct attn_error error;
    assert_true(learner_backward(&compute, &learner, GRADIENT_SET, &error));
    learner.dx = dx;
    for (int64_t n = 0; n < learner.begin[LEARNER_X]; n++) {
        const float number = *learner_number(&learner, LEARNER_GRADIENTS, n);
        bool left_out = (n >= learner.begin[REFERENCE_KEY] && n < learner.begin[REFERENCE_VALUE]) ||
                        (n >= learner.begin[LEARNER_BIASES + REFERENCE_QUERY] &&
                         n < learner.begin[LEARNER_BIASES + REFERENCE_KEY]);
        if (left_out)
            assert_true(isnan(number));
        else
            assert_true(fabsf(number - wanted[n]) <= 1e-5f);
    }
    free(wanted);
    free_learner(&learner);
    compute_destroy(&compute);
}

/* Which arrangements are one product forward, and one backward. */
static void test_joined(void **state)
{
    (void)state;
    const bool forward[ARRANGEMENTS] = {
        [PACKED] = true, [PACKED_IN_OUT] = true, [PACKED_GRADIENTS_APART] = true};
    const bool backward[ARRANGEMENTS] = {[PACKED] = true, [PACKED_IN_OUT] = true};
    for (enum arrangement arrangement = 0; arrangement < ARRANGEMENTS; arrangement++) {
        struct learner_settings settings = plain;
        settings.arrangement = arrangement;
        struct learner learner = make_learner(&settings);
        struct joined_projection joined = self_attention_join(&learner.layer, &learner.gradient);
        assert_int_equal(joined.forward, forward[arrangement]);
        assert_int_equal(joined.backward, backward[arrangement]);
        assert_false(self_attention_join(&learner.layer, NULL).backward);

        /* Gradients that are written and added to are no sum of one product. */
        learner.gradient.value.mode = GRADIENT_ADD;
        assert_false(self_attention_join(&learner.layer, &learner.gradient).backward);
        free_learner(&learner);
    }
}

enum { LONG_WIDTH = 64, LONG_TOKENS = 260 };

static const int64_t long_starts[] = {0, 100, 130, 131, LONG_TOKENS};
static const struct learner_settings long_settings = {
    .arrangement = PACKED_IN_OUT,
    .width = LONG_WIDTH,
    .heads = 4,
    .d = 16,
    .sight = SELF_ATTENTION_CAUSAL,
    .batch = {4, long_starts},
    .dropout = {.rate = 0.3f, .seed = 77},
};

/* y, then all gradients. */
static void output_and_gradients(const struct compute *compute, float *result)
{
    struct learner learner = make_learner(&long_settings);
    learner_step(compute, &learner);
    float *gradients = learner_gradients(&learner);
    memcpy(result, learner.y, LONG_TOKENS * LONG_WIDTH * sizeof *result);
    memcpy(result + LONG_TOKENS * LONG_WIDTH, gradients,
           (size_t)learner.number_count * sizeof *result);
    free(gradients);
    free_learner(&learner);
}

static void test_threads(void **state)
{
    (void)state;
    struct learner learner = make_learner(&long_settings);
    const size_t count = LONG_TOKENS * LONG_WIDTH + (size_t)learner.number_count;
    free_learner(&learner);
    each_thread_count(count, output_and_gradients);
}

/* An allocator whose n-th request fails. */
struct failing {
    size_t until_failure;
    bool failed;
};

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    struct failing *failing = user;
    if (failing->until_failure-- == 0) {
        failing->failed = true;
        return NULL;
    }
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static void test_allocations_fail(void **state)
{
    (void)state;
    struct compute usual = make_compute(2);
    struct learner learner = make_learner(&plain);
    bool done = false;
    size_t told = 0;
    for (size_t n = 0; !done; n++) {
        struct failing failing = {.until_failure = n};
        attn_options options;
        attn_options_init(&options);
        options.threads = 2;
        options.allocate = allocate;
        options.release = release;
        options.user = &failing;
        struct compute compute = usual;
        if (attn_context_create(&compute.attention, &options) != ATTN_SUCCESS)
            continue;
        struct attn_error error = {""};
        done = learner_forward(&compute, &learner, &error) &&
               learner_backward(&compute, &learner, GRADIENT_SET, &error);
        assert_int_equal(done, !failing.failed);
        if (!done) {
            assert_message(&error, "attention: ");
            assert_message(&error, "memory");
            told++;
        }
        /* It stays usable. */
        failing.until_failure = SIZE_MAX;
        learner_step(&compute, &learner);
        attn_context_destroy(compute.attention);
    }
    assert_true(told >= 2); /* of the forward pass and of the backward pass */
    free_learner(&learner);
    compute_destroy(&usual);
}

static void test_refused(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct learner_settings settings = plain;
    struct learner learner = make_learner(&settings);
    learner_step(&compute, &learner);
    struct attn_error error;
    learner.settings.dropout.rate = 1.5f;
    assert_false(learner_forward(&compute, &learner, &error));
    assert_message(&error, "dropout");
    assert_false(learner_backward(&compute, &learner, GRADIENT_SET, &error));
    assert_message(&error, "dropout");
    free_learner(&learner);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_learns_forward),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_not_wanted),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_allocations_fail),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
