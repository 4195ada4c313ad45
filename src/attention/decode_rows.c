/* Rows of the tensors on their way to the kernels of decode and back. */
#include <string.h>

#include "attention/decode_item.h"
#include "attention/row_place.h"
#include "attention/rows.h"
#include "attention/tensor_extent.h"

/* `count` elements of `size` bytes that lie `from_step` and `to_step` elements apart. */
static void copy_elements(const char *from, int64_t from_step, char *to, int64_t to_step,
                          int64_t size, int64_t count)
{
    for (int64_t c = 0; c < count; c++)
        memcpy(to + c * to_step * size, from + c * from_step * size, (size_t)size);
}

/* Rows whose elements lie apart, as a copy. */
static struct attn_stored_rows copied_rows(const struct attn_decode_item *item,
                                           const attn_tensor *tensor, const attn_tensor *scales,
                                           const struct attn_decode_rows *scratch, int64_t first,
                                           int64_t count)
{
    int64_t size = attn_type_size(tensor->type), dim = tensor->shape[3];
    bool scaled = tensor->type == ATTN_I8;
    for (int64_t j = 0; j < count; j++) {
        struct attn_row_place place = attn_row_place_of(item->problem, &item->sequence, first + j);
        copy_elements(attn_address(tensor, size, place.batch, item->key_head, place.row, 0),
                      tensor->stride[3], scratch->copy + j * dim * size, 1, size, dim);
        if (scaled)
            scratch->scales[j] = *attn_element(scales, place.batch, item->key_head, place.row, 0);
    }
    return (struct attn_stored_rows){.data = scratch->copy,
                                     .stride = dim * size,
                                     .scales = scaled ? scratch->scales : NULL,
                                     .scale_stride = 1};
}

struct attn_stored_rows attn_decode_rows(const struct attn_decode_item *item,
                                         const attn_tensor *tensor, const attn_tensor *scales,
                                         const struct attn_decode_rows *scratch, int64_t first,
                                         int64_t count)
{
    int64_t run = count;
    struct attn_stored_rows rows = attn_stored_run(item->problem, tensor, scales, &item->sequence,
                                                   item->key_head, first, &run);
    if (run == count)
        return rows;
    if (run == 0)
        return copied_rows(item, tensor, scales, scratch, first, count);
    struct attn_stored_rows all = {.stride = rows.stride,
                                   .table = scratch->table,
                                   .scales = rows.scales ? scratch->scales : NULL,
                                   .scale_stride = 1};
    for (int64_t done = 0; done < count; done += run) {
        run = count - done;
        rows = attn_stored_run(item->problem, tensor, scales, &item->sequence, item->key_head,
                               first + done, &run);
        for (int64_t j = 0; j < run; j++)
            scratch->table[done + j] = (const char *)rows.data + j * rows.stride;
        for (int64_t j = 0; rows.scales && j < run; j++)
            scratch->scales[done + j] = rows.scales[j * rows.scale_stride];
    }
    return all;
}

void attn_decode_pack_query(const struct attn_decode_item *item, int64_t row, float *packed)
{
    const attn_tensor *q = &item->problem->q;
    const struct attn_sequence *sequence = &item->sequence;
    int64_t size = attn_type_size(q->type), d_qk = item->problem->d_qk;
    const char *query = attn_address(q, size, sequence->batch, attn_decode_head(item, row),
                                     sequence->query_begin + attn_decode_query(item, row), 0);
    if (q->type == ATTN_F32) {
        item->key_kernels->pack((const float *)(const void *)query, q->stride[3], d_qk, packed);
        return;
    }
    enum attn_storage storage = attn_storage_of(q->type);
    int64_t run = q->stride[3] == 1 ? d_qk : 1;
    for (int64_t c = 0; c < d_qk; c += run)
        item->kernels->widen(storage, query + c * q->stride[3] * size, 1.0f, run,
                             item->scratch->row + c);
    item->key_kernels->pack(item->scratch->row, 1, d_qk, packed);
}

void attn_decode_unpack_output(const struct attn_decode_item *item, int64_t row,
                               const float *packed)
{
    const attn_tensor *o = &item->problem->o;
    const struct attn_sequence *sequence = &item->sequence;
    int64_t size = attn_type_size(o->type), d_v = item->problem->d_v;
    char *output = attn_address(o, size, sequence->batch, attn_decode_head(item, row),
                                sequence->query_begin + attn_decode_query(item, row), 0);
    if (o->type == ATTN_F32) {
        item->value_kernels->unpack(packed, d_v, (float *)(void *)output, o->stride[3]);
        return;
    }
    item->value_kernels->unpack(packed, d_v, item->scratch->row, 1);
    item->kernels->narrow(attn_storage_of(o->type), item->scratch->row, d_v, item->scratch->narrow);
    copy_elements(item->scratch->narrow, 1, output, o->stride[3], size, d_v);
}
