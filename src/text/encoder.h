/* One call of tokenizer_encode: what the two kinds of tokenizers share. */
#ifndef ATTN_TEXT_ENCODER_H
#define ATTN_TEXT_ENCODER_H

#include "text/byte_pair.h"
#include "text/tokenizer_parts.h"

struct encoder {
    const struct tokenizer *tokenizer;
    struct encoding *encoding;
    size_t token_capacity, word_capacity;
    bool plain; /* special spellings are letters */

    const char *text; /* what is being encoded: */
    size_t size;
    int32_t text_index, type;

    /* Workspace of the stretch at hand: */
    struct normalized_text normalized; /* of WordPiece */
    struct byte_pair_word split;       /* of byte pairs: */
    char *prefixed;                    /* a stretch with a space in front */
    size_t prefixed_capacity;
};

/* Each false when there is no memory. Offsets are bytes of the text. */
bool encoder_push_token(struct encoder *encoder, struct token token);
bool encoder_push_word(struct encoder *encoder, size_t begin, size_t end);

/* A token of the last word. */
bool encoder_push_piece(struct encoder *encoder, int32_t id, size_t begin, size_t end);

/* An added token, which is a word of its own. */
bool encoder_push_added(struct encoder *encoder, int32_t id, size_t begin, size_t end);

/* Encode text[begin..end), which holds no raw added token. */
bool word_piece_encode_stretch(struct encoder *encoder, size_t begin, size_t end);
bool byte_pair_encode_stretch(struct encoder *encoder, size_t begin, size_t end);

/* Trims tokens where the post-processor wants it, and gives words the extent of their tokens. */
void byte_pair_finish(const struct tokenizer *tokenizer, const struct tokenizer_input *input,
                      struct encoding *encoding);

#endif
