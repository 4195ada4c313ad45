/* What kind of model a path holds, its tokenizer and its manners. */
#include "model/model_source.h"

#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "base/file.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "gguf_builder.h"
#include "scratch_folder.h"

/* Types of metadata, as the format numbers them. */
enum { U32 = 4, I32 = 5, BOOL = 7, STRING = 8, ARRAY = 9 };

static void add_text(struct gguf_builder *builder, const char *key, const char *text)
{
    gguf_add_key(builder, key, STRING);
    gguf_add_string(builder, text);
}

static void add_number(struct gguf_builder *builder, const char *key, uint32_t number)
{
    gguf_add_key(builder, key, U32);
    gguf_add_u32(builder, number);
}

static void add_flag(struct gguf_builder *builder, const char *key, bool set)
{
    const char byte = set;
    gguf_add_key(builder, key, BOOL);
    attn_buffer_add(&builder->bytes, &byte, 1);
}

static void add_texts(struct gguf_builder *builder, const char *key, size_t count,
                      const char *const *texts)
{
    gguf_add_key(builder, key, ARRAY);
    gguf_add_u32(builder, STRING);
    gguf_add_u64(builder, count);
    for (size_t n = 0; n < count; n++)
        gguf_add_string(builder, texts[n]);
}

/* A vocabulary of four tokens and one merge. */
enum { TOKENIZER_VALUES = 4 };
static void add_tokenizer(struct gguf_builder *builder, const char *model)
{
    static const char *const tokens[] = {"<|end|>", "a", "b", "ab"};
    static const char *const merges[] = {"a b"};
    add_text(builder, "tokenizer.ggml.model", model);
    add_texts(builder, "tokenizer.ggml.tokens", 4, tokens);
    add_texts(builder, "tokenizer.ggml.merges", 1, merges);
    gguf_add_key(builder, "tokenizer.ggml.token_type", ARRAY);
    gguf_add_u32(builder, I32);
    gguf_add_u64(builder, 4);
    for (uint32_t n = 0; n < 4; n++)
        gguf_add_u32(builder, n == 0 ? 3 : 1);
}

static struct model_source *open_path(const char *path)
{
    struct model_source *source;
    struct attn_error error;
    if (!model_source_open(&source, path, &error))
        fail_msg("%s", error.message);
    return source;
}

/* Saves the builder's file, opens it, and removes the folder: what is mapped stays. */
static struct model_source *open_built(struct gguf_builder *builder)
{
    char *folder = scratch_folder_create();
    char *path = gguf_build(builder, folder, "model.gguf");
    struct model_source *source = open_path(path);
    scratch_folder_remove(folder);
    free(path);
    return source;
}

static void test_a_directory(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        enum model_kind kind;
    } cases[] = {{"{\"model_type\": \"bert\"}", MODEL_BERT},
                 {"{\"model_type\": \"gpt2\"}", MODEL_GPT2},
                 {"{\"model_type\": \"llama\"}", MODEL_LLAMA}};
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "other.gguf", "config.json goes first");
    for (size_t n = 0; n < 3; n++) {
        scratch_write_text(folder, "config.json", cases[n].config);
        struct model_source *source = open_path(folder);
        enum model_kind kind;
        struct attn_error error;
        assert_null(model_source_gguf(source));
        assert_string_equal(model_source_path(source), folder);
        assert_true(model_source_kind(source, &kind, &error));
        assert_int_equal(kind, cases[n].kind);
        model_source_close(source);
    }
    scratch_write_text(folder, "config.json", "{\"model_type\": \"t5\"}");
    struct model_source *source = open_path(folder);
    enum model_kind kind;
    struct attn_error error;
    assert_false(model_source_kind(source, &kind, &error));
    assert_message(&error, "model_type t5 is not supported, only bert, gpt2 and llama are");
    model_source_close(source);
    scratch_folder_remove(folder);
}

static void test_a_directory_with_one_gguf(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 1);
    add_text(&builder, "general.architecture", "llama");
    char *path = gguf_build(&builder, folder, "a.gguf");
    struct model_source *source = open_path(folder);
    enum model_kind kind;
    struct attn_error error;
    assert_non_null(model_source_gguf(source));
    assert_string_equal(model_source_path(source), path);
    assert_true(model_source_kind(source, &kind, &error));
    assert_int_equal(kind, MODEL_LLAMA);
    model_source_close(source);

    scratch_write_text(folder, "b.gguf", "another");
    assert_false(model_source_open(&source, folder, &error));
    assert_null(source);
    assert_message(&error, "holds several .gguf files and no config.json");
    free(path);
    scratch_folder_remove(folder);
}

static void test_an_empty_directory(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct model_source *source = open_path(folder);
    enum model_kind kind;
    struct attn_error error;
    assert_false(model_source_kind(source, &kind, &error));
    assert_message(&error, "config.json: no such file");
    model_source_close(source);
    assert_false(model_source_open(&source, "/nowhere/model.gguf", &error));
    assert_message(&error, "/nowhere/model.gguf: no such file");
    scratch_folder_remove(folder);
}

static void test_gguf_files_that_are_refused(void **state)
{
    (void)state;
    struct attn_error error;
    enum model_kind kind;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 1);
    add_text(&builder, "general.architecture", "mamba");
    struct model_source *source = open_built(&builder);
    assert_false(model_source_kind(source, &kind, &error));
    assert_message(&error, "general.architecture mamba is not supported, only gpt2 and llama are");
    model_source_close(source);

    builder = (struct gguf_builder){0};
    gguf_add_header(&builder, 3, 0, 1);
    add_number(&builder, "split.count", 3);
    char *folder = scratch_folder_create();
    char *path = gguf_build(&builder, folder, "model-00001-of-00003.gguf");
    assert_false(model_source_open(&source, path, &error));
    assert_message(&error, "is one of 3 parts of a model");
    free(path);
    scratch_folder_remove(folder);
}

static void test_a_tokenizer(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        struct gguf_builder builder = {0};
        gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES + 3);
        add_tokenizer(&builder, "gpt2");
        add_text(&builder, "tokenizer.ggml.pre", "gpt-2");
        add_flag(&builder, "tokenizer.ggml.add_bos_token", begun);
        add_number(&builder, "tokenizer.ggml.bos_token_id", 0);
        struct model_source *source = open_built(&builder);
        struct tokenizer *tokenizer;
        struct attn_error error;
        if (!model_source_tokenizer(source, &tokenizer, &error))
            fail_msg("%s", error.message);
        model_source_close(source); /* the tokenizer needs it no longer */
        assert_int_equal(tokenizer_size(tokenizer), 4);
        assert_int_equal(tokenizer_special(tokenizer, "<|end|>"), 0);
        struct tokenizer_input input = {.text = "abb", .text_size = 3};
        struct encoding encoding;
        assert_true(tokenizer_encode(tokenizer, &input, &encoding, &error));
        const int32_t ids[] = {0, 3, 2};
        assert_int_equal(encoding.token_count, begun ? 3 : 2);
        for (size_t n = 0; n < encoding.token_count; n++)
            assert_int_equal(encoding.tokens[n].id, ids[n + !begun]);
        encoding_release(&encoding);
        tokenizer_close(tokenizer);
    }
}

static void check_tokenizer_refused(struct gguf_builder *builder, const char *words)
{
    struct model_source *source = open_built(builder);
    struct tokenizer *tokenizer;
    struct attn_error error;
    assert_false(model_source_tokenizer(source, &tokenizer, &error));
    assert_null(tokenizer);
    assert_message(&error, words);
    assert_message(&error, "model.gguf: ");
    model_source_close(source);
}

static void test_tokenizers_that_are_refused(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES);
    add_tokenizer(&builder, "gpt2");
    check_tokenizer_refused(&builder, "has no tokenizer.ggml.pre");

    builder = (struct gguf_builder){0};
    gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES + 1);
    add_tokenizer(&builder, "llama");
    add_text(&builder, "tokenizer.ggml.pre", "default");
    check_tokenizer_refused(&builder, "tokenizer.ggml.model llama is not supported, only gpt2");

    builder = (struct gguf_builder){0};
    gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES + 2);
    add_tokenizer(&builder, "gpt2");
    add_text(&builder, "tokenizer.ggml.pre", "gpt-2");
    add_flag(&builder, "tokenizer.ggml.add_eos_token", true);
    check_tokenizer_refused(&builder, "tokenizer.ggml.add_eos_token is true");

    builder = (struct gguf_builder){0};
    gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES + 3);
    add_tokenizer(&builder, "gpt2");
    add_text(&builder, "tokenizer.ggml.pre", "gpt-2");
    add_flag(&builder, "tokenizer.ggml.add_bos_token", true);
    add_number(&builder, "tokenizer.ggml.bos_token_id", 4);
    check_tokenizer_refused(&builder, "bos_token_id is 4, the vocabulary has 4 tokens");

    builder = (struct gguf_builder){0};
    static const char *const token = "a";
    gguf_add_header(&builder, 3, 0, 5);
    add_text(&builder, "tokenizer.ggml.model", "gpt2");
    add_text(&builder, "tokenizer.ggml.pre", "gpt-2");
    add_texts(&builder, "tokenizer.ggml.tokens", 1, &token);
    add_texts(&builder, "tokenizer.ggml.merges", 0, NULL);
    gguf_add_key(&builder, "tokenizer.ggml.token_type", ARRAY);
    gguf_add_u32(&builder, I32);
    gguf_add_u64(&builder, 2);
    gguf_add_u64(&builder, 0);
    check_tokenizer_refused(&builder, "token_type has 2 entries for 1 tokens");
}

static void test_handed_tokenizers(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/files/files.json");
    const json_t *cases = case_field(file, "cases", NULL);
    size_t ran = 0;
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *one = json_array_get(cases, n);
        if (strcmp(json_string_value(case_field(one, "op", NULL)), "tokenizer") != 0)
            continue;
        struct attn_buffer name = {0};
        attn_buffer_format(&name, "cases/files/%s",
                           json_string_value(case_field(one, "input", "file")));
        char *path = test_data_path(name.data);
        struct model_source *source = open_path(path);
        struct tokenizer *tokenizer;
        struct attn_error error;
        assert_false(model_source_tokenizer(source, &tokenizer, &error));
        assert_message(&error, json_string_value(case_field(one, "expected", "refused")));
        model_source_close(source);
        attn_buffer_release(&name);
        free(path);
        ran++;
    }
    assert_int_equal(ran, 2);
    json_decref(file);
}

static void test_a_directorys_tokenizer_names_it(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "tokenizer.json", "{}");
    struct model_source *source = open_path(folder);
    struct tokenizer *tokenizer;
    struct attn_error error;
    assert_false(model_source_tokenizer(source, &tokenizer, &error));
    assert_null(tokenizer);
    assert_true(strncmp(error.message, folder, strlen(folder)) == 0);
    model_source_close(source);
    scratch_folder_remove(folder);
}

static void test_manners_of_gguf(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 4);
    add_number(&builder, "tokenizer.ggml.eos_token_id", 2);
    add_number(&builder, "tokenizer.ggml.eot_token_id", 7);
    add_number(&builder, "tokenizer.ggml.eom_token_id", 2);
    add_text(&builder, "tokenizer.chat_template", "{{ x }}");
    struct model_source *source = open_built(&builder);
    struct model_manners manners;
    struct attn_error error;
    assert_true(model_source_manners(source, &manners, &error));
    assert_int_equal(manners.end_count, 2);
    assert_int_equal(manners.end_ids[0], 2);
    assert_int_equal(manners.end_ids[1], 7);
    assert_int_equal(manners.chat_template_size, 7);
    assert_string_equal(manners.chat_template, "{{ x }}");
    model_manners_release(&manners);
    model_source_close(source);

    builder = (struct gguf_builder){0};
    gguf_add_header(&builder, 3, 0, 1);
    add_number(&builder, "tokenizer.ggml.eos_token_id", 0xffffffffu);
    source = open_built(&builder);
    assert_false(model_source_manners(source, &manners, &error));
    assert_message(&error, "tokenizer.ggml.eos_token_id is 4294967295");
    model_source_close(source);
}

/* Files of a directory, and what their manners are. */
struct taught {
    const char *files[4][2]; /* name and text, up to a NULL */
    const char *template;
    size_t count;
    int32_t ids[3];
};

static void check_taught(const struct taught *taught)
{
    char *folder = scratch_folder_create();
    for (size_t n = 0; n < 4 && taught->files[n][0]; n++)
        scratch_write_text(folder, taught->files[n][0], taught->files[n][1]);
    struct model_source *source = open_path(folder);
    struct model_manners manners;
    struct attn_error error;
    if (!model_source_manners(source, &manners, &error))
        fail_msg("%s", error.message);
    assert_int_equal(manners.end_count, taught->count);
    for (size_t n = 0; n < taught->count; n++)
        assert_int_equal(manners.end_ids[n], taught->ids[n]);
    if (taught->template) {
        assert_int_equal(manners.chat_template_size, strlen(taught->template));
        assert_memory_equal(manners.chat_template, taught->template, strlen(taught->template));
    } else {
        assert_null(manners.chat_template);
    }
    model_manners_release(&manners);
    model_source_close(source);
    scratch_folder_remove(folder);
}

static void test_manners_of_a_directory(void **state)
{
    (void)state;
    static const struct taught cases[] = {
        {.files = {{"config.json", "{\"eos_token_id\": 7}"}}, .count = 1, .ids = {7}},
        {.files = {{"config.json", "{}"}}, .count = 0},
        {.files = {{"config.json", "{\"eos_token_id\": null}"}}, .count = 0},
        {.files = {{"config.json", "{\"eos_token_id\": [0, 9, 0]}"}}, .count = 2, .ids = {0, 9}},
        {.files = {{"config.json", "{\"eos_token_id\": 7}"},
                   {"generation_config.json", "{\"eos_token_id\": [3, 4]}"}},
         .count = 2,
         .ids = {3, 4}},
        {.files = {{"config.json", "{\"eos_token_id\": 7}"},
                   {"generation_config.json", "{\"eos_token_id\": null}"}},
         .count = 1,
         .ids = {7}},
        {.files = {{"config.json", "{}"}, {"tokenizer_config.json", "{\"chat_template\": \"A\"}"}},
         .template = "A"},
        {.files = {{"config.json", "{}"},
                   {"chat_template.jinja", "B"},
                   {"tokenizer_config.json", "{\"chat_template\": \"A\"}"}},
         .template = "B"},
        {.files = {{"config.json", "{}"},
                   {"tokenizer_config.json",
                    "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"A\"}, "
                    "{\"name\": \"default\", \"template\": \"C\"}]}"}},
         .template = "C"},
        {.files = {{"config.json", "{}"},
                   {"tokenizer_config.json",
                    "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"A\"}]}"}}},
        {.files = {{"config.json", "{}"}, {"tokenizer_config.json", "{}"}}},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        check_taught(&cases[n]);
}

static void test_manners_that_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"config.json", "{\"eos_token_id\": \"x\"}", "config.json: eos_token_id is not a token's"},
        {"config.json", "{\"eos_token_id\": -1}", "config.json: eos_token_id is not a token's"},
        {"config.json", "{\"eos_token_id\": [1, 2.5]}", "eos_token_id is not a token's number"},
        {"config.json", "{\"eos_token_id\": 2147483648}", "from 0 to 2147483647"},
        {"generation_config.json", "{\"eos_token_id\": {}}",
         "generation_config.json: eos_token_id is not"},
        {"generation_config.json", "[]", "generation_config.json: holds no JSON object"},
        {"tokenizer_config.json", "{\"chat_template\": 1}", "chat_template is neither a text"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        char *folder = scratch_folder_create();
        scratch_write_text(folder, "config.json", "{}");
        scratch_write_text(folder, cases[n][0], cases[n][1]);
        struct model_source *source = open_path(folder);
        struct model_manners manners;
        struct attn_error error;
        assert_false(model_source_manners(source, &manners, &error));
        assert_null(manners.end_ids);
        assert_message(&error, cases[n][2]);
        model_source_close(source);
        scratch_folder_remove(folder);
    }
}

/* Each is looked for among those before it. */
static void test_a_long_list_of_end_tokens(void **state)
{
    (void)state;
    struct attn_buffer config = {0};
    attn_buffer_add_text(&config, "{\"eos_token_id\": [0");
    for (int id = 1; id <= 1000; id++)
        attn_buffer_format(&config, ", %d", id);
    attn_buffer_add_text(&config, "]}");
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "config.json", config.data);
    struct model_source *source = open_path(folder);
    struct model_manners manners;
    struct attn_error error;
    assert_false(model_source_manners(source, &manners, &error));
    assert_message(&error, "eos_token_id names 1001 tokens, at most 1000");
    model_source_close(source);
    scratch_folder_remove(folder);
    attn_buffer_release(&config);
}

static void test_handed_end_tokens(void **state)
{
    (void)state;
    json_t *file = test_data_json("cases/sampling.json");
    const json_t *cases = case_field(file, "cases", NULL);
    size_t ran = 0;
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *one = json_array_get(cases, n);
        if (strcmp(json_string_value(case_field(one, "op", NULL)), "end_ids") != 0)
            continue;
        char *text = json_dumps(case_field(one, "input", "config"), 0);
        const json_t *ids = case_field(one, "expected", "end_ids");
        struct taught taught = {.files = {{"config.json", text}}, .count = json_array_size(ids)};
        assert_true(taught.count <= 3);
        for (size_t i = 0; i < taught.count; i++)
            taught.ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
        check_taught(&taught);
        free(text);
        ran++;
    }
    assert_int_equal(ran, 2);
    json_decref(file);
}

static bool open_all(void *user, struct attn_error *error)
{
    struct model_source *source;
    if (!model_source_open(&source, user, error)) {
        assert_null(source);
        return false;
    }
    struct tokenizer *tokenizer = NULL;
    struct model_manners manners = {0};
    bool done = model_source_tokenizer(source, &tokenizer, error) &&
                model_source_manners(source, &manners, error);
    tokenizer_close(tokenizer);
    model_manners_release(&manners);
    model_source_close(source);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, TOKENIZER_VALUES + 3);
    add_tokenizer(&builder, "gpt2");
    add_text(&builder, "tokenizer.ggml.pre", "gpt-2");
    add_number(&builder, "tokenizer.ggml.eos_token_id", 0);
    add_text(&builder, "tokenizer.chat_template", "{{ x }}");
    free(gguf_build(&builder, folder, "model.gguf"));
    assert_true(allocation_sweep(open_all, folder) >= 10);
    scratch_folder_remove(folder);
    model_source_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_directory),
        cmocka_unit_test(test_a_directory_with_one_gguf),
        cmocka_unit_test(test_an_empty_directory),
        cmocka_unit_test(test_gguf_files_that_are_refused),
        cmocka_unit_test(test_a_tokenizer),
        cmocka_unit_test(test_tokenizers_that_are_refused),
        cmocka_unit_test(test_handed_tokenizers),
        cmocka_unit_test(test_a_directorys_tokenizer_names_it),
        cmocka_unit_test(test_manners_of_gguf),
        cmocka_unit_test(test_manners_of_a_directory),
        cmocka_unit_test(test_manners_that_are_refused),
        cmocka_unit_test(test_a_long_list_of_end_tokens),
        cmocka_unit_test(test_handed_end_tokens),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
