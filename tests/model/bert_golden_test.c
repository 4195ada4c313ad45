/* The default model against PyTorch's eager attention: see scripts/golden_bert.py. */
#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden.h"
#include "model/bert.h"

struct run {
    struct golden golden;
    struct bert *model;
};

static int open_run(void **state)
{
    static struct run run;
    run = (struct run){golden_read(), golden_open_model()};
    *state = &run;
    return 0;
}

static int close_run(void **state)
{
    struct run *run = *state;
    bert_close(run->model);
    golden_free(&run->golden);
    return 0;
}

/* The weights of one layer, compared where the golden has something to say. */
struct comparison {
    const struct golden *golden;
    const struct golden_text *text;
    float *weights; /* [heads][tokens][tokens] */
    size_t rows_compared;
};

static bool compare_layer(void *user, int64_t layer, const struct compute *compute,
                          const struct attention_record *record, struct attn_error *error)
{
    (void)error;
    struct comparison *comparison = user;
    const struct golden *golden = comparison->golden;
    const int64_t tokens = comparison->text->tokens;
    attn_tensor all =
        attn_tensor_packed(comparison->weights, ATTN_F32, 1, golden->heads, tokens, tokens);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &all),
                     ATTN_SUCCESS);

    for (int64_t head = 0; head < golden->heads; head++) {
        const float *weights = comparison->weights + head * tokens * tokens;
        double squares = 0.0;
        for (int64_t n = 0; n < tokens * tokens; n++)
            squares += (double)weights[n] * (double)weights[n];
        squares /= (double)tokens;
        double expected = (double)comparison->text->square_sums[layer * golden->heads + head];
        assert_true(fabs(squares - expected) <= 2e-5);
    }

    const json_t *rows = case_field(comparison->text->entry, "attention", NULL);
    for (size_t n = 0; n < json_array_size(rows); n++) {
        const json_t *row = json_array_get(rows, n);
        if (json_integer_value(case_field(row, "layer", NULL)) != layer)
            continue;
        int64_t head = json_integer_value(case_field(row, "head", NULL));
        int64_t query = json_integer_value(case_field(row, "query", NULL));
        assert_near(comparison->weights + (head * tokens + query) * tokens,
                    golden_numbers(golden, row, (size_t)tokens), (size_t)tokens, 1e-5);
        comparison->rows_compared++;
    }
    return true;
}

static void compare_text(const struct run *run, const struct compute *compute, size_t index)
{
    const struct golden *golden = &run->golden;
    struct golden_text text = golden_text_at(golden, index);
    const size_t tokens = (size_t)text.tokens;
    float *hidden = malloc(tokens * (size_t)golden->hidden * sizeof *hidden);
    struct comparison comparison = {
        .golden = golden,
        .text = &text,
        .weights = malloc((size_t)golden->heads * tokens * tokens * sizeof(float)),
    };
    assert_true(hidden && comparison.weights);

    const int64_t starts[] = {0, text.tokens};
    const struct bert_input input = {.batch = {1, starts}, .ids = text.ids, .types = text.types};
    const struct model_observer observer = {compare_layer, &comparison, NULL};
    struct attn_error error;
    assert_true(bert_forward(run->model, compute, &input, hidden, &observer, &error));
    assert_int_equal(comparison.rows_compared,
                     json_array_size(case_field(text.entry, "attention", NULL)));

    const json_t *rows = case_field(text.entry, "hidden", NULL);
    for (size_t n = 0; n < json_array_size(rows); n++) {
        const json_t *row = json_array_get(rows, n);
        int64_t token = json_integer_value(case_field(row, "row", NULL));
        assert_near(hidden + token * golden->hidden,
                    golden_numbers(golden, row, (size_t)golden->hidden), (size_t)golden->hidden,
                    1e-4);
    }
    free(hidden);
    free(comparison.weights);
    golden_text_free(&text);
}

static const struct run *current; /* each_isa takes no argument for its body */

static void compare_all_texts(const struct compute *compute)
{
    for (size_t n = 0; n < current->golden.texts; n++)
        compare_text(current, compute, n);
}

static void test_hidden_states_and_weights(void **state)
{
    current = *state;
    struct compute compute = make_compute(1);
    compare_all_texts(&compute);
    compute_destroy(&compute);
}

/* On every instruction set, with the texts that are short enough for the slowest. */
static void compare_short_texts(const struct compute *compute)
{
    for (size_t n = 0; n < 5; n++)
        compare_text(current, compute, n);
}

static void test_every_isa(void **state)
{
    current = *state;
    each_isa(1, compare_short_texts);
}

/* All texts in one batch, without padding, in the order that they come in. */
static void test_batch_equals_each_alone(void **state)
{
    const struct run *run = *state;
    const size_t count = run->golden.texts, width = (size_t)run->golden.hidden;
    int64_t *starts = calloc(count + 1, sizeof *starts);
    assert_non_null(starts);
    for (size_t n = 0; n < count; n++) {
        struct golden_text text = golden_text_at(&run->golden, n);
        starts[n + 1] = starts[n] + text.tokens;
        golden_text_free(&text);
    }
    const size_t tokens = (size_t)starts[count];
    int32_t *ids = calloc(tokens, sizeof *ids), *types = calloc(tokens, sizeof *ids);
    float *together = malloc(tokens * width * sizeof *together);
    float *alone = malloc(tokens * width * sizeof *alone);
    assert_true(ids && types && together && alone);
    int64_t token = 0;
    for (size_t n = 0; n < count; n++) {
        struct golden_text text = golden_text_at(&run->golden, n);
        for (int64_t t = 0; t < text.tokens; t++, token++) {
            ids[token] = text.ids[t];
            types[token] = text.types[t];
        }
        golden_text_free(&text);
    }

    struct compute compute = make_compute(1);
    struct attn_error error;
    const struct bert_input all = {.batch = {(int64_t)count, starts}, .ids = ids, .types = types};
    assert_true(bert_forward(run->model, &compute, &all, together, NULL, &error));
    for (size_t n = 0; n < count; n++) {
        const int64_t begin = starts[n], one_starts[] = {0, starts[n + 1] - begin};
        const struct bert_input one = {
            .batch = {1, one_starts}, .ids = ids + begin, .types = types + begin};
        assert_true(bert_forward(run->model, &compute, &one, alone, NULL, &error));
        assert_near(together + (size_t)begin * width, alone, (size_t)one_starts[1] * width, 1e-5);
    }
    compute_destroy(&compute);
    free(starts);
    free(ids);
    free(types);
    free(together);
    free(alone);
}

int main(void)
{
    if (!golden_model_directory())
        return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden_states_and_weights),
        cmocka_unit_test(test_every_isa),
        cmocka_unit_test(test_batch_equals_each_alone),
    };
    return cmocka_run_group_tests(tests, open_run, close_run);
}
