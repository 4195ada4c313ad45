/* BertPreTokenizer: white space parts words, each sign of punctuation is a word. */
#ifndef ATTN_TEXT_PRE_TOKENIZER_H
#define ATTN_TEXT_PRE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>

/* The first word of text[*begin..size), which is valid UTF-8: text[*begin..*end), never empty.
 * False when there is none. */
bool pre_tokenizer_next(const char *text, size_t size, size_t *begin, size_t *end);

#endif
