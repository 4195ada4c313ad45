/* Texts that are longer than a model's positions. */
#ifndef ATTN_TEXT_ENCODING_TRUNCATE_H
#define ATTN_TEXT_ENCODING_TRUNCATE_H

#include "text/tokenizer.h"

/* Cuts the text's own tokens so that `positions` are left, and what the template adds behind them
 * keeps its place. The encoding has more than that. */
void encoding_truncate(struct encoding *encoding, size_t positions);

#endif
