#include "attention/decode_item.h"

#include <math.h>
#include <string.h>

#include "attention/rows.h"

void attn_decode_begin_row(const struct attn_problem *problem, int64_t head, float *m, float *l)
{
    *m = problem->sinks ? problem->sinks[head] : -INFINITY;
    *l = *m == -INFINITY ? 0.0f : expf(*m - *m);
}

void attn_decode_item_begin(struct attn_decode_item *item)
{
    const struct attn_problem *problem = item->problem;
    item->key_kernels = &item->kernels->decode->storage[attn_storage_of(problem->k.type)];
    item->value_kernels = &item->kernels->decode->storage[attn_storage_of(problem->v.type)];
    for (int64_t row = 0; row < item->rows; row++) {
        item->scratch->spans[row] = attn_keys_of_rows(
            problem, &item->sequence, attn_decode_head(item, row), attn_decode_query(item, row), 1);
        attn_decode_pack_query(item, row,
                               item->scratch->queries + row * attn_decode_width(problem->d_qk));
    }
}

/* The keys within begin..end−1 that some row of the pass keeps. */
static struct attn_key_span keys_of_pass(const struct attn_decode_item *item,
                                         struct attn_decode_pass pass, int64_t begin, int64_t end)
{
    struct attn_key_span all = {end, begin};
    for (int64_t i = 0; i < pass.count; i++) {
        struct attn_key_span span =
            attn_keys_within(&item->scratch->spans[pass.row + i], begin, end);
        if (span.begin >= span.end)
            continue;
        all.begin = span.begin < all.begin ? span.begin : all.begin;
        all.end = span.end > all.end ? span.end : all.end;
    }
    return all;
}

/* Rows from `first` on. */
static struct attn_stored_rows rows_from(const struct attn_stored_rows *rows, int64_t first)
{
    struct attn_stored_rows part = *rows;
    if (part.table)
        part.table += first;
    else
        part.data = (const char *)part.data + first * part.stride;
    if (part.scales)
        part.scales += first * part.scale_stride;
    return part;
}

/* A span of the block that starts at key `block`, whose rows are `keys` and `values`. True where a
 * row of the pass excludes some of it. */
static bool take_span(struct attn_decode_item *item, struct attn_decode_pass pass, int64_t block,
                      struct attn_key_span span, const struct attn_stored_rows *keys,
                      const struct attn_stored_rows *values, const struct attn_decode_state *state)
{
    const struct attn_problem *problem = item->problem;
    const int64_t stride = attn_decode_stride(pass.count);
    const int64_t begin = span.begin - block, end = span.end - block;
    /* Softmax begins at a whole step, whatever comes before the span. */
    const int64_t start = begin - begin % ATTN_DECODE_UNIT;
    float *s = item->scratch->scores;
    struct attn_stored_rows part = rows_from(keys, begin);
    item->key_kernels->scores(item->scratch->queries + pass.row * attn_decode_width(problem->d_qk),
                              pass.count, problem->d_qk, &part, end - begin, problem->scale,
                              s + begin * stride);
    attn_decode_edit(item, pass, block, span, s);
    for (int64_t n = start * stride; n < begin * stride; n++)
        s[n] = -INFINITY;
    bool excluded =
        item->kernels->decode->softmax(s + start * stride, pass.count, end - start, state->m,
                                       state->l, state->output, attn_decode_width(problem->d_v));
    item->value_kernels->blend(s, pass.count, begin, end, excluded, values, problem->d_v,
                               state->output);
    return excluded;
}

/* All keys of a chunk into the rows of a pass, from nothing on. */
static bool take_pass(struct attn_decode_item *item, struct attn_decode_pass pass, int64_t chunk,
                      const struct attn_decode_state *state)
{
    const struct attn_problem *problem = item->problem;
    const int64_t width = attn_decode_width(problem->d_v);
    bool excluded = false;
    for (int64_t i = 0; i < pass.count; i++) {
        state->m[i] = -INFINITY;
        state->l[i] = 0.0f;
    }
    memset(state->output, 0, (size_t)(pass.count * width) * sizeof *state->output);
    int64_t last = (chunk + 1) * ATTN_DECODE_CHUNK;
    last = last < item->sequence.keys ? last : item->sequence.keys;
    for (int64_t block = chunk * ATTN_DECODE_CHUNK; block < last; block += ATTN_DECODE_BLOCK) {
        int64_t end = block + ATTN_DECODE_BLOCK < last ? block + ATTN_DECODE_BLOCK : last;
        struct attn_key_span span = keys_of_pass(item, pass, block, end);
        if (span.begin >= span.end)
            continue;
        struct attn_stored_rows keys = attn_decode_rows(item, &problem->k, &problem->key_scales,
                                                        &item->scratch->keys, block, end - block);
        struct attn_stored_rows values = attn_decode_rows(
            item, &problem->v, &problem->value_scales, &item->scratch->values, block, end - block);
        excluded |= take_span(item, pass, block, span, &keys, &values, state);
    }
    return excluded;
}

/* A weight of 0 times a value of NaN or Inf is NaN, so that a row may be broken by a value that
 * another row of its pass keeps and it does not. Such a row is done again by itself: rows of values
 * that all rows of a pass exclude are never read. */
static void mend_rows(struct attn_decode_item *item, struct attn_decode_pass pass, int64_t chunk,
                      const struct attn_decode_state *state)
{
    const int64_t d_v = item->problem->d_v;
    for (int64_t i = 0; i < pass.count; i++) {
        struct attn_decode_state row = attn_decode_state_at(state, i, d_v);
        if (row.l[0] < INFINITY &&
            !item->kernels->decode->is_finite(row.output, attn_decode_width(d_v)))
            take_pass(item, (struct attn_decode_pass){pass.row + i, 1}, chunk, &row);
    }
}

void attn_decode_take_chunk(struct attn_decode_item *item, int64_t chunk,
                            const struct attn_decode_state *state)
{
    for (int64_t row = 0; row < item->rows; row += ATTN_DECODE_QUERIES) {
        int64_t left = item->rows - row;
        struct attn_decode_pass pass = {row,
                                        left < ATTN_DECODE_QUERIES ? left : ATTN_DECODE_QUERIES};
        struct attn_decode_state part = attn_decode_state_at(state, row, item->problem->d_v);
        bool excluded = take_pass(item, pass, chunk, &part);
        if (excluded && pass.count > 1)
            mend_rows(item, pass, chunk, &part);
    }
}

void attn_decode_item_end(struct attn_decode_item *item)
{
    const struct attn_problem *problem = item->problem;
    for (int64_t row = 0; row < item->rows; row++) {
        struct attn_decode_state state =
            attn_decode_state_at(&item->scratch->total, row, problem->d_v);
        int64_t head = attn_decode_head(item, row);
        int64_t i = item->sequence.query_begin + attn_decode_query(item, row);
        if (problem->d_v > 0) {
            item->kernels->decode->finish(state.output, state.l[0],
                                          attn_decode_width(problem->d_v));
            attn_decode_unpack_output(item, row, state.output);
        }
        if (problem->stats.data) {
            *attn_element(&problem->stats, item->sequence.batch, head, i, 0) = state.m[0] + 0.0f;
            *attn_element(&problem->stats, item->sequence.batch, head, i, 1) = state.l[0];
        }
    }
}
