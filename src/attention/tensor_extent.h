/* Sizes and addresses of a tensor view. */
#ifndef ATTN_ATTENTION_TENSOR_EXTENT_H
#define ATTN_ATTENTION_TENSOR_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "attn.h"

/* Bytes an element; 0 for an unknown type. */
int64_t attn_type_size(attn_type type);

bool attn_is_empty(const attn_tensor *tensor);

/* Addresses of the first byte and of the one behind the last. For a tensor with elements whose
 * extent has been found to fit. */
struct attn_extent {
    uintptr_t begin, end;
};
struct attn_extent attn_tensor_extent(const attn_tensor *tensor);

/* Whether every element's address exists: no offset or address leaves 64 bits. */
bool attn_extent_fits(const attn_tensor *tensor);

#endif
