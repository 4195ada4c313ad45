/* The pre-tokenizer Digits: digits are cut off before a text is split into words. */
#ifndef ATTN_TEXT_DIGIT_SPLIT_H
#define ATTN_TEXT_DIGIT_SPLIT_H

#include <stddef.h>

enum digit_split {
    DIGITS_WITHIN,  /* they are not cut off */
    DIGITS_IN_RUNS, /* a run of them is a part */
    DIGITS_SINGLE   /* each of them is */
};

/* Where the part ends that begins at text[begin], begin < size; the text is valid UTF-8. Each byte
 * of a text belongs to a part. */
size_t digit_split_end(enum digit_split split, const char *text, size_t size, size_t begin);

#endif
