#include "nn/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"

enum { MOST = 512 };

static void test_handed_rotation(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "rotary_pairs_are_halves");
    const json_t *positions = case_field(one, "input", "positions");
    size_t count, tokens = json_array_size(positions);
    float *x = case_numbers(case_field(one, "input", "x"), &count);
    float *y = case_numbers(case_field(one, "expected", "y"), NULL);
    const struct rope rope = {ROPE_HALVES, (int64_t)(count / tokens),
                              (float)json_number_value(case_field(one, "input", "theta"))};
    for (size_t t = 0; t < tokens; t++) {
        float cosines[MOST], sines[MOST];
        rope_table(&rope, json_integer_value(json_array_get(positions, t)), 1, cosines, sines);
        rope_turn(&rope, cosines, sines, 1, 1, rope.d, x + (int64_t)t * rope.d);
    }
    assert_near(x, y, count, json_number_value(case_field(one, "tolerance", NULL)));
    free(x);
    free(y);
    json_decref(file);
}

/* The two elements of pair i, 0 ≤ i < d/2. */
static void pair_of(enum rope_pairs pairs, int64_t d, int64_t i, int64_t *first, int64_t *second)
{
    *first = pairs == ROPE_HALVES ? i : 2 * i;
    *second = pairs == ROPE_HALVES ? i + d / 2 : 2 * i + 1;
}

/* Row n of a GGUF file is row order[n] of the model: where one convention has an element of a pair,
 * the other one has it there. */
static void check_row_order(const json_t *file, const char *name)
{
    const json_t *one = case_find(file, name);
    const int64_t heads = json_integer_value(case_field(one, "input", "heads"));
    const int64_t d = json_integer_value(case_field(one, "input", "head_dim"));
    const json_t *expected = case_field(one, "expected", "order");
    assert_int_equal(json_array_size(expected), heads * d);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < d / 2; i++) {
            int64_t row[2], model[2];
            pair_of(ROPE_NEIGHBOURS, d, i, &row[0], &row[1]);
            pair_of(ROPE_HALVES, d, i, &model[0], &model[1]);
            for (int n = 0; n < 2; n++)
                assert_int_equal(
                    json_integer_value(json_array_get(expected, (size_t)(h * d + row[n]))),
                    h * d + model[n]);
        }
}

static void test_handed_row_orders(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/layers.json");
    check_row_order(file, "gguf_row_order_two_heads");
    check_row_order(file, "gguf_row_order_one_key_head");
    json_decref(file);
}

/* Transformers' LlamaRotaryEmbedding and apply_rotary_pos_emb, far positions too. */
static void test_golden(void **state)
{
    (void)state;
    json_t *file = test_data_json("nn/rope.json");
    size_t index;
    const json_t *one, *cases = json_object_get(file, "cases");
    assert_true(json_array_size(cases) > 0);
    json_array_foreach (cases, index, one) {
        const int64_t heads = json_integer_value(case_field(one, "input", "heads"));
        const int64_t d = json_integer_value(case_field(one, "input", "head_dim"));
        const int64_t position = json_integer_value(case_field(one, "input", "position"));
        const struct rope rope = {ROPE_HALVES, d,
                                  (float)json_number_value(case_field(one, "input", "theta"))};
        size_t count;
        float *x = case_numbers(case_field(one, "input", "x"), &count);
        float *cosines = case_numbers(case_field(one, "expected", "cosines"), NULL);
        float *sines = case_numbers(case_field(one, "expected", "sines"), NULL);
        float *y = case_numbers(case_field(one, "expected", "y"), NULL);
        assert_int_equal(count, heads * d);
        float actual_cosines[MOST], actual_sines[MOST];
        rope_table(&rope, position, 1, actual_cosines, actual_sines);
        assert_near(actual_cosines, cosines, (size_t)d / 2, 1e-6);
        assert_near(actual_sines, sines, (size_t)d / 2, 1e-6);
        rope_turn(&rope, actual_cosines, actual_sines, 1, heads, heads * d, x);
        assert_near(x, y, count, 4e-6);
        free(x);
        free(cosines);
        free(sines);
        free(y);
    }
    json_decref(file);
}

enum { TOKENS = 7, HEADS = 3, D = 10, GAP = 5, STRIDE = HEADS * D + GAP };

/* Many tokens and heads at once are each of them alone; what lies between rows stays. */
static void check_tokens(enum rope_pairs pairs)
{
    const struct rope rope = {pairs, D, 1e4f};
    float cosines[TOKENS * D / 2], sines[TOKENS * D / 2], x[TOKENS * STRIDE], y[TOKENS * STRIDE];
    for (int n = 0; n < TOKENS * STRIDE; n++)
        y[n] = x[n] = n % STRIDE < HEADS * D ? sinf((float)n) : -1.0f;
    rope_table(&rope, 100, TOKENS, cosines, sines);
    rope_turn(&rope, cosines, sines, TOKENS, HEADS, STRIDE, y);
    for (int64_t t = 0; t < TOKENS; t++) {
        float one_cosines[D / 2], one_sines[D / 2];
        rope_table(&rope, 100 + t, 1, one_cosines, one_sines);
        assert_memory_equal(cosines + t * D / 2, one_cosines, sizeof one_cosines);
        assert_memory_equal(sines + t * D / 2, one_sines, sizeof one_sines);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < D / 2; i++) {
                int64_t first, second;
                pair_of(pairs, D, i, &first, &second);
                const float *from = x + t * STRIDE + h * D, *to = y + t * STRIDE + h * D;
                const float c = one_cosines[i], s = one_sines[i];
                assert_near(&to[first], &(float){from[first] * c - from[second] * s}, 1, 1e-6);
                assert_near(&to[second], &(float){from[second] * c + from[first] * s}, 1, 1e-6);
            }
        assert_memory_equal(y + t * STRIDE + HEADS * D, x + t * STRIDE + HEADS * D,
                            GAP * sizeof *y);
    }
}

static void test_tokens_and_heads(void **state)
{
    (void)state;
    check_tokens(ROPE_HALVES);
    check_tokens(ROPE_NEIGHBOURS);
}

/* A score depends on how far apart its two tokens stand, and on nothing else. */
static void test_scores_depend_on_distance(void **state)
{
    (void)state;
    for (int pairs = ROPE_HALVES; pairs <= ROPE_NEIGHBOURS; pairs++) {
        const struct rope rope = {(enum rope_pairs)pairs, 8, 1e4f};
        double scores[2];
        for (int n = 0; n < 2; n++) {
            float q[] = {1, 2, -1, 0.5f, 3, -2, 1, 1}, k[] = {0.5f, -1, 2, 2, 1, 1, -3, 0.25f};
            float cosines[4], sines[4];
            rope_table(&rope, n == 0 ? 9 : 1009, 1, cosines, sines);
            rope_turn(&rope, cosines, sines, 1, 1, 8, q);
            rope_table(&rope, n == 0 ? 2 : 1002, 1, cosines, sines);
            rope_turn(&rope, cosines, sines, 1, 1, 8, k);
            scores[n] = 0.0;
            for (int c = 0; c < 8; c++)
                scores[n] += (double)q[c] * (double)k[c];
        }
        assert_true(fabs(scores[0] - scores[1]) <= 2e-4);
    }
}

/* The transpose of the turn: y·turn(x) = turn_back(y)·x for any x and y. What lies between rows
 * stays. */
static void check_back(enum rope_pairs pairs)
{
    const struct rope rope = {pairs, D, 1e4f};
    float cosines[TOKENS * D / 2], sines[TOKENS * D / 2], x[TOKENS * STRIDE], y[TOKENS * STRIDE];
    float turned[TOKENS * STRIDE], back[TOKENS * STRIDE];
    rope_table(&rope, 3, TOKENS, cosines, sines);
    for (int n = 0; n < TOKENS * STRIDE; n++) {
        x[n] = sinf((float)n);
        y[n] = cosf(1.7f * (float)n);
    }
    memcpy(turned, x, sizeof x);
    memcpy(back, y, sizeof y);
    rope_turn(&rope, cosines, sines, TOKENS, HEADS, STRIDE, turned);
    rope_turn_back(&rope, cosines, sines, TOKENS, HEADS, STRIDE, back);
    for (int64_t t = 0; t < TOKENS; t++) {
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < D / 2; i++) {
                int64_t place[2];
                double forward = 0.0, backward = 0.0;
                pair_of(pairs, D, i, &place[0], &place[1]);
                for (int n = 0; n < 2; n++) {
                    const int64_t at = t * STRIDE + h * D + place[n];
                    forward += (double)y[at] * (double)turned[at];
                    backward += (double)back[at] * (double)x[at];
                }
                assert_true(fabs(forward - backward) <= 1e-6);
            }
        const int64_t between = t * STRIDE + HEADS * D;
        assert_memory_equal(back + between, y + between, GAP * sizeof *y);
    }
}

static void test_back(void **state)
{
    (void)state;
    check_back(ROPE_HALVES);
    check_back(ROPE_NEIGHBOURS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed_rotation),
        cmocka_unit_test(test_handed_row_orders),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_tokens_and_heads),
        cmocka_unit_test(test_scores_depend_on_distance),
        cmocka_unit_test(test_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
