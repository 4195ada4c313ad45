/* The weights of some rows at a time, and other numbers of a record. */
#include <string.h>

#include "probe/look_pass.h"

bool look_is_causal(const struct attention_record *record)
{
    /* A text that is looked at is read at once, so that places of queries and keys are the same. */
    return record->params->causal && record->q.shape[2] == record->k.shape[2];
}

int64_t look_tile(struct look_pass *pass, const struct compute *compute,
                  const struct attention_record *record, int64_t head, int64_t heads, int64_t row,
                  int64_t rows, struct attn_error *error)
{
    const int64_t keys = look_is_causal(record) ? row + rows : record->k.shape[2];
    const int64_t begin[4] = {0, head, row, 0};
    const attn_tensor tile = attn_tensor_packed(pass->tile, ATTN_F32, 1, heads, rows, keys);
    if (attn_weights(compute->attention, record->params, &record->q, &record->k, &record->stats,
                     begin, &tile) == ATTN_SUCCESS)
        return keys;
    attn_error_set(error, "attention weights: %s", attn_message(compute->attention));
    return -1;
}

void look_copy_rows(const attn_tensor *tensor, int64_t head, int64_t first, int64_t count,
                    float *rows)
{
    const int64_t d = tensor->shape[3], *stride = tensor->stride;
    const float *from = (const float *)tensor->data + head * stride[1] + first * stride[2];
    for (int64_t n = 0; n < count; n++)
        for (int64_t i = 0; i < d; i++)
            rows[n * d + i] = from[n * stride[2] + i * stride[3]];
}
