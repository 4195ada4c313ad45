/* The kernels on AVX-512 F, VL, DQ and BW. Only the dispatcher may let these run: see
 * kernel_table.c. */
#if !defined(ATTN_EMULATE_AVX512) && !(defined(__AVX512F__) && defined(__AVX512VL__) &&            \
                                       defined(__AVX512DQ__) && defined(__AVX512BW__))
#error "compile this file with -mavx512f -mavx512vl -mavx512dq -mavx512bw"
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
#include "kernel/vector_avx512.h"

#define SUFFIX(name) name##_avx512
#define TILE         12

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

/* The same kernels with and without products of bf16 pairs. */
#define KERNELS(pair_kernels, pair_gradient_kernels)                                               \
    {                                                                                              \
        .isa = ATTN_ISA_AVX512, .vector_lanes = VECTOR_LANES, .pack_queries = pack_queries_avx512, \
        .scores = scores_avx512, .raise_maximum = raise_maximum_avx512, .softmax = softmax_avx512, \
        .accumulate = accumulate_avx512, .normalise = normalise_avx512,                            \
        .unpack_output = unpack_output_avx512, .weights = weights_avx512,                          \
        .soft_cap = soft_cap_avx512, .add_bias = add_bias_avx512,                                  \
        .subtract_distance = subtract_distance_avx512, .exclude = exclude_avx512,                  \
        .exclusion_words = exclusion_words_avx512, .dropout = dropout_avx512,                      \
        .multiply = multiply_avx512, .widen = widen_avx512, .narrow = narrow_avx512,               \
        .decode = &decode_kernels_avx512, .matrices = &matrix_kernels_avx512,                      \
        .gradients = &gradient_kernels_avx512, .inspect = &inspect_kernels_avx512,                 \
        .activate = activate_avx512, .activate_backward = activate_backward_avx512,                \
        .swiglu = swiglu_avx512, .swiglu_backward = swiglu_backward_avx512,                        \
        .layer_norm = layer_norm_avx512, .rms_norm = rms_norm_avx512,                              \
        .layer_norm_backward = layer_norm_backward_avx512,                                         \
        .rms_norm_backward = rms_norm_backward_avx512, .cross_entropy = cross_entropy_avx512,      \
        .dots = (pair_kernels), .dot_gradients = (pair_gradient_kernels),                          \
    }

const struct attn_kernels attn_kernels_avx512 = KERNELS(NULL, NULL);
const struct attn_kernels attn_kernels_avx512_bf16 =
    KERNELS(&attn_dot_kernels_avx512, &attn_dot_gradient_kernels_avx512);
#if defined(ATTN_WITH_AMX)
const struct attn_kernels attn_kernels_avx512_amx =
    KERNELS(&attn_dot_kernels_amx, &attn_dot_gradient_kernels_amx);
#endif
