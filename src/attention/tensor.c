#include "attn.h"

attn_tensor attn_tensor_packed(void *data, attn_type type, int64_t batch, int64_t heads,
                               int64_t length, int64_t dim)
{
    return (attn_tensor){
        .data = data,
        .type = type,
        .shape = {batch, heads, length, dim},
        /* Unsigned, so that a shape that no memory holds wraps here and is refused by the call. */
        .stride = {(int64_t)((uint64_t)heads * (uint64_t)length * (uint64_t)dim),
                   (int64_t)((uint64_t)length * (uint64_t)dim), dim, 1},
    };
}
