#include "harness/attention_storage.h"

#include <math.h>
#include <string.h>

#include "harness/element.h"
#include "harness/test.h"

static attn_tensor rounded(const attn_tensor *tensor, attn_type type)
{
    return tensor_convert(tensor, type, LAYOUT_PACKED, GUARD_BEHIND);
}

/* Bytes and the scale of each row. */
static void quantise(attn_tensor *tensor, attn_tensor *scales)
{
    const int64_t *shape = tensor->shape;
    attn_tensor bytes = tensor_allocate(ATTN_I8, shape[0], shape[1], shape[2], shape[3],
                                        LAYOUT_PACKED, GUARD_BEHIND);
    *scales =
        tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], 1, LAYOUT_PACKED, GUARD_BEHIND);
    for (int64_t b = 0; b < shape[0]; b++) {
        for (int64_t h = 0; h < shape[1]; h++) {
            for (int64_t i = 0; i < shape[2]; i++) {
                double largest = 0;
                for (int64_t c = 0; c < shape[3]; c++)
                    largest = fmax(largest, fabs(tensor_get(tensor, b, h, i, c)));
                double scale = element_round(ATTN_F32, largest > 0 ? largest / 127 : 1);
                tensor_set(scales, b, h, i, 0, scale);
                for (int64_t c = 0; c < shape[3]; c++)
                    tensor_set(&bytes, b, h, i, c, tensor_get(tensor, b, h, i, c) / scale);
            }
        }
    }
    *tensor = bytes;
}

/* k or v. */
static void store_rows(attn_tensor *tensor, attn_type type, attn_tensor *scales,
                       const attn_tensor **scales_of_params)
{
    if (type == ATTN_I8) {
        quantise(tensor, scales);
        *scales_of_params = scales;
    } else {
        *tensor = rounded(tensor, type);
    }
}

void attention_store(struct attention_problem *problem, attn_type q, attn_type k, attn_type v)
{
    problem->q = rounded(&problem->q, q);
    store_rows(&problem->k, k, &problem->key_scales, &problem->params.key_scales);
    store_rows(&problem->v, v, &problem->value_scales, &problem->params.value_scales);
    if (q != ATTN_F64)
        return;
    problem->output_type = ATTN_F64;
    if (problem->params.bias)
        attention_store_bias(problem, ATTN_F64);
}

void attention_store_bias(struct attention_problem *problem, attn_type type)
{
    problem->bias = rounded(&problem->bias, type);
}

static void widen_rows(attn_tensor *tensor, const attn_tensor *scales)
{
    bool is_scaled = tensor->type == ATTN_I8;
    *tensor = rounded(tensor, ATTN_F32);
    const int64_t *shape = tensor->shape;
    for (int64_t b = 0; is_scaled && b < shape[0]; b++)
        for (int64_t h = 0; h < shape[1]; h++)
            for (int64_t i = 0; i < shape[2]; i++)
                for (int64_t c = 0; c < shape[3]; c++)
                    tensor_set(tensor, b, h, i, c,
                               tensor_get(tensor, b, h, i, c) * tensor_get(scales, b, h, i, 0));
}

void attention_widen(const struct attention_problem *problem, struct attention_problem *wide)
{
    attention_copy(problem, wide);
    wide->q = rounded(&wide->q, ATTN_F32);
    widen_rows(&wide->k, &problem->key_scales);
    widen_rows(&wide->v, &problem->value_scales);
    if (wide->params.bias)
        attention_store_bias(wide, ATTN_F32);
    wide->params.key_scales = wide->params.value_scales = NULL;
    wide->output_type = ATTN_F32;
}

/* Where every key of a problem goes. */
struct paging {
    int64_t sequences, width, page_length, pages;
    int32_t *table;       /* [sequences][width] */
    int64_t *key_lengths; /* [sequences] */
};

enum { SPARE_PAGES = 2 };

static void plan_pages(const struct attention_problem *problem, int64_t page_length, uint64_t seed,
                       struct paging *paging)
{
    const attn_params *params = &problem->params;
    int64_t sequences = reference_sequences(params, problem->k.shape[0]);
    *paging = (struct paging){.sequences = sequences, .page_length = page_length};
    paging->key_lengths =
        guarded_bytes((size_t)sequences * sizeof(int64_t), sizeof(int64_t), GUARD_BEHIND);
    int64_t used = 0;
    for (int64_t s = 0; s < sequences; s++) {
        struct reference_sequence sequence =
            reference_sequence_at(params, s, problem->q.shape[2], problem->k.shape[2]);
        paging->key_lengths[s] = params->key_lengths ? params->key_lengths[s] : sequence.keys;
        int64_t pages = (paging->key_lengths[s] + page_length - 1) / page_length;
        used += pages;
        if (pages + 1 > paging->width)
            paging->width = pages + 1;
    }
    paging->pages = used + SPARE_PAGES;
    size_t entries = (size_t)(sequences * paging->width);
    paging->table = guarded_bytes(entries * sizeof(int32_t), sizeof(int32_t), GUARD_BEHIND);
    memset(paging->table, 0xA5, entries * sizeof(int32_t)); /* no page: negative */

    /* A random order of all pages, of which the first `used` are taken. */
    struct random_source source = {seed};
    int32_t *order =
        guarded_bytes((size_t)paging->pages * sizeof(int32_t), sizeof(int32_t), GUARD_BEHIND);
    for (int32_t page = 0; page < paging->pages; page++) {
        int64_t other = random_integer(&source, 0, page);
        order[page] = order[other];
        order[other] = page;
    }
    int64_t next = 0;
    for (int64_t s = 0; s < sequences; s++)
        for (int64_t j = 0; j < paging->key_lengths[s]; j += page_length)
            paging->table[s * paging->width + j / page_length] = order[next++];
}

/* Rows of k, v or their scales to where their page is. */
static attn_tensor page_rows(const struct attention_problem *problem, const struct paging *paging,
                             const attn_tensor *rows)
{
    attn_tensor paged =
        tensor_allocate(rows->type, paging->pages, rows->shape[1], paging->page_length,
                        rows->shape[3], LAYOUT_PACKED, GUARD_BEHIND);
    for (int64_t s = 0; s < paging->sequences; s++) {
        struct reference_sequence sequence =
            reference_sequence_at(&problem->params, s, problem->q.shape[2], problem->k.shape[2]);
        for (int64_t j = 0; j < paging->key_lengths[s]; j++) {
            int64_t page = paging->table[s * paging->width + j / paging->page_length];
            for (int64_t h = 0; h < rows->shape[1]; h++)
                for (int64_t c = 0; c < rows->shape[3]; c++)
                    tensor_set(&paged, page, h, j % paging->page_length, c,
                               tensor_get(rows, sequence.batch, h, sequence.key_begin + j, c));
        }
    }
    return paged;
}

/* A mask with as many columns as the table has places for keys; the new ones are unwritten. */
static attn_tensor with_columns(const attn_tensor *mask, int64_t columns)
{
    const int64_t *shape = mask->shape;
    if (shape[3] == 1)
        return *mask;
    attn_tensor wide = tensor_allocate(mask->type, shape[0], shape[1], shape[2], columns,
                                       LAYOUT_PACKED, GUARD_BEHIND);
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t h = 0; h < shape[1]; h++)
            for (int64_t i = 0; i < shape[2]; i++)
                for (int64_t j = 0; j < shape[3] && j < columns; j++)
                    tensor_set(&wide, b, h, i, j, tensor_get(mask, b, h, i, j));
    return wide;
}

static const int64_t *documents_with_columns(const int64_t *documents, int64_t batch, int64_t keys,
                                             int64_t columns)
{
    size_t bytes = (size_t)(batch * columns) * sizeof *documents;
    int64_t *wide = guarded_bytes(bytes, sizeof *documents, GUARD_BEHIND);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t j = 0; j < columns; j++)
            wide[b * columns + j] = j < keys ? documents[b * keys + j] : -1;
    return wide;
}

void attention_page(const struct attention_problem *problem, int64_t page_length, uint64_t seed,
                    struct attention_problem *paged)
{
    const attn_params *given = &problem->params;
    if (given->sequences > 0 && (given->keep || given->bias || given->query_documents))
        test_bail_out("masks of packed sequences in pages");
    struct paging paging;
    plan_pages(problem, page_length, seed, &paging);
    attention_copy(problem, paged);
    attn_params *params = &paged->params;
    paged->k = page_rows(problem, &paging, &problem->k);
    paged->v = page_rows(problem, &paging, &problem->v);
    if (params->key_scales)
        paged->key_scales = page_rows(problem, &paging, &problem->key_scales);
    if (params->value_scales)
        paged->value_scales = page_rows(problem, &paging, &problem->value_scales);
    params->key_lengths = paging.key_lengths;
    params->key_starts = NULL;
    params->block_table = paging.table;
    params->block_table_width = paging.width;
    int64_t columns = paging.width * page_length;
    if (params->keep)
        paged->keep = with_columns(&problem->keep, columns);
    if (params->bias)
        paged->bias = with_columns(&problem->bias, columns);
    if (params->key_documents)
        params->key_documents = documents_with_columns(params->key_documents, problem->k.shape[0],
                                                       problem->k.shape[2], columns);
}
