/* A checked call, resolved: every default filled in, every size known to fit. */
#ifndef ATTN_ATTENTION_PROBLEM_H
#define ATTN_ATTENTION_PROBLEM_H

#include <stdbool.h>

#include "attention/context.h"

struct attn_problem {
    attn_params params; /* as given, filled up with defaults */

    int64_t batch, heads, key_heads;
    int64_t queries, keys; /* Lq, Lk: the axes of o, keep and bias */
    int64_t d_qk, d_v;
    int64_t sequences; /* batches, or packed sequences: see sequence.h */

    attn_precision precision; /* of scores: allowed, and of use for these types and this context */
    bool dot_values;          /* and of weights and values */
    float scale, soft_cap;
    double scale_f64; /* what scale rounds: 1/√d_qk where none is given */
    attn_alignment alignment;
    int64_t offset;      /* with ATTN_ALIGN_OFFSET */
    int64_t reach_left;  /* keys kept before and after a query's position; ATTN_WINDOW_OPEN: all */
    int64_t reach_right; /* causal is a reach of at most 0 */

    /* As in attn_params; NULL where not given. */
    const int64_t *query_starts, *key_starts;
    const int64_t *key_lengths, *prefix_lengths;
    const int64_t *query_documents, *key_documents;
    /* Ranges of key_documents, if the call makes them: document_blocks.h. */
    const struct attn_document_range *document_blocks;
    const float *alibi_slopes, *sinks;
    attn_score_callback *change_scores;
    attn_key_range_callback *key_range;
    void *callback_user;
    attn_score_gradient_callback *change_gradients;
    const int32_t *block_table;
    int64_t block_table_width, page_length;

    bool has_dropout;           /* the probability is above 0 */
    uint64_t dropout_threshold; /* a weight is kept iff its random word is at least this */
    double dropout_kept;        /* what a kept weight is multiplied by; 0 where none is kept */

    attn_tensor q, k, v, o, stats;
    attn_tensor keep, bias;               /* axes of size 1 have stride 0 */
    attn_tensor key_scales, value_scales; /* the same; of i8 only */
    bool has_keep, has_bias;
};

/* Checks the arguments that all calls share, and fills all but v, o and stats. Chooses the
 * context's kernels for the precision that is of use. */
attn_status attn_problem_resolve(struct attn_problem *problem, struct attn_context *context,
                                 const attn_params *params, const attn_tensor *q,
                                 const attn_tensor *k);

/* Then v; then o and stats (NULL: not wanted), and what those may not overlap. */
attn_status attn_problem_resolve_values(struct attn_problem *problem, const attn_tensor *v,
                                        struct attn_error *error);
attn_status attn_problem_resolve_outputs(struct attn_problem *problem, const attn_tensor *o,
                                         const attn_tensor *stats, struct attn_error *error);

/* Of the outputs, the types and shapes alone. */
attn_status attn_problem_check_output_form(const struct attn_problem *problem, const attn_tensor *o,
                                           const attn_tensor *stats, struct attn_error *error);

/* attn_problem_resolve, _values and _outputs, for a call that has all of these. */
attn_status attn_problem_resolve_call(struct attn_problem *problem, struct attn_context *context,
                                      const attn_params *params, const attn_tensor *q,
                                      const attn_tensor *k, const attn_tensor *v,
                                      const attn_tensor *o, const attn_tensor *stats);

/* Checks that an output addresses no element twice and shares none with any input of the problem
 * (with v only where `reads_v`). */
attn_status attn_check_output(const struct attn_problem *problem, const attn_tensor *output,
                              const char *name, bool reads_v, struct attn_error *error);

/* The byte address of element (b, h, i, c). */
static inline void *attn_address(const attn_tensor *tensor, int64_t size, int64_t b, int64_t h,
                                 int64_t i, int64_t c)
{
    return (char *)tensor->data + size * (b * tensor->stride[0] + h * tensor->stride[1] +
                                          i * tensor->stride[2] + c * tensor->stride[3]);
}

/* The same of a tensor of f32. */
static inline float *attn_element(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i,
                                  int64_t c)
{
    return (float *)tensor->data + b * tensor->stride[0] + h * tensor->stride[1] +
           i * tensor->stride[2] + c * tensor->stride[3];
}

static inline double *attn_double_element(const attn_tensor *tensor, int64_t b, int64_t h,
                                          int64_t i, int64_t c)
{
    return attn_address(tensor, (int64_t)sizeof(double), b, h, i, c);
}

/* The key head that query head h reads. */
static inline int64_t attn_key_head(const struct attn_problem *problem, int64_t h)
{
    return h / (problem->heads / problem->key_heads);
}

#endif
