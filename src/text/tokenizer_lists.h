/* A byte-level BPE tokenizer from lists, as a GGUF file has them. */
#ifndef ATTN_TEXT_TOKENIZER_LISTS_H
#define ATTN_TEXT_TOKENIZER_LISTS_H

#include "text/tokenizer.h"

struct text_span {
    const char *text; /* not terminated, any bytes */
    size_t size;
};

/* Kinds of tokens as the format numbers them. */
enum listed_token {
    LISTED_NORMAL = 1,
    LISTED_UNKNOWN = 2,
    LISTED_CONTROL = 3,      /* a special token: read as one, left out of decoded text */
    LISTED_USER_DEFINED = 4, /* found in the text before it is split, kept in decoded text */
    LISTED_UNUSED = 5,
    LISTED_BYTE = 6 /* of other kinds of tokenizers: refused */
};

struct tokenizer_lists {
    const char *file;        /* for messages: the file's name */
    struct text_span splits; /* the pre-tokenizer's name: "gpt-2", "smollm", …; others are refused:
                                "pre-tokenizer mystery-7 is not known" */
    const struct text_span
        *tokens;          /* [token_count], spelled by byte_level.h; the id is the place */
    const int32_t *kinds; /* [token_count] of enum listed_token, or NULL: all normal */
    size_t token_count;
    const struct text_span *merges; /* [merge_count], "left right", by rank */
    size_t merge_count;
    int32_t first_id; /* put before every text, −1 for none */
    bool prefix_space;
};

/* Errors name the file and the entry. The lists may go when it returns. */
bool tokenizer_open_lists(struct tokenizer **tokenizer, const struct tokenizer_lists *lists,
                          struct attn_error *error);

#endif
