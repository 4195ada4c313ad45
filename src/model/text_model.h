/* A model for whoever wants to see how it reads a text: BERT or GPT-2, whichever the directory's
 * config.json says. */
#ifndef ATTN_MODEL_TEXT_MODEL_H
#define ATTN_MODEL_TEXT_MODEL_H

#include "model/language_model.h"
#include "model/model_observer.h"
#include "text/tokenizer.h"

struct text_model_settings {
    enum language_model_kind kind;
    int64_t layers, heads, width;
    int64_t positions, vocabulary;
};

/* From config.json alone. */
bool text_model_read_settings(struct text_model_settings *settings, const char *directory,
                              struct attn_error *error);

struct text_model;

bool text_model_open(struct text_model **model, const char *directory, struct attn_error *error);
void text_model_close(struct text_model *model); /* NULL is allowed */
const struct text_model_settings *text_model_get_settings(const struct text_model *model);

/* Reads one encoded text while `observer` looks on; a GPT-2 leaves the types of its tokens alone.
 * What is out of range is refused before anything is computed, a result that is not finite when it
 * is. */
bool text_model_read(struct text_model *model, const struct compute *compute,
                     const struct encoding *encoding, const struct model_observer *observer,
                     struct attn_error *error);

#endif
