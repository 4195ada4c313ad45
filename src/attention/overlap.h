/* Whether outputs address memory that they must not. Exact: interleaved views of one buffer are
 * told apart from views that really meet. */
#ifndef ATTN_ATTENTION_OVERLAP_H
#define ATTN_ATTENTION_OVERLAP_H

#include <stdbool.h>

#include "attn.h"

/* Whether two different indices of the tensor address the same element. */
bool attn_addresses_twice(const attn_tensor *tensor);

/* Whether some byte belongs to an element of both. Tensors have passed attn_check_tensor. */
bool attn_overlap(const attn_tensor *a, const attn_tensor *b);

#endif
