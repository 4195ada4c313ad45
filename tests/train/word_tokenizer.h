/* A WordPiece of whole words, for tests that need a text as ids. */
#ifndef ATTN_TESTS_WORD_TOKENIZER_H
#define ATTN_TESTS_WORD_TOKENIZER_H

#include "text/tokenizer.h"

/* Ids: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, and the words w0, w1, … from 5 on. */
enum { WORD_FIRST = 5, WORD_COUNT = 60 };

/* Writes vocab.txt into the folder and opens it. */
struct tokenizer *word_tokenizer_open(const char *folder);

#endif
