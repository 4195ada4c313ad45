#include "attention/double_row.h"

#include <math.h>

#include "attention/dropout.h"
#include "attention/row_place.h"
#include "attention/rows.h"
#include "attention/score_edit.h"
#include "attention/tensor_extent.h"

static const int64_t double_size = sizeof(double);

void attn_double_row_take(struct attn_double_row *row, const struct attn_problem *problem,
                          struct attn_scratch *scratch)
{
    row->q = attn_scratch_take(scratch, 1, problem->d_qk, double_size);
    row->output = attn_scratch_take(scratch, 1, problem->d_v, double_size);
    row->scores = attn_scratch_take(scratch, 1, problem->keys, double_size);
    row->tile = attn_scratch_floats(scratch, 1, ATTN_KEY_BLOCK);
    row->factors =
        attn_scratch_take(scratch, 1, problem->has_dropout ? problem->keys : 0, double_size);
    row->kept =
        attn_scratch_floats(scratch, problem->has_dropout ? ATTN_KEY_BLOCK : 0, ATTN_MAX_LANES);
}

void attn_double_row_begin(struct attn_double_row *row, const struct attn_problem *problem,
                           int64_t batch, int64_t head, int64_t i)
{
    row->sequence = attn_sequence_at(problem, attn_sequence_of_row(problem, batch, i));
    row->head = head;
    row->query = i - row->sequence.query_begin;
    struct attn_key_spans spans = attn_keys_of_rows(problem, &row->sequence, head, row->query, 1);
    row->spans[0] = spans.prefix;
    row->spans[1] = spans.rest;
    for (int64_t c = 0; c < problem->d_qk; c++)
        row->q[c] = *(const double *)attn_address(&problem->q, double_size, batch, head, i, c);
}

void attn_double_row_narrow(struct attn_double_row *row, int64_t begin, int64_t end)
{
    for (int n = 0; n < 2; n++) {
        struct attn_key_span *span = &row->spans[n];
        span->begin = span->begin > begin ? span->begin : begin;
        span->end = span->end < end ? span->end : end;
        if (span->end < span->begin)
            span->end = span->begin;
    }
}

/* The bias of a key of the row, whatever its type. */
static double bias_of(const struct attn_double_row *row, const struct attn_kernels *kernels,
                      const struct attn_problem *problem, int64_t key)
{
    const attn_tensor *bias = &problem->bias;
    const void *element =
        attn_address(bias, attn_type_size(bias->type), row->sequence.batch, row->head,
                     row->sequence.query_begin + row->query, row->sequence.key_begin + key);
    if (bias->type == ATTN_F64)
        return *(const double *)element;
    float widened;
    kernels->widen(attn_storage_of(bias->type), element, 1.0f, 1, &widened);
    return (double)widened;
}

/* All but what the callback and exclusions do to it. */
static double score_of(const struct attn_double_row *row, const struct attn_kernels *kernels,
                       const struct attn_problem *problem, int64_t key)
{
    struct attn_row_place place = attn_row_place_of(problem, &row->sequence, key);
    const double *k = attn_address(&problem->k, double_size, place.batch,
                                   attn_key_head(problem, row->head), place.row, 0);
    double product = 0.0;
    for (int64_t c = 0; c < problem->d_qk; c++)
        product += row->q[c] * k[c * problem->k.stride[3]];

    double s = problem->scale_f64 * product;
    if (problem->soft_cap > 0.0f)
        s = (double)problem->soft_cap * tanh(s / (double)problem->soft_cap);
    if (problem->has_bias) {
        double bias = bias_of(row, kernels, problem, key);
        if (bias == -INFINITY)
            return -INFINITY; /* even where s is NaN */
        s += bias;
    }
    if (problem->alibi_slopes) {
        int64_t distance = row->query + row->sequence.offset - key;
        s -= (double)problem->alibi_slopes[row->head] * fabs((double)distance);
    }
    return s;
}

static bool is_excluded(const struct attn_exclusions *exclusions, int lanes, int64_t t)
{
    if (exclusions->kind == ATTN_EXCLUDES_SOME)
        return exclusions->words[t / 32 * lanes] >> t % 32 & 1;
    return exclusions->kind == ATTN_EXCLUDES_ALL;
}

/* A callback's work on `count` keys from `first` on. */
static void change_scores(const struct attn_double_row *row, const struct attn_problem *problem,
                          int64_t first, int64_t count)
{
    double *s = row->scores + first;
    for (int64_t t = 0; t < count; t++)
        row->tile[t] = (float)s[t];
    attn_score_tile tile = {
        .sequence = row->sequence.index,
        .head = row->head,
        .query = row->query,
        .key = first,
        .queries = 1,
        .keys = count,
        .scores = row->tile,
        .query_stride = count,
        .key_stride = 1,
    };
    problem->change_scores(problem->callback_user, &tile);
    for (int64_t t = 0; t < count; t++)
        if (row->tile[t] != (float)s[t])
            s[t] = (double)row->tile[t];
}

/* The row with keys first..first+count−1, count ≤ ATTN_KEY_BLOCK. */
static struct attn_tile tile_of(const struct attn_double_row *row,
                                const struct attn_kernels *kernels, int64_t first, int64_t count)
{
    return (struct attn_tile){
        .sequence = &row->sequence,
        .head = row->head,
        .query = row->query,
        .key = first,
        .rows = 1,
        .keys = count,
        .lanes = kernels->vector_lanes,
    };
}

static void score_block(struct attn_double_row *row, const struct attn_kernels *kernels,
                        const struct attn_problem *problem, int64_t first, int64_t count)
{
    struct attn_tile tile = tile_of(row, kernels, first, count);
    struct attn_exclusions exclusions;
    attn_tile_exclusions(kernels, problem, &tile, &exclusions);

    double *s = row->scores + first;
    for (int64_t t = 0; t < count; t++)
        s[t] = is_excluded(&exclusions, tile.lanes, t) ? -INFINITY
                                                       : score_of(row, kernels, problem, first + t);
    if (!problem->change_scores || exclusions.kind == ATTN_EXCLUDES_ALL)
        return;
    change_scores(row, problem, first, count);
    for (int64_t t = 0; t < count; t++)
        if (is_excluded(&exclusions, tile.lanes, t))
            s[t] = -INFINITY;
}

static void drop_block(struct attn_double_row *row, const struct attn_kernels *kernels,
                       const struct attn_problem *problem, int64_t first, int64_t count)
{
    struct attn_tile tile = tile_of(row, kernels, first, count);
    struct attn_dropout_place place = attn_dropout_place_of(problem, &tile);
    kernels->dropout(&place, tile.lanes, count, row->kept);
    for (int64_t t = 0; t < count; t++)
        row->factors[first + t] = row->kept[t * tile.lanes] != 0.0f ? problem->dropout_kept : 0.0;
}

/* Calls what does a block for all keys of the spans. */
static void each_block(struct attn_double_row *row, const struct attn_kernels *kernels,
                       const struct attn_problem *problem,
                       void (*body)(struct attn_double_row *row, const struct attn_kernels *kernels,
                                    const struct attn_problem *problem, int64_t first,
                                    int64_t count))
{
    for (int n = 0; n < 2; n++)
        for (int64_t first = row->spans[n].begin; first < row->spans[n].end;
             first += ATTN_KEY_BLOCK) {
            int64_t left = row->spans[n].end - first;
            body(row, kernels, problem, first, left < ATTN_KEY_BLOCK ? left : ATTN_KEY_BLOCK);
        }
}

void attn_double_row_score(struct attn_double_row *row, const struct attn_kernels *kernels,
                           const struct attn_problem *problem)
{
    each_block(row, kernels, problem, score_block);
}

void attn_double_row_sum(const struct attn_double_row *row, const struct attn_problem *problem,
                         double *m, double *l)
{
    double sink = problem->sinks ? (double)problem->sinks[row->head] : -INFINITY;
    *m = sink;
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->spans[n].begin; j < row->spans[n].end; j++)
            if (row->scores[j] > *m)
                *m = row->scores[j];
    *l = sink == -INFINITY ? 0.0 : exp(sink - *m);
    for (int n = 0; n < 2; n++)
        for (int64_t j = row->spans[n].begin; j < row->spans[n].end; j++)
            if (row->scores[j] != -INFINITY)
                *l += exp(row->scores[j] - *m);
}

void attn_double_row_drop(struct attn_double_row *row, const struct attn_kernels *kernels,
                          const struct attn_problem *problem)
{
    each_block(row, kernels, problem, drop_block);
}
