/* Dropout and batches in parts: what a whole batch draws its parts draw, and what flows back knows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden_language.h"
#include "model/language_pass.h"

static const char *const names[] = {"gpt2", "bert"};
enum { NAMES = 2 };

/* The sequences from `first` on, `count` of them, as a batch of its own. */
static struct language_batch part_of(const struct golden_language *golden, int64_t first,
                                     int64_t count, int64_t starts[])
{
    const int64_t begin = golden->starts[first];
    for (int64_t n = 0; n <= count; n++)
        starts[n] = golden->starts[first + n] - begin;
    return (struct language_batch){{count, starts}, golden->ids + begin, golden->labels + begin};
}

/* Learns the batch as two parts cut behind `cut` sequences, the second said to begin at `told`. */
static struct cross_entropy learn_parts(const struct golden_language *golden,
                                        const struct compute *compute,
                                        struct language_model_step step, int64_t cut, int64_t told)
{
    int64_t starts[2][8];
    const struct language_batch first = part_of(golden, 0, cut, starts[0]);
    const struct language_batch second =
        part_of(golden, cut, golden->batch.batch.sequences - cut, starts[1]);
    struct cross_entropy sum = golden_language_learn(golden, compute, &first, &step);
    step.first_sequence = told;
    step.first_token = golden->starts[told];
    step.mode = GRADIENT_ADD;
    const struct cross_entropy rest = golden_language_learn(golden, compute, &second, &step);
    sum.loss += rest.loss;
    sum.counts += rest.counts;
    return sum;
}

static void test_parts_are_the_whole(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++)
        for (int dropout = 0; dropout < 2; dropout++) {
            struct golden_language golden = golden_language_open(names[n]);
            language_model_set_dropout(golden.model, dropout ? 0.3f : 0.0f);
            const struct language_model_step step = golden_language_step(&golden);
            const struct cross_entropy whole =
                golden_language_learn(&golden, &compute, &golden.batch, &step);
            float *gradients = golden_language_copy_gradients(&golden);
            for (int64_t cut = 1; cut < golden.batch.batch.sequences; cut++) {
                const struct cross_entropy sum = learn_parts(&golden, &compute, step, cut, cut);
                assert_int_equal(sum.counts, whole.counts);
                assert_true(fabs(sum.loss - whole.loss) <= 1e-6 * whole.loss);
                assert_true(golden_language_distance(&golden, gradients) <= 1e-6);
            }
            /* A part that draws from the begin draws something else. */
            const struct cross_entropy other = learn_parts(&golden, &compute, step, 2, 0);
            assert_true((fabs(other.loss - whole.loss) > 1e-3) == (dropout == 1));
            free(gradients);
            golden_language_close(&golden);
        }
    compute_destroy(&compute);
}

/* L along the gradient: (L(w + εg) − L(w − εg)) / 2ε = |g|², with one mask of dropout. */
static void gradient_is_a_slope(const struct compute *compute)
{
    for (int n = 0; n < NAMES; n++)
        for (int dropout = 0; dropout < 2; dropout++) {
            struct golden_language golden = golden_language_open(names[n]);
            language_model_set_dropout(golden.model, dropout ? 0.3f : 0.0f);
            const struct language_model_step step = golden_language_step(&golden);
            golden_language_learn(&golden, compute, &golden.batch, &step);
            float *gradients = golden_language_copy_gradients(&golden);
            const struct parameters *parameters = language_model_parameters(golden.model);
            double square = 0.0;
            for (int64_t i = 0; i < parameters->count; i++)
                square += (double)gradients[i] * (double)gradients[i];

            const double width = 1e-3 / sqrt(square);
            double losses[2];
            float *values = malloc((size_t)parameters->count * sizeof *values);
            assert_non_null(values);
            memcpy(values, parameters->values, (size_t)parameters->count * sizeof *values);
            for (int side = 0; side < 2; side++) {
                for (int64_t i = 0; i < parameters->count; i++)
                    parameters->values[i] =
                        values[i] + (float)((side ? width : -width) * (double)gradients[i]);
                losses[side] = golden_language_learn(&golden, compute, &golden.batch, &step).loss;
            }
            const double slope =
                (losses[1] - losses[0]) / (2.0 * width) / (double)golden.sum.counts;
            if (!(fabs(slope - square) <= 2e-3 * square))
                fail_msg("%s: the slope is %g, the gradient's square %g", names[n], slope, square);
            free(values);
            free(gradients);
            golden_language_close(&golden);
        }
}

static void test_gradient_is_a_slope(void **state)
{
    (void)state;
    each_isa(1, gradient_is_a_slope);
}

static void test_dropout_follows_its_seed(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    for (int n = 0; n < NAMES; n++) {
        struct golden_language golden = golden_language_open(names[n]);
        struct language_model_step step = golden_language_step(&golden);
        const double none = golden_language_learn(&golden, &compute, &golden.batch, &step).loss;
        language_model_set_dropout(golden.model, 0.1f);
        const double first = golden_language_learn(&golden, &compute, &golden.batch, &step).loss;
        assert_true(golden_language_learn(&golden, &compute, &golden.batch, &step).loss == first);
        step.dropout_seed++;
        const double second = golden_language_learn(&golden, &compute, &golden.batch, &step).loss;
        assert_true(first != none && second != none && first != second);

        /* Evaluation has none, and has the bits of learning without. */
        struct cross_entropy sum = {0};
        struct attn_error error;
        assert_true(language_model_evaluate(golden.model, &compute, &golden.batch, &sum, &error));
        assert_true(sum.loss == none);
        golden_language_close(&golden);
    }
    compute_destroy(&compute);
}

/* No two places of the network have one mask, whatever layer they are in. */
static void test_places_draw_apart(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    struct golden_language golden = golden_language_open("gpt2");
    language_model_set_dropout(golden.model, 0.5f);
    const struct language_model_step step = golden_language_step(&golden);
    struct language_pass pass = {
        .compute = &compute, .model = golden.model, .tokens = 8, .step = &step};
    enum { NUMBERS = 8 * 16, PLACES = 5 };
    const struct {
        int64_t layer;
        enum pass_place place;
    } places[PLACES] = {{-1, PASS_EMBEDDINGS},
                        {0, PASS_ATTENTION},
                        {0, PASS_FEED_FORWARD},
                        {1, PASS_ATTENTION},
                        {1, PASS_FEED_FORWARD}};
    float masks[PLACES][NUMBERS];
    for (int n = 0; n < PLACES; n++) {
        for (int i = 0; i < NUMBERS; i++)
            masks[n][i] = 1.0f;
        pass_dropout(&pass, places[n].layer, places[n].place, masks[n]);
        for (int m = 0; m < n; m++) {
            int same = 0;
            for (int i = 0; i < NUMBERS; i++)
                same += masks[n][i] == masks[m][i];
            assert_true(same > NUMBERS / 4 && same < NUMBERS * 3 / 4);
        }
    }
    golden_language_close(&golden);
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_the_whole),
        cmocka_unit_test(test_gradient_is_a_slope),
        cmocka_unit_test(test_dropout_follows_its_seed),
        cmocka_unit_test(test_places_draw_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
