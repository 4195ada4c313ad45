/* What a tokenizer is made of; for the files that load one and encode with it. */
#ifndef ATTN_TEXT_TOKENIZER_PARTS_H
#define ATTN_TEXT_TOKENIZER_PARTS_H

#include "text/added_tokens.h"
#include "text/bert_normalizer.h"
#include "text/sequence_template.h"
#include "text/tokenizer.h"
#include "text/word_piece.h"

struct tokenizer {
    struct added_tokens raw; /* cut out of the text as it was given */
    struct added_tokens
        normalized; /* cut out of the normalised text; their spellings are normal forms */
    struct bert_normalizer normalizer;
    struct word_piece model;
    struct sequence_template single, pair;
};

/* Both fill a tokenizer that is all zeros; after a failure it may be released. Messages name the
 * path's last component. */
bool tokenizer_read_json(struct tokenizer *tokenizer, const char *path, struct attn_error *error);

/* config_path is that of tokenizer_config.json, which may be missing. */
bool tokenizer_read_vocabulary(struct tokenizer *tokenizer, const char *path,
                               const char *config_path, struct attn_error *error);

/* Adds a token to the set that it belongs to; `normalized` tokens are spelled as they were given.
 * `file` names the file in messages. */
bool tokenizer_add_token(struct tokenizer *tokenizer, const struct added_token *token,
                         bool normalized, const char *file, struct attn_error *error);

/* Makes the sets ready for searching; refuses two tokens of one spelling. */
bool tokenizer_seal(struct tokenizer *tokenizer, const char *file, struct attn_error *error);

#endif
