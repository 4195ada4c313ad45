/* One backward problem of the accuracy program, and what is right for it in more than double
 * precision. */
#ifndef ATTN_BENCH_ACCURACY_GRADIENT_PROBLEM_H
#define ATTN_BENCH_ACCURACY_GRADIENT_PROBLEM_H

#include <attn.h>

struct accuracy_gradient_shape {
    int64_t length, dim; /* Lq = Lk, d_qk = d_v = dim; one batch, one head */
    float spread;        /* standard deviation of the scores */
    int causal;
    attn_type type; /* of q, k, v and d_o */
};

/* [length][dim] each: the definition's gradient r, and what its error is measured by. With A = Σ
 * |do·v| of a pair, Ā = Σ p·A and B = Σ |do·o| of a row:
 *     size    of dV Σ p·|do|, of dQ and dK |scale|·Σ p·(A + Ā)·|k| and …·|q|
 *     law     the same with each term times 1 + S of its row (accuracy_problem.h)
 *     of_o    |scale|·Σ p·B·|k| and …·|q|: what an error of o does; 0 of dV
 *     tiny    what weights take away that count as 0 */
struct accuracy_gradient {
    double *right, *size, *law, *of_o, *tiny;
};

struct accuracy_gradient_problem {
    attn_params params;
    attn_tensor q, k, v, d_o;
    struct accuracy_gradient d_q, d_k, d_v;
};

/* Ends the program where there is no memory. */
void accuracy_gradient_make(struct accuracy_gradient_problem *problem,
                            const struct accuracy_gradient_shape *shape, uint64_t seed);
void accuracy_gradient_release(struct accuracy_gradient_problem *problem);

#endif
