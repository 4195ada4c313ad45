/* Which keys a row keeps by its place alone. */
#ifndef ATTN_ATTENTION_WINDOW_H
#define ATTN_ATTENTION_WINDOW_H

#include "attention/sequence.h"
#include "base/checked.h"

/* A sum of positions, kept within 64 bits. */
static inline int64_t attn_position_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (attn_checked_add(a, b, &sum))
        return sum;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

/* By lengths, causality and window row `row` keeps the keys begin..end−1 (none where end ≤ begin),
 * beside the prefix. Both are within 0..keys and do not fall from row to row. */
int64_t attn_window_begin(const struct attn_problem *problem, const struct attn_sequence *sequence,
                          int64_t row);
int64_t attn_window_end(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t row);

/* What the key_range callback leaves to rows first..first+rows−1; all keys without a callback. */
struct attn_key_span attn_called_range(const struct attn_problem *problem,
                                       const struct attn_sequence *sequence, int64_t head,
                                       int64_t first, int64_t rows);

#endif
