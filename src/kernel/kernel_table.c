#include "kernel/kernel_table.h"

#include "base/cpu.h"

/* Tables of this architecture, lowest first; the CPU may not have all of them. */
static const struct attn_kernels *const tables[] = {
    &attn_kernels_scalar,
#if defined(__x86_64__)
    &attn_kernels_avx2,
    &attn_kernels_avx512,
#elif defined(__aarch64__)
    &attn_kernels_neon,
#endif
};

enum { TABLES = sizeof tables / sizeof tables[0] };

/* How many of the tables, from the lowest, an upper limit lets through. */
static int tables_up_to(attn_isa limit)
{
    if (limit == ATTN_ISA_BEST)
        return TABLES;
    for (int i = 0; i < TABLES; i++)
        if (tables[i]->isa == limit)
            return i + 1;
    /* With another architecture this one has nothing but plain C in common. */
    return 1;
}

const struct attn_kernels *attn_kernels_for(attn_isa isa)
{
    int allowed = tables_up_to(isa), present = tables_up_to(attn_cpu_best_isa());
    const struct attn_kernels *kernels = tables[(allowed < present ? allowed : present) - 1];
#if defined(__x86_64__)
    if (kernels == &attn_kernels_avx512 && attn_cpu_has_bf16_dots())
        kernels = &attn_kernels_avx512_bf16;
#endif
    return kernels;
}

const struct attn_kernels *attn_kernels_with_tiles(const struct attn_kernels *kernels)
{
#if defined(__x86_64__) && defined(ATTN_WITH_AMX)
    if (kernels == &attn_kernels_avx512_bf16 && attn_cpu_has_bf16_tiles())
        return &attn_kernels_avx512_amx;
#endif
    return kernels;
}
