#include "tokenizer_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "scratch_folder.h"

void for_each_case(const char *operation,
                   void (*run)(const json_t *input, const json_t *expected, void *user), void *user)
{
    json_t *file = test_data_json("cases/tokenizer.json");
    const json_t *cases = json_object_get(file, "cases");
    int count = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        if (strcmp(json_string_value(json_object_get(one, "op")), operation) != 0)
            continue;
        print_message("# %s\n", json_string_value(json_object_get(one, "name")));
        run(json_object_get(one, "input"), json_object_get(one, "expected"), user);
        count++;
    }
    json_decref(file);
    assert_true(count > 0);
}

static json_t *describe(const char *file, const json_t *change)
{
    json_t *description = test_data_json(file);
    if (change)
        assert_int_equal(json_object_update(description, (json_t *)change), 0);
    return description;
}

json_t *small_description(const json_t *change)
{
    return describe("golden/tokenizer_small.json", change);
}

json_t *bytes_description(const json_t *change)
{
    return describe("golden/tokenizer_bytes.json", change);
}

static json_t *describe_with(json_t *(*description_of)(const json_t *change), const char *change)
{
    json_error_t problem;
    json_t *fields = json_loads(change, 0, &problem);
    if (!fields)
        fail_msg("%s: %s", change, problem.text);
    json_t *description = description_of(fields);
    json_decref(fields);
    return description;
}

json_t *small_description_with(const char *change)
{
    return describe_with(small_description, change);
}

json_t *bytes_description_with(const char *change)
{
    return describe_with(bytes_description, change);
}

bool try_text(const char *text, size_t size, struct tokenizer **tokenizer, struct attn_error *error)
{
    char *folder = scratch_folder_create();
    scratch_write(folder, "tokenizer.json", text, size);
    bool done = tokenizer_open(tokenizer, folder, error);
    scratch_folder_remove(folder);
    return done;
}

bool try_description(const json_t *description, struct tokenizer **tokenizer,
                     struct attn_error *error)
{
    char *text = json_dumps(description, 0);
    assert_non_null(text);
    bool done = try_text(text, strlen(text), tokenizer, error);
    free(text);
    return done;
}

struct tokenizer *open_description(const json_t *description)
{
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!try_description(description, &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

void assert_description_refused(const json_t *description, const char *words)
{
    struct tokenizer *tokenizer;
    struct attn_error error = {""};
    if (try_description(description, &tokenizer, &error))
        fail_msg("opened, expected \"%s\"", words);
    assert_null(tokenizer);
    assert_message(&error, words);
}

void assert_flipped_bytes(const json_t *description, size_t step)
{
    static const char bytes[] = "\"{}[],:0-9e\\\xFF";
    char *text = json_dumps(description, 0);
    assert_non_null(text);
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i += step) {
        struct tokenizer *tokenizer;
        struct attn_error error = {""};
        char kept = text[i];
        text[i] = bytes[i % (sizeof bytes - 1)];
        if (!try_text(text, size, &tokenizer, &error))
            assert_true(error.message[0] != '\0');
        tokenizer_close(tokenizer);
        text[i] = kept;
    }
    free(text);
}

static struct tokenizer *open_and_release(json_t *description)
{
    struct tokenizer *tokenizer = open_description(description);
    json_decref(description);
    return tokenizer;
}

struct tokenizer *open_small(const char *change)
{
    return open_and_release(small_description_with(change ? change : "{}"));
}

struct tokenizer *open_bytes(const char *change)
{
    return open_and_release(bytes_description_with(change ? change : "{}"));
}

struct tokenizer *open_model(void)
{
    const char *directory = getenv("ATTN_TEST_MODEL");
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!directory || !*directory)
        skip_because("ATTN_TEST_MODEL is not set");
    if (!tokenizer_open(&tokenizer, directory, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

struct encoding encode(const struct tokenizer *tokenizer, const char *text, size_t size,
                       const char *pair, size_t pair_size, enum special_spelling specials)
{
    const struct tokenizer_input input = {text, size, pair, pair_size, specials};
    struct encoding encoding;
    struct attn_error error;
    if (!tokenizer_encode(tokenizer, &input, &encoding, &error))
        fail_msg("%s", error.message);
    return encoding;
}

void assert_pair_pieces(const struct tokenizer *tokenizer, const char *text, const char *pair,
                        enum special_spelling specials, const char *expected)
{
    struct encoding encoding =
        encode(tokenizer, text, strlen(text), pair, pair ? strlen(pair) : 0, specials);
    struct attn_buffer pieces = {0};
    for (size_t i = 0; i < encoding.token_count; i++) {
        if (i > 0)
            attn_buffer_add_text(&pieces, " ");
        attn_buffer_add_text(&pieces, tokenizer_piece(tokenizer, encoding.tokens[i].id));
    }
    assert_string_equal(pieces.data ? pieces.data : "", expected);
    attn_buffer_release(&pieces);
    encoding_release(&encoding);
}

void assert_pieces(const struct tokenizer *tokenizer, const char *text, const char *expected)
{
    assert_pair_pieces(tokenizer, text, NULL, SPECIAL_READ, expected);
}

static void add_repeated(struct attn_buffer *buffer, const json_t *repeated)
{
    const json_t *text = json_array_get(repeated, 0);
    json_int_t times = json_integer_value(json_array_get(repeated, 1));
    for (json_int_t i = 0; i < times; i++)
        attn_buffer_add(buffer, json_string_value(text), json_string_length(text));
}

char *expand_text(const json_t *text, size_t *size)
{
    struct attn_buffer buffer = {0};
    const json_t *repeat = json_object_get(text, "repeat");
    if (json_is_string(text))
        attn_buffer_add(&buffer, json_string_value(text), json_string_length(text));
    else if (json_is_array(json_array_get(repeat, 0)))
        for (size_t i = 0; i < json_array_size(repeat); i++)
            add_repeated(&buffer, json_array_get(repeat, i));
    else
        add_repeated(&buffer, repeat);
    assert_false(buffer.failed);
    *size = buffer.size;
    if (buffer.data)
        return buffer.data;
    char *empty = calloc(1, 1); /* an empty pair is not the same as none */
    assert_non_null(empty);
    return empty;
}

static json_int_t number(const json_t *array, size_t index)
{
    return json_integer_value(json_array_get(array, index));
}

static void compare_tokens(const struct encoding *encoding, const json_t *expected)
{
    assert_int_equal(encoding->token_count, json_array_size(expected));
    for (size_t i = 0; i < encoding->token_count; i++) {
        const struct token *token = &encoding->tokens[i];
        const json_t *row = json_array_get(expected, i);
        assert_int_equal(token->id, number(row, 0));
        assert_int_equal(token->type, number(row, 1));
        assert_int_equal(token->text, number(row, 2));
        assert_int_equal(token->word, number(row, 3));
        assert_int_equal(token->begin, number(row, 4));
        assert_int_equal(token->end, number(row, 5));
    }
}

static void compare_words(const struct encoding *encoding, const json_t *expected)
{
    assert_int_equal(encoding->word_count, json_array_size(expected));
    for (size_t i = 0; i < encoding->word_count; i++) {
        const struct word *word = &encoding->words[i];
        const json_t *row = json_array_get(expected, i);
        assert_int_equal(word->text, number(row, 0));
        assert_int_equal(word->begin, number(row, 1));
        assert_int_equal(word->end, number(row, 2));
    }
}

static void compare_answer(const struct tokenizer *tokenizer, const json_t *answer)
{
    size_t size, pair_size = 0;
    const json_t *pair_json = json_object_get(answer, "pair");
    char *text = expand_text(json_object_get(answer, "text"), &size);
    char *pair = pair_json ? expand_text(pair_json, &pair_size) : NULL;
    bool plain = json_is_true(json_object_get(answer, "plain"));
    struct encoding encoding =
        encode(tokenizer, text, size, pair, pair_size, plain ? SPECIAL_PLAIN : SPECIAL_READ);
    compare_tokens(&encoding, json_object_get(answer, "tokens"));
    compare_words(&encoding, json_object_get(answer, "words"));
    encoding_release(&encoding);
    free(text);
    free(pair);
}

void assert_answers(const struct tokenizer *tokenizer, const json_t *answers)
{
    assert_true(json_array_size(answers) > 0);
    for (size_t i = 0; i < json_array_size(answers); i++) {
        print_message("# text %zu\n", i);
        compare_answer(tokenizer, json_array_get(answers, i));
    }
}
