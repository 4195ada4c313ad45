/* Damaged and unknown files of byte-level BPE are refused by name. */
#include <stdlib.h>
#include <string.h>

#include "scratch_folder.h"
#include "tokenizer_test.h"

/* Each change replaces top-level fields. */
static void test_refused_fields(void **state)
{
    (void)state;
    static const struct {
        const char *change, *words;
    } cases[] = {
        {"{\"normalizer\": {\"type\": \"NFC\"}}", "normalizer NFC is not implemented beside BPE"},
        {"{\"normalizer\": {}}", "normalizer has no type"},
        {"{\"pre_tokenizer\": null}", "tokenizer.json has no pre_tokenizer"},
        {"{\"pre_tokenizer\": {\"type\": \"Metaspace\"}}", "pre_tokenizer Metaspace is not"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\"}, "
         "{\"type\": \"ByteLevel\"}]}}",
         "pre_tokenizer has no individual_digits"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
         "\"ByteLevel\", \"add_prefix_space\": false}, {\"type\": \"Digits\", "
         "\"individual_digits\": true}]}}",
         "pre_tokenizer ByteLevel is not implemented beside BPE, expected Digits before"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\"}, "
         "{\"type\": \"ByteLevel\"}]}}",
         "pre_tokenizer Split is not implemented"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", "
         "\"individual_digits\": true}, {\"type\": \"Whitespace\"}]}}",
         "pre_tokenizer Whitespace is not implemented beside BPE, expected ByteLevel"},
        {"{\"pre_tokenizer\": {\"type\": \"Digits\", \"individual_digits\": true}}",
         "pre_tokenizer Digits is not implemented beside BPE, expected ByteLevel"},
        {"{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [1, 2, 3]}}",
         "pre_tokenizer: a Sequence of 3"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}}", "pre_tokenizer has no add_prefix_space"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
         "\"use_regex\": 1}}",
         "pre_tokenizer has another kind of use_regex"},
        {"{\"decoder\": {\"type\": \"BPEDecoder\"}}", "decoder BPEDecoder is not"},
        {"{\"decoder\": {\"type\": \"Sequence\", \"decoders\": []}}", "decoder: a Sequence of 0"},
        {"{\"post_processor\": {\"type\": \"RobertaProcessing\"}}", "RobertaProcessing is not"},
        {"{\"post_processor\": {\"type\": \"ByteLevel\"}}",
         "post_processor has no add_prefix_space"},
        {"{\"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
         "\"trim_offsets\": 0}}",
         "post_processor has another kind of trim_offsets"},
        {"{\"added_tokens\": [{\"content\": \"a\", \"id\": 999, \"special\": true, "
         "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false}]}",
         "added token \"a\" has the id 999, but"},
        {"{\"model\": {\"type\": \"BPE\"}}", "model has no vocab"},
        {"{\"model\": {\"merges\": []}}", "model has no vocab"}, /* a file of before "type" */
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", "model has no merges"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %s\n", cases[i].change);
        json_t *description = bytes_description_with(cases[i].change);
        assert_description_refused(description, cases[i].words);
        json_decref(description);
    }
}

static json_t *with_model_field(const char *name, json_t *value)
{
    json_t *description = bytes_description(NULL);
    json_object_set_new(json_object_get(description, "model"), name, value);
    return description;
}

static void assert_model_refused(const char *name, json_t *value, const char *words)
{
    json_t *description = with_model_field(name, value);
    assert_description_refused(description, words);
    json_decref(description);
}

static void test_refused_models(void **state)
{
    (void)state;
    assert_model_refused("dropout", json_real(0.1), "dropout is not implemented");
    assert_model_refused("continuing_subword_prefix", json_string("##"), "continuing_subword");
    assert_model_refused("end_of_word_suffix", json_string("</w>"), "end_of_word_suffix");
    assert_model_refused("byte_fallback", json_true(), "byte_fallback is not implemented");
    assert_model_refused("ignore_merges", json_integer(1), "another kind of ignore_merges");
    assert_model_refused("unk_token", json_string("<unk>"), "no piece \"<unk>\"");
    assert_model_refused("unk_token", json_integer(0), "another kind of unk_token");
    assert_model_refused("fuse_unk", json_string("no"), "another kind of fuse_unk");
    assert_model_refused("merges", json_pack("[s]", "a"), "merges[0] is not a pair");
    assert_model_refused("merges", json_pack("[[s,s],s]", "i", "n", "a b c"),
                         "merges[1] is not a pair");
    assert_model_refused("merges", json_pack("[[s,s,s]]", "a", "b", "c"), "merges[0]");
    assert_model_refused("merges", json_pack("[i]", 3), "merges[0]");
    assert_model_refused("merges", json_pack("[s]", "\u4E2D a"),
                         "merge 0 needs the piece \"\u4E2D\"");
    assert_model_refused("merges", json_pack("[s]", "q q"), "merge 0 needs the piece \"qq\"");
    assert_model_refused("vocab", json_pack("{si,si}", "x", 5, "y", 5), "has the id 5");
}

/* What is off changes nothing, however it is written. */
static void test_settings_that_are_off(void **state)
{
    (void)state;
    static const char *const names[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *values[] = {json_null(), i == 0 ? json_real(0) : json_false(),
                            i < 3 && i > 0 ? json_string("") : json_null()};
        for (size_t j = 0; j < 3; j++) {
            json_t *description = with_model_field(names[i], values[j]);
            struct tokenizer *tokenizer = open_description(description);
            assert_pieces(tokenizer, "in", "in");
            tokenizer_close(tokenizer);
            json_decref(description);
        }
    }
    struct tokenizer *tokenizer = open_bytes("{\"decoder\": null, \"post_processor\": null}");
    assert_pieces(tokenizer, "in", "in");
    tokenizer_close(tokenizer);
}

/* A file without the field "type" that has merges is BPE. */
static void test_without_type(void **state)
{
    (void)state;
    json_t *description = bytes_description(NULL);
    json_object_del(json_object_get(description, "model"), "type");
    struct tokenizer *tokenizer = open_description(description);
    assert_int_equal(tokenizer_get_kind(tokenizer), TOKENIZER_BYTE_PAIR);
    tokenizer_close(tokenizer);
    json_decref(description);
}

static void test_flipped_bytes(void **state)
{
    (void)state;
    json_t *description = bytes_description(NULL);
    assert_flipped_bytes(description, 17);
    json_decref(description);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_fields),        cmocka_unit_test(test_refused_models),
        cmocka_unit_test(test_settings_that_are_off), cmocka_unit_test(test_without_type),
        cmocka_unit_test(test_flipped_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
