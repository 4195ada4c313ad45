/* What attn_backward refuses, with a message, and nothing written; what it leaves alone. */
#include "harness/test.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backward_call.h"
#include "harness/compare.h"
#include "harness/isa.h"

struct fault {
    const char *what;
    void (*change)(struct backward_call *call);
    attn_status status;
    const char *names, *says; /* the message holds these two */
};

static void gradients_size(struct backward_call *call)
{
    call->gradients.size = 0;
}

static void later_gradients(struct backward_call *call)
{
    call->gradients.size += 8;
}

static void dropout_negative(struct backward_call *call)
{
    call->problem.params.dropout = -0.5f;
}

static void dropout_above_one(struct backward_call *call)
{
    call->problem.params.dropout = 1.0000001f;
}

static void dropout_nan(struct backward_call *call)
{
    call->problem.params.dropout = NAN;
}

static void dropout_batch_negative(struct backward_call *call)
{
    call->problem.params.dropout_batch = -1;
}

static void dropout_query_negative(struct backward_call *call)
{
    call->problem.params.dropout_query = -7;
}

static void no_bias(struct backward_call *call)
{
    call->problem.params.bias = NULL;
}

static void no_sinks(struct backward_call *call)
{
    call->problem.params.sinks = NULL;
}

static void k_of_i8(struct backward_call *call)
{
    const attn_tensor *k = &call->problem.k;
    call->problem.key_scales = backward_call_packed(k->shape[0], k->shape[1], k->shape[2], 1);
    call->problem.params.key_scales = &call->problem.key_scales;
    call->problem.k = tensor_convert(k, ATTN_I8, LAYOUT_PACKED, GUARD_BEHIND);
}

static void v_of_i8(struct backward_call *call)
{
    const attn_tensor *v = &call->problem.v;
    call->problem.value_scales = backward_call_packed(v->shape[0], v->shape[1], v->shape[2], 1);
    call->problem.params.value_scales = &call->problem.value_scales;
    call->problem.v = tensor_convert(v, ATTN_I8, LAYOUT_PACKED, GUARD_BEHIND);
}

static void pages(struct backward_call *call)
{
    static const int32_t table[BATCH] = {0, 1};
    static const int64_t lengths[BATCH] = {KEYS, KEYS};
    call->problem.params.block_table = table;
    call->problem.params.block_table_width = 1;
    call->problem.params.key_lengths = lengths;
}

static void leave_scores(void *user, const attn_score_tile *tile)
{
    (void)user, (void)tile;
}

static void no_derivative(struct backward_call *call)
{
    call->problem.params.change_scores = leave_scores;
}

static void o_of_another_dim(struct backward_call *call)
{
    call->o.shape[3] = D_V - 1;
}

static void o_of_another_type(struct backward_call *call)
{
    call->o.type = ATTN_F16;
}

static void stats_of_another_dim(struct backward_call *call)
{
    call->stats.shape[3] = 1;
}

static void stats_without_data(struct backward_call *call)
{
    call->stats.data = NULL;
}

static void d_o_of_another_length(struct backward_call *call)
{
    call->d_o.shape[2] = QUERIES - 1;
}

static void d_o_of_booleans(struct backward_call *call)
{
    call->d_o.type = ATTN_BOOL;
}

static void d_o_without_data(struct backward_call *call)
{
    call->d_o.data = NULL;
}

static void d_q_of_another_dim(struct backward_call *call)
{
    call->d_q.shape[3] = D_QK + 1;
}

static void d_q_of_another_type(struct backward_call *call)
{
    call->d_q.type = ATTN_BF16;
}

static void d_k_of_all_heads(struct backward_call *call)
{
    call->d_k = backward_call_packed(BATCH, HEADS, KEYS, D_QK);
}

static void d_v_without_data(struct backward_call *call)
{
    call->d_v.data = NULL;
}

static void d_bias_of_full_shape(struct backward_call *call)
{
    call->d_bias = backward_call_packed(BATCH, HEADS, QUERIES, KEYS);
}

static void d_sinks_of_another_shape(struct backward_call *call)
{
    call->d_sinks.shape[1] = 1;
    call->d_sinks.shape[3] = HEADS;
}

static void d_q_expanded(struct backward_call *call)
{
    call->d_q.stride[1] = 0;
}

static void d_q_in_q(struct backward_call *call)
{
    call->d_q.data = call->problem.q.data;
}

static void d_v_in_o(struct backward_call *call)
{
    call->d_v = call->o;
    call->d_v.shape[1] = KEY_HEADS;
    call->d_v.shape[2] = KEYS;
    call->d_v.stride[0] = KEY_HEADS * KEYS * D_V;
    call->d_v.stride[1] = KEYS * D_V;
}

static void d_q_in_stats(struct backward_call *call)
{
    call->d_q.data = (float *)call->stats.data - 1;
}

static void d_q_in_d_o(struct backward_call *call)
{
    call->d_q.data = call->d_o.data;
}

static void d_bias_in_bias(struct backward_call *call)
{
    call->d_bias.data = call->problem.bias.data;
}

static void d_sinks_in_sinks(struct backward_call *call)
{
    call->d_sinks.data = call->sinks;
}

static void d_k_in_d_q(struct backward_call *call)
{
    call->d_k.data = call->d_q.data;
}

static void d_sinks_in_d_bias(struct backward_call *call)
{
    call->d_sinks.data = call->d_bias.data;
}

static const struct fault faults[] = {
    {"gradients.size 0", gradients_size, ATTN_ERROR_ARGUMENT, "gradients.size",
     "attn_gradients_init"},
    {"gradients.size larger", later_gradients, ATTN_ERROR_ARGUMENT, "gradients.size", "expected"},
    {"dropout below 0", dropout_negative, ATTN_ERROR_ARGUMENT, "params.dropout is -0.5", "0 to 1"},
    {"dropout above 1", dropout_above_one, ATTN_ERROR_ARGUMENT, "params.dropout", "0 to 1"},
    {"dropout NaN", dropout_nan, ATTN_ERROR_ARGUMENT, "params.dropout", "0 to 1"},
    {"dropout_batch -1", dropout_batch_negative, ATTN_ERROR_ARGUMENT, "params.dropout_batch is -1",
     "at least 0"},
    {"dropout_query -7", dropout_query_negative, ATTN_ERROR_ARGUMENT, "params.dropout_query is -7",
     "at least 0"},
    {"a bias' gradient without a bias", no_bias, ATTN_ERROR_ARGUMENT, "gradients.bias",
     "params.bias is NULL"},
    {"a sink's gradient without sinks", no_sinks, ATTN_ERROR_ARGUMENT, "gradients.sinks",
     "params.sinks is NULL"},
    {"k of i8", k_of_i8, ATTN_ERROR_UNSUPPORTED, "k has type i8", "expected f32"},
    {"v of i8", v_of_i8, ATTN_ERROR_UNSUPPORTED, "v has type i8", "expected f32"},
    {"pages", pages, ATTN_ERROR_UNSUPPORTED, "params.block_table", "without pages"},
    {"no derivative", no_derivative, ATTN_ERROR_UNSUPPORTED, "params.change_gradients",
     "derivative"},
    {"o's dim", o_of_another_dim, ATTN_ERROR_SHAPE, "o has shape", "expected"},
    {"o of another type", o_of_another_type, ATTN_ERROR_TYPE, "o has type f16", "f32"},
    {"stats' dim", stats_of_another_dim, ATTN_ERROR_SHAPE, "stats has shape", "expected"},
    {"stats without data", stats_without_data, ATTN_ERROR_ARGUMENT, "stats has no data",
     "expected"},
    {"d_o's length", d_o_of_another_length, ATTN_ERROR_SHAPE, "d_o has shape", "expected"},
    {"d_o of booleans", d_o_of_booleans, ATTN_ERROR_TYPE, "d_o has type bool", "f32"},
    {"d_o without data", d_o_without_data, ATTN_ERROR_ARGUMENT, "d_o has no data", "expected"},
    {"dQ's dim", d_q_of_another_dim, ATTN_ERROR_SHAPE, "gradients.q", "expected"},
    {"dQ of another type", d_q_of_another_type, ATTN_ERROR_TYPE, "gradients.q", "f32"},
    {"dK of all heads", d_k_of_all_heads, ATTN_ERROR_SHAPE, "gradients.k", "[2, 2, 7, 3]"},
    {"dV without data", d_v_without_data, ATTN_ERROR_ARGUMENT, "gradients.v has no data",
     "expected"},
    {"a bias' gradient of full shape", d_bias_of_full_shape, ATTN_ERROR_SHAPE, "gradients.bias",
     "[1, 4, 5, 7]"},
    {"sinks' shape", d_sinks_of_another_shape, ATTN_ERROR_SHAPE, "gradients.sinks", "[1, 4, 1, 1]"},
    {"dQ expanded", d_q_expanded, ATTN_ERROR_OVERLAP, "gradients.q", "twice"},
    {"dQ in q", d_q_in_q, ATTN_ERROR_OVERLAP, "gradients.q and q", "apart from all inputs"},
    {"dV in o", d_v_in_o, ATTN_ERROR_OVERLAP, "gradients.v and o", "apart from all inputs"},
    {"dQ in stats", d_q_in_stats, ATTN_ERROR_OVERLAP, "gradients.q and stats",
     "apart from all inputs"},
    {"dQ in d_o", d_q_in_d_o, ATTN_ERROR_OVERLAP, "gradients.q and d_o", "apart from all inputs"},
    {"a bias' gradient in the bias", d_bias_in_bias, ATTN_ERROR_OVERLAP,
     "gradients.bias and params.bias", "apart from all inputs"},
    {"sinks' gradient in the sinks", d_sinks_in_sinks, ATTN_ERROR_OVERLAP,
     "gradients.sinks and params.sinks", "apart from all inputs"},
    {"dK in dQ", d_k_in_d_q, ATTN_ERROR_OVERLAP, "gradients.k and gradients.q",
     "apart from each other"},
    {"sinks' gradient in the bias'", d_sinks_in_d_bias, ATTN_ERROR_OVERLAP,
     "gradients.sinks and gradients.bias", "apart from each other"},
};

static void refuse(const void *argument)
{
    const struct fault *fault = argument;
    attn_context *context = isa_context(ATTN_ISA_BEST, 1);
    struct backward_call call, right;
    backward_call_begin(&call, context, &backward_call_sizes);
    right = call;
    fault->change(&call);
    CHECK_EQUAL(backward_call_run(&call), fault->status);
    CHECK_CONTAINS(attn_message(context), fault->names);
    CHECK_CONTAINS(attn_message(context), fault->says);
    backward_call_check_unwritten(&right);
    attn_context_destroy(context);
}

static void missing_pointers(const void *argument)
{
    (void)argument;
    attn_context *context = isa_context(ATTN_ISA_BEST, 1);
    struct backward_call call;
    backward_call_begin(&call, context, &backward_call_sizes);
    const attn_tensor *tensors[] = {&call.problem.q, &call.problem.k, &call.problem.v,
                                    &call.o,         &call.stats,     &call.d_o};
    static const char *const names[] = {"q is NULL", "k is NULL",     "v is NULL",
                                        "o is NULL", "stats is NULL", "d_o is NULL"};
    for (size_t n = 0; n < COUNT(tensors); n++) {
        const attn_tensor *t[COUNT(tensors)];
        memcpy(t, tensors, sizeof t);
        t[n] = NULL;
        CHECK_EQUAL(attn_backward(context, &call.problem.params, t[0], t[1], t[2], t[3], t[4], t[5],
                                  &call.gradients),
                    ATTN_ERROR_ARGUMENT);
        CHECK_CONTAINS(attn_message(context), names[n]);
    }
    CHECK_EQUAL(attn_backward(context, &call.problem.params, tensors[0], tensors[1], tensors[2],
                              tensors[3], tensors[4], tensors[5], NULL),
                ATTN_ERROR_ARGUMENT);
    CHECK_CONTAINS(attn_message(context), "gradients is NULL");
    CHECK_EQUAL(attn_backward(NULL, NULL, tensors[0], tensors[1], tensors[2], tensors[3],
                              tensors[4], tensors[5], &call.gradients),
                ATTN_ERROR_ARGUMENT);
    backward_call_check_unwritten(&call);
    attn_gradients_init(NULL);
    attn_context_destroy(context);
}

/* What is not wanted is not written; no gradient wanted is a success. */
static void nothing_wanted(attn_context *context)
{
    struct backward_call call;
    backward_call_begin(&call, context, &backward_call_sizes);
    attn_gradients_init(&call.gradients);
    CHECK_EQUAL(call.gradients.size, sizeof call.gradients);
    CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
    backward_call_check_unwritten(&call);
    call.gradients.sinks = &call.d_sinks;
    CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
    CHECK_UNWRITTEN((const float *)call.d_q.data, tensor_elements(&call.d_q));
    for (int h = 0; h < HEADS; h++)
        CHECK(isfinite(((const float *)call.d_sinks.data)[h]));
}

/* Shapes without an element: what is left of the gradients is 0. */
static void empty_shapes(attn_context *context)
{
    for (int axis = 0; axis < 6; axis++) {
        struct attention_sizes of = {1, 2, 1, 3, 4, 5, 6};
        int64_t *const axes[6] = {&of.batch, &of.heads, &of.queries, &of.keys, &of.d_qk, &of.d_v};
        *axes[axis] = 0;
        struct backward_call call;
        test_context("axis %d", axis);
        call.problem.params.scale = 1;
        backward_call_begin(&call, context, &(struct attention_sizes){1, 2, 1, 3, 4, 5, 6});
        attention_make(&call.problem, &of, 3);
        call.problem.params.scale = 1;
        call.problem.params.sinks = call.sinks;
        call.o = backward_call_packed(of.batch, of.heads, of.queries, of.d_v);
        call.d_o = backward_call_packed(of.batch, of.heads, of.queries, of.d_v);
        tensor_fill(&call.d_o, 1);
        call.stats = backward_call_packed(of.batch, of.heads, of.queries, 2);
        call.d_q = backward_call_unwritten_like(&call.problem.q);
        call.d_k = backward_call_unwritten_like(&call.problem.k);
        call.d_v = backward_call_unwritten_like(&call.problem.v);
        call.d_sinks = backward_call_packed(1, of.heads, 1, 1);
        CHECK_EQUAL(attn_forward(context, &call.problem.params, &call.problem.q, &call.problem.k,
                                 &call.problem.v, &call.o, &call.stats),
                    ATTN_SUCCESS);
        CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
        bool has_weights = of.d_qk == 0;
        CHECK_ALL((const float *)call.d_q.data, 0, tensor_elements(&call.d_q));
        CHECK_ALL((const float *)call.d_k.data, 0, tensor_elements(&call.d_k));
        if (!has_weights) {
            CHECK_ALL((const float *)call.d_v.data, 0, tensor_elements(&call.d_v));
            CHECK_ALL((const float *)call.d_sinks.data, 0, tensor_elements(&call.d_sinks));
        }
    }
}

static void decode_has_no_dropout(attn_context *context)
{
    struct backward_call call;
    backward_call_begin(&call, context, &backward_call_sizes);
    call.problem.params.dropout = 0.1f;
    attn_tensor o = backward_call_packed(BATCH, HEADS, QUERIES, D_V);
    CHECK_EQUAL(attn_decode(context, &call.problem.params, &call.problem.q, &call.problem.k,
                            &call.problem.v, &o, NULL),
                ATTN_ERROR_UNSUPPORTED);
    CHECK_CONTAINS(attn_message(context), "params.dropout is 0.1");
    CHECK_CONTAINS(attn_message(context), "attn_forward");
    CHECK_UNWRITTEN((const float *)o.data, tensor_elements(&o));
}

/* Laid out with nothing behind it, so that what the struct of an older version does not have cannot
 * be read. */
static void params_of_older_versions(attn_context *context)
{
    static const size_t known[] = {offsetof(attn_params, precision),
                                   offsetof(attn_params, dropout)};
    struct backward_call call;
    backward_call_begin(&call, context, &backward_call_sizes);
    CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
    float *d_q = tensor_packed_copy(&call.d_q);
    for (size_t n = 0; n < COUNT(known); n++) {
        attn_params *older = guarded_bytes(known[n], sizeof(int64_t), GUARD_BEHIND);
        memcpy(older, &call.problem.params, known[n]);
        memcpy(older, &known[n], sizeof known[n]);
        CHECK_EQUAL(attn_backward(context, older, &call.problem.q, &call.problem.k, &call.problem.v,
                                  &call.o, &call.stats, &call.d_o, &call.gradients),
                    ATTN_SUCCESS);
        CHECK_SAME_BITS((const float *)call.d_q.data, d_q, tensor_elements(&call.d_q));
    }
}

int main(void)
{
    for (size_t n = 0; n < COUNT(faults); n++)
        test_run(refuse, &faults[n], "%s", faults[n].what);
    test_run(missing_pointers, NULL, "missing pointers");
    isa_each_context("nothing wanted", nothing_wanted);
    isa_each_context("empty shapes", empty_shapes);
    isa_each_context("decode has no dropout", decode_has_no_dropout);
    isa_each_context("params of older versions", params_of_older_versions);
    return test_finish();
}
