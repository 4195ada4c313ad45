/* Rows of heads in tiles, against the whole matrix. */
#include "probe/head_rows.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "each_isa.h"

enum { HEADS = 6, KEY_HEADS = 2, D = 8 };

/* What is expected next. */
struct walk {
    int64_t tokens, head, row;
    float *weights; /* [HEADS][tokens][tokens] */
};

static void begin(void *user, int64_t head)
{
    struct walk *walk = user;
    assert_int_equal(head, walk->head);
    walk->row = 0;
}

static void take(void *user, int64_t row, const float *weights)
{
    struct walk *walk = user;
    assert_int_equal(row, walk->row);
    walk->row++;
    assert_memory_equal(weights, walk->weights + (walk->head * walk->tokens + row) * walk->tokens,
                        (size_t)walk->tokens * sizeof *weights);
}

static void end(void *user, int64_t head)
{
    struct walk *walk = user;
    assert_int_equal(head, walk->head);
    assert_int_equal(walk->row, walk->tokens);
    walk->head++;
}

static float *make_numbers(int64_t count)
{
    float *numbers = calloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t n = 0; n < count; n++)
        numbers[n] = (float)(n * n * 31 % 97) / 32.0f - 1.5f;
    return numbers;
}

static void walk_through(const struct compute *compute, int64_t tokens, bool causal)
{
    float *q = make_numbers(HEADS * tokens * D), *k = make_numbers(KEY_HEADS * tokens * D);
    float *o = make_numbers(HEADS * tokens * D), *stats = make_numbers(HEADS * tokens * 2);
    float *tile = make_numbers(HEAD_ROWS_TILE * tokens);
    attn_params params;
    attn_params_init(&params);
    params.causal = causal;
    const struct attention_record record = {
        .params = &params,
        .q = attn_tensor_packed(q, ATTN_F32, 1, HEADS, tokens, D),
        .k = attn_tensor_packed(k, ATTN_F32, 1, KEY_HEADS, tokens, D),
        .v = attn_tensor_packed(k, ATTN_F32, 1, KEY_HEADS, tokens, D),
        .stats = attn_tensor_packed(stats, ATTN_F32, 1, HEADS, tokens, 2),
    };
    const attn_tensor output = attn_tensor_packed(o, ATTN_F32, 1, HEADS, tokens, D);
    assert_int_equal(attn_forward(compute->attention, &params, &record.q, &record.k, &record.v,
                                  &output, &record.stats),
                     ATTN_SUCCESS);
    struct walk walk = {.tokens = tokens, .weights = make_numbers(HEADS * tokens * tokens)};
    const attn_tensor all = attn_tensor_packed(walk.weights, ATTN_F32, 1, HEADS, tokens, tokens);
    assert_int_equal(
        attn_weights(compute->attention, &params, &record.q, &record.k, &record.stats, NULL, &all),
        ATTN_SUCCESS);
    const struct head_rows_visitor visitor = {begin, take, end, &walk};
    struct attn_error error;
    assert_true(head_rows_visit(compute, &record, tile, &visitor, &error));
    assert_int_equal(walk.head, HEADS);
    free(q), free(k), free(o), free(stats), free(tile), free(walk.weights);
}

static void test_every_row(void **state)
{
    (void)state;
    struct compute compute = make_compute(2);
    const int64_t lengths[] = {1, 20, 31, 64, 127, 128, 129, 256, 300};
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++)
        for (int causal = 0; causal < 2; causal++)
            walk_through(&compute, lengths[n], causal != 0);
    compute_destroy(&compute);
}

static void no_begin(void *user, int64_t head)
{
    (void)user, (void)head;
}

/* What libattn refuses is told. */
static void test_refused(void **state)
{
    (void)state;
    struct compute compute = make_compute(1);
    float numbers[HEAD_ROWS_TILE * 4] = {0};
    attn_params params;
    attn_params_init(&params);
    const struct attention_record record = {
        .params = &params,
        .q = attn_tensor_packed(numbers, ATTN_F32, 1, 1, 4, 2),
        .k = attn_tensor_packed(numbers, ATTN_F32, 1, 1, 4, 1),
        .stats = attn_tensor_packed(numbers, ATTN_F32, 1, 1, 4, 2),
    };
    const struct head_rows_visitor visitor = {no_begin, take, no_begin, NULL};
    struct attn_error error;
    assert_false(head_rows_visit(&compute, &record, numbers, &visitor, &error));
    assert_message(&error, "attention weights: ");
    compute_destroy(&compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
