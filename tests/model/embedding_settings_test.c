#include "cmocka_test.h"

#include "model/embedding.h"
#include "scratch_folder.h"

#define TRANSFORMER "{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}"
#define POOLING     "{\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}"
#define NORMALIZE                                                                                  \
    "{\"path\": \"2_Normalize\", \"type\": \"sentence_transformers.models.Normalize\"}"
#define DENSE "{\"path\": \"2_Dense\", \"type\": \"sentence_transformers.models.Dense\"}"

/* NULL leaves a file out. */
static bool read_settings(const char *modules, const char *pooling,
                          struct embedding_settings *settings, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    if (modules)
        scratch_write_text(folder, "modules.json", modules);
    if (pooling)
        scratch_write_text(folder, "1_Pooling/config.json", pooling);
    bool done = embedding_settings_read(settings, folder, error);
    scratch_folder_remove(folder);
    return done;
}

static void test_what_is_read(void **state)
{
    (void)state;
    const char *const all = "[" TRANSFORMER ", " POOLING ", " NORMALIZE "]";
    const char *const two = "[" TRANSFORMER ", " POOLING "]";
    const char *const mean =
        "{\"pooling_mode_cls_token\": false, \"pooling_mode_mean_tokens\": true,"
        " \"pooling_mode_max_tokens\": false, \"word_embedding_dimension\": 4}";
    const struct {
        const char *modules, *pooling;
        enum pooling expected;
        bool normalize;
    } cases[] = {
        {NULL, NULL, POOLING_MEAN, true},
        {all, mean, POOLING_MEAN, true},
        {two, mean, POOLING_MEAN, false},
        {all, "{\"pooling_mode_cls_token\": true}", POOLING_CLS, true},
        {two, "{\"pooling_mode\": \"cls\"}", POOLING_CLS, false},
        {two, "{\"pooling_mode\": \"mean\", \"include_prompt\": true}", POOLING_MEAN, false},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct embedding_settings settings;
        struct attn_error error;
        if (!read_settings(cases[n].modules, cases[n].pooling, &settings, &error))
            fail_msg("case %zu: %s", n, error.message);
        assert_int_equal(settings.pooling, cases[n].expected);
        assert_int_equal(settings.normalize, cases[n].normalize);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    const char *const two = "[" TRANSFORMER ", " POOLING "]";
    const char *const mean = "{\"pooling_mode_mean_tokens\": true}";
    const struct {
        const char *modules, *pooling, *message;
    } cases[] = {
        {"[" TRANSFORMER ", " POOLING ", " DENSE "]", mean, "modules.json: Dense"},
        {"[" TRANSFORMER ", " DENSE "]", mean, "modules.json: Dense"},
        {"[" TRANSFORMER ", " POOLING ", " NORMALIZE ", " NORMALIZE "]", mean, "Normalize"},
        {"[" TRANSFORMER ", " NORMALIZE ", " POOLING "]", mean, "modules.json: Normalize"},
        {"[" POOLING "]", mean, "modules.json: Pooling"},
        {"[" TRANSFORMER "]", mean, "modules.json names no folder"},
        {"[" TRANSFORMER ", {\"type\": \"a.Pooling\"}]", mean, "modules.json names no folder"},
        {"[" TRANSFORMER ", {\"type\": \"a.Pooling\", \"path\": \"..\"}]", mean, "path .."},
        {"[" TRANSFORMER ", {\"type\": \"a.Pooling\", \"path\": \"/etc\"}]", mean, "path /etc"},
        {"[{}]", mean, "module 0 has no type"},
        {"[7]", mean, "module 0 has no type"},
        {"{}", mean, "modules.json"},
        {"[", mean, "modules.json"},
        {two, NULL, "1_Pooling/config.json"},
        {two, "{}", "0 pooling modes"},
        {two, "{\"pooling_mode_mean_tokens\": true, \"pooling_mode_cls_token\": true}",
         "2 pooling modes"},
        {two, "{\"pooling_mode_max_tokens\": true}", "pooling_mode_max_tokens is not supported"},
        {two, "{\"pooling_mode_weightedmean_tokens\": true, \"pooling_mode_mean_tokens\": true}",
         "pooling_mode_weightedmean_tokens is not supported"},
        {two, "{\"pooling_mode_mean_tokens\": 1}", "neither true nor false"},
        {two, "{\"pooling_mode\": \"max\"}", "pooling_mode max is not supported"},
        {two, "{\"pooling_mode\": [\"mean\", \"cls\"]}", "pooling_mode is not one name"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct embedding_settings settings;
        struct attn_error error;
        if (read_settings(cases[n].modules, cases[n].pooling, &settings, &error))
            fail_msg("case %zu is taken, expected: %s", n, cases[n].message);
        assert_message(&error, cases[n].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
