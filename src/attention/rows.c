#include "attention/rows.h"

#include <string.h>

#include "attention/row_place.h"
#include "attention/tensor_extent.h"
#include "base/prefetch.h"
#include "kernel/decode_kernels.h"
#include "kernel/dot_kernels.h"

enum storage_limits {
    PIECE = 64, /* elements of a strided row that are brought together at once */
    LARGEST_ELEMENT = 4
};

enum attn_storage attn_storage_of(attn_type type)
{
    switch (type) {
    case ATTN_F16:
        return ATTN_STORAGE_F16;
    case ATTN_BF16:
        return ATTN_STORAGE_BF16;
    case ATTN_I8:
        return ATTN_STORAGE_I8;
    default:
        return ATTN_STORAGE_F32;
    }
}

bool attn_elements_adjoin(const attn_tensor *tensor)
{
    return tensor->stride[3] == 1 || tensor->shape[3] <= 1;
}

bool attn_rows_need_scratch(const struct attn_problem *problem, const attn_tensor *tensor)
{
    return tensor->type != ATTN_F32 || !attn_elements_adjoin(tensor) || problem->block_table;
}

/* `count` elements of `size` bytes, `from_step` and `to_step` elements apart. */
static void copy_elements(const char *from, int64_t from_step, char *to, int64_t to_step,
                          int64_t size, int64_t count)
{
    switch (size) {
    case 1:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, 1);
        return;
    case 2:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 2 * i * to_step, from + 2 * i * from_step, 2);
        return;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i * to_step, from + 4 * i * from_step, 4);
        return;
    }
}

/* One row whose elements lie `step` apart, times `scale` if it is i8. */
static void widen_row(const struct attn_kernels *kernels, attn_type type, const char *row,
                      int64_t step, float scale, int64_t dim, float *out)
{
    enum attn_storage storage = attn_storage_of(type);
    if (step == 1) {
        kernels->widen(storage, row, scale, dim, out);
        return;
    }
    _Alignas(LARGEST_ELEMENT) char piece[PIECE * LARGEST_ELEMENT];
    int64_t size = attn_type_size(type);
    for (int64_t c = 0; c < dim; c += PIECE) {
        int64_t count = dim - c < PIECE ? dim - c : PIECE;
        copy_elements(row + c * step * size, step, piece, 1, size, count);
        kernels->widen(storage, piece, scale, count, out + c);
    }
}

/* Rows first..first+count−1 of index b and head h, one after another along the length, to
 * out, out_stride floats from row to row. `scales` is read for i8 only. */
static void widen_rows(const struct attn_kernels *kernels, const attn_tensor *tensor,
                       const attn_tensor *scales, int64_t b, int64_t h, int64_t first,
                       int64_t count, float *out, int64_t out_stride)
{
    int64_t dim = tensor->shape[3], size = attn_type_size(tensor->type);
    const char *row = attn_address(tensor, size, b, h, first, 0);
    int64_t step = attn_elements_adjoin(tensor) ? 1 : tensor->stride[3];
    bool scaled = tensor->type == ATTN_I8;
    if (step == 1 && tensor->stride[2] == dim && out_stride == dim && !scaled) {
        kernels->widen(attn_storage_of(tensor->type), row, 1.0f, count * dim, out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float scale = scaled ? *attn_element(scales, b, h, first + i, 0) : 1.0f;
        widen_row(kernels, tensor->type, row + i * tensor->stride[2] * size, step, scale, dim,
                  out + i * out_stride);
    }
}

static struct attn_rows rows_of(const struct attn_kernels *kernels,
                                const struct attn_problem *problem, const attn_tensor *tensor,
                                const attn_tensor *scales, const struct attn_sequence *sequence,
                                int64_t key_head, int64_t first, int64_t count, float *scratch)
{
    int64_t dim = tensor->shape[3];
    if (count <= 0 || dim == 0)
        return (struct attn_rows){.data = scratch, .stride = dim};
    struct attn_row_place place = attn_row_place_of(problem, sequence, first);
    if (tensor->type == ATTN_F32 && attn_elements_adjoin(tensor) && count <= place.run)
        return (struct attn_rows){.data = attn_element(tensor, place.batch, key_head, place.row, 0),
                                  .stride = tensor->stride[2]};
    for (int64_t done = 0; done < count;) {
        place = attn_row_place_of(problem, sequence, first + done);
        int64_t run = place.run < count - done ? place.run : count - done;
        widen_rows(kernels, tensor, scales, place.batch, key_head, place.row, run,
                   scratch + done * dim, dim);
        done += run;
    }
    return (struct attn_rows){.data = scratch, .stride = dim};
}

void attn_read_halves(const attn_tensor *tensor, int64_t batch, int64_t head, int64_t row,
                      int64_t rows, int64_t width, uint16_t *halves)
{
    int64_t dim = tensor->shape[3], size = attn_type_size(tensor->type);
    for (int64_t i = 0; i < rows; i++, halves += width) {
        copy_elements(attn_address(tensor, size, batch, head, row + i, 0), tensor->stride[3],
                      (char *)halves, 1, size, dim);
        memset(halves + dim, 0, (size_t)(width - dim) * sizeof *halves);
    }
}

/* The same as they are stored, bf16, each row followed by zeros up to `width` where it is copied;
 * rows narrower than `width` always are. */
static struct attn_rows half_rows_of(const struct attn_problem *problem, const attn_tensor *tensor,
                                     const struct attn_sequence *sequence, int64_t key_head,
                                     int64_t first, int64_t count, int64_t width, uint16_t *scratch)
{
    int64_t dim = tensor->shape[3], size = attn_type_size(tensor->type);
    if (count <= 0 || dim == 0)
        return (struct attn_rows){.halves = scratch, .stride = width};
    struct attn_row_place place = attn_row_place_of(problem, sequence, first);
    if (width == dim && attn_elements_adjoin(tensor) && count <= place.run)
        return (struct attn_rows){
            .halves = attn_address(tensor, size, place.batch, key_head, place.row, 0),
            .stride = tensor->stride[2]};
    for (int64_t i = 0; i < count; i++) {
        place = attn_row_place_of(problem, sequence, first + i);
        attn_read_halves(tensor, place.batch, key_head, place.row, 1, width, scratch + i * width);
    }
    return (struct attn_rows){.halves = scratch, .stride = width};
}

struct attn_rows attn_key_rows(const struct attn_kernels *kernels,
                               const struct attn_problem *problem,
                               const struct attn_sequence *sequence, int64_t key_head,
                               int64_t first, int64_t count, float *scratch)
{
    if (problem->precision == ATTN_PRECISION_BF16)
        return half_rows_of(problem, &problem->k, sequence, key_head, first, count,
                            problem->d_qk + problem->d_qk % 2, (uint16_t *)(void *)scratch);
    return rows_of(kernels, problem, &problem->k, &problem->key_scales, sequence, key_head, first,
                   count, scratch);
}

struct attn_rows attn_value_rows(const struct attn_kernels *kernels,
                                 const struct attn_problem *problem,
                                 const struct attn_sequence *sequence, int64_t key_head,
                                 int64_t first, int64_t count, float *scratch)
{
    if (problem->dot_values)
        return half_rows_of(problem, &problem->v, sequence, key_head, first, count, problem->d_v,
                            (uint16_t *)(void *)scratch);
    return rows_of(kernels, problem, &problem->v, &problem->value_scales, sequence, key_head, first,
                   count, scratch);
}

void attn_rows_prefetch(const struct attn_problem *problem, const struct attn_sequence *sequence,
                        int64_t key_head, int64_t first, int64_t count)
{
    const attn_tensor *const tensors[2] = {&problem->k, &problem->v};
    for (int64_t i = 0; i < count; i++) {
        struct attn_row_place place = attn_row_place_of(problem, sequence, first + i);
        for (int n = 0; n < 2; n++) {
            int64_t size = attn_type_size(tensors[n]->type);
            if (attn_elements_adjoin(tensors[n]))
                attn_prefetch(attn_address(tensors[n], size, place.batch, key_head, place.row, 0),
                              size * tensors[n]->shape[3]);
        }
    }
}

void attn_read_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                    int64_t head, int64_t row, int64_t rows, float *numbers, int64_t stride)
{
    if (rows > 0 && tensor->shape[3] > 0)
        widen_rows(kernels, tensor, NULL, batch, head, row, rows, numbers, stride);
}

void attn_pack_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                    int64_t head, int64_t row, int64_t rows, int lanes, float *scratch,
                    float *panel)
{
    int64_t dim = tensor->shape[3];
    if (tensor->type == ATTN_F32) {
        kernels->pack_queries(attn_element(tensor, batch, head, row, 0), tensor->stride[2],
                              tensor->stride[3], rows, dim, lanes, panel);
        return;
    }
    attn_read_rows(kernels, tensor, batch, head, row, rows, scratch, dim);
    kernels->pack_queries(scratch, dim, 1, rows, dim, lanes, panel);
}

void attn_pack_queries(const struct attn_kernels *kernels, const struct attn_problem *problem,
                       const struct attn_sequence *sequence, int64_t head, int64_t first,
                       int64_t rows, int lanes, float *row, float *panel)
{
    const attn_tensor *q = &problem->q;
    int64_t query = sequence->query_begin + first;
    if (problem->precision == ATTN_PRECISION_BF16) {
        kernels->dots->pack_queries(
            attn_address(q, (int64_t)sizeof(uint16_t), sequence->batch, head, query, 0),
            q->stride[2], q->stride[3], rows, problem->d_qk, lanes, (uint32_t *)(void *)panel);
        return;
    }
    attn_pack_rows(kernels, q, sequence->batch, head, query, rows, lanes, row, panel);
}

/* One row to elements that lie `step` apart. */
static void narrow_row(const struct attn_kernels *kernels, attn_type type, const float *row,
                       int64_t dim, char *out, int64_t step)
{
    enum attn_storage storage = attn_storage_of(type);
    if (step == 1) {
        kernels->narrow(storage, row, dim, out);
        return;
    }
    _Alignas(LARGEST_ELEMENT) char piece[PIECE * LARGEST_ELEMENT];
    int64_t size = attn_type_size(type);
    for (int64_t c = 0; c < dim; c += PIECE) {
        int64_t count = dim - c < PIECE ? dim - c : PIECE;
        kernels->narrow(storage, row + c, count, piece);
        copy_elements(piece, 1, out + c * step * size, step, size, count);
    }
}

void attn_write_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                     int64_t head, int64_t row, int64_t rows, const float *numbers, int64_t stride)
{
    int64_t dim = tensor->shape[3], size = attn_type_size(tensor->type);
    int64_t step = attn_elements_adjoin(tensor) ? 1 : tensor->stride[3];
    for (int64_t n = 0; dim > 0 && n < rows; n++)
        narrow_row(kernels, tensor->type, numbers + n * stride, dim,
                   attn_address(tensor, size, batch, head, row + n, 0), step);
}

void attn_unpack_rows(const struct attn_kernels *kernels, const attn_tensor *tensor, int64_t batch,
                      int64_t head, int64_t row, int64_t rows, int lanes, float *scratch,
                      const float *panel)
{
    int64_t dim = tensor->shape[3];
    if (dim == 0)
        return;
    if (tensor->type == ATTN_F32) {
        kernels->unpack_output(panel, lanes, dim, attn_element(tensor, batch, head, row, 0),
                               tensor->stride[2], tensor->stride[3], rows);
        return;
    }
    kernels->unpack_output(panel, lanes, dim, scratch, dim, 1, rows);
    attn_write_rows(kernels, tensor, batch, head, row, rows, scratch, dim);
}

struct attn_stored_rows attn_stored_run(const struct attn_problem *problem,
                                        const attn_tensor *tensor, const attn_tensor *scales,
                                        const struct attn_sequence *sequence, int64_t key_head,
                                        int64_t first, int64_t *count)
{
    struct attn_stored_rows rows = {0};
    if (!attn_elements_adjoin(tensor) || *count <= 0) {
        *count = 0;
        return rows;
    }
    struct attn_row_place place = attn_row_place_of(problem, sequence, first);
    int64_t size = attn_type_size(tensor->type);
    if (*count > place.run)
        *count = place.run;
    rows.data = attn_address(tensor, size, place.batch, key_head, place.row, 0);
    rows.stride = tensor->stride[2] * size;
    if (tensor->type == ATTN_I8) {
        rows.scales = attn_element(scales, place.batch, key_head, place.row, 0);
        rows.scale_stride = scales->stride[2];
    }
    return rows;
}
