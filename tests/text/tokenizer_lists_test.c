/* A tokenizer from lists is that of the tokenizer.json that says the same. */
#include "text/tokenizer_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer_test.h"

enum { TOKEN_LIMIT = 512 };

/* The lists of the golden byte-level tokenizer. */
struct fixture {
    json_t *description;
    struct text_span tokens[TOKEN_LIMIT], merges[TOKEN_LIMIT];
    int32_t kinds[TOKEN_LIMIT];
    struct tokenizer_lists lists;
};

static struct text_span span_of(const char *text)
{
    return (struct text_span){text, strlen(text)};
}

static void read_fixture(struct fixture *fixture)
{
    const char *piece;
    json_t *id, *model, *merges;
    memset(fixture, 0, sizeof *fixture);
    fixture->description = bytes_description(NULL);
    model = json_object_get(fixture->description, "model");
    json_object_foreach (json_object_get(model, "vocab"), piece, id) {
        fixture->tokens[json_integer_value(id)] = span_of(piece);
        fixture->kinds[json_integer_value(id)] = LISTED_NORMAL;
        fixture->lists.token_count++;
    }
    fixture->kinds[0] = LISTED_CONTROL; /* <|endoftext|> */
    merges = json_object_get(model, "merges");
    for (size_t i = 0; i < json_array_size(merges); i++) {
        json_t *pair = json_array_get(merges, i);
        json_t *joined = json_sprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                                      json_string_value(json_array_get(pair, 1)));
        json_array_set_new(merges, i, joined);
        fixture->merges[i] = span_of(json_string_value(joined));
    }
    fixture->lists.file = "lists.gguf";
    fixture->lists.splits = span_of("gpt-2");
    fixture->lists.tokens = fixture->tokens;
    fixture->lists.kinds = fixture->kinds;
    fixture->lists.merges = fixture->merges;
    fixture->lists.merge_count = json_array_size(merges);
    fixture->lists.first_id = -1;
}

static struct tokenizer *open_lists(const struct tokenizer_lists *lists)
{
    struct tokenizer *tokenizer;
    struct attn_error error;
    if (!tokenizer_open_lists(&tokenizer, lists, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

static void assert_refused(const struct tokenizer_lists *lists, const char *words)
{
    struct tokenizer *tokenizer;
    struct attn_error error = {""};
    print_message("# %s\n", words);
    if (tokenizer_open_lists(&tokenizer, lists, &error))
        fail_msg("opened, expected \"%s\"", words);
    assert_null(tokenizer);
    assert_message(&error, "lists.gguf: ");
    assert_message(&error, words);
}

/* The golden answers of a group with this name. */
static void assert_group(const struct tokenizer *tokenizer, const char *name)
{
    json_t *golden = test_data_json("golden/tokenizer_bytes_settings.json");
    const json_t *groups = json_object_get(golden, "groups");
    size_t i = 0;
    while (strcmp(json_string_value(json_object_get(json_array_get(groups, i), "name")), name) != 0)
        assert_true(++i < json_array_size(groups));
    assert_answers(tokenizer, json_object_get(json_array_get(groups, i), "texts"));
    json_decref(golden);
}

static void test_splits(void **state)
{
    (void)state;
    static const struct {
        const char *splits, *group;
        bool prefix_space;
    } cases[] = {
        {"gpt-2", "many texts", false},
        {"phi-2", "prefix True, pattern True", true},
        {"smollm", "digits True, prefix False, pattern True", false},
        {"starcoder", "digits True, prefix True, pattern True", true},
    };
    struct fixture fixture;
    read_fixture(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# %s\n", cases[i].splits);
        fixture.lists.splits = span_of(cases[i].splits);
        fixture.lists.prefix_space = cases[i].prefix_space;
        struct tokenizer *tokenizer = open_lists(&fixture.lists);
        assert_group(tokenizer, cases[i].group);
        tokenizer_close(tokenizer);
    }
    fixture.lists.splits = span_of("mystery-7");
    assert_refused(&fixture.lists, "pre-tokenizer mystery-7 is not known");
    fixture.lists.splits = (struct text_span){"gpt-22", 4};
    assert_refused(&fixture.lists, "pre-tokenizer gpt- is not known");
    fixture.lists.splits = (struct text_span){NULL, 0};
    assert_refused(&fixture.lists, "pre-tokenizer  is not known");
    json_decref(fixture.description);
}

static void assert_decoded(const struct tokenizer *tokenizer, const char *text,
                           const char *expected)
{
    struct encoding encoding = encode(tokenizer, text, strlen(text), NULL, 0, SPECIAL_READ);
    struct attn_buffer decoded = {0};
    struct attn_error error;
    for (size_t i = 0; i < encoding.token_count; i++)
        assert_true(tokenizer_decode(tokenizer, &encoding.tokens[i].id, 1, &decoded, &error));
    assert_string_equal(decoded.data, expected);
    attn_buffer_release(&decoded);
    encoding_release(&encoding);
}

static void test_kinds(void **state)
{
    (void)state;
    struct fixture fixture;
    read_fixture(&fixture);
    size_t count = fixture.lists.token_count;
    fixture.tokens[count] = span_of("<tool>");
    fixture.kinds[count] = LISTED_USER_DEFINED;
    fixture.tokens[count + 1] = span_of("[PAD420]");
    fixture.kinds[count + 1] = LISTED_UNUSED;
    fixture.tokens[count + 2] = span_of("<unk>");
    fixture.kinds[count + 2] = LISTED_UNKNOWN;
    fixture.lists.token_count = count + 3;
    struct tokenizer *tokenizer = open_lists(&fixture.lists);
    assert_int_equal(tokenizer_size(tokenizer), count + 3);
    assert_int_equal(tokenizer_special(tokenizer, "<|endoftext|>"), 0);
    assert_int_equal(tokenizer_special(tokenizer, "<tool>"), count);
    assert_int_equal(tokenizer_special(tokenizer, "[PAD420]"), -1);
    assert_string_equal(tokenizer_piece(tokenizer, (int32_t)count + 1), "[PAD420]");
    assert_pieces(tokenizer, "a<tool>in<unk>", "a <tool> in <unk>");
    assert_pieces(tokenizer, "[PAD4", "[ P A D 4");
    assert_pair_pieces(tokenizer, "<tool><|endoftext|>", NULL, SPECIAL_PLAIN,
                       "<tool> < | en d o f t ex t | >");
    assert_decoded(tokenizer, "a<tool> in<|endoftext|>", "a<tool> in");
    tokenizer_close(tokenizer);

    struct tokenizer_lists bytes = fixture.lists;
    fixture.kinds[1] = LISTED_UNUSED; /* "!" */
    bytes.merge_count = 0;
    tokenizer = open_lists(&bytes);
    assert_pieces(tokenizer, "a!b", "a b");
    tokenizer_close(tokenizer);

    fixture.lists.kinds = NULL; /* all normal */
    tokenizer = open_lists(&fixture.lists);
    assert_int_equal(tokenizer_special(tokenizer, "<|endoftext|>"), -1);
    assert_pieces(tokenizer, "|>", "| >");
    tokenizer_close(tokenizer);
    json_decref(fixture.description);
}

static void test_first_id(void **state)
{
    (void)state;
    struct fixture fixture;
    read_fixture(&fixture);
    fixture.lists.first_id = 0;
    struct tokenizer *tokenizer = open_lists(&fixture.lists);
    assert_pieces(tokenizer, "in", "<|endoftext|> in");
    assert_pair_pieces(tokenizer, "in", "a", SPECIAL_READ, "<|endoftext|> in <|endoftext|> a");
    tokenizer_close(tokenizer);
    fixture.lists.first_id = (int32_t)fixture.lists.token_count;
    assert_refused(&fixture.lists, "the first token has the id 420, which no token has");
    fixture.lists.first_id = -2;
    assert_refused(&fixture.lists, "the first token has the id -2");
    json_decref(fixture.description);
}

static void test_refused_tokens(void **state)
{
    (void)state;
    static const struct {
        struct text_span token;
        int32_t kind;
        const char *words;
    } cases[] = {
        {{"in", 2}, LISTED_NORMAL, "token 294 repeats token 7, \"in\""},
        {{"", 0}, LISTED_NORMAL, "token 7 is not UTF-8 text"},
        {{"a\0b", 3}, LISTED_NORMAL, "token 7 is not UTF-8 text"},
        {{"\xC3", 1}, LISTED_NORMAL, "token 7 is not UTF-8 text"},
        {{"<0x07>", 6}, LISTED_BYTE, "token 7 is of kind 6"},
        {{"'", 1}, 0, "token 7 is of kind 0, expected 1 to 5"},
        {{"'", 1}, 7, "token 7 is of kind 7"},
        {{"'", 1}, -1, "token 7 is of kind -1"},
    };
    struct fixture fixture;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_fixture(&fixture);
        fixture.tokens[7] = cases[i].token;
        fixture.kinds[7] = cases[i].kind;
        assert_refused(&fixture.lists, cases[i].words);
        json_decref(fixture.description);
    }
    read_fixture(&fixture);
    fixture.lists.token_count = 0;
    assert_refused(&fixture.lists, "the vocabulary has 0 tokens");
    fixture.lists.token_count = (size_t)1 << 24;
    assert_refused(&fixture.lists, "the vocabulary has 16777216 tokens");
    json_decref(fixture.description);
}

static void test_refused_merges(void **state)
{
    (void)state;
    static const struct {
        struct text_span merge;
        const char *words;
    } cases[] = {
        {{"", 0}, "merge 5 is not a pair of pieces"},
        {{NULL, 0}, "merge 5 is not a pair of pieces"},
        {{"in", 2}, "merge 5 is not a pair of pieces"},
        {{" n", 2}, "merge 5 is not a pair of pieces"},
        {{"i ", 2}, "merge 5 is not a pair of pieces"},
        {{"i n g", 5}, "merge 5 is not a pair of pieces"},
        {{"i q", 3}, "merge 5 needs the piece \"iq\""},
        {{"zz n", 4}, "merge 5 needs the piece \"zz\""},
        {{"i\0 n", 4}, "merge 5 needs the piece"},
    };
    struct fixture fixture;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_fixture(&fixture);
        fixture.merges[5] = cases[i].merge;
        assert_refused(&fixture.lists, cases[i].words);
        json_decref(fixture.description);
    }
    read_fixture(&fixture);
    fixture.lists.merge_count = ((size_t)1 << 24) + 1;
    struct tokenizer *tokenizer;
    struct attn_error error;
    assert_false(tokenizer_open_lists(&tokenizer, &fixture.lists, &error));
    assert_message(&error, "the model has 16777217 merges");
    json_decref(fixture.description);
}

/* Bytes that the vocabulary has no piece for are left out, counted, and the first one told. */
static void test_dropped_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    read_fixture(&fixture);
    fixture.tokens[1] = span_of("<1>"); /* instead of ! */
    fixture.lists.merge_count = 0;
    fixture.tokens[2] = span_of("<2>"); /* instead of " */
    struct tokenizer *tokenizer = open_lists(&fixture.lists);
    struct encoding encoding = encode(tokenizer, "a\"b! !!", 7, "!", 1, SPECIAL_READ);
    assert_int_equal(encoding.dropped_count, 5);
    assert_int_equal(encoding.first_dropped, '"');
    assert_int_equal(encoding.token_count, 3);
    assert_int_equal(encoding.tokens[1].begin, 2);
    encoding_release(&encoding);
    encoding = encode(tokenizer, "a b", 3, NULL, 0, SPECIAL_READ);
    assert_int_equal(encoding.dropped_count, 0);
    encoding_release(&encoding);
    tokenizer_close(tokenizer);
    json_decref(fixture.description);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),         cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_first_id),       cmocka_unit_test(test_refused_tokens),
        cmocka_unit_test(test_refused_merges), cmocka_unit_test(test_dropped_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
