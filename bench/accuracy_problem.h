/* One attention problem of the accuracy program: a few queries with many keys, stored in a type,
 * and what is right for it in more than double precision. */
#ifndef ATTN_BENCH_ACCURACY_PROBLEM_H
#define ATTN_BENCH_ACCURACY_PROBLEM_H

#include <attn.h>

enum { ACCURACY_QUERIES = ATTN_DECODE_MAX_QUERIES };

struct accuracy_shape {
    int64_t keys, dim; /* d_qk = d_v = dim; one batch, one head, ACCURACY_QUERIES queries */
    float spread;      /* standard deviation of the scores */
    int causal;        /* bottom-right */
    attn_type type;    /* of q, k and v; q of an i8 problem is f32 */
};

struct accuracy_problem {
    attn_params params;
    attn_tensor q, k, v;
    attn_tensor key_scales, value_scales;
    /* The definition's output for the numbers that are stored, and what its error is measured by:
     * size is Σ_j p_j·|v_j|, magnitude the largest S_j of a row's kept keys, S_j being the sum of
     * the sizes of all terms of a score. */
    double *o, *size, *tiny; /* [ACCURACY_QUERIES][dim] */
    double *magnitude;       /* [ACCURACY_QUERIES] */
};

/* Ends the program where there is no memory. */
void accuracy_make(struct accuracy_problem *problem, const struct accuracy_shape *shape,
                   uint64_t seed);
void accuracy_release(struct accuracy_problem *problem);

/* [rows][dim] of numbers of normal distribution and this spread; gives them as they are stored. */
double *accuracy_fill(attn_tensor *tensor, attn_type type, int64_t rows, int64_t dim, double spread,
                      uint64_t *state);

/* Memory, or the end of the program. */
void *accuracy_allocate(size_t count, size_t size);

#endif
