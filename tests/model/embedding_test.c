#include <math.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/embedding.h"
#include "scratch_folder.h"
#include "tiny_model.h"

enum { HIDDEN = 4 };

static struct bert *open_tiny(void)
{
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = tiny_model_save(&tiny);
    struct bert *model;
    struct attn_error error;
    if (!bert_open(&model, folder, &error))
        fail_msg("%s", error.message);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
    return model;
}

/* A text of `tokens` tokens whose ids begin with `seed`. */
static struct encoding make_encoding(size_t tokens, size_t seed)
{
    struct encoding encoding = {.tokens = calloc(tokens + 1, sizeof(struct token)),
                                .token_count = tokens};
    assert_non_null(encoding.tokens);
    for (size_t t = 0; t < tokens; t++)
        encoding.tokens[t] =
            (struct token){.id = (int32_t)((seed + t * t) % 10), .type = (int32_t)(t > tokens / 2)};
    return encoding;
}

/* Pooling of one text by definition, from its hidden states. */
static void pool_alone(const struct bert *model, const struct compute *compute,
                       const struct encoding *encoding, const struct embedding_settings *settings,
                       float vector[HIDDEN])
{
    int32_t ids[8], types[8];
    for (size_t t = 0; t < encoding->token_count; t++) {
        ids[t] = encoding->tokens[t].id;
        types[t] = encoding->tokens[t].type;
    }
    const int64_t length = (int64_t)encoding->token_count;
    const int64_t starts[] = {0, length};
    const struct bert_input input = {.batch = {1, starts}, .ids = ids, .types = types};
    float hidden[8 * HIDDEN];
    struct attn_error error;
    assert_true(bert_forward(model, compute, &input, hidden, NULL, &error));

    double norm = 0.0;
    for (int c = 0; c < HIDDEN; c++) {
        double sum = 0.0;
        for (int64_t t = 0; t < length; t++)
            sum += (double)hidden[t * HIDDEN + c];
        double value = settings->pooling == POOLING_CLS ? (double)hidden[c] : sum / (double)length;
        vector[c] = (float)value;
        norm += value * value;
    }
    for (int c = 0; settings->normalize && c < HIDDEN; c++)
        vector[c] = (float)((double)vector[c] / sqrt(norm));
}

/* More texts than one batch holds, in an order that sorting has to undo. */
static void test_input_order_and_batches(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    struct bert *model = open_tiny();
    struct compute compute = make_compute(2);
    struct encoding *encodings = calloc(COUNT, sizeof *encodings);
    float *vectors = malloc(COUNT * HIDDEN * sizeof *vectors);
    assert_true(encodings && vectors);
    for (size_t n = 0; n < COUNT; n++)
        encodings[n] = make_encoding(1 + n * 5 % 8, n);
    for (int mode = 0; mode < 4; mode++) {
        const struct embedding_settings settings = {mode & 1 ? POOLING_CLS : POOLING_MEAN,
                                                    mode & 2};
        struct attn_error error;
        assert_true(
            embedding_compute(model, &compute, &settings, encodings, COUNT, vectors, &error));
        for (size_t n = 0; n < COUNT; n++) {
            float alone[HIDDEN];
            pool_alone(model, &compute, &encodings[n], &settings, alone);
            assert_near(vectors + n * HIDDEN, alone, HIDDEN, 1e-5);
        }
    }
    for (size_t n = 0; n < COUNT; n++)
        free(encodings[n].tokens);
    free(encodings);
    free(vectors);
    compute_destroy(&compute);
    bert_close(model);
}

static void test_refusals(void **state)
{
    (void)state;
    struct bert *model = open_tiny();
    struct compute compute = make_compute(1);
    const struct embedding_settings settings = {POOLING_MEAN, true};
    float vectors[2 * HIDDEN];
    struct attn_error error;
    const struct {
        size_t tokens;
        const char *message;
    } cases[] = {{0, "no token"}, {9, "9 tokens, the model has 8 positions"}};
    for (size_t n = 0; n < 2; n++) {
        struct encoding encodings[] = {make_encoding(3, 0), make_encoding(cases[n].tokens, 1)};
        assert_false(embedding_compute(model, &compute, &settings, encodings, 2, vectors, &error));
        assert_message(&error, cases[n].message);
        free(encodings[0].tokens);
        free(encodings[1].tokens);
    }
    assert_true(embedding_compute(model, &compute, &settings, NULL, 0, NULL, &error));
    compute_destroy(&compute);
    bert_close(model);
}

/* A model whose hidden states are all zeros has a vector of zeros, not of NaN. */
static void test_zeros_stay_zeros(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    const char *const parameters[] = {"encoder.layer.1.output.LayerNorm.weight",
                                      "encoder.layer.1.output.LayerNorm.bias"};
    for (size_t n = 0; n < 2; n++)
        json_object_set_new(json_object_get(tiny.tensors, parameters[n]), "data",
                            json_pack("[i, i, i, i]", 0, 0, 0, 0));
    char *folder = tiny_model_save(&tiny);
    struct bert *model;
    struct attn_error error;
    assert_true(bert_open(&model, folder, &error));
    struct compute compute = make_compute(1);
    struct encoding encoding = make_encoding(5, 2);
    const struct embedding_settings settings = {POOLING_MEAN, true};
    float vector[HIDDEN];
    assert_true(embedding_compute(model, &compute, &settings, &encoding, 1, vector, &error));
    for (int c = 0; c < HIDDEN; c++)
        assert_true(vector[c] == 0.0f);
    free(encoding.tokens);
    compute_destroy(&compute);
    bert_close(model);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_order_and_batches),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_zeros_stay_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
