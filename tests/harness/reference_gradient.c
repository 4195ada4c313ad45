#include "harness/reference_gradient.h"

#include <math.h>
#include <stdbool.h>

#include "harness/element.h"
#include "harness/guarded.h"
#include "harness/reference_attention.h"
#include "harness/reference_dropout.h"
#include "harness/tensor.h"

/* Weights below the smallest normal float may be flushed or rounded coarsely. */
static const double smallest_weight = 0x1p-125;

/* What all rows share. */
struct pass {
    const struct reference_gradient_call *call;
    attn_params before, products; /* without change_scores; with nothing but scale and masks */
    struct reference_attention forward;
    double roundoff, scale;
    struct reference_gradient *result;
};

/* One query: its scores at three places, and ∂L/∂ of them, by column. */
struct gradient_row {
    int64_t batch, key_head, i; /* row i of the tensors */
    int64_t n;                  /* the row's number among all */
    struct reference_row final, before, product;
    double *factor;        /* dropout's */
    double *ds, *ds_error; /* NaN beside the kept keys */
    float *derivative;
    double delta, delta_error; /* D */
    bool is_empty;
};

static double *zeros(size_t count)
{
    double *numbers = guarded_doubles(count);
    for (size_t i = 0; i < count; i++)
        numbers[i] = 0;
    return numbers;
}

static struct reference_row new_row(int64_t keys)
{
    return (struct reference_row){.score = guarded_doubles((size_t)keys),
                                  .magnitude = guarded_doubles((size_t)keys),
                                  .tile = guarded_floats((size_t)keys, GUARD_BEHIND)};
}

static bool keeps(const struct gradient_row *row, int64_t j)
{
    return row->final.score[j] != -INFINITY;
}

static double weight_of(const struct pass *pass, const struct gradient_row *row, int64_t j)
{
    return pass->forward.weights[row->n * pass->call->k->shape[2] + j];
}

static double weight_error_of(const struct pass *pass, const struct gradient_row *row, int64_t j)
{
    return pass->forward.weights_error[row->n * pass->call->k->shape[2] + j];
}

static double d_o_of(const struct pass *pass, const struct gradient_row *row, int64_t c)
{
    return tensor_get(pass->call->d_o, row->batch, row->final.head, row->i, c);
}

/* The place of the row, and its scores in all three stages. */
static void begin_row(const struct pass *pass, struct gradient_row *row)
{
    const struct reference_gradient_call *call = pass->call;
    int64_t queries = call->q->shape[2], keys = call->k->shape[2];
    struct reference_row *const stages[] = {&row->final, &row->before, &row->product};
    const attn_params *const params[] = {call->params, &pass->before, &pass->products};
    for (int n = 0; n < 3; n++) {
        stages[n]->sequence =
            reference_sequence_of(call->params, row->batch, row->i, queries, keys);
        stages[n]->query = row->i - stages[n]->sequence.query_begin;
        stages[n]->head = row->final.head;
        reference_score_row(params[n], call->q, call->k, stages[n]);
    }
    const struct reference_sequence *sequence = &row->final.sequence;
    row->key_head = row->final.head / (call->q->shape[1] / call->k->shape[1]);
    row->is_empty = true;
    for (int64_t j = 0; j < keys; j++) {
        row->ds[j] = row->ds_error[j] = row->factor[j] = NAN;
        if (!keeps(row, j))
            continue;
        row->is_empty = false;
        row->factor[j] = reference_dropout_factor(call->params, sequence->index, row->final.head,
                                                  row->final.query, j - sequence->key_begin);
    }
}

/* D = Σ_c do_c·o_c */
static void sum_delta(const struct pass *pass, struct gradient_row *row)
{
    int64_t d_v = pass->call->v->shape[3];
    attn_type type = pass->call->o_type;
    bool is_short = type == ATTN_F16 || type == ATTN_BF16;
    row->delta = row->delta_error = 0;
    for (int64_t c = 0; c < d_v; c++) {
        double d_o = d_o_of(pass, row, c), o = pass->forward.o[row->n * d_v + c];
        double error = pass->forward.o_error[row->n * d_v + c] + pass->roundoff * fabs(o);
        error += pass->call->o_weight_roundoff * pass->forward.o_size[row->n * d_v + c];
        if (is_short)
            error += element_roundoff(type) * fabs(o) + element_smallest_step(type);
        row->delta += d_o * o;
        row->delta_error += fabs(d_o) * error;
    }
}

/* ds_j = p_j·(f_j·dP_j − D) */
static void differentiate_softmax(const struct pass *pass, struct gradient_row *row)
{
    const struct reference_gradient_call *call = pass->call;
    for (int64_t j = 0; j < call->k->shape[2]; j++) {
        if (!keeps(row, j))
            continue;
        double sum = 0, size = 0;
        for (int64_t c = 0; c < call->v->shape[3]; c++) {
            double term =
                d_o_of(pass, row, c) * tensor_get(call->v, row->batch, row->key_head, j, c);
            sum += term;
            size += fabs(term);
        }
        double p = weight_of(pass, row, j), t = row->factor[j] * sum - row->delta;
        double t_error =
            pass->roundoff * (2 * row->factor[j] * size + fabs(row->delta)) + row->delta_error;
        row->ds[j] = p * t;
        row->ds_error[j] = weight_error_of(pass, row, j) * fabs(t) + p * t_error +
                           pass->roundoff * fabs(row->ds[j]) + smallest_weight;
    }
}

/* dv_j += p_j·f_j·do */
static void add_to_values(const struct pass *pass, const struct gradient_row *row)
{
    const struct reference_gradient_call *call = pass->call;
    int64_t keys = call->k->shape[2], d_v = call->v->shape[3];
    int64_t first = (row->batch * call->v->shape[1] + row->key_head) * keys;
    for (int64_t j = 0; j < keys; j++) {
        if (!keeps(row, j))
            continue;
        double p = row->factor[j] * weight_of(pass, row, j);
        double p_error = row->factor[j] * weight_error_of(pass, row, j);
        p_error += (2 * pass->roundoff + call->weight_roundoff) * p;
        for (int64_t c = 0; c < d_v; c++) {
            double d_o = d_o_of(pass, row, c);
            pass->result->v[(first + j) * d_v + c] += p * d_o;
            pass->result->v_error[(first + j) * d_v + c] += p_error * fabs(d_o);
        }
    }
}

/* p_sink = exp(sink − m)/l */
static void add_to_sinks(const struct pass *pass, const struct gradient_row *row)
{
    const attn_params *params = pass->call->params;
    if (!params->sinks)
        return;
    double sink = params->sinks[row->final.head];
    double p = exp(sink - pass->forward.m[row->n]) / pass->forward.l[row->n];
    double relative =
        sink == -INFINITY ? 0 : pass->roundoff * (2 + fabs(sink)) + pass->forward.lse_error[row->n];
    pass->result->sinks[row->final.head] -= p * row->delta;
    pass->result->sinks_error[row->final.head] +=
        p * (row->delta_error + relative * fabs(row->delta)) + smallest_weight * fabs(row->delta);
}

/* From ∂L/∂(what change_scores made) to ∂L/∂(what it was given). The callback sees f32 whatever the
 * type. */
static void differentiate_callback(const struct pass *pass, struct gradient_row *row)
{
    const attn_params *params = pass->call->params;
    const struct reference_sequence *sequence = &row->final.sequence;
    if (!params->change_scores)
        return;
    for (int64_t j = 0; j < sequence->keys; j++) {
        row->before.tile[j] = (float)row->before.score[sequence->key_begin + j];
        row->derivative[j] = 1;
    }
    const attn_score_tile tile = {.sequence = sequence->index,
                                  .head = row->final.head,
                                  .query = row->final.query,
                                  .queries = 1,
                                  .keys = sequence->keys,
                                  .scores = row->before.tile,
                                  .query_stride = sequence->keys,
                                  .key_stride = 1};
    params->change_gradients(params->callback_user, &tile, row->derivative);
    for (int64_t j = 0; j < sequence->keys; j++) {
        int64_t column = sequence->key_begin + j;
        double factor = row->derivative[j];
        row->ds[column] *= factor;
        row->ds_error[column] =
            row->ds_error[column] * fabs(factor) + 0x1p-24 * fabs(row->ds[column]);
    }
}

static void add_to_bias(const struct pass *pass, const struct gradient_row *row)
{
    const attn_tensor *bias = pass->call->params->bias;
    if (!bias)
        return;
    for (int64_t j = 0; j < pass->call->k->shape[2]; j++) {
        if (!keeps(row, j))
            continue;
        const int64_t index[4] = {row->batch, row->final.head, row->i, j};
        int64_t at = 0;
        for (int axis = 0; axis < 4; axis++)
            at = at * bias->shape[axis] + (bias->shape[axis] == 1 ? 0 : index[axis]);
        pass->result->bias[at] += row->ds[j];
        pass->result->bias_error[at] += row->ds_error[j] + pass->roundoff * fabs(row->ds[j]);
    }
}

/* tanh' = 1 − tanh² */
static void differentiate_cap(const struct pass *pass, struct gradient_row *row)
{
    double cap = pass->call->params->soft_cap;
    if (cap == 0)
        return;
    for (int64_t j = 0; j < pass->call->k->shape[2]; j++) {
        if (!keeps(row, j))
            continue;
        double u = tanh(row->product.score[j] / cap), slope = 1 - u * u;
        double slope_error =
            pass->roundoff * (2 + 2 * fabs(u) * slope * row->product.magnitude[j] / cap);
        row->ds_error[j] = row->ds_error[j] * slope + fabs(row->ds[j]) * slope_error;
        row->ds[j] *= slope;
    }
}

/* dq += scale·ds_j·k_j and dk_j += scale·ds_j·q */
static void add_to_queries_and_keys(const struct pass *pass, const struct gradient_row *row)
{
    const struct reference_gradient_call *call = pass->call;
    int64_t keys = call->k->shape[2], d_qk = call->q->shape[3];
    int64_t first = (row->batch * call->k->shape[1] + row->key_head) * keys;
    for (int64_t j = 0; j < keys; j++) {
        if (!keeps(row, j))
            continue;
        double ds = pass->scale * row->ds[j];
        double ds_error = fabs(pass->scale) * row->ds_error[j];
        ds_error += (2 * pass->roundoff + call->weight_roundoff) * fabs(ds);
        for (int64_t c = 0; c < d_qk; c++) {
            double k = tensor_get(call->k, row->batch, row->key_head, j, c);
            double q = tensor_get(call->q, row->batch, row->final.head, row->i, c);
            pass->result->q[row->n * d_qk + c] += ds * k;
            pass->result->q_error[row->n * d_qk + c] += ds_error * fabs(k);
            pass->result->k[(first + j) * d_qk + c] += ds * q;
            pass->result->k_error[(first + j) * d_qk + c] += ds_error * fabs(q);
        }
    }
}

static void differentiate_row(const struct pass *pass, struct gradient_row *row)
{
    begin_row(pass, row);
    if (row->is_empty)
        return;
    sum_delta(pass, row);
    differentiate_softmax(pass, row);
    add_to_values(pass, row);
    add_to_sinks(pass, row);
    differentiate_callback(pass, row);
    add_to_bias(pass, row);
    differentiate_cap(pass, row);
    add_to_queries_and_keys(pass, row);
}

static void begin_pass(struct pass *pass, const struct reference_gradient_call *call,
                       struct reference_gradient *result)
{
    const attn_params *params = call->params;
    *pass = (struct pass){.call = call, .before = *params, .result = result};
    pass->roundoff = call->q->type == ATTN_F64 ? 0x1p-52 : 0x1p-24;
    pass->scale = isnan(params->scale) ? 1 / sqrt((double)call->q->shape[3]) : params->scale;
    pass->before.change_scores = NULL;
    pass->products = pass->before;
    pass->products.soft_cap = 0;
    pass->products.bias = NULL;
    pass->products.alibi_slopes = NULL;
    reference_attention(params, call->q, call->k, call->v, &pass->forward);

    size_t of_q = tensor_elements(call->q), of_k = tensor_elements(call->k);
    size_t of_v = tensor_elements(call->v), heads = (size_t)call->q->shape[1];
    *result = (struct reference_gradient){
        .q = zeros(of_q),
        .k = zeros(of_k),
        .v = zeros(of_v),
        .q_error = zeros(of_q),
        .k_error = zeros(of_k),
        .v_error = zeros(of_v),
    };
    if (params->bias) {
        result->bias = zeros(tensor_elements(params->bias));
        result->bias_error = zeros(tensor_elements(params->bias));
    }
    if (params->sinks) {
        result->sinks = zeros(heads);
        result->sinks_error = zeros(heads);
    }
}

void reference_gradient(const struct reference_gradient_call *call,
                        struct reference_gradient *result)
{
    struct pass pass;
    begin_pass(&pass, call, result);
    int64_t keys = call->k->shape[2];
    struct gradient_row row = {.final = new_row(keys),
                               .before = new_row(keys),
                               .product = new_row(keys),
                               .factor = guarded_doubles((size_t)keys),
                               .ds = guarded_doubles((size_t)keys),
                               .ds_error = guarded_doubles((size_t)keys),
                               .derivative = guarded_floats((size_t)keys, GUARD_BEHIND)};
    for (row.batch = 0; row.batch < call->q->shape[0]; row.batch++)
        for (row.final.head = 0; row.final.head < call->q->shape[1]; row.final.head++)
            for (row.i = 0; row.i < call->q->shape[2]; row.i++, row.n++)
                differentiate_row(&pass, &row);
}
