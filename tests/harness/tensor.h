/* Tensors for tests: four axes of elements of any type in many memory layouts, in guarded memory.
 */
#ifndef ATTN_TESTS_HARNESS_TENSOR_H
#define ATTN_TESTS_HARNESS_TENSOR_H

#include "attn.h"
#include "harness/guarded.h"
#include "harness/random.h"

enum layout {
    LAYOUT_PACKED,       /* row-major */
    LAYOUT_HEADS_INSIDE, /* [batch, length, head, dim], as a linear layer writes it */
    LAYOUT_TRANSPOSED,   /* [batch, head, dim, length] */
    LAYOUT_REVERSED,     /* row-major, every stride negative */
    LAYOUT_PADDED,       /* misaligned by one element, odd gaps between rows */
    LAYOUT_SPREAD,       /* two elements of gap between neighbours of a row */
    LAYOUT_OUTPUTS,      /* how many of the layouts give each element a place of its own */
    LAYOUT_SHARED_HEADS = LAYOUT_OUTPUTS, /* stride 0 along heads */
    LAYOUT_SHARED_ROWS,                   /* stride 0 along the length */
    LAYOUT_INPUTS                         /* how many layouts */
};

/* Gaps and elements are the harness's NaN, or 0xA5 where the type has none (harness/element.h). */
attn_tensor tensor_allocate(attn_type type, int64_t batch, int64_t heads, int64_t length,
                            int64_t dim, enum layout layout, enum guard_side side);

size_t tensor_elements(const attn_tensor *tensor);

/* Elements as numbers, as harness/element.h reads and rounds them. tensor_get repeats axes of
 * length 1. */
double tensor_get(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c);
void tensor_set(const attn_tensor *tensor, int64_t b, int64_t h, int64_t i, int64_t c,
                double value);

void tensor_fill_random(const attn_tensor *tensor, struct random_source *source, float low,
                        float high);
void tensor_fill(const attn_tensor *tensor, double value);

/* The elements as f32, row-major, in guarded memory of their own. */
float *tensor_packed_copy(const attn_tensor *tensor);

/* A tensor of the same elements in another layout, and in another type: rounded once. */
attn_tensor tensor_copy(const attn_tensor *tensor, enum layout layout, enum guard_side side);
attn_tensor tensor_convert(const attn_tensor *tensor, attn_type type, enum layout layout,
                           enum guard_side side);

/* The part [begin, begin + count) of one axis. */
attn_tensor tensor_part(const attn_tensor *tensor, int axis, int64_t begin, int64_t count);

#endif
