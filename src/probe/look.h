/* Which word looks at which: the weights that a model really used for a text, by word. */
#ifndef ATTN_PROBE_LOOK_H
#define ATTN_PROBE_LOOK_H

#include "model/text_model.h" /* and what an encoding is */

enum { LOOK_MEAN = -1 };

/* One head, the mean over a layer's heads (head LOOK_MEAN), or over all (both LOOK_MEAN); from 0.
 */
struct look_head {
    int64_t layer, head;
};

/* What stands in a row and column. */
enum look_unit {
    LOOK_WORDS, /* the pieces of a word merged: summed over keys, averaged over queries */
    LOOK_PIECES
};

struct look_settings {
    const struct look_head *heads; /* each gives one matrix; out of range is refused by name */
    size_t head_count;
    enum look_unit unit;
    bool special; /* keep the rows and columns of tokens that the template added */
};

struct look {
    size_t units;        /* rows and columns */
    size_t *first_token; /* [units]: the first token of each */
    int32_t *word;       /* [units]: index into encoding.words, TOKEN_NO_WORD for an added token */
    float *weights;      /* [head_count][units][units], rows are queries */
};

/* Runs the model over one encoding and collects. Where added tokens are left out, rows keep their
 * weights and sum to less than 1. Release with look_release; on failure nothing is held. */
bool look_run(struct text_model *model, const struct compute *compute,
              const struct encoding *encoding, const struct look_settings *settings,
              struct look *look, struct attn_error *error);
void look_release(struct look *look);

/* Merges weights[tokens][tokens] into merged[units][units]: group[t] is the unit of token t, or −1
 * for one that is left out. Keys of a unit are summed, its queries averaged. */
void look_merge(const float *weights, size_t tokens, const int32_t *group, size_t units,
                float *merged);

#endif
