/* Which kind of model a directory holds. */
#ifndef ATTN_MODEL_MODEL_KIND_H
#define ATTN_MODEL_MODEL_KIND_H

#include "model/language_model.h"

/* By model_type of DIRECTORY/config.json: bert or gpt2; others are refused by name. */
bool model_kind_read(enum language_model_kind *kind, const char *directory,
                     struct attn_error *error);

#endif
