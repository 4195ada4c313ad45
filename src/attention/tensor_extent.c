#include "attention/tensor_extent.h"

#include "base/checked.h"

int64_t attn_type_size(attn_type type)
{
    switch (type) {
    case ATTN_BOOL:
    case ATTN_I8:
        return 1;
    case ATTN_F16:
    case ATTN_BF16:
        return 2;
    case ATTN_F32:
    case ATTN_I32:
        return 4;
    case ATTN_F64:
        return 8;
    }
    return 0;
}

bool attn_is_empty(const attn_tensor *tensor)
{
    for (int axis = 0; axis < 4; axis++)
        if (tensor->shape[axis] == 0)
            return true;
    return false;
}

/* Bytes that the view reaches before and behind its first element's address; false on overflow. */
static bool reach(const attn_tensor *tensor, int64_t *before, int64_t *behind)
{
    int64_t low = 0, high = 0;
    for (int axis = 0; axis < 4; axis++) {
        int64_t span;
        if (!attn_checked_multiply(tensor->shape[axis] - 1, tensor->stride[axis], &span))
            return false;
        if (!attn_checked_add(span < 0 ? low : high, span, span < 0 ? &low : &high))
            return false;
    }
    int64_t size = attn_type_size(tensor->type);
    return attn_checked_multiply(low, size, before) && attn_checked_multiply(high, size, behind) &&
           attn_checked_add(*behind, size, behind);
}

struct attn_extent attn_tensor_extent(const attn_tensor *tensor)
{
    int64_t before = 0, behind = 0;
    reach(tensor, &before, &behind);
    uintptr_t data = (uintptr_t)tensor->data;
    return (struct attn_extent){data + (uintptr_t)before, data + (uintptr_t)behind};
}

bool attn_extent_fits(const attn_tensor *tensor)
{
    if (attn_is_empty(tensor))
        return true;
    /* Half of the range, so that a difference of two of them fits too. */
    const int64_t limit = INT64_MAX / 4;
    int64_t before, behind;
    if (!reach(tensor, &before, &behind) || before < -limit || behind > limit)
        return false;
    uintptr_t data = (uintptr_t)tensor->data;
    return data >= (uintptr_t)-before && data <= UINTPTR_MAX - (uintptr_t)behind;
}
