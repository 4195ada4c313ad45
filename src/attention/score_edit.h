/* What stands between Q·Kᵀ and the softmax: the final scores. */
#ifndef ATTN_ATTENTION_SCORE_EDIT_H
#define ATTN_ATTENTION_SCORE_EDIT_H

#include "attention/exclusion.h"

/* Whether attn_edit_scores would change anything but by exclusions. */
bool attn_scores_need_edit(const struct attn_problem *problem);

/* One thread's memory for it, each [ATTN_KEY_BLOCK][ATTN_MAX_LANES]. */
struct attn_edit_scratch {
    float *bias;   /* where scores are edited */
    float *capped; /* NULL, or where the scores behind the soft cap go */
    float *given;  /* NULL, or where the scores go that change_scores is given */
};

/* From scale·(q·k) to the final scores in s[keys][lanes]: soft cap, bias, ALiBi, callback, and −inf
 * for every excluded key. */
void attn_edit_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const struct attn_exclusions *exclusions,
                      const struct attn_edit_scratch *scratch, float *s);

#endif
