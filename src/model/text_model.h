/* A model for whoever wants to see how it reads a text: a BERT, a GPT-2 or a Llama, whichever the
 * source holds. */
#ifndef ATTN_MODEL_TEXT_MODEL_H
#define ATTN_MODEL_TEXT_MODEL_H

#include "model/model_observer.h"
#include "model/model_source.h"

struct text_model_settings {
    enum model_kind kind;
    int64_t layers, heads, width;
    int64_t positions, vocabulary;
};

/* Without weights. */
bool text_model_read_settings(struct text_model_settings *settings,
                              const struct model_source *source, struct attn_error *error);

struct text_model;
struct causal_model;

/* The source must outlive the model. */
bool text_model_open(struct text_model **model, const struct model_source *source,
                     struct attn_error *error);
void text_model_close(struct text_model *model); /* NULL is allowed */
const struct text_model_settings *text_model_get_settings(const struct text_model *model);

/* The model itself where it tells the next word, to write with; NULL for a BERT. */
const struct causal_model *text_model_causal(const struct text_model *model);

/* What a text is read for beside its attention; NULL: not wanted. */
struct text_results {
    float *hidden; /* [tokens][width]: a BERT's last hidden states; refused of other kinds */
    float *logits; /* [vocabulary]: of the token behind the text; refused of a BERT */
};

/* Reads one encoded text while `observer` looks on; only a BERT reads the types of its tokens. In a
 * Llama the record's k and v have fewer heads than q where keys are grouped. observer and results
 * may be NULL. What is out of range is refused before anything is computed, a result that is not
 * finite when it is. */
bool text_model_read(struct text_model *model, const struct compute *compute,
                     const struct encoding *encoding, const struct model_observer *observer,
                     const struct text_results *results, struct attn_error *error);

#endif
