/* The kernels on AVX2 and FMA. Only the dispatcher may let these run: see kernel_table.c. */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif

#include "kernel/kernel_table.h"

#include <math.h>

#include "kernel/vector_avx2.h"

#define SUFFIX(name) name##_avx2
#define TILE         6

#include "kernel/exp_body.inc"

#include "kernel/attention_body.inc"
#include "kernel/layers_body.inc"

const struct attn_kernels attn_kernels_avx2 = {
    .isa = ATTN_ISA_AVX2,
    .lanes = LANES,
    .pack_queries = pack_queries_avx2,
    .scores = scores_avx2,
    .raise_maximum = raise_maximum_avx2,
    .softmax = softmax_avx2,
    .accumulate = accumulate_avx2,
    .normalise = normalise_avx2,
    .unpack_output = unpack_output_avx2,
    .weights = weights_avx2,
    .bias_gelu = bias_gelu_avx2,
    .layer_norm = layer_norm_avx2,
};
