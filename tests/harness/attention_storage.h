/* The same problem with its tensors stored in another way: in other types, or in pages. */
#ifndef ATTN_TESTS_HARNESS_ATTENTION_STORAGE_H
#define ATTN_TESTS_HARNESS_ATTENTION_STORAGE_H

#include "harness/attention_problem.h"

/* Rounds q, k and v to these types, packed. ATTN_I8 (k and v only) gets scales [B, Hkv, Lk, 1] of
 * its own, so that the largest element of a row becomes ±127. With ATTN_F64, which all three are
 * then, output_type and the bias become f64 too. */
void attention_store(struct attention_problem *problem, attn_type q, attn_type k, attn_type v);

/* Rounds the bias, which must be there. */
void attention_store_bias(struct attention_problem *problem, attn_type type);

/* A problem in f32 with the values that this one stores (i8: times the scale, rounded to f32), and
 * f32 output: what conversion on the way in must not differ from. Not for f64 or pages. */
void attention_widen(const struct attention_problem *problem, struct attention_problem *wide);

/* A copy whose K and V (and their scales) stand in pages of `page_length` keys in random order
 * among pages of NaN, behind a block table of which one entry a sequence is never reached, and what
 * no sequence reaches is NaN too. key_lengths become those of the problem, or all keys of a
 * sequence; keep, bias and key_documents of a batch are widened to the new Lk. The two problems
 * mean the same but for: bottom-right alignment with key lengths shorter than the keys; keep, bias
 * and documents with packed sequences, which end the program. */
void attention_page(const struct attention_problem *problem, int64_t page_length, uint64_t seed,
                    struct attention_problem *paged);

#endif
