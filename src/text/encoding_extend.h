/* Text that a model writes behind one that it has read, token by token. */
#ifndef ATTN_TEXT_ENCODING_EXTEND_H
#define ATTN_TEXT_ENCODING_EXTEND_H

#include "text/tokenizer.h"

/* Appends `count` tokens to the encoding of one text without a pair, and what they say to `text`,
 * which holds that text. The ids are kept as they are, though the tokenizer might split the same
 * text otherwise: what a model wrote is looked at as it was written.
 *
 * Tokens' bytes are those of `text`, characters whole; what is no character is U+FFFD there. Words
 * are made as byte-level pre-tokenizers split: at spaces, and where letters, numbers and signs
 * meet; the first token begins one. A special token is a word of its own, by its spelling.
 *
 * For byte-level BPE, whose tokens mean the same wherever they stand; another tokenizer is refused,
 * and so is an id that is not in the vocabulary. On failure encoding and text are as before. */
bool encoding_extend(struct encoding *encoding, const struct tokenizer *tokenizer,
                     const int32_t *ids, size_t count, struct attn_buffer *text,
                     struct attn_error *error);

#endif
