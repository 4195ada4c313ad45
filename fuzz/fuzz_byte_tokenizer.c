#include <string.h>

#include "fuzz_target.h"
#include "text/byte_level.h"
#include "text/tokenizer_lists.h"

static struct text_span span(const char *text)
{
    return (struct text_span){text, strlen(text)};
}

struct tokenizer *fuzz_byte_tokenizer(const char *splits)
{
    static const char *const merged[] = {"th", "the", "\xC4\xA0the", "aa", "aaaa", "ll"};
    static const char *const merges[] = {"t h", "th e", "\xC4\xA0 the", "a a", "aa aa", "l l"};
    static const char *const markers[] = {"<|im_start|>", "<|im_end|>", "<|endoftext|>"};
    enum { BYTES = 256, MERGES = 6, MARKERS = 3, TOKENS = BYTES + MERGES + MARKERS };

    struct attn_buffer spellings[BYTES] = {0};
    struct text_span tokens[TOKENS];
    struct text_span merge_spans[MERGES];
    int32_t kinds[TOKENS];
    size_t count = 0;
    for (int byte = 0; byte < BYTES; byte++) {
        byte_level_spell(&(char){(char)byte}, 1, &spellings[byte]);
        kinds[count] = LISTED_NORMAL;
        tokens[count++] = (struct text_span){spellings[byte].data, spellings[byte].size};
    }
    for (int i = 0; i < MERGES; i++) {
        merge_spans[i] = span(merges[i]);
        kinds[count] = LISTED_NORMAL;
        tokens[count++] = span(merged[i]);
    }
    for (int i = 0; i < MARKERS; i++) {
        kinds[count] = LISTED_CONTROL;
        tokens[count++] = span(markers[i]);
    }
    const struct tokenizer_lists lists = {
        .file = "bytes",
        .splits = span(splits),
        .tokens = tokens,
        .kinds = kinds,
        .token_count = count,
        .merges = merge_spans,
        .merge_count = MERGES,
        .first_id = -1,
    };
    struct attn_error error;
    struct tokenizer *tokenizer;
    REQUIRE(tokenizer_open_lists(&tokenizer, &lists, &error));
    for (int byte = 0; byte < BYTES; byte++)
        attn_buffer_release(&spellings[byte]);
    return tokenizer;
}
