/* Each allocation fails in turn: opening a model, reading settings, computing embeddings, learning,
 * writing. */
#include <stdlib.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "golden_language.h"
#include "model/embedding.h"
#include "model/text_model.h"
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

static bool open_language_once(void *user, struct attn_error *error)
{
    struct language_model *model;
    bool done = language_model_open(&model, user, 1, error);
    if (!done)
        assert_null(model);
    language_model_close(model);
    return done;
}

static bool open_text_once(void *user, struct attn_error *error)
{
    struct model_source *source;
    if (!model_source_open(&source, user, error))
        return false;
    struct text_model *model;
    bool done = text_model_open(&model, source, error);
    if (!done)
        assert_null(model);
    text_model_close(model);
    model_source_close(source);
    return done;
}

static const char *const language_models[] = {"gpt2", "bert"};

static void test_open_language(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        struct golden_language golden = golden_language_open(language_models[n]);
        assert_true(allocation_sweep(open_language_once, golden.directory) >= 10);
        assert_true(allocation_sweep(open_text_once, golden.directory) >= 10);
        golden_language_close(&golden);
    }
}

static bool create_once(void *user, struct attn_error *error)
{
    (void)user;
    const struct language_model_settings settings = {.kind = LANGUAGE_MODEL_GPT2,
                                                     .vocabulary = 10,
                                                     .layers = 12,
                                                     .heads = 1,
                                                     .width = 4,
                                                     .context = 4};
    struct language_model *model;
    bool done = language_model_create(&model, &settings, 1, error);
    if (!done)
        assert_null(model);
    language_model_close(model);
    return done;
}

static void test_create(void **state)
{
    (void)state;
    assert_true(allocation_sweep(create_once, NULL) >= 5);
}

struct learn_attempt {
    struct golden_language golden;
    char *folder;
};

/* A compute of its own, whose workspaces are not there yet. */
static bool learn_once(void *user, struct attn_error *error)
{
    const struct golden_language *golden = user;
    struct compute compute;
    if (!compute_create(&compute, 1, error))
        return false;
    const struct language_model_step step = golden_language_step(golden);
    struct cross_entropy sum = {0};
    bool done = language_model_learn(golden->model, &compute, &golden->batch, &step, &sum, error);
    if (!done)
        assert_true(sum.counts == 0 && sum.loss == 0.0);
    compute_destroy(&compute);
    return done;
}

static bool write_once(void *user, struct attn_error *error)
{
    const struct learn_attempt *attempt = user;
    return language_model_write(attempt->golden.model, attempt->folder, 1, error);
}

static void test_learn_and_write(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        struct learn_attempt attempt = {.golden = golden_language_open(language_models[n]),
                                        .folder = scratch_folder_create()};
        assert_true(allocation_sweep(learn_once, &attempt.golden) >= 3);
        assert_true(allocation_sweep(write_once, &attempt) >= 6);
        assert_int_equal(scratch_count(attempt.folder), 2);
        scratch_folder_remove(attempt.folder);
        golden_language_close(&attempt.golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),      cmocka_unit_test(test_settings),
        cmocka_unit_test(test_embedding), cmocka_unit_test(test_open_language),
        cmocka_unit_test(test_create),    cmocka_unit_test(test_learn_and_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
