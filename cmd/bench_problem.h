/* A case as arguments of a call. */
#ifndef ATTN_CMD_BENCH_PROBLEM_H
#define ATTN_CMD_BENCH_PROBLEM_H

#include <stdbool.h>

#include "base/error.h"
#include "bench_cases.h"

enum { BENCH_MAXIMUM_HEADS = 32 };

/* Points into itself: it is not to be copied. */
struct bench_problem {
    const struct bench_case *shape;
    attn_params params;
    attn_tensor q, k, v, o;
    attn_tensor stats, d_o, d_q, d_k, d_v;                         /* used in a backward pass */
    attn_gradients gradients;                                      /* those */
    attn_tensor top_weights, top_keys, entropy, maximum, key_sums; /* used in an inspection */
    attn_inspection inspection;                                    /* those that are wanted */
    attn_tensor key_scales, value_scales;                          /* used with ATTN_I8 */
    attn_tensor bias;                                              /* used with BENCH_BIAS */
    int64_t starts[BENCH_SEQUENCES + 1];
    float slopes[BENCH_MAXIMUM_HEADS];
    /* The tensors above that begin in the block of K and V, which there are `copies` of. */
    unsigned char *keys_and_values;
    int64_t copies, copy_bytes;
};

/* Shapes, types and settings; no tensor has data yet. */
void bench_problem_shape(struct bench_problem *problem, const struct bench_case *shape,
                         attn_precision precision);

/* Gives the tensors memory of the kind that contexts work in, that of K and V `copies` times. Fails
 * without memory; bench_problem_release is due in any case. */
bool bench_problem_allocate(struct bench_problem *problem, int64_t copies,
                            struct attn_error *error);

/* Inputs between −1 and 1, the same in each run; a backward pass has its forward pass behind it. */
bool bench_problem_fill(attn_context *context, struct bench_problem *problem,
                        struct attn_error *error);

/* Turns k, v and their scales to copy `index` mod copies. */
void bench_problem_turn(struct bench_problem *problem, int64_t index);

/* The call itself, and the forward pass without inspection that is in it. */
attn_status bench_problem_call(attn_context *context, const struct bench_problem *problem);
attn_status bench_problem_call_forward(attn_context *context, const struct bench_problem *problem);

void bench_problem_release(struct bench_problem *problem);

#endif
