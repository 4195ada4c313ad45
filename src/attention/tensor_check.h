/* Checks of one tensor of a call, with messages that name it. */
#ifndef ATTN_ATTENTION_TENSOR_CHECK_H
#define ATTN_ATTENTION_TENSOR_CHECK_H

#include "attn.h"
#include "base/error.h"

/* A set of element types: bits 1 << attn_type. */
enum attn_type_set {
    ATTN_TYPES_F32 = 1 << ATTN_F32,
    ATTN_TYPES_BOOL = 1 << ATTN_BOOL,
    ATTN_TYPES_F64 = 1 << ATTN_F64,
    ATTN_TYPES_I32 = 1 << ATTN_I32,
    ATTN_TYPES_FLOAT = 1 << ATTN_F32 | 1 << ATTN_F16 | 1 << ATTN_BF16,
    ATTN_TYPES_ROWS = ATTN_TYPES_FLOAT | 1 << ATTN_I8
};

/* Pointer, element type, data, alignment, and that all its addresses exist. */
attn_status attn_check_tensor(const attn_tensor *tensor, const char *name, unsigned types,
                              struct attn_error *error);

/* The tensor; where it has no element its strides are 0, so that no address is computed from a
 * pointer that may be NULL. */
attn_tensor attn_without_offsets(const attn_tensor *tensor);

/* Its shape against what it must be. */
attn_status attn_check_shape(const attn_tensor *tensor, const char *name, const int64_t expected[4],
                             struct attn_error *error);

/* A tensor whose every axis is full or 1; axes of 1 are expanded by a stride of 0. */
attn_status attn_resolve_broadcast(attn_tensor *resolved, const attn_tensor *tensor,
                                   const char *name, unsigned types, const int64_t full[4],
                                   struct attn_error *error);

#endif
