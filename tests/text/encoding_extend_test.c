/* Tokens that a model has written, behind a text that was encoded. */
#include "text/encoding_extend.h"

#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "tokenizer_test.h"

enum { MOST = 64 };

/* The ids of a text, one behind the other. */
static size_t ids_of(const struct tokenizer *tokenizer, const char *text, int32_t ids[MOST])
{
    struct encoding encoding = encode(tokenizer, text, strlen(text), NULL, 0, SPECIAL_READ);
    const size_t count = encoding.token_count;
    assert_true(count <= MOST);
    for (size_t t = 0; t < count; t++)
        ids[t] = encoding.tokens[t].id;
    encoding_release(&encoding);
    return count;
}

/* A prompt's encoding and text with tokens behind them. */
struct extended {
    struct encoding encoding;
    struct attn_buffer text;
    size_t prompt_tokens, prompt_words;
};

static struct extended extend(const struct tokenizer *tokenizer, const char *prompt,
                              const int32_t *ids, size_t count)
{
    struct extended extended = {
        .encoding = encode(tokenizer, prompt, strlen(prompt), NULL, 0, SPECIAL_READ)};
    struct attn_error error;
    extended.prompt_tokens = extended.encoding.token_count;
    extended.prompt_words = extended.encoding.word_count;
    attn_buffer_add_text(&extended.text, prompt);
    if (!encoding_extend(&extended.encoding, tokenizer, ids, count, &extended.text, &error))
        fail_msg("%s", error.message);
    assert_int_equal(extended.encoding.token_count, extended.prompt_tokens + count);
    for (size_t t = 0; t < count; t++) {
        const struct token *token = &extended.encoding.tokens[extended.prompt_tokens + t];
        const struct word *word = &extended.encoding.words[token->word];
        assert_int_equal(token->id, ids[t]);
        assert_int_equal(token->text, 0);
        assert_int_equal(token->type, 0);
        assert_true(token->begin < token->end && token->end <= extended.text.size);
        assert_true(word->begin <= token->begin && token->end <= word->end);
        if (t > 0)
            assert_true(token->word == token[-1].word || token->word == token[-1].word + 1);
    }
    return extended;
}

static void release(struct extended *extended)
{
    encoding_release(&extended->encoding);
    attn_buffer_release(&extended->text);
}

static void assert_text(const struct extended *extended, const char *text)
{
    assert_int_equal(extended->text.size, strlen(text));
    assert_memory_equal(extended->text.data, text, strlen(text));
}

/* The words behind the prompt with a bar before each. */
static void assert_words(const struct extended *extended, const char *barred)
{
    struct attn_buffer found = {0};
    for (size_t n = extended->prompt_words; n < extended->encoding.word_count; n++) {
        const struct word *word = &extended->encoding.words[n];
        assert_int_equal(word->text, 0);
        attn_buffer_add_text(&found, "|");
        attn_buffer_add(&found, extended->text.data + word->begin, word->end - word->begin);
    }
    assert_string_equal(found.data ? found.data : "", barred);
    attn_buffer_release(&found);
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        const char *prompt, *written, *words;
    } cases[] = {
        {"It was", " heavy.", "| heavy|."},
        {"It was hea", "vy, and it's 12th", "|vy|,| and| it|'|s| 12|th"},
        {"It", "\n\n  two  blanks", "|\n|\n| | two| | blanks"},
        {"na", "\u00EFve \u4E2D\u6587 \U0001F600!", "|\u00EFve| \u4E2D\u6587| \U0001F600!"},
        {"", "from nothing", "|from| nothing"},
    };
    struct tokenizer *tokenizer = open_bytes(NULL);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        int32_t ids[MOST];
        char all[256];
        const size_t count = ids_of(tokenizer, cases[n].written, ids);
        struct extended extended = extend(tokenizer, cases[n].prompt, ids, count);
        snprintf(all, sizeof all, "%s%s", cases[n].prompt, cases[n].written);
        assert_text(&extended, all);
        assert_words(&extended, cases[n].words);
        release(&extended);
    }
    tokenizer_close(tokenizer);
}

/* Each of a character's tokens has the whole character. */
static void test_cut_characters(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    int32_t ids[MOST];
    const size_t count = ids_of(tokenizer, "a\U0010FFFFb", ids);
    assert_true(count > 4); /* it has no merges for it */
    struct extended extended = extend(tokenizer, "so", ids, count);
    assert_text(&extended, "soa\U0010FFFFb");
    for (size_t t = 1; t + 1 < count; t++) {
        const struct token *token = &extended.encoding.tokens[extended.prompt_tokens + t];
        assert_int_equal(token->begin, 3);
        assert_int_equal(token->end, 7);
    }
    release(&extended);

    /* Cut at its end, it is none; and what goes on from nothing is none too. */
    extended = extend(tokenizer, "so", ids, count - 2);
    assert_text(&extended, "soa\uFFFD");
    release(&extended);
    extended = extend(tokenizer, "so", ids + count - 2, 2);
    assert_text(&extended, "so\uFFFDb");
    assert_words(&extended, "|\uFFFD|b");
    release(&extended);
    tokenizer_close(tokenizer);
}

static void test_special_tokens(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    int32_t ids[MOST];
    const size_t count = ids_of(tokenizer, "a.<|endoftext|><|endoftext|>!", ids);
    assert_int_equal(count, 5);
    struct extended extended = extend(tokenizer, "so", ids, count);
    assert_text(&extended, "soa.<|endoftext|><|endoftext|>!");
    assert_words(&extended, "|a|.|<|endoftext|>|<|endoftext|>|!");
    release(&extended);
    tokenizer_close(tokenizer);
}

/* What was there is as it was. */
static void test_refused(void **state)
{
    (void)state;
    struct tokenizer *tokenizer = open_bytes(NULL);
    struct encoding encoding = encode(tokenizer, "It was", 6, NULL, 0, SPECIAL_READ);
    const size_t tokens = encoding.token_count, words = encoding.word_count;
    struct attn_buffer text = {0};
    attn_buffer_add_text(&text, "It was");
    struct attn_error error;
    const int32_t ids[] = {3, 999999};
    assert_false(encoding_extend(&encoding, tokenizer, ids, 2, &text, &error));
    assert_message(&error, "999999");
    assert_true(encoding_extend(&encoding, tokenizer, ids, 0, &text, &error));
    assert_int_equal(encoding.token_count, tokens);
    assert_int_equal(encoding.word_count, words);
    assert_string_equal(text.data, "It was");
    tokenizer_close(tokenizer);

    tokenizer = open_small(NULL);
    assert_false(encoding_extend(&encoding, tokenizer, ids, 1, &text, &error));
    assert_message(&error, "byte-level BPE only");
    tokenizer_close(tokenizer);
    encoding_release(&encoding);
    attn_buffer_release(&text);
}

struct attempt {
    struct tokenizer *tokenizer;
    struct encoding encoding;
    struct attn_buffer text;
};

static bool extend_once(void *user, struct attn_error *error)
{
    struct attempt *attempt = user;
    const int32_t ids[] = {3, 70, 80};
    const size_t tokens = attempt->encoding.token_count, size = attempt->text.size;
    attempt->text.failed = false;
    if (encoding_extend(&attempt->encoding, attempt->tokenizer, ids, 3, &attempt->text, error))
        return true;
    assert_int_equal(attempt->encoding.token_count, tokens);
    assert_int_equal(attempt->text.size, size);
    return false;
}

static void test_allocations(void **state)
{
    (void)state;
    struct attempt attempt = {.tokenizer = open_bytes(NULL)};
    attempt.encoding = encode(attempt.tokenizer, "It was", 6, NULL, 0, SPECIAL_READ);
    attn_buffer_add_text(&attempt.text, "It was");
    assert_true(allocation_sweep(extend_once, &attempt) >= 7);
    encoding_release(&attempt.encoding);
    attn_buffer_release(&attempt.text);
    tokenizer_close(attempt.tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),          cmocka_unit_test(test_cut_characters),
        cmocka_unit_test(test_special_tokens), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
