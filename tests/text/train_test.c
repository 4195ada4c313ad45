/* Tokenizers learned from a text, against the reference trainers' and their own law: what was
 * learned opens, and encodes the text in the pieces that were learned. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_train.h"
#include "tokenizer_test.h"

typedef bool trainer(const char *text, size_t text_size, int32_t size, struct attn_buffer *json,
                     struct attn_error *error);

static json_t *learn(trainer *train, const char *text, size_t text_size, int32_t size)
{
    struct attn_buffer json = {0};
    struct attn_error error;
    if (!train(text, text_size, size, &json, &error))
        fail_msg("%s", error.message);
    json_error_t problem;
    json_t *description = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, &problem);
    if (!description)
        fail_msg("line %d: %s", problem.line, problem.text);
    attn_buffer_release(&json);
    return description;
}

static const json_t *model_of(const json_t *description, const char *field)
{
    return json_object_get(json_object_get(description, "model"), field);
}

/* Calls `compare` with what `train` learns for each golden size. */
static void for_each_size(trainer *train, const char *name,
                          void (*compare)(const json_t *description, const json_t *golden))
{
    json_t *file = test_data_json("golden/tokenizer_training.json");
    const json_t *text = json_object_get(file, "text"), *sizes = json_object_get(file, name);
    assert_true(json_array_size(sizes) > 0);
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *golden = json_array_get(sizes, i);
        int32_t size = (int32_t)json_integer_value(json_object_get(golden, "size"));
        print_message("# size %d\n", (int)size);
        json_t *description = learn(train, json_string_value(text), json_string_length(text), size);
        compare(description, golden);
        json_decref(description);
    }
    json_decref(file);
}

/* The bytes of GPT-2's order, a piece a merge, and <|endoftext|>. */
static void compare_bytes(const json_t *description, const json_t *golden)
{
    const json_t *merges = model_of(description, "merges"), *vocab = model_of(description, "vocab");
    const json_t *expected = json_object_get(golden, "merges");
    assert_int_equal(json_array_size(merges), json_array_size(expected));
    for (size_t i = 0; i < json_array_size(merges); i++)
        assert_string_equal(json_string_value(json_array_get(merges, i)),
                            json_string_value(json_array_get(expected, i)));
    size_t size = 256 + json_array_size(merges) + 1;
    assert_int_equal(json_object_size(vocab), size);
    assert_int_equal(json_integer_value(json_object_get(vocab, "!")), 0);
    assert_int_equal(json_integer_value(json_object_get(vocab, "\u0143")), 255);
    assert_int_equal(json_integer_value(json_object_get(vocab, "<|endoftext|>")), size - 1);
}

static void compare_words(const json_t *description, const json_t *golden)
{
    const json_t *vocab = model_of(description, "vocab");
    const json_t *pieces = json_object_get(golden, "pieces");
    assert_int_equal(json_object_size(vocab), json_array_size(pieces));
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const char *piece = json_string_value(json_array_get(pieces, i));
        const json_t *id = json_object_get(vocab, piece);
        if (!id || json_integer_value(id) != (json_int_t)i)
            fail_msg("\"%s\" is not piece %zu", piece, i);
    }
}

static void test_golden(void **state)
{
    (void)state;
    for_each_size(byte_pair_train, "bytes", compare_bytes);
    for_each_size(word_piece_train, "words", compare_words);
}

static void test_bytes_open(void **state)
{
    (void)state;
    static const char text[] = "low lower lowest <low> low\xC3\xA9 low\n";
    json_t *description = learn(byte_pair_train, text, sizeof text - 1, 270);
    struct tokenizer *tokenizer = open_description(description);
    int32_t size = tokenizer_size(tokenizer);
    assert_true(size > BYTE_PAIR_SMALLEST && size <= 270);
    assert_int_equal(tokenizer_special(tokenizer, "<|endoftext|>"), size - 1);
    for (int32_t id = 0; id < size; id++)
        assert_non_null(tokenizer_piece(tokenizer, id));
    assert_pieces(tokenizer, "low low<|endoftext|>", "low \u0120low <|endoftext|>");
    assert_pieces(tokenizer, "\u4E2D", "\u00E4 \u00B8 \u0143"); /* never seen, and spelled */
    tokenizer_close(tokenizer);
    json_decref(description);
}

static void test_words_open(void **state)
{
    (void)state;
    static const char text[] = "Low lower LOWEST l\xC3\xB6w lowest low.";
    json_t *description = learn(word_piece_train, text, sizeof text - 1, 1000);
    struct tokenizer *tokenizer = open_description(description);
    assert_int_equal(tokenizer_special(tokenizer, "[PAD]"), 0);
    assert_int_equal(tokenizer_special(tokenizer, "[MASK]"), 4);
    assert_pieces(tokenizer, "Lowest L\u00D6W! .", "[CLS] lowest low [UNK] . [SEP]");
    assert_pair_pieces(tokenizer, "low", "lower", SPECIAL_READ, "[CLS] low [SEP] lowe ##r [SEP]");
    tokenizer_close(tokenizer);
    json_decref(description);
}

/* Nothing to learn from, and nothing to learn: the smallest vocabularies. */
static void test_smallest(void **state)
{
    (void)state;
    static const struct {
        trainer *train;
        const char *text;
        int32_t size;
        size_t entries;
    } cases[] = {
        {byte_pair_train, "", 5000, BYTE_PAIR_SMALLEST},
        {byte_pair_train, "abcd", 5000, BYTE_PAIR_SMALLEST}, /* no pair stands twice */
        {byte_pair_train, "abab abab", BYTE_PAIR_SMALLEST, BYTE_PAIR_SMALLEST},
        {word_piece_train, "", 5000, WORD_PIECE_SPECIALS},
        {word_piece_train, " \n ", 5000, WORD_PIECE_SPECIALS},
        {word_piece_train, "abc abc", WORD_PIECE_SPECIALS, WORD_PIECE_SPECIALS},
        {word_piece_train, "a b a", 1000, WORD_PIECE_SPECIALS + 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        print_message("# case %zu\n", i);
        json_t *description =
            learn(cases[i].train, cases[i].text, strlen(cases[i].text), cases[i].size);
        assert_int_equal(json_object_size(model_of(description, "vocab")), cases[i].entries);
        tokenizer_close(open_description(description));
        json_decref(description);
    }
}

/* Where not all letters have room, the most frequent ones stay, and a vocabulary is never larger
 * than it was asked for. */
static void test_letters_without_room(void **state)
{
    (void)state;
    static const char text[] = "a a a b b ab ab c \u4E2D\u4E2D \u65E5";
    for (int32_t size = WORD_PIECE_SPECIALS; size < 20; size++) {
        json_t *description = learn(word_piece_train, text, sizeof text - 1, size);
        assert_true(json_object_size(model_of(description, "vocab")) <= (size_t)size);
        json_decref(description);
    }
    json_t *description = learn(word_piece_train, text, sizeof text - 1, 8);
    const json_t *vocab = model_of(description, "vocab");
    assert_non_null(json_object_get(vocab, "a"));
    assert_non_null(json_object_get(vocab, "b"));
    assert_non_null(json_object_get(vocab, "##b"));
    json_decref(description);
}

/* Two runs give the same bytes. */
static void test_same_again(void **state)
{
    (void)state;
    static const char text[] = "the cat sat on the mat, the rat sat on the cat; 1 22 333 333";
    static trainer *const trainers[] = {byte_pair_train, word_piece_train};
    for (size_t i = 0; i < 2; i++) {
        struct attn_buffer one = {0}, other = {0};
        struct attn_error error;
        assert_true(trainers[i](text, sizeof text - 1, 300, &one, &error));
        assert_true(trainers[i](text, sizeof text - 1, 300, &other, &error));
        assert_int_equal(one.size, other.size);
        assert_memory_equal(one.data, other.data, one.size);
        attn_buffer_release(&one);
        attn_buffer_release(&other);
    }
}

/* One word of so many letters, which take one to three values: an algorithm that goes through a
 * word again for each merge would take minutes. */
static void test_long_words(void **state)
{
    (void)state;
    size_t size = 400000;
    char *text = malloc(size);
    assert_non_null(text);
    for (uint32_t letters = 1; letters <= 3; letters++) {
        uint64_t seed = letters;
        for (size_t i = 0; i < size; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = (char)('a' + (seed >> 33) % letters);
        }
        json_decref(learn(byte_pair_train, text, size, 2000));
        json_decref(learn(word_piece_train, text, size, 2000));
    }
    free(text);
}

static void assert_train_refused(trainer *train, const char *text, size_t text_size, int32_t size,
                                 const char *words)
{
    struct attn_buffer json = {0};
    struct attn_error error = {""};
    assert_false(train(text, text_size, size, &json, &error));
    assert_message(&error, words);
    assert_int_equal(json.size, 0);
    attn_buffer_release(&json);
}

static void test_refused(void **state)
{
    (void)state;
    static const char broken[] = "fine so far \xC3(";
    assert_train_refused(byte_pair_train, broken, sizeof broken - 1, 300,
                         "the text is not valid UTF-8: byte 12 is 0xc3");
    assert_train_refused(word_piece_train, broken, sizeof broken - 1, 300, "byte 12 is 0xc3");
    assert_train_refused(byte_pair_train, "a", 1, 256, "size is 256, expected 257 to 16777215");
    assert_train_refused(word_piece_train, "a", 1, 4, "size is 4, expected 5 to 16777215");
    assert_train_refused(byte_pair_train, "a", 1, -1, "size is -1");
    assert_train_refused(byte_pair_train, "a", 1, INT32_MAX, "size is 2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_bytes_open),
        cmocka_unit_test(test_words_open),
        cmocka_unit_test(test_smallest),
        cmocka_unit_test(test_letters_without_room),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
