/* What layers compute with: the attention context, and the kernels of the same ISA. */
#ifndef ATTN_NN_COMPUTE_H
#define ATTN_NN_COMPUTE_H

#include "attn.h"
#include "base/error.h"

struct attn_kernels;

struct compute {
    attn_context *attention;
    const struct attn_kernels *kernels;
    double *attention_seconds; /* NULL, or where attention adds the time of its calls of libattn */
};

/* With at most `threads` threads (≥ 1) here, and as many in a CBLAS that is OpenBLAS or shares the
 * thread runtime of libattn. */
bool compute_create(struct compute *compute, int threads, struct attn_error *error);

/* The same with this instruction set, or where that is not to be had with the next lower one. */
bool compute_create_for(struct compute *compute, attn_isa isa, int threads,
                        struct attn_error *error);
void compute_destroy(struct compute *compute);

/* Around each call of libattn's attention: when it begins, and what it has come to. The time is
 * measured where somebody asks for it. */
double compute_attention_begin(const struct compute *compute);
bool compute_attention_end(const struct compute *compute, double began, attn_status status,
                           struct attn_error *error);

/* For another thread than that which has created it, before it computes: OpenMP keeps the number of
 * threads for each thread that begins a loop. */
void compute_enter(const struct compute *compute);

#endif
