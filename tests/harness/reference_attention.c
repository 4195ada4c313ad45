#include "harness/reference_attention.h"

#include <math.h>
#include <stdbool.h>

#include "harness/guarded.h"
#include "harness/reference_dropout.h"

/* Weights below the smallest normal float may be flushed or rounded coarsely. */
static const double smallest_weight = 0x1p-125;

/* m, l and what rounding may do to them: magnitude is S of the largest score, mean is Σ p_j·(1 +
 * S_j). */
struct statistics {
    double m, l, magnitude, mean;
};

static struct statistics row_statistics(const attn_params *params, const struct reference_row *row,
                                        int64_t keys)
{
    struct statistics row_is = {.m = -INFINITY};
    bool not_a_number = false;
    if (params->sinks) {
        row_is.m = params->sinks[row->head];
        row_is.magnitude = fabs(row_is.m);
    }
    for (int64_t j = 0; j < keys; j++) {
        not_a_number |= isnan(row->score[j]);
        if (row->score[j] > row_is.m)
            row_is.m = row->score[j];
        if (row->score[j] != -INFINITY)
            row_is.magnitude = fmax(row_is.magnitude, row->magnitude[j]);
    }
    if (not_a_number || row_is.m == INFINITY)
        return (struct statistics){NAN, NAN, NAN, NAN};
    if (row_is.m == -INFINITY)
        return (struct statistics){.m = -INFINITY};
    for (int64_t j = 0; j < keys; j++) {
        double e = exp(row->score[j] - row_is.m);
        row_is.l += e;
        row_is.mean += e * (1 + row->magnitude[j]);
    }
    if (params->sinks) {
        double e = exp((double)params->sinks[row->head] - row_is.m);
        row_is.l += e;
        row_is.mean += e * (1 + (e > 0 ? fabs((double)params->sinks[row->head]) : 0));
    }
    row_is.mean /= row_is.l;
    return row_is;
}

static void weigh_row(const struct reference_row *row, const struct statistics *row_is,
                      int64_t keys, double roundoff, double *weights, double *weights_error)
{
    for (int64_t j = 0; j < keys; j++) {
        bool kept = row->score[j] != -INFINITY;
        weights[j] = kept ? exp(row->score[j] - row_is->m) / row_is->l : 0;
        weights_error[j] =
            kept ? roundoff * weights[j] * (1 + row->magnitude[j] + row_is->mean) + smallest_weight
                 : 0;
    }
}

/* Element c of a row of o. */
static void blend_element(const attn_params *params, const attn_tensor *v, int64_t value_head,
                          const struct reference_row *row, const struct statistics *row_is,
                          double roundoff, const double *weights, int64_t c,
                          struct reference_attention *result, int64_t at)
{
    const struct reference_sequence *sequence = &row->sequence;
    double sum = 0, size = 0, error = 0, tiny = 0;
    for (int64_t j = 0; j < sequence->keys; j++) {
        int64_t column = sequence->key_begin + j;
        if (row->score[column] == -INFINITY)
            continue;
        double value =
            reference_element(params, v, params->value_scales, sequence, value_head, j, c);
        value *= reference_dropout_factor(params, sequence->index, row->head, row->query, j);
        sum += weights[column] * value;
        size += weights[column] * fabs(value);
        error += weights[column] * (1 + row->magnitude[column]) * fabs(value);
        tiny += smallest_weight * fabs(value);
    }
    result->o[at] = sum;
    result->o_size[at] = size;
    result->o_error[at] = roundoff * (error + size * (1 + row_is->mean)) + tiny;
}

static void attend_row(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                       const attn_tensor *v, struct reference_row *row, int64_t n,
                       struct reference_attention *result)
{
    int64_t keys = reference_keys(params, k), d_v = v->shape[3];
    double roundoff = q->type == ATTN_F64 ? 0x1p-52 : 0x1p-24;
    reference_score_row(params, q, k, row);
    struct statistics row_is = row_statistics(params, row, keys);
    result->m[n] = row_is.m;
    result->l[n] = row_is.l;
    result->lse[n] = row_is.m + log(row_is.l);
    result->m_error[n] = roundoff * row_is.magnitude;
    result->l_error[n] = roundoff * row_is.l * (1 + row_is.magnitude + row_is.mean);
    result->lse_error[n] = roundoff * (1 + row_is.magnitude + row_is.mean);
    double *weights = result->weights + n * keys;
    weigh_row(row, &row_is, keys, roundoff, weights, result->weights_error + n * keys);
    int64_t value_head = row->head / (q->shape[1] / v->shape[1]);
    for (int64_t c = 0; c < d_v; c++)
        blend_element(params, v, value_head, row, &row_is, roundoff, weights, c, result,
                      n * d_v + c);
}

void reference_attention(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         const attn_tensor *v, struct reference_attention *result)
{
    int64_t keys = reference_keys(params, k);
    size_t rows = (size_t)(q->shape[0] * q->shape[1] * q->shape[2]);
    size_t outputs = rows * (size_t)v->shape[3], weights = rows * (size_t)keys;
    *result = (struct reference_attention){
        .o = guarded_doubles(outputs),
        .m = guarded_doubles(rows),
        .l = guarded_doubles(rows),
        .lse = guarded_doubles(rows),
        .weights = guarded_doubles(weights),
        .o_size = guarded_doubles(outputs),
        .o_error = guarded_doubles(outputs),
        .m_error = guarded_doubles(rows),
        .l_error = guarded_doubles(rows),
        .lse_error = guarded_doubles(rows),
        .weights_error = guarded_doubles(weights),
    };
    struct reference_row row = {.score = guarded_doubles((size_t)keys),
                                .magnitude = guarded_doubles((size_t)keys),
                                .tile = guarded_floats((size_t)keys, GUARD_BEHIND)};
    int64_t n = 0;
    for (int64_t b = 0; b < q->shape[0]; b++) {
        for (row.head = 0; row.head < q->shape[1]; row.head++) {
            for (int64_t i = 0; i < q->shape[2]; i++, n++) {
                row.sequence = reference_sequence_of(params, b, i, q->shape[2], keys);
                row.query = i - row.sequence.query_begin;
                attend_row(params, q, k, v, &row, n, result);
            }
        }
    }
}
