#include "measure/machine_loops.h"

#include <stddef.h>

const struct machine_loops *machine_loops_for(attn_isa isa)
{
    switch (isa) {
    case ATTN_ISA_SCALAR:
        return &machine_loops_scalar;
#if defined(__x86_64__)
    case ATTN_ISA_AVX2:
        return &machine_loops_avx2;
    case ATTN_ISA_AVX512:
        return &machine_loops_avx512;
#elif defined(__aarch64__)
    case ATTN_ISA_NEON:
        return &machine_loops_neon;
#endif
    default:
        return NULL;
    }
}
