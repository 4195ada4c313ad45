/* A test body run on every instruction set that this machine has. */
#ifndef ATTN_TESTS_EACH_ISA_H
#define ATTN_TESTS_EACH_ISA_H

#include "nn/compute.h"

/* Calls body with a compute of `threads` threads for each ISA; prints the names of those that the
 * machine lacks. */
void each_isa(int threads, void (*body)(const struct compute *compute));

/* One compute of the best ISA, or a failed test. */
struct compute make_compute(int threads);

#endif
