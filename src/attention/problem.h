/* A checked call, resolved: every default filled in, every size known to fit. */
#ifndef ATTN_ATTENTION_PROBLEM_H
#define ATTN_ATTENTION_PROBLEM_H

#include <stdbool.h>

#include "attention/context.h"

struct attn_problem {
    int64_t batch, heads, key_heads;
    int64_t queries, keys; /* Lq, Lk */
    int64_t d_qk, d_v;

    float scale, soft_cap;
    int64_t offset;      /* query i stands at key position i + offset */
    int64_t reach_left;  /* keys kept before and after that position; ATTN_WINDOW_OPEN: all */
    int64_t reach_right; /* causal is a reach of at most 0 */

    const int64_t *key_lengths;
    const float *alibi_slopes, *sinks;
    attn_tensor q, k, v, o, stats;
    attn_tensor keep, bias; /* axes of size 1 have stride 0 */
    bool has_keep, has_bias;
    bool changes_scores; /* something stands between Q·Kᵀ and the masks */
};

/* Checks the arguments that forward and weights share, and fills all but v, o and stats. */
attn_status attn_problem_resolve(struct attn_problem *problem, const attn_params *params,
                                 const attn_tensor *q, const attn_tensor *k,
                                 struct attn_error *error);

/* Checks one tensor of a call: pointer, element type, data, and that all its addresses exist. */
attn_status attn_check_tensor(const attn_tensor *tensor, const char *name, attn_type type,
                              struct attn_error *error);

/* The tensor; where it has no element its strides are 0, so that no address is computed from a
 * pointer that may be NULL. */
attn_tensor attn_without_offsets(const attn_tensor *tensor);

/* Checks a tensor's shape against what it must be. */
attn_status attn_check_shape(const attn_tensor *tensor, const char *name, const int64_t expected[4],
                             struct attn_error *error);

/* Checks that an output addresses no element twice and shares none with any input of the problem
 * (with v only where `reads_v`). */
attn_status attn_check_output(const struct attn_problem *problem, const attn_tensor *output,
                              const char *name, bool reads_v, struct attn_error *error);

/* The address of element (b, h, i, c). */
static inline float *attn_element(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i,
                                  int64_t c)
{
    return (float *)tensor->data + b * tensor->stride[0] + h * tensor->stride[1] +
           i * tensor->stride[2] + c * tensor->stride[3];
}

/* The key head that query head h reads. */
static inline int64_t attn_key_head(const struct attn_problem *problem, int64_t h)
{
    return h / (problem->heads / problem->key_heads);
}

#endif
