/* What a tokenizer is made of; for the files that load one and encode with it. */
#ifndef ATTN_TEXT_TOKENIZER_PARTS_H
#define ATTN_TEXT_TOKENIZER_PARTS_H

#include <jansson.h>

#include "text/added_tokens.h"
#include "text/bert_normalizer.h"
#include "text/byte_pair.h"
#include "text/digit_split.h"
#include "text/sequence_template.h"
#include "text/tokenizer.h"
#include "text/word_piece.h"

enum byte_level_split { BYTE_LEVEL_WORDS, BYTE_LEVEL_WHOLE };

/* Whether a token's place leaves out the spaces that it begins or ends with. */
enum byte_level_trim {
    BYTE_LEVEL_KEEP,
    BYTE_LEVEL_TRIM,
    BYTE_LEVEL_TRIM_BUT_PREFIX /* the first token's first space was put there by the pre-tokenizer
                                */
};

/* The pre-tokenizers Digits and ByteLevel, in this order, and the post-processor ByteLevel. */
struct byte_level_settings {
    enum digit_split digits;
    bool prefix_space; /* a part that begins with no space gets one */
    enum byte_level_split split;
    enum byte_level_trim trim;
};

/* What decoding asks of an id. */
enum added_kind { NOT_ADDED, ADDED_TOKEN, ADDED_SPECIAL };

struct tokenizer {
    enum tokenizer_kind kind;
    struct added_tokens raw; /* cut out of the text as it was given */
    struct added_tokens
        normalized; /* cut out of the normalised text; their spellings are normal forms */
    struct bert_normalizer normalizer;
    struct word_piece word_piece;          /* of TOKENIZER_WORD_PIECE */
    struct byte_pair byte_pair;            /* of TOKENIZER_BYTE_PAIR */
    struct byte_level_settings byte_level; /* too */
    struct vocabulary *vocabulary;         /* that of the model of this kind */
    unsigned char *added_kinds;            /* [vocabulary->size]: enum added_kind, once sealed */
    struct sequence_template single, pair;
};

void tokenizer_set_kind(struct tokenizer *tokenizer, enum tokenizer_kind kind);

/* Each fills a tokenizer that is all zeros; after a failure it may be released. Messages name the
 * path's last component. */
bool tokenizer_read_json(struct tokenizer *tokenizer, const char *path, struct attn_error *error);

/* config_path is that of tokenizer_config.json, which may be missing. */
bool tokenizer_read_vocabulary(struct tokenizer *tokenizer, const char *path,
                               const char *config_path, struct attn_error *error);

/* vocab.json and merges.txt of GPT-2; config_path as before. */
bool tokenizer_read_merges(struct tokenizer *tokenizer, const char *vocabulary_path,
                           const char *merges_path, const char *config_path,
                           struct attn_error *error);

/* The parts of tokenizer.json that belong to one kind: normalizer, pre-tokenizer and model, and the
 * decoder of byte pairs. `added` is the array added_tokens or NULL. */
bool word_piece_read_json(struct tokenizer *tokenizer, const json_t *root, const json_t *added,
                          struct attn_error *error);
bool byte_pair_read_json(struct tokenizer *tokenizer, const json_t *root, const json_t *added,
                         struct attn_error *error);

/* Adds a token to the set that it belongs to; `normalized` tokens are spelled as they were given.
 * `file` names the file in messages. */
bool tokenizer_add_token(struct tokenizer *tokenizer, const struct added_token *token,
                         bool normalized, const char *file, struct attn_error *error);

/* Makes the sets ready for searching and fills added_kinds; refuses two tokens of one spelling. */
bool tokenizer_seal(struct tokenizer *tokenizer, const char *file, struct attn_error *error);

#endif
