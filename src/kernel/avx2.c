/* The kernels on AVX2, FMA and F16C. Only the dispatcher may let these run: see kernel_table.c. */
#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile this file with -mavx2 -mfma -mf16c"
#endif

#include "kernel/kernel_table.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "kernel/compiler.h"
#include "kernel/decode_kernels.h"
#include "kernel/edit_scalar.h"
#include "kernel/gradient_kernels.h"
#include "kernel/inspect_kernels.h"
#include "kernel/matrix_kernels.h"
#include "kernel/vector_avx2.h"

#define SUFFIX(name) name##_avx2
#define TILE         6

#include "kernel/exp_table_body.inc"
#include "kernel/online_softmax_body.inc"

#include "kernel/attention_body.inc"
#include "kernel/decode_body.inc"
#include "kernel/dropout_body.inc"
#include "kernel/edit_body.inc"
#include "kernel/gradient_body.inc"
#include "kernel/inspect_body.inc"
#include "kernel/layers_body.inc"
#include "kernel/storage_body.inc"

#include "kernel/matrix_body.inc"

const struct attn_kernels attn_kernels_avx2 = {
    .isa = ATTN_ISA_AVX2,
    .vector_lanes = VECTOR_LANES,
    .pack_queries = pack_queries_avx2,
    .scores = scores_avx2,
    .raise_maximum = raise_maximum_avx2,
    .softmax = softmax_avx2,
    .accumulate = accumulate_avx2,
    .normalise = normalise_avx2,
    .unpack_output = unpack_output_avx2,
    .weights = weights_avx2,
    .soft_cap = soft_cap_avx2,
    .add_bias = add_bias_avx2,
    .subtract_distance = subtract_distance_avx2,
    .exclude = exclude_avx2,
    .exclusion_words = exclusion_words_avx2,
    .dropout = dropout_avx2,
    .multiply = multiply_avx2,
    .widen = widen_avx2,
    .narrow = narrow_avx2,
    .decode = &decode_kernels_avx2,
    .matrices = &matrix_kernels_avx2,
    .gradients = &gradient_kernels_avx2,
    .inspect = &inspect_kernels_avx2,
    .activate = activate_avx2,
    .activate_backward = activate_backward_avx2,
    .swiglu = swiglu_avx2,
    .swiglu_backward = swiglu_backward_avx2,
    .layer_norm = layer_norm_avx2,
    .rms_norm = rms_norm_avx2,
    .layer_norm_backward = layer_norm_backward_avx2,
    .rms_norm_backward = rms_norm_backward_avx2,
    .cross_entropy = cross_entropy_avx2,
};
