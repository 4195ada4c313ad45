#include "harness/reference_scores.h"

#include <math.h>

#include "harness/tensor.h"

int64_t reference_keys(const attn_params *params, const attn_tensor *k)
{
    return params->block_table ? params->block_table_width * k->shape[2] : k->shape[2];
}

int64_t reference_sequences(const attn_params *params, int64_t batch)
{
    return params->sequences > 0 ? params->sequences : batch;
}

static int64_t offset_of(const attn_params *params, int64_t queries, int64_t keys)
{
    switch (params->alignment) {
    case ATTN_ALIGN_BOTTOM_RIGHT:
        return keys - queries;
    case ATTN_ALIGN_OFFSET:
        return params->offset;
    default:
        return 0;
    }
}

struct reference_sequence reference_sequence_at(const attn_params *params, int64_t index,
                                                int64_t queries, int64_t keys)
{
    struct reference_sequence sequence = {.index = index,
                                          .batch = index,
                                          .queries = queries,
                                          .keys = keys,
                                          .tensor_queries = queries,
                                          .tensor_keys = keys};
    if (params->sequences > 0) {
        sequence.batch = 0;
        sequence.query_begin = params->query_starts[index];
        sequence.queries = params->query_starts[index + 1] - sequence.query_begin;
    }
    if (params->block_table) {
        sequence.keys = params->key_lengths[index];
    } else if (params->sequences > 0) {
        sequence.key_begin = params->key_starts[index];
        sequence.keys = params->key_starts[index + 1] - sequence.key_begin;
    }
    sequence.offset = offset_of(params, sequence.queries, sequence.keys);
    return sequence;
}

struct reference_sequence reference_sequence_of(const attn_params *params, int64_t b, int64_t i,
                                                int64_t queries, int64_t keys)
{
    if (params->sequences == 0)
        return reference_sequence_at(params, b, queries, keys);
    for (int64_t index = 0; index < params->sequences; index++)
        if (i >= params->query_starts[index] && i < params->query_starts[index + 1])
            return reference_sequence_at(params, index, queries, keys);
    return (struct reference_sequence){.index = -1};
}

static bool in_window(const attn_params *params, int64_t position, int64_t j)
{
    if (params->causal && j > position)
        return false;
    if (params->window_left != ATTN_WINDOW_OPEN && j < position - params->window_left)
        return false;
    return params->window_right == ATTN_WINDOW_OPEN || j <= position + params->window_right;
}

/* All but key_range and −inf in the bias. */
static bool masks_keep(const attn_params *params, const struct reference_sequence *sequence,
                       int64_t h, int64_t i, int64_t j)
{
    int64_t row = sequence->query_begin + i, column = sequence->key_begin + j;
    if (params->key_lengths && j >= params->key_lengths[sequence->index])
        return false;
    bool in_prefix = params->prefix_lengths && j < params->prefix_lengths[sequence->index];
    if (!in_prefix && !in_window(params, i + sequence->offset, j))
        return false;
    if (params->query_documents &&
        params->query_documents[sequence->batch * sequence->tensor_queries + row] !=
            params->key_documents[sequence->batch * sequence->tensor_keys + column])
        return false;
    return !params->keep || tensor_get(params->keep, sequence->batch, h, row, column) != 0;
}

/* The keys that key_range leaves to one query, begin..end−1. */
struct span {
    int64_t begin, end;
};

static struct span span_of_query(const attn_params *params,
                                 const struct reference_sequence *sequence, int64_t h, int64_t i)
{
    struct span span = {0, sequence->keys};
    if (params->key_range)
        params->key_range(params->callback_user, sequence->index, h, i, 1, &span.begin, &span.end);
    return span;
}

bool reference_keeps(const attn_params *params, int64_t b, int64_t h, int64_t i, int64_t j,
                     int64_t queries, int64_t keys)
{
    struct reference_sequence sequence = reference_sequence_of(params, b, i, queries, keys);
    if (sequence.index < 0)
        return false;
    int64_t query = i - sequence.query_begin, key = j - sequence.key_begin;
    if (key < 0 || key >= sequence.keys || !masks_keep(params, &sequence, h, query, key))
        return false;
    struct span span = span_of_query(params, &sequence, h, query);
    if (key < span.begin || key >= span.end)
        return false;
    return !(params->bias && tensor_get(params->bias, sequence.batch, h, i, j) == -INFINITY);
}

double reference_element(const attn_params *params, const attn_tensor *tensor,
                         const attn_tensor *scales, const struct reference_sequence *sequence,
                         int64_t key_head, int64_t j, int64_t c)
{
    int64_t place = sequence->batch, row = sequence->key_begin + j;
    if (params->block_table) {
        int64_t page_length = tensor->shape[2];
        place = params->block_table[sequence->index * params->block_table_width + j / page_length];
        row = j % page_length;
    }
    double scale = tensor->type == ATTN_I8 ? tensor_get(scales, place, key_head, row, 0) : 1;
    return scale * tensor_get(tensor, place, key_head, row, c);
}

static double dot(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                  const struct reference_row *row, int64_t j, double *magnitude)
{
    const struct reference_sequence *sequence = &row->sequence;
    int64_t key_head = row->head / (q->shape[1] / k->shape[1]);
    double sum = 0;
    *magnitude = 0;
    for (int64_t c = 0; c < q->shape[3]; c++) {
        double term =
            tensor_get(q, sequence->batch, row->head, sequence->query_begin + row->query, c) *
            reference_element(params, k, params->key_scales, sequence, key_head, j, c);
        sum += term;
        *magnitude += fabs(term);
    }
    return sum;
}

static void score_key(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                      struct reference_row *row, int64_t j)
{
    const struct reference_sequence *sequence = &row->sequence;
    int64_t column = sequence->key_begin + j;
    double scale = isnan(params->scale) ? 1 / sqrt((double)q->shape[3]) : (double)params->scale;
    double bias = 0, magnitude;
    if (params->bias)
        bias = tensor_get(params->bias, sequence->batch, row->head,
                          sequence->query_begin + row->query, column);
    if (bias == -INFINITY)
        return;
    double s = scale * dot(params, q, k, row, j, &magnitude);
    magnitude *= fabs(scale);
    if (params->soft_cap > 0)
        s = params->soft_cap * tanh(s / params->soft_cap);
    s += bias;
    magnitude += fabs(bias);
    if (params->alibi_slopes) {
        double distance = fabs((double)(row->query + sequence->offset - j));
        s -= params->alibi_slopes[row->head] * distance;
        magnitude += fabs(params->alibi_slopes[row->head] * distance);
    }
    row->score[column] = s;
    row->magnitude[column] = s == -INFINITY ? 0 : magnitude;
}

/* The whole row as one tile. A score that the callback leaves as it is stays in double. */
static void call_back(const attn_params *params, struct reference_row *row)
{
    const struct reference_sequence *sequence = &row->sequence;
    double *score = row->score + sequence->key_begin;
    float *tile = row->tile;
    for (int64_t j = 0; j < sequence->keys; j++)
        tile[j] = (float)score[j];
    params->change_scores(params->callback_user, &(attn_score_tile){.sequence = sequence->index,
                                                                    .head = row->head,
                                                                    .query = row->query,
                                                                    .queries = 1,
                                                                    .keys = sequence->keys,
                                                                    .scores = tile,
                                                                    .query_stride = sequence->keys,
                                                                    .key_stride = 1});
    for (int64_t j = 0; j < sequence->keys; j++) {
        if (tile[j] == (float)score[j] || (isnan(tile[j]) && isnan(score[j])))
            continue;
        double *magnitude = &row->magnitude[sequence->key_begin + j];
        score[j] = tile[j];
        *magnitude = tile[j] == -INFINITY ? 0 : *magnitude + fabs((double)tile[j]);
    }
}

void reference_score_row(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         struct reference_row *row)
{
    const struct reference_sequence *sequence = &row->sequence;
    for (int64_t column = 0; column < reference_keys(params, k); column++) {
        row->score[column] = -INFINITY;
        row->magnitude[column] = 0;
    }
    if (sequence->index < 0)
        return;
    struct span span = span_of_query(params, sequence, row->head, row->query);
    for (int64_t j = span.begin; j < span.end; j++)
        if (masks_keep(params, sequence, row->head, row->query, j))
            score_key(params, q, k, row, j);
    if (!params->change_scores)
        return;
    call_back(params, row);
    for (int64_t j = 0; j < sequence->keys; j++) {
        if (j >= span.begin && j < span.end &&
            masks_keep(params, sequence, row->head, row->query, j))
            continue;
        row->score[sequence->key_begin + j] = -INFINITY;
        row->magnitude[sequence->key_begin + j] = 0;
    }
}
