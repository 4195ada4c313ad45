/* What attn_explain asks of attn_weights. */
#ifndef ATTN_ATTENTION_WEIGHTS_H
#define ATTN_ATTENTION_WEIGHTS_H

#include "attention/problem.h"

/* Bytes of workspace that one thread takes; −1 where they leave 64 bits. */
int64_t attn_weights_bytes(const struct attn_kernels *kernels, const struct attn_problem *problem);

#endif
