/* The kernels on Advanced SIMD, which every AArch64 has. */
#if !defined(__aarch64__)
#error "this file is for AArch64"
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
#include "kernel/vector_neon.h"

#define SUFFIX(name) name##_neon
#define TILE         12

#include "kernel/exp_body.inc"
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

const struct attn_kernels attn_kernels_neon = {
    .isa = ATTN_ISA_NEON,
    .vector_lanes = VECTOR_LANES,
    .pack_queries = pack_queries_neon,
    .scores = scores_neon,
    .raise_maximum = raise_maximum_neon,
    .softmax = softmax_neon,
    .accumulate = accumulate_neon,
    .normalise = normalise_neon,
    .unpack_output = unpack_output_neon,
    .weights = weights_neon,
    .soft_cap = soft_cap_neon,
    .add_bias = add_bias_neon,
    .subtract_distance = subtract_distance_neon,
    .exclude = exclude_neon,
    .exclusion_words = exclusion_words_neon,
    .dropout = dropout_neon,
    .multiply = multiply_neon,
    .widen = widen_neon,
    .narrow = narrow_neon,
    .decode = &decode_kernels_neon,
    .matrices = &matrix_kernels_neon,
    .gradients = &gradient_kernels_neon,
    .inspect = &inspect_kernels_neon,
    .activate = activate_neon,
    .activate_backward = activate_backward_neon,
    .swiglu = swiglu_neon,
    .swiglu_backward = swiglu_backward_neon,
    .layer_norm = layer_norm_neon,
    .rms_norm = rms_norm_neon,
    .layer_norm_backward = layer_norm_backward_neon,
    .rms_norm_backward = rms_norm_backward_neon,
    .cross_entropy = cross_entropy_neon,
};
