/* BertNormalizer: what BERT does to a text before it is split, with each byte of the result tied to
 * the bytes of the text that it came from.
 *
 * In this order: clean the text of control characters and make all white space a space; set
 * ideographs apart with spaces; strip accents (decompose, drop nonspacing marks); lower case,
 * letter by letter. */
#ifndef ATTN_TEXT_BERT_NORMALIZER_H
#define ATTN_TEXT_BERT_NORMALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bert_normalizer {
    bool clean_text;
    bool handle_chinese_chars;
    bool strip_accents;
    bool lowercase;
};

/* Bytes begin..end−1 of the text that was given. */
struct source_span {
    uint32_t begin, end;
};

struct combining_mark;

/* Start from zeros; may be used for many texts in turn. */
struct normalized_text {
    char *bytes;               /* [size], UTF-8 */
    struct source_span *spans; /* [size]; never descending, equal for all bytes of one character */
    size_t size, capacity;

    /* Workspace: marks that wait for the end of their run, to be ordered. */
    struct combining_mark *marks;
    size_t mark_count, mark_capacity;
};

/* Replaces `normalized` by the normal form of text[begin..end), which is valid UTF-8; end is at
 * most UINT32_MAX. Time and memory are linear in its length. False when there is no memory. */
bool bert_normalize(const struct bert_normalizer *settings, const char *text, size_t begin,
                    size_t end, struct normalized_text *normalized);

void normalized_text_release(struct normalized_text *normalized);

#endif
