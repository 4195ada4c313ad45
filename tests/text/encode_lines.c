/* Answers each line {"text", "pair", "plain"} on standard input with one of
 * {"tokens": [[id, type, text, word, begin, end]], "words": [[text, begin, end]]}: the side of attn
 * for scripts/compare_tokenizer*.py.
 *
 *     encode_lines MODEL_DIRECTORY or FILE.gguf */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_source.h"
#include "text/tokenizer.h"

static json_t *describe(const struct encoding *encoding)
{
    json_t *tokens = json_array(), *words = json_array();
    for (size_t i = 0; i < encoding->token_count; i++) {
        const struct token *t = &encoding->tokens[i];
        json_array_append_new(tokens,
                              json_pack("[iiiiII]", (int)t->id, (int)t->type, (int)t->text,
                                        (int)t->word, (json_int_t)t->begin, (json_int_t)t->end));
    }
    for (size_t i = 0; i < encoding->word_count; i++) {
        const struct word *w = &encoding->words[i];
        json_array_append_new(
            words, json_pack("[iII]", (int)w->text, (json_int_t)w->begin, (json_int_t)w->end));
    }
    return json_pack("{soso}", "tokens", tokens, "words", words);
}

static bool answer(const struct tokenizer *tokenizer, const char *line, struct attn_error *error)
{
    json_t *request = json_loads(line, JSON_ALLOW_NUL, NULL);
    const json_t *text = json_object_get(request, "text"), *pair = json_object_get(request, "pair");
    const struct tokenizer_input input = {
        .text = json_string_value(text),
        .text_size = json_string_length(text),
        .pair = json_string_value(pair),
        .pair_size = json_string_length(pair),
        .specials = json_is_true(json_object_get(request, "plain")) ? SPECIAL_PLAIN : SPECIAL_READ,
    };
    struct encoding encoding;
    bool done = tokenizer_encode(tokenizer, &input, &encoding, error);
    if (done) {
        json_t *description = describe(&encoding);
        json_dumpf(description, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(description);
        encoding_release(&encoding);
    }
    json_decref(request);
    return done;
}

/* A directory may hold nothing but a tokenizer. */
static bool open_tokenizer(struct tokenizer **tokenizer, const char *path, struct attn_error *error)
{
    static const char ending[] = ".gguf";
    size_t size = strlen(path), length = sizeof ending - 1;
    struct model_source *source;
    if (size < length || strcmp(path + size - length, ending) != 0)
        return tokenizer_open(tokenizer, path, error);
    if (!model_source_open(&source, path, error))
        return false;
    bool done = model_source_tokenizer(source, tokenizer, error);
    model_source_close(source);
    return done;
}

int main(int count, char **arguments)
{
    struct attn_error error;
    struct tokenizer *tokenizer = NULL;
    if (count != 2)
        return 2;
    bool done = open_tokenizer(&tokenizer, arguments[1], &error);
    char *line = NULL;
    size_t size = 0;
    while (done && getline(&line, &size, stdin) > 0)
        done = answer(tokenizer, line, &error);
    free(line);
    tokenizer_close(tokenizer);
    if (!done)
        fprintf(stderr, "%s\n", error.message);
    return done ? 0 : 1;
}
