/* The names of instruction sets: the one list of them beside attn_isa. */
#ifndef ATTN_ATTENTION_ISA_NAME_H
#define ATTN_ATTENTION_ISA_NAME_H

#include <stdbool.h>

#include "attn.h"

/* All of them, for people. */
#define ATTN_ISA_NAMES "scalar, avx2, avx512 or neon"

/* Whether it is an ISA of this version; ATTN_ISA_BEST is none. */
bool attn_isa_is_known(attn_isa isa);

/* The ISA with this name; false, with *isa left as it is, where none has it. */
bool attn_isa_from_name(const char *name, attn_isa *isa);

#endif
