/* The tables of products of bf16 pairs that a test walks through: the dispatcher takes only the
 * best one of a CPU. */
#ifndef ATTN_TESTS_HARNESS_DOTS_H
#define ATTN_TESTS_HARNESS_DOTS_H

#include "attn.h"
#include "kernel/kernel.h"

/* Runs body once for every table of such products that the build has, as "name [instructions]". One
 * that the CPU or ATTN_ISA does not allow is reported as skipped, once a program. */
void dots_each(const char *name, void (*body)(const struct attn_kernels *kernels));

/* The same for a body that needs a context of one thread. */
void dots_each_context(const char *name, void (*body)(attn_context *context));

#endif
