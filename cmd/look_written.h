/* attn look --generate: a text, and what the model writes behind it. */
#ifndef ATTN_CMD_LOOK_WRITTEN_H
#define ATTN_CMD_LOOK_WRITTEN_H

#include "session.h"

/* Lets the session's text model, which is open and tells next words, write at most `limit` tokens
 * behind the text, each the likeliest, until it ends the text or has no position left. Appends them
 * to the encoding of the text, and makes `joined` (from zeros) the text with what they say, which
 * their places and words point into. A model that writes nothing is told on standard error. Refuses
 * a BERT, and a text that fills the model's positions. */
bool look_written_extend(const struct session *session, int64_t limit, const struct text *text,
                         struct encoding *encoding, struct attn_buffer *joined,
                         struct attn_error *error);

#endif
