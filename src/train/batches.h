/* What each step learns from: windows of the text as sequences with labels. */
#ifndef ATTN_TRAIN_BATCHES_H
#define ATTN_TRAIN_BATCHES_H

#include "model/language_model.h"
#include "train/corpus.h"
#include "train/masking.h"
#include "train/settings.h"
#include "train/windows.h"

struct batches {
    enum train_objective objective;
    int64_t context, batch;
    uint64_t seed;
    const int32_t *training, *held_out; /* of the corpus */
    int64_t training_count, held_out_count;
    struct windows windows;
    struct mask_words words; /* TRAIN_MLM */
    /* The batch that was filled last; all its sequences have `context` tokens, but for the last of
     * a held-out batch. */
    int64_t *starts; /* [batch + 1] */
    int32_t *ids, *labels;
    int64_t sequences;
    int64_t labels_counted; /* those that are not CROSS_ENTROPY_IGNORE */
};

/* The corpus is encoded, by `tokenizer`, and outlives the batches. Refused: a training part that is
 * shorter than one sequence, and for TRAIN_MLM one without a word that the tokenizer knows. */
bool batches_create(struct batches *batches, const struct train_settings *settings,
                    const struct corpus *corpus, const struct tokenizer *tokenizer,
                    struct attn_error *error);
void batches_destroy(struct batches *batches); /* zeros are allowed */

/* The whole batch of the step that `step` steps stand before: the same in every process. */
void batches_fill(struct batches *batches, int64_t step);

/* Sequences of the held-out text, in its order; 0 where none is held out. */
int64_t batches_held_out_sequences(const struct batches *batches);

/* `count` of them from `first` on, at most `batch`. */
void batches_fill_held_out(struct batches *batches, int64_t first, int64_t count);

/* A part of what was filled last, from sequence `first` on: views into it. A batch of held-out
 * text, whose last sequence may be shorter, is taken from 0 on. */
struct language_batch batches_part(const struct batches *batches, int64_t first, int64_t count);

#endif
