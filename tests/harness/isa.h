/* The instruction sets that a test walks through. */
#ifndef ATTN_TESTS_HARNESS_ISA_H
#define ATTN_TESTS_HARNESS_ISA_H

#include <stdbool.h>

#include "attn.h"

/* A context limited to `isa`, made by the library's own dispatcher; threads 0 for its default. Ends
 * the program when there is none. */
attn_context *isa_context(attn_isa isa, int threads);

/* Whether the library knows this value, and the build, the CPU and ATTN_ISA allow it. */
bool isa_is_available(attn_isa isa);

/* Runs body once for every ISA that the library knows for this architecture, as "name [isa]". One
 * that the build, the CPU or ATTN_ISA does not allow is reported as skipped, once a program. */
void isa_each(const char *name, void (*body)(attn_isa isa));

/* The same for a body that needs no more than one context of one thread. */
void isa_each_context(const char *name, void (*body)(attn_context *context));

#endif
