/* A named tensor as a model file stores it: a view of mapped bytes. */
#ifndef ATTN_FORMAT_STORED_TENSOR_H
#define ATTN_FORMAT_STORED_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum stored_type {
    STORED_F64,
    STORED_F32,
    STORED_F16,
    STORED_BF16,
    STORED_I64,
    STORED_I32,
    STORED_I16,
    STORED_I8,
    STORED_U64,
    STORED_U32,
    STORED_U16,
    STORED_U8,
    STORED_BOOL,
    STORED_F8_E4M3,
    STORED_F8_E5M2,
    /* Blocks of GGML's format, of which each row has a whole number; kernel/matrix_kernels.h tells
     * their layout. */
    STORED_Q8_0,
    STORED_Q4_0,
    STORED_Q4_1,
    STORED_Q5_0,
    STORED_Q5_1,
    STORED_Q4_K,
    STORED_Q5_K,
    STORED_Q6_K,
    STORED_TYPES
};

enum { STORED_MAX_RANK = 8 };

struct stored_tensor {
    const char *name; /* NUL-terminated; lives as long as its file */
    enum stored_type type;
    int rank; /* 0 is a scalar: one element */
    int64_t shape[STORED_MAX_RANK];
    int64_t elements;          /* the product of shape, known not to overflow */
    const unsigned char *data; /* little-endian, of any alignment */
    size_t size;               /* bytes */
};

const char *stored_type_name(enum stored_type type); /* "F32", … as safetensors or GGML spells it */
int64_t stored_type_block(enum stored_type type); /* elements of a block; 1 where there is none */
size_t stored_type_size(enum stored_type type);   /* bytes of a block: of an element mostly */

/* The type that safetensors spells `name`; false where there is none, as for types of blocks. */
bool stored_type_from_name(const char *name, enum stored_type *type);

/* Converts to float: F32, F64, F16, BF16 and the types of blocks; other types are refused by name.
 * `floats` takes tensor->elements numbers. */
bool stored_tensor_to_floats(const struct stored_tensor *tensor, float *floats,
                             struct attn_error *error);

/* The data itself where it is aligned little-endian F32 that the CPU can read in place, else NULL.
 */
const float *stored_tensor_as_floats(const struct stored_tensor *tensor);

/* Sorts by name; finds by name in what is sorted so, NULL where there is none. */
void stored_tensors_sort(const struct stored_tensor **tensors, size_t count);
const struct stored_tensor *stored_tensors_find(const struct stored_tensor *const *tensors,
                                                size_t count, const char *name);

/* "[12, 4]" into text; cut to size. */
void stored_tensor_shape_text(const struct stored_tensor *tensor, char *text, size_t size);

#endif
