/* Which words a masked language model has to tell (J. Devlin et al., 2019, 3.1). */
#ifndef ATTN_TRAIN_MASKING_H
#define ATTN_TRAIN_MASKING_H

#include "text/tokenizer.h"

/* What masking knows of a vocabulary. */
struct mask_words {
    int32_t begin, end, mask; /* [CLS], [SEP], [MASK] */
    bool *special;            /* [size]: never chosen, never put in a word's place */
    int32_t *ordinary;        /* the other ids */
    int64_t size, ordinary_count;
};

/* Refused: a tokenizer without one of these three. */
bool mask_words_create(struct mask_words *words, const struct tokenizer *tokenizer,
                       struct attn_error *error);
void mask_words_destroy(struct mask_words *words); /* zeros are allowed */

/* Where a window of tokens stands in the whole training, for its random numbers. */
struct mask_place {
    uint64_t seed;
    bool held_out;       /* masked the same at every evaluation */
    int64_t step;        /* of a window that is not held out */
    int64_t first_token; /* in the step's batch, or in the held-out text */
};

/* ids[count] are given a window's tokens and are changed in place; labels[count] become the ids of
 * chosen places, and CROSS_ENTROPY_IGNORE elsewhere. Of the ordinary tokens 15 % are chosen: 80 %
 * of these become [MASK], 10 % another word at random, 10 % stay. A window that would have none
 * gets one, provided that it has an ordinary token. Returns how many were chosen. */
int64_t mask_window(const struct mask_words *words, const struct mask_place *place, int64_t count,
                    int32_t *ids, int32_t *labels);

#endif
