/* One call of attn_forward (or attn_decode) and attn_weights: its inputs, its outputs, and what is
 * right. harness/attention_storage.h stores the same problem in other types and in pages,
 * harness/attention_sequences.h packs sequences. */
#ifndef ATTN_TESTS_HARNESS_ATTENTION_PROBLEM_H
#define ATTN_TESTS_HARNESS_ATTENTION_PROBLEM_H

#include <stdbool.h>

#include "attn.h"
#include "harness/reference_attention.h"
#include "harness/tensor.h"

struct attention_sizes {
    int64_t batch, heads, key_heads, queries, keys, d_qk, d_v;
};

/* Guarded memory of the test. params.keep, bias, key_scales and value_scales point into the struct
 * once they are set, so a problem is copied by attention_copy, not by assignment. */
struct attention_problem {
    attn_params params;
    attn_tensor q, k, v;
    attn_tensor keep, bias;
    attn_tensor key_scales, value_scales;
    attn_type output_type;     /* of o: ATTN_F32, which is 0, or that of q */
    enum layout output_layout; /* of o, stats and weights */
    enum guard_side side;
};

/* Dense attention; q, k in −2..2 and v in −1..1, packed, with a guard page behind each. */
void attention_make(struct attention_problem *problem, const struct attention_sizes *sizes,
                    uint64_t seed);

/* Adds a packed mask of this shape: keep with one `false` in `one_in`, bias in −2..2. */
void attention_add_keep(struct attention_problem *problem, const int64_t shape[4], uint64_t seed,
                        int64_t one_in);
void attention_add_bias(struct attention_problem *problem, const int64_t shape[4], uint64_t seed);

/* The same problem over the same tensors. */
void attention_copy(const struct attention_problem *problem, struct attention_problem *copy);

/* Row-major copies of the outputs, as f32; Lk is reference_keys(). */
struct attention_result {
    float *o;       /* [B, H, Lq, d_v] */
    float *stats;   /* [B, H, Lq, 2] */
    float *weights; /* [B, H, Lq, Lk]; NULL of decode */
    /* The same as f64, of a problem of f64 tensors; NULL for others. */
    double *exact_o, *exact_stats, *exact_weights;
    size_t rows, outputs, weight_count;
};

/* attn_forward and attn_weights into outputs pre-filled with NaN; a status other than success is a
 * failed check. */
void attention_solve(attn_context *context, const struct attention_problem *problem,
                     struct attention_result *result);

/* attn_decode in the same way; weight_count is 0. */
void attention_solve_decode(attn_context *context, const struct attention_problem *problem,
                            struct attention_result *result);

/* How many times the first-order error of one rounding everywhere (harness/reference_attention.h)
 * an output may be off: the sums over keys and elements round more than once. */
#define ATTENTION_ERROR_FACTOR 8.0

/* The result against the definition in double precision. Beyond that factor o may be off by what
 * its type rounds, and by 2⁻⁸·Σ p|v| where params allow weights in bf16 and q, k and v are bf16. */
void attention_check_result(const char *file, int line, const struct attention_problem *problem,
                            const struct attention_result *result);
#define CHECK_RESULT(problem, result) attention_check_result(__FILE__, __LINE__, problem, result)

/* Two results have the same bits; weights are compared where both have them. */
void attention_check_same(const char *file, int line, const struct attention_result *actual,
                          const struct attention_result *expected);
#define CHECK_SAME_RESULT(actual, expected)                                                        \
    attention_check_same(__FILE__, __LINE__, actual, expected)

/* The largest error seen by attention_check_result so far, in units of ATTENTION_ERROR_FACTOR's. */
double attention_largest_error(void);

#endif
