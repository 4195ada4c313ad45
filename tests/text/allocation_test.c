/* Each allocation fails in turn: a message, and nothing leaks.
 *
 * jansson's own are left alone: its parser (2.14) does not notice when the buffer of a string
 * longer than 15 bytes cannot grow, and reads past it. */
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "scratch_folder.h"
#include "text/chat_template.h"
#include "text/tokenizer_lists.h"
#include "tokenizer_test.h"

void *__real_malloc(size_t size);

static const char text[] = "The na\xC3\xAFve a\xCC\xA7\xCC\x81 robot [MASK] <x> played.";

static bool open_and_encode(void *user, struct attn_error *error)
{
    struct tokenizer *tokenizer;
    struct encoding encoding;
    const struct tokenizer_input input = {text, sizeof text - 1, "rain", 4, SPECIAL_READ};
    json_set_alloc_funcs(__real_malloc, free);
    if (!tokenizer_open(&tokenizer, user, error))
        return false;
    bool done = tokenizer_encode(tokenizer, &input, &encoding, error);
    if (done)
        encoding_release(&encoding);
    tokenizer_close(tokenizer);
    return done;
}

static void sweep(const char *name, const char *content)
{
    char *folder = scratch_folder_create();
    scratch_write_text(folder, name, content);
    assert_true(allocation_sweep(open_and_encode, folder) > 10);
    scratch_folder_remove(folder);
}

static void test_json(void **state)
{
    (void)state;
    sweep(
        "tokenizer.json",
        "{\"added_tokens\": [{\"id\": 9, \"content\": \"<X>\", \"special\": false, "
        "\"single_word\": "
        "false, \"lstrip\": false, \"rstrip\": false, \"normalized\": true}, {\"id\": 4, "
        "\"content\": \"[MASK]\", \"special\": true, \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false}], \"normalizer\": {\"type\": "
        "\"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
        "\"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": "
        "\"BertPreTokenizer\"}, \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
        "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [{\"Sequence\": {\"id\": "
        "\"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}, "
        "{\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}], \"special_tokens\": {\"[SEP]\": "
        "{\"ids\": [2]}}}, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
        "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": "
        "{\"[UNK]\": 0, \"[SEP]\": 2, \"[MASK]\": 4, \"the\": 5, \"rain\": 6}}}");
}

static void test_bytes_json(void **state)
{
    (void)state;
    sweep(
        "tokenizer.json",
        "{\"added_tokens\": [{\"id\": 9, \"content\": \"[MASK]\", \"special\": true, "
        "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false}, "
        "{\"id\": 8, \"content\": \"<x>\", \"special\": false, \"single_word\": false, "
        "\"lstrip\": false, \"rstrip\": false, \"normalized\": true}], \"pre_tokenizer\": {\"type\": "
        "\"ByteLevel\", \"add_prefix_space\": true}, \"post_processor\": {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": true, \"trim_offsets\": true}, \"model\": {\"type\": \"BPE\", "
        "\"vocab\": {\"a\": 0, \"r\": 1, \"o\": 2, \"ra\": 3}, \"merges\": [[\"r\", \"a\"]]}}");
}

/* Whole words are looked for by their spelling. */
static void test_whole_words(void **state)
{
    (void)state;
    sweep("tokenizer.json",
          "{\"added_tokens\": [], \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
          "[{\"type\": \"Digits\", \"individual_digits\": true}, {\"type\": \"ByteLevel\", "
          "\"add_prefix_space\": true}]}, \"model\": {\"type\": \"BPE\", \"ignore_merges\": true, "
          "\"vocab\": {\"a\": 0, \"r\": 1, \"o\": 2, \"ra\": 3}, \"merges\": []}}");
}

static struct text_span span_of(const char *spelling)
{
    return (struct text_span){spelling, strlen(spelling)};
}

static bool open_lists_and_chat(void *user, struct attn_error *error)
{
    const struct text_span tokens[] = {span_of("<|im_start|>"), span_of("<|im_end|>"), span_of("e"),
                                       span_of("r"), span_of("er")};
    const struct text_span merges[] = {span_of("e r")};
    const int32_t kinds[] = {LISTED_CONTROL, LISTED_CONTROL, LISTED_NORMAL, LISTED_NORMAL,
                             LISTED_NORMAL};
    const struct tokenizer_lists lists = {
        "a.gguf", span_of("smollm"), tokens, kinds, 5, merges, 1, 2, false};
    struct tokenizer *tokenizer = NULL;
    struct chat_template *chat = NULL;
    struct chat_tokens ids = {0};
    bool done = tokenizer_open_lists(&tokenizer, &lists, error) &&
                chat_template_open(&chat, user, strlen(user), error) &&
                chat_template_add(chat, tokenizer, CHAT_USER, "erer", 4, &ids, error) &&
                chat_template_ask(chat, tokenizer, &ids, error) &&
                chat_template_end(chat, tokenizer, &ids, error);
    chat_tokens_release(&ids);
    chat_template_close(chat);
    tokenizer_close(tokenizer);
    return done;
}

static void test_lists_and_chat(void **state)
{
    (void)state;
    static char source[] =
        "{% for m in messages %}{% if loop.first and m.role != 'system' %}{{ '<|im_start|>system\\n' "
        "}}{{ 'er<|im_end|>\\n' }}{% endif %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "
        "'<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}";
    assert_true(allocation_sweep(open_lists_and_chat, source) > 10);
}

static void test_vocabulary_file(void **state)
{
    (void)state;
    sweep("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nrobot\nplay\n##ed\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_bytes_json),
        cmocka_unit_test(test_whole_words),
        cmocka_unit_test(test_lists_and_chat),
        cmocka_unit_test(test_vocabulary_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
