/* Checks of where queries and keys stand: pages, sequences, positions. Called in this order by
 * attn_problem_resolve, each filling its part of the problem. */
#ifndef ATTN_ATTENTION_PROBLEM_PLACES_H
#define ATTN_ATTENTION_PROBLEM_PLACES_H

#include "attention/problem.h"

/* Lk, which a block table makes another one than k's. */
attn_status attn_problem_resolve_pages(struct attn_problem *problem, const attn_params *params,
                                       struct attn_error *error);

/* Packed sequences, lengths, prefixes, documents. */
attn_status attn_problem_resolve_sequences(struct attn_problem *problem, const attn_params *params,
                                           struct attn_error *error);

/* That each entry of the block table that will be read names a page. */
attn_status attn_problem_check_pages(const struct attn_problem *problem, struct attn_error *error);

/* Alignment, offset, causality and window. */
attn_status attn_problem_resolve_positions(struct attn_problem *problem, const attn_params *params,
                                           struct attn_error *error);

#endif
