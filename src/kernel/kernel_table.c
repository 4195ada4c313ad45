#include "kernel/kernel_table.h"

#include "base/cpu.h"

const struct attn_kernels *attn_kernels_for(attn_isa isa)
{
    attn_isa best = attn_cpu_best_isa();
    if (isa > best)
        isa = best;

    const struct attn_kernels *kernels = &attn_kernels_scalar;
#if defined(__x86_64__)
    if (isa >= ATTN_ISA_AVX2)
        kernels = &attn_kernels_avx2;
#endif
    return kernels;
}
