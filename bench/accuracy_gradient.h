/* The part of the accuracy program that measures attn_backward. */
#ifndef ATTN_BENCH_ACCURACY_GRADIENT_H
#define ATTN_BENCH_ACCURACY_GRADIENT_H

#include <attn.h>
#include <stdbool.h>

/* Measures with each of the contexts, whose instruction sets differ, and prints the section about
 * gradients of docs/accuracy.md. False where an error is larger than what it promises. */
bool accuracy_print_gradients(attn_context *const *contexts, int count);

#endif
