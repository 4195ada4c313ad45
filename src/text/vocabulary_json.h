/* A vocabulary as JSON has it: {"piece": id, …}. */
#ifndef ATTN_TEXT_VOCABULARY_JSON_H
#define ATTN_TEXT_VOCABULARY_JSON_H

#include <jansson.h>

#include "text/vocabulary.h"

/* Creates the vocabulary with all pieces of `vocab`, and room for those of `added`, an array of
 * tokens with "content" and "id", or NULL. Every entry of both is checked; `file` names the file in
 * messages. */
bool vocabulary_read_json(struct vocabulary *vocabulary, const json_t *vocab, const json_t *added,
                          const char *file, struct attn_error *error);

#endif
