/* What the CPU and the operating system allow. */
#ifndef ATTN_BASE_CPU_H
#define ATTN_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>

#include "attn.h"

/* The highest ISA of attn.h that the CPU implements and the operating system saves the
 * registers of. Knows nothing of ATTN_ISA or of options. */
attn_isa attn_cpu_best_isa(void);

/* Whether ATTN_ISA_AVX512 is allowed and the CPU has its bf16 dot products too (AVX512_BF16). */
bool attn_cpu_has_bf16_dots(void);

/* The CPU's name for people, e.g. "AMD EPYC 9B14", or "" where it is not known. */
void attn_cpu_name(char *name, size_t size);

#endif
