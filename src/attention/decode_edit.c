/* Scores of decode between Q·Kᵀ and the softmax, by plain loops: rows are few, and the scores of
 * one row lie apart. */
#include <math.h>

#include "attention/decode_item.h"
#include "attention/exclusion.h"
#include "attention/rows.h"
#include "attention/score_edit.h"
#include "attention/tensor_extent.h"
#include "attention/window.h"

/* Scores of one row: that of key `key` + t at s[t·stride]. */
struct score_row {
    int64_t head, query, key, keys;
    float *s;
    int64_t stride;
};

static void subtract_distance(const struct attn_decode_item *item, const struct score_row *row)
{
    float slope = item->problem->alibi_slopes[row->head];
    int64_t position = attn_position_add(row->query, item->sequence.offset);
    int64_t first = attn_position_add(position, -row->key);
    for (int64_t t = 0; t < row->keys; t++) {
        int64_t distance = attn_position_add(first, -t);
        row->s[t * row->stride] -= slope * fabsf((float)distance);
    }
}

static void add_bias(const struct attn_decode_item *item, const struct score_row *row)
{
    const attn_tensor *bias = &item->problem->bias;
    const struct attn_sequence *sequence = &item->sequence;
    int64_t size = attn_type_size(bias->type), step = bias->stride[3];
    const char *first =
        attn_address(bias, size, sequence->batch, row->head, sequence->query_begin + row->query,
                     sequence->key_begin + row->key);
    enum attn_storage storage = attn_storage_of(bias->type);
    int64_t run = step == 1 ? row->keys : 1;
    for (int64_t t = 0; t < row->keys; t += run)
        item->kernels->widen(storage, first + t * step * size, 1.0f, run, item->scratch->bias + t);
    for (int64_t t = 0; t < row->keys; t++) {
        float *s = row->s + t * row->stride;
        *s = item->scratch->bias[t] == -INFINITY ? -INFINITY : *s + item->scratch->bias[t];
    }
}

static void call_back(const struct attn_decode_item *item, const struct score_row *row)
{
    attn_score_tile view = {
        .sequence = item->sequence.index,
        .head = row->head,
        .query = row->query,
        .key = row->key,
        .queries = 1,
        .keys = row->keys,
        .scores = row->s,
        .query_stride = 1,
        .key_stride = row->stride,
    };
    item->problem->change_scores(item->problem->callback_user, &view);
}

static void exclude(const struct attn_decode_item *item, const struct score_row *row)
{
    const struct attn_tile tile = {.sequence = &item->sequence,
                                   .head = row->head,
                                   .query = row->query,
                                   .key = row->key,
                                   .rows = 1,
                                   .keys = row->keys,
                                   .lanes = 1};
    struct attn_exclusions exclusions;
    attn_tile_exclusions(item->kernels, item->problem, &tile, &exclusions);
    if (exclusions.kind == ATTN_EXCLUDES_NONE)
        return;
    bool all = exclusions.kind == ATTN_EXCLUDES_ALL;
    for (int64_t t = 0; t < row->keys; t++)
        if (all || (exclusions.words[t / 32] >> t % 32 & 1))
            row->s[t * row->stride] = -INFINITY;
}

static bool covers(struct attn_key_span span, struct attn_key_span part)
{
    return span.begin <= part.begin && part.end <= span.end;
}

/* Whether the row keeps all keys of the span, as far as its places tell without a look at each. */
static bool keeps_all(const struct attn_decode_item *item, int64_t row, struct attn_key_span span)
{
    const struct attn_key_spans *spans = &item->scratch->spans[row];
    if (item->problem->has_keep || item->problem->query_documents)
        return false;
    if (covers(spans->rest, span) || covers(spans->prefix, span))
        return true;
    struct attn_key_span both = {spans->prefix.begin, spans->rest.end};
    return spans->prefix.end == spans->rest.begin && covers(both, span);
}

void attn_decode_edit(const struct attn_decode_item *item, struct attn_decode_pass pass,
                      int64_t block, struct attn_key_span span, float *s)
{
    const struct attn_problem *problem = item->problem;
    const int64_t stride = attn_decode_stride(pass.count);
    if (problem->soft_cap > 0) {
        /* From an aligned place on: what stands before the span is of no meaning yet. */
        int64_t start = span.begin - block - (span.begin - block) % ATTN_DECODE_UNIT;
        item->kernels->soft_cap(s + start * stride, (span.end - block - start) * stride,
                                problem->soft_cap);
    }
    bool edited = problem->alibi_slopes || problem->has_bias || problem->change_scores;
    for (int64_t i = 0; i < pass.count; i++) {
        bool whole = keeps_all(item, pass.row + i, span);
        for (int64_t key = span.begin; key < span.end && (edited || !whole);
             key += ATTN_KEY_BLOCK) {
            struct score_row row = {
                .head = attn_decode_head(item, pass.row + i),
                .query = attn_decode_query(item, pass.row + i),
                .key = key,
                .keys = span.end - key < ATTN_KEY_BLOCK ? span.end - key : ATTN_KEY_BLOCK,
                .s = s + (key - block) * stride + i,
                .stride = stride,
            };
            if (problem->alibi_slopes)
                subtract_distance(item, &row);
            if (problem->has_bias)
                add_bias(item, &row);
            if (problem->change_scores)
                call_back(item, &row);
            if (!whole)
                exclude(item, &row);
        }
    }
}
