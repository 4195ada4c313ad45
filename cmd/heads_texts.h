/* What attn heads reads: a text, a folder of texts, or random tokens twice. */
#ifndef ATTN_CMD_HEADS_TEXTS_H
#define ATTN_CMD_HEADS_TEXTS_H

#include "heads_options.h"
#include "session.h"

/* Encoded, without their words. */
struct heads_texts {
    struct encoding *encodings;
    size_t count;
};

/* All texts that the options name: of a folder, each regular file whose name ends with .txt, by
 * name. A text that cannot be used is refused by its name. Release with heads_texts_release, also
 * after a failure. */
bool heads_texts_read(const struct heads_options *options, const struct session *session,
                      struct heads_texts *texts, struct attn_error *error);

/* One text: different tokens of the vocabulary drawn at random, and the same again, among the
 * tokens that the model adds to any text. */
bool heads_texts_repeat(const struct heads_options *options, const struct session *session,
                        struct heads_texts *texts, struct attn_error *error);
void heads_texts_release(struct heads_texts *texts);

/* Scores have no use for the words of an encoding, which are most of its memory. */
void heads_drop_words(struct encoding *encoding);

#endif
