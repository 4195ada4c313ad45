/* A checked attn_inspection: what of the weights a call is to tell. */
#ifndef ATTN_ATTENTION_INSPECTION_H
#define ATTN_ATTENTION_INSPECTION_H

#include "attention/problem.h"

struct attn_inspected {
    /* Each is looked at where it is wanted only; one without an element may have no data. */
    attn_tensor top_weights, top_keys, entropy, maximum, key_sums;
    bool wants_top, wants_entropy, wants_maximum, wants_key_sums;

    int64_t top;                    /* scores to remember of each row, with that of the maximum */
    int64_t query_begin, query_end; /* rows of q that key_sums counts; begin ≤ end ≤ Lq */
};

/* Whether something of the rows is wanted, not of the keys alone. */
static inline bool attn_inspects_rows(const struct attn_inspected *inspected)
{
    return inspected->wants_top || inspected->wants_entropy || inspected->wants_maximum;
}

/* Whether keys have a place in the tensors, where their sums can be told. */
static inline bool attn_has_key_sums(const struct attn_problem *problem)
{
    return !(problem->block_table && problem->query_starts);
}

/* Checks `inspection` against a resolved problem, and its tensors against each other, against all
 * inputs (v only where `reads_v`), and against `o` and `stats`, each of which may be NULL. */
attn_status attn_inspected_resolve(struct attn_inspected *inspected,
                                   const struct attn_problem *problem,
                                   const attn_inspection *inspection, const attn_tensor *o,
                                   const attn_tensor *stats, bool reads_v,
                                   struct attn_error *error);

/* Sets all key_sums to 0, where they are wanted. */
void attn_inspected_clear_sums(const struct attn_inspected *inspected);

/* What attn_explain asks about: everything that can be told, with the 8 largest weights of a row.
 * No tensor. */
void attn_inspected_all(struct attn_inspected *inspected, const struct attn_problem *problem);

#endif
