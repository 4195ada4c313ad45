#include "nn/blas_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

#ifdef ATTN_OPENBLAS
#include <cblas.h>

const char *blas_kernels_name(void)
{
    return openblas_get_corename();
}
#else
const char *blas_kernels_name(void)
{
    return "";
}
#endif

const char *blas_kernels_to_ask_for(void)
{
    static const char of_unknown_models[] = "Prescott";
    if (getenv(BLAS_KERNELS_VARIABLE) || strcmp(blas_kernels_name(), of_unknown_models) != 0)
        return NULL;
    switch (attn_cpu_best_isa()) {
    case ATTN_ISA_AVX512:
        return "SKYLAKEX";
    case ATTN_ISA_AVX2:
        return "HASWELL";
    default:
        return NULL;
    }
}
