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

/* Whether the CPU has those products on tiles as well (AMX-BF16) and the process may use them.
 * Linux gives the permission to a process that asks, which this does; from then on an alternate
 * signal stack must have room for tiles (AT_MINSIGSTKSZ of getauxval says how much), and it refuses
 * where a thread has a smaller one. */
bool attn_cpu_has_bf16_tiles(void);

/* The CPU's name for people, e.g. "AMD EPYC 9B14", or "" where it is not known. */
void attn_cpu_name(char *name, size_t size);

#endif
