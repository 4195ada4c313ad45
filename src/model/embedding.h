/* One vector a text: pooling of the last hidden state as sentence-transformers directories say it.
 */
#ifndef ATTN_MODEL_EMBEDDING_H
#define ATTN_MODEL_EMBEDDING_H

#include "model/bert.h"
#include "text/tokenizer.h"

enum pooling { POOLING_MEAN, POOLING_CLS };

struct embedding_settings {
    enum pooling pooling;
    bool normalize; /* to length 1 (L2); a vector of zeros stays one */
};

/* From DIRECTORY/modules.json and the pooling folder that it names (1_Pooling/config.json); without
 * modules.json mean and L2. Modules or pooling modes that are not implemented are refused by name.
 */
bool embedding_settings_read(struct embedding_settings *settings, const char *directory,
                             struct attn_error *error);

/* vectors[count][hidden], in the order of `encodings`. Computes them sorted by length, in batches
 * that stay in the cache, so that no padding is computed. Every encoding has at least one token. */
bool embedding_compute(const struct bert *model, const struct compute *compute,
                       const struct embedding_settings *settings, const struct encoding *encodings,
                       size_t count, float *vectors, struct attn_error *error);

#endif
