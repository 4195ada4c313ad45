/* A BERT encoder (J. Devlin et al., "BERT" (2018)) from a Hugging Face directory.
 *
 * Tensor names are taken with and without the prefix "bert.", layer norms with weight/bias or
 * gamma/beta; other tensors (poolers, heads, buffers such as position_ids) are ignored. A missing
 * tensor, or one of another shape, is refused by name. Float32 weights are used where the file map
 * holds them; other types are converted once. */
#ifndef ATTN_MODEL_BERT_H
#define ATTN_MODEL_BERT_H

#include "model/bert_config.h"
#include "model/model_observer.h"

struct bert;

bool bert_open(struct bert **model, const char *directory, struct attn_error *error);
void bert_close(struct bert *model); /* NULL is allowed */
const struct bert_config *bert_get_config(const struct bert *model);

/* Token ids of a packed batch: sequence after sequence without padding. */
struct bert_input {
    struct packed_batch batch;
    const int32_t *ids;   /* [tokens], 0..vocabulary−1 */
    const int32_t *types; /* [tokens], 0..types−1, or NULL for zeros */
};

/* hidden[tokens][config.hidden]: the last hidden state. An id, type or length out of range, or a
 * batch without a text, is refused before anything is computed, a result that is not finite when it
 * is. observer may be NULL. A model may be used by many threads at once, each with its own compute.
 */
bool bert_forward(const struct bert *model, const struct compute *compute,
                  const struct bert_input *input, float *hidden,
                  const struct model_observer *observer, struct attn_error *error);

#endif
