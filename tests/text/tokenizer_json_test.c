/* Damaged and unknown tokenizer.json files are refused by name. */
#include <stdlib.h>
#include <string.h>

#include "scratch_folder.h"
#include "tokenizer_test.h"

/* Each change replaces top-level fields of the small tokenizer. */
static void test_refused_fields(void **state)
{
    (void)state;
    static const struct {
        const char *change, *words;
    } cases[] = {
        {"{\"version\": \"2.0\"}", "version"},
        {"{\"normalizer\": {\"type\": \"NFKC\"}}", "normalizer NFKC is not implemented"},
        {"{\"normalizer\": {}}", "normalizer has no type"},
        {"{\"normalizer\": 3}", "normalizer has no type"},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\"}}", "normalizer has no clean_text"},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": 1}}", "clean_text"},
        {"{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"lowercase\": "
         "true, "
         "\"handle_chinese_chars\": true, \"strip_accents\": \"no\"}}",
         "strip_accents"},
        {"{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": []}}", "Sequence of 0"},
        {"{\"normalizer\": {\"type\": \"Sequence\"}}", "normalizer has no normalizers"},
        {"{\"pre_tokenizer\": null}", "tokenizer.json has no pre_tokenizer"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}}", "pre_tokenizer ByteLevel is not"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
         "\"Digits\"}]}}",
         "pre_tokenizer Digits is not"},
        {"{\"post_processor\": {\"type\": \"RobertaProcessing\"}}", "RobertaProcessing is not"},
        {"{\"post_processor\": []}", "post_processor has no type"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3]}}",
         "post_processor.cls"},
        {"{\"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"[CLS]\", 10], \"sep\": "
         "[\"[SEP]\", 3]}}",
         "\"[CLS]\" the id"},
        {"{\"post_processor\": {\"type\": \"TemplateProcessing\"}}", "has no single"},
        {"{\"model\": null}", "tokenizer.json has no model"},
        {"{\"model\": {\"type\": \"BPE\"}}",
         "normalizer BertNormalizer is not implemented beside BPE"},
        {"{\"model\": {\"type\": \"Unigram\"}}", "model Unigram is not implemented"},
        {"{\"model\": {\"type\": \"WordPiece\"}}", "model has no vocab"},
        {"{\"model\": {\"type\": 7}}", "model type is not implemented"},
        {"{\"added_tokens\": {}}", "added_tokens is not an array"},
        {"{\"added_tokens\": [7]}", "an added token has no content"},
        {"{\"added_tokens\": [{\"content\": \"x\"}]}", "the id of \"x\" is not a whole number"},
        {"{\"added_tokens\": [{\"content\": \"\", \"id\": 300}]}", "an added token has no content"},
        {"{\"added_tokens\": [{\"content\": \"x\", \"id\": -1}]}", "the id of \"x\" is -1"},
        {"{\"added_tokens\": [{\"content\": \"x\", \"id\": 300}]}",
         "an added token has no special"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %s\n", cases[i].change);
        json_t *description = small_description_with(cases[i].change);
        assert_description_refused(description, cases[i].words);
        json_decref(description);
    }
}

/* The field of small.model in place of its own. */
static void assert_model_refused(const char *name, json_t *value, const char *words)
{
    json_t *description = small_description(NULL), *model = json_object_get(description, "model");
    if (value)
        json_object_set_new(model, name, value);
    else
        json_object_del(model, name);
    assert_description_refused(description, words);
    json_decref(description);
}

static void test_refused_models(void **state)
{
    (void)state;
    assert_model_refused("unk_token", json_string("[GONE]"), "no piece \"[GONE]\"");
    assert_model_refused("unk_token", NULL, "model has no unk_token");
    assert_model_refused("continuing_subword_prefix", json_integer(1), "continuing_subword_prefix");
    assert_model_refused("max_input_chars_per_word", json_integer(-1), "max_input_chars_per_word");
    assert_model_refused("max_input_chars_per_word", json_string("100"),
                         "max_input_chars_per_word");
    assert_model_refused("vocab", json_array(), "vocab");
    assert_model_refused("vocab", json_pack("{si}", "x", 0), "no piece \"[UNK]\"");
    assert_model_refused("vocab", json_pack("{ss}", "x", "0"), "the id of \"x\" is not");
    assert_model_refused("vocab", json_pack("{sf}", "x", 1.0), "the id of \"x\" is not");
    assert_model_refused("vocab", json_pack("{si}", "x", -1), "the id of \"x\" is -1");
    assert_model_refused("vocab", json_pack("{sI}", "x", (json_int_t)4294967296),
                         "the id of \"x\" is 4294967296, expected 0 to 16777215");
    assert_model_refused("vocab", json_pack("{sI}", "x", (json_int_t)INT64_MAX), "the id of \"x\"");
    assert_model_refused("vocab", json_pack("{si,si}", "x", 5, "y", 5),
                         "\"y\" has the id 5, which is \"x\" already");
}

static void assert_template_refused(const char *name, const char *parts, const char *words)
{
    json_t *description = small_description(NULL);
    json_t *value = json_loads(parts, 0, NULL);
    assert_non_null(value);
    json_object_set_new(json_object_get(description, "post_processor"), name, value);
    assert_description_refused(description, words);
    json_decref(description);
}

static void test_refused_templates(void **state)
{
    (void)state;
    assert_template_refused("single", "[]", "post_processor.single must hold sequence A once");
    assert_template_refused("single", "[{\"Sequence\": {\"id\": \"B\", \"type_id\": 0}}]",
                            "post_processor.single must hold sequence A once");
    assert_template_refused("pair", "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]",
                            "post_processor.pair must hold sequence A once and then B once");
    assert_template_refused("single", "[{\"Sequence\": {\"id\": \"C\", \"type_id\": 0}}]",
                            "Sequence C is not known");
    assert_template_refused("single", "[{\"Sequence\": {\"id\": \"A\", \"type_id\": -1}}]",
                            "type_id");
    assert_template_refused("single", "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 4294967296}}]",
                            "type_id");
    assert_template_refused("single", "[\"A\"]", "neither a SpecialToken nor a Sequence");
    assert_template_refused("single", "[{\"SpecialToken\": {\"id\": \"[X]\", \"type_id\": 0}}]",
                            "special_tokens has no [X]");
    assert_template_refused("special_tokens", "{\"[CLS]\": {\"ids\": [16777216]}}",
                            "which no token has");
    assert_template_refused("special_tokens", "{\"[CLS]\": {\"ids\": [-1]}}", "which no token has");
    assert_template_refused("special_tokens", "{\"[CLS]\": {\"ids\": [\"2\"]}}", "whole numbers");
    assert_template_refused("special_tokens", "{\"[CLS]\": {}}", "has no ids");
    assert_template_refused("special_tokens", "[]", "special_tokens");
}

/* One more added token, its flags false. */
static void assert_added_refused(const char *content, int id, bool normalized, const char *words)
{
    json_t *description = small_description(NULL);
    json_array_append_new(json_object_get(description, "added_tokens"),
                          json_pack("{ss,si,sb,sb,sb,sb,sb}", "content", content, "id", id,
                                    "special", 0, "single_word", 0, "lstrip", 0, "rstrip", 0,
                                    "normalized", (int)normalized));
    assert_description_refused(description, words);
    json_decref(description);
}

static void test_refused_added_tokens(void **state)
{
    (void)state;
    assert_added_refused("[MASK]", 4, false, "added token \"[MASK]\" is there twice");
    assert_added_refused("the", 300, false, "added token \"the\" has the id 300, but");
    assert_added_refused("new", 0, false,
                         "added token \"new\" has the id 0, which is \"[PAD]\" already");
    assert_added_refused("\xCC\x81", 300, true, "nothing is left of added token");
    /* They differ as they are given and not once they are normalised. */
    json_t *description = small_description_with(
        "{\"added_tokens\": ["
        "{\"id\": 300, \"content\": \"X\", \"special\": false, \"single_word\": false, "
        "\"lstrip\": false, \"rstrip\": false, \"normalized\": true}, "
        "{\"id\": 301, \"content\": \"\\u1e8a\", \"special\": false, \"single_word\": false, "
        "\"lstrip\": false, \"rstrip\": false, \"normalized\": true}]}");
    assert_description_refused(description, "two tokens spelled \"x\"");
    json_decref(description);
}

static void test_holes(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL);
    int32_t size = tokenizer_size(tokenizer), holes = 0;
    for (int32_t id = 0; id < size; id++)
        holes += tokenizer_piece(tokenizer, id) == NULL;
    assert_true(holes > 0 && holes < size / 2);
    assert_non_null(tokenizer_piece(tokenizer, size - 1));
    assert_null(tokenizer_piece(tokenizer, size));
    assert_null(tokenizer_piece(tokenizer, -1));
    assert_null(tokenizer_piece(tokenizer, INT32_MIN));
    tokenizer_close(tokenizer);
}

/* Settings for training and for batches are none of its business. */
static void test_truncation_is_ignored(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_small(NULL); /* truncation.max_length is 5 */
    assert_pieces(tokenizer, "the the the the the the", "[CLS] the the the the the the [SEP]");
    tokenizer_close(tokenizer);
}

static void test_truncated_files(void **state)
{
    (void)state;
    json_t *description = small_description(NULL);
    char *text = json_dumps(description, 0);
    size_t size = strlen(text);
    for (size_t cut = 0; cut < size; cut += 1 + cut / 97) {
        struct tokenizer *tokenizer;
        struct attn_error error = {""};
        assert_false(try_text(text, cut, &tokenizer, &error));
        assert_message(&error, "tokenizer.json");
    }
    free(text);
    json_decref(description);
}

static void test_flipped_bytes(void **state)
{
    (void)state;
    json_t *description = small_description(NULL);
    assert_flipped_bytes(description, 3);
    json_decref(description);
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct tokenizer *tokenizer;
    struct attn_error error;
    char *folder = scratch_folder_create();
    assert_false(tokenizer_open(&tokenizer, folder, &error));
    assert_message(&error, "has neither tokenizer.json nor vocab.txt, nor vocab.json");
    assert_null(tokenizer);
    scratch_folder_remove(folder);
    tokenizer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_fields),
        cmocka_unit_test(test_refused_models),
        cmocka_unit_test(test_refused_templates),
        cmocka_unit_test(test_refused_added_tokens),
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_truncation_is_ignored),
        cmocka_unit_test(test_truncated_files),
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_nothing_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
