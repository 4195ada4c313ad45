/* What stands between Q·Kᵀ and the softmax: the final scores. */
#ifndef ATTN_ATTENTION_SCORE_EDIT_H
#define ATTN_ATTENTION_SCORE_EDIT_H

#include "attention/exclusion.h"

/* Whether attn_edit_scores would change anything but by exclusions. */
bool attn_scores_need_edit(const struct attn_problem *problem);

/* Floats of scratch that attn_edit_scores needs. */
enum { ATTN_EDIT_SCRATCH = ATTN_KEY_BLOCK * ATTN_MAX_LANES };

/* From scale·(q·k) to the final scores in s[keys][lanes]: soft cap, bias, ALiBi, callback, and −inf
 * for every excluded key. */
void attn_edit_scores(const struct attn_kernels *kernels, const struct attn_problem *problem,
                      const struct attn_tile *tile, const struct attn_exclusions *exclusions,
                      float *scratch, float *s);

#endif
