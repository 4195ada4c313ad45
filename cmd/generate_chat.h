/* A conversation, turn by turn. */
#ifndef ATTN_CMD_GENERATE_CHAT_H
#define ATTN_CMD_GENERATE_CHAT_H

#include "generate_written.h"

/* Answers `first`, the user's first turn (NULL for none, else called `name`), and then each line of
 * standard input, until that ends or the context is full. SIGINT ends an answer; between answers it
 * ends the program. */
bool generate_chat_run(struct generator *generator, const struct text *first, const char *name,
                       struct attn_error *error);

#endif
