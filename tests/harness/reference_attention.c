#include "harness/reference_attention.h"

#include <math.h>
#include <stdbool.h>

#include "harness/guarded.h"
#include "harness/tensor.h"

static const double unit_roundoff = 0x1p-24;
/* Weights below the smallest normal float may be flushed or rounded coarsely. */
static const double smallest_weight = 0x1p-125;

int64_t reference_offset(const attn_params *params, int64_t queries, int64_t keys)
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

int reference_keeps(const attn_params *params, int64_t b, int64_t h, int64_t i, int64_t j,
                    int64_t queries, int64_t keys)
{
    int64_t position = i + reference_offset(params, queries, keys);
    if (params->key_lengths && j >= params->key_lengths[b])
        return false;
    if (params->causal && j > position)
        return false;
    if (params->window_left != ATTN_WINDOW_OPEN && j < position - params->window_left)
        return false;
    if (params->window_right != ATTN_WINDOW_OPEN && j > position + params->window_right)
        return false;
    if (params->keep && tensor_get(params->keep, b, h, i, j) == 0)
        return false;
    return !(params->bias && tensor_get(params->bias, b, h, i, j) == -INFINITY);
}

/* One query: its place, its scores and how large the terms of each were. */
struct row {
    int64_t b, h, i;
    double *score;     /* [Lk]; −inf is an excluded key */
    double *magnitude; /* [Lk] */
};

static double dot(const attn_tensor *q, const attn_tensor *k, const struct row *row, int64_t j,
                  double *magnitude)
{
    int64_t key_head = row->h / (q->shape[1] / k->shape[1]);
    double sum = 0;
    *magnitude = 0;
    for (int64_t c = 0; c < q->shape[3]; c++) {
        double term =
            tensor_get(q, row->b, row->h, row->i, c) * tensor_get(k, row->b, key_head, j, c);
        sum += term;
        *magnitude += fabs(term);
    }
    return sum;
}

static void score_row(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                      struct row *row)
{
    int64_t queries = q->shape[2], keys = k->shape[2];
    double scale = isnan(params->scale) ? 1 / sqrt((double)q->shape[3]) : (double)params->scale;
    int64_t position = row->i + reference_offset(params, queries, keys);
    for (int64_t j = 0; j < keys; j++) {
        row->score[j] = -INFINITY;
        row->magnitude[j] = 0;
        if (!reference_keeps(params, row->b, row->h, row->i, j, queries, keys))
            continue;
        double magnitude;
        double s = scale * dot(q, k, row, j, &magnitude);
        magnitude *= fabs(scale);
        if (params->soft_cap > 0)
            s = params->soft_cap * tanh(s / params->soft_cap);
        if (params->bias) {
            double bias = tensor_get(params->bias, row->b, row->h, row->i, j);
            s += bias;
            magnitude += fabs(bias);
        }
        if (params->alibi_slopes) {
            double bias = params->alibi_slopes[row->h] * fabs((double)(position - j));
            s -= bias;
            magnitude += fabs(bias);
        }
        row->score[j] = s;
        row->magnitude[j] = s == -INFINITY ? 0 : magnitude;
    }
}

/* m, l and what rounding may do to them: magnitude is S of the largest score, mean is Σ p_j·(1 +
 * S_j). */
struct statistics {
    double m, l, magnitude, mean;
};

static struct statistics row_statistics(const attn_params *params, const struct row *row,
                                        int64_t keys)
{
    struct statistics row_is = {.m = -INFINITY};
    bool not_a_number = false;
    if (params->sinks) {
        row_is.m = params->sinks[row->h];
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
        double e = exp((double)params->sinks[row->h] - row_is.m);
        row_is.l += e;
        row_is.mean += e * (1 + (e > 0 ? fabs((double)params->sinks[row->h]) : 0));
    }
    row_is.mean /= row_is.l;
    return row_is;
}

static void weigh_row(const struct row *row, const struct statistics *row_is, int64_t keys,
                      double *weights, double *weights_error)
{
    for (int64_t j = 0; j < keys; j++) {
        bool kept = row->score[j] != -INFINITY;
        weights[j] = kept ? exp(row->score[j] - row_is->m) / row_is->l : 0;
        weights_error[j] =
            kept ? unit_roundoff * weights[j] * (1 + row->magnitude[j] + row_is->mean) +
                       smallest_weight
                 : 0;
    }
}

static void blend_row(const attn_tensor *q, const attn_tensor *v, const struct row *row,
                      const struct statistics *row_is, const double *weights, double *o,
                      double *o_error)
{
    int64_t value_head = row->h / (q->shape[1] / v->shape[1]);
    for (int64_t c = 0; c < v->shape[3]; c++) {
        double sum = 0, size = 0, error = 0, tiny = 0;
        for (int64_t j = 0; j < v->shape[2]; j++) {
            if (row->score[j] == -INFINITY)
                continue;
            double value = tensor_get(v, row->b, value_head, j, c);
            sum += weights[j] * value;
            size += weights[j] * fabs(value);
            error += weights[j] * (1 + row->magnitude[j]) * fabs(value);
            tiny += smallest_weight * fabs(value);
        }
        o[c] = sum;
        o_error[c] = unit_roundoff * (error + size * (1 + row_is->mean)) + tiny;
    }
}

void reference_attention(const attn_params *params, const attn_tensor *q, const attn_tensor *k,
                         const attn_tensor *v, struct reference_attention *result)
{
    int64_t keys = k->shape[2], d_v = v->shape[3];
    size_t rows = (size_t)(q->shape[0] * q->shape[1] * q->shape[2]);
    result->o = guarded_doubles(rows * (size_t)d_v);
    result->m = guarded_doubles(rows);
    result->l = guarded_doubles(rows);
    result->lse = guarded_doubles(rows);
    result->weights = guarded_doubles(rows * (size_t)keys);
    result->o_error = guarded_doubles(rows * (size_t)d_v);
    result->m_error = guarded_doubles(rows);
    result->l_error = guarded_doubles(rows);
    result->lse_error = guarded_doubles(rows);
    result->weights_error = guarded_doubles(rows * (size_t)keys);
    struct row row = {.score = guarded_doubles((size_t)keys),
                      .magnitude = guarded_doubles((size_t)keys)};

    int64_t n = 0;
    for (row.b = 0; row.b < q->shape[0]; row.b++) {
        for (row.h = 0; row.h < q->shape[1]; row.h++) {
            for (row.i = 0; row.i < q->shape[2]; row.i++, n++) {
                score_row(params, q, k, &row);
                struct statistics row_is = row_statistics(params, &row, keys);
                result->m[n] = row_is.m;
                result->l[n] = row_is.l;
                result->lse[n] = row_is.m + log(row_is.l);
                result->m_error[n] = unit_roundoff * row_is.magnitude;
                result->l_error[n] =
                    unit_roundoff * row_is.l * (1 + row_is.magnitude + row_is.mean);
                result->lse_error[n] = unit_roundoff * (1 + row_is.magnitude + row_is.mean);
                weigh_row(&row, &row_is, keys, result->weights + n * keys,
                          result->weights_error + n * keys);
                blend_row(q, v, &row, &row_is, result->weights + n * keys, result->o + n * d_v,
                          result->o_error + n * d_v);
            }
        }
    }
}
