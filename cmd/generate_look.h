/* The picture of --look: a row for each written word, a column for each word before. */
#ifndef ATTN_CMD_GENERATE_LOOK_H
#define ATTN_CMD_GENERATE_LOOK_H

#include "generate_written.h"
#include "probe/trace.h"

/* What a picture is made of. */
struct generate_look {
    const struct generator *generator;
    const struct trace *trace; /* from the prompt's last token on */
    const struct text *text;   /* the prompt as it was given */
    const struct chat_tokens *prompt;
    const struct written *written;
};

/* Writes the file. Fails where nothing was written that could have looked. */
bool generate_look_draw(const struct generate_look *look, struct attn_error *error);

#endif
