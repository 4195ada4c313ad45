/* Each allocation fails in turn: opening a model, reading settings, computing embeddings. */
#include <stdlib.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/embedding.h"
#include "scratch_folder.h"
#include "tiny_model.h"

enum { HIDDEN = 4, COUNT = 3 };

static bool open_once(void *user, struct attn_error *error)
{
    struct bert *model;
    bool done = bert_open(&model, user, error);
    if (!done)
        assert_null(model);
    bert_close(model);
    return done;
}

/* Stored as BF16, so that every tensor is converted into memory of its own. */
static void test_open(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    tiny.storage = TINY_BF16;
    char *folder = tiny_model_save(&tiny);
    assert_true(allocation_sweep(open_once, folder) >= json_object_size(tiny.tensors));
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

static bool read_once(void *user, struct attn_error *error)
{
    struct embedding_settings settings;
    return embedding_settings_read(&settings, user, error);
}

static void test_settings(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    scratch_write_text(
        folder, "modules.json",
        "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
    scratch_write_text(folder, "1_Pooling/config.json", "{\"pooling_mode_cls_token\": true}");
    assert_true(allocation_sweep(read_once, folder) >= 4);
    scratch_folder_remove(folder);
}

struct embed_attempt {
    struct bert *model;
    struct compute compute;
    struct encoding encodings[COUNT];
};

static bool embed_once(void *user, struct attn_error *error)
{
    struct embed_attempt *attempt = user;
    const struct embedding_settings settings = {POOLING_MEAN, true};
    float vectors[COUNT * HIDDEN];
    return embedding_compute(attempt->model, &attempt->compute, &settings, attempt->encodings,
                             COUNT, vectors, error);
}

static void test_embedding(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = tiny_model_save(&tiny);
    struct token tokens[] = {{.id = 1}, {.id = 3}, {.id = 2}};
    struct embed_attempt attempt = {
        .compute = make_compute(1),
        .encodings = {{.tokens = tokens, .token_count = 3},
                      {.tokens = tokens, .token_count = 1},
                      {.tokens = tokens, .token_count = 2}},
    };
    struct attn_error error;
    assert_true(bert_open(&attempt.model, folder, &error));
    assert_true(allocation_sweep(embed_once, &attempt) >= 5);
    bert_close(attempt.model);
    compute_destroy(&attempt.compute);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_embedding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
