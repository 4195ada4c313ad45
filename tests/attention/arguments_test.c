/* Arguments that are wrong: the status, a message that names the argument and says what would be
 * right, and no output written. */
#include "harness/test.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "attention_call.h"
#include "harness/attention_problem.h"
#include "harness/compare.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, QUERIES = 5, KEYS = 7, D_QK = 3, D_V = 6 };
enum { ROWS = BATCH * HEADS * QUERIES };

static const int64_t from_the_first[4] = {0, 0, 0, 0};

static void begin(struct attention_call *call)
{
    static const int64_t key_lengths[BATCH] = {KEYS, 3};
    attention_call_begin(
        call, &(struct attention_sizes){BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V});
    attention_add_keep(&call->problem, (int64_t[]){BATCH, HEADS, QUERIES, KEYS}, 2, 4);
    attention_add_bias(&call->problem, (int64_t[]){1, 1, QUERIES, KEYS}, 3);
    call->problem.params.key_lengths = key_lengths;
    call->begin = from_the_first;
}

static void size_zero(struct attention_call *call)
{
    call->problem.params.size = 0;
}

static void size_of_a_later_version(struct attention_call *call)
{
    call->problem.params.size += 8;
}

static void size_of_no_version(struct attention_call *call)
{
    call->problem.params.size = offsetof(attn_params, precision) + 8;
}

static void precision_unknown(struct attention_call *call)
{
    call->problem.params.precision = (attn_precision)2;
}

static void scale_missing(struct attention_call *call)
{
    call->problem.q.shape[3] = call->problem.k.shape[3] = 0;
}

static void cap_negative(struct attention_call *call)
{
    call->problem.params.soft_cap = -1;
}

static void cap_nan(struct attention_call *call)
{
    call->problem.params.soft_cap = NAN;
}

static void cap_infinite(struct attention_call *call)
{
    call->problem.params.soft_cap = INFINITY;
}

static void alignment_unknown(struct attention_call *call)
{
    call->problem.params.alignment = (attn_alignment)3;
}

static void offset_too_far(struct attention_call *call)
{
    call->problem.params.alignment = ATTN_ALIGN_OFFSET;
    call->problem.params.offset = ATTN_POSITION_LIMIT + 1;
}

static void offset_too_far_back(struct attention_call *call)
{
    call->problem.params.alignment = ATTN_ALIGN_OFFSET;
    call->problem.params.offset = INT64_MIN;
}

static void left_too_far(struct attention_call *call)
{
    call->problem.params.window_left = ATTN_POSITION_LIMIT + 1;
}

static void right_too_far(struct attention_call *call)
{
    call->problem.params.window_right = -ATTN_POSITION_LIMIT - 1;
}

static void right_lowest(struct attention_call *call)
{
    call->problem.params.window_right = INT64_MIN;
}

static void length_negative(struct attention_call *call)
{
    static const int64_t key_lengths[BATCH] = {KEYS, -1};
    call->problem.params.key_lengths = key_lengths;
}

static void length_beyond_keys(struct attention_call *call)
{
    static const int64_t key_lengths[BATCH] = {KEYS, KEYS + 1};
    call->problem.params.key_lengths = key_lengths;
}

static void keep_of_another_shape(struct attention_call *call)
{
    call->problem.keep.shape[3] = KEYS - 1;
}

static void keep_of_floats(struct attention_call *call)
{
    call->problem.keep = call->problem.bias;
}

static void keep_without_data(struct attention_call *call)
{
    call->problem.keep.data = NULL;
}

static void bias_of_another_shape(struct attention_call *call)
{
    call->problem.bias.shape[1] = 2;
}

static void bias_of_booleans(struct attention_call *call)
{
    call->problem.bias.type = ATTN_BOOL;
}

static void bias_without_data(struct attention_call *call)
{
    call->problem.bias.data = NULL;
}

static void q_of_booleans(struct attention_call *call)
{
    call->problem.q.type = ATTN_BOOL;
}

static void k_of_an_unknown_type(struct attention_call *call)
{
    call->problem.k.type = (attn_type)77;
}

static void q_without_data(struct attention_call *call)
{
    call->problem.q.data = NULL;
}

static void k_without_data(struct attention_call *call)
{
    call->problem.k.data = NULL;
}

static void q_of_negative_size(struct attention_call *call)
{
    call->problem.q.shape[2] = -1;
}

static void k_of_another_batch(struct attention_call *call)
{
    call->problem.k.shape[0] = 1;
}

static void k_of_another_dim(struct attention_call *call)
{
    call->problem.k.shape[3] = D_QK + 1;
}

static void no_key_heads(struct attention_call *call)
{
    call->problem.k.shape[1] = call->problem.v.shape[1] = 0;
}

static void heads_not_a_multiple(struct attention_call *call)
{
    call->problem.k.shape[1] = call->problem.v.shape[1] = 3;
}

static void more_key_heads_than_heads(struct attention_call *call)
{
    call->problem.k.shape[1] = call->problem.v.shape[1] = 8;
}

static void q_beyond_memory(struct attention_call *call)
{
    call->problem.q.stride[0] = INT64_MAX;
}

static void k_beyond_memory_backwards(struct attention_call *call)
{
    call->problem.k.stride[2] = INT64_MIN / 2;
}

static void v_of_booleans(struct attention_call *call)
{
    call->problem.v.type = ATTN_BOOL;
}

static void v_without_data(struct attention_call *call)
{
    call->problem.v.data = NULL;
}

static void v_of_other_heads(struct attention_call *call)
{
    call->problem.v.shape[1] = 1;
}

static void v_of_another_length(struct attention_call *call)
{
    call->problem.v.shape[2] = KEYS - 1;
}

static void v_of_another_batch(struct attention_call *call)
{
    call->problem.v.shape[0] = 1;
}

static void o_of_booleans(struct attention_call *call)
{
    call->o.type = ATTN_BOOL;
}

static void o_of_another_dim(struct attention_call *call)
{
    call->o.shape[3] = D_V - 1;
}

static void o_of_another_length(struct attention_call *call)
{
    call->o.shape[2] = QUERIES + 1;
}

static void o_without_data(struct attention_call *call)
{
    call->o.data = NULL;
}

static void stats_of_another_dim(struct attention_call *call)
{
    call->stats.shape[3] = 1;
}

static void stats_of_booleans(struct attention_call *call)
{
    call->stats.type = ATTN_BOOL;
}

static const struct attention_fault faults[] = {
    {"params.size 0", size_zero, ATTN_ERROR_ARGUMENT, "params.size", "attn_params_init", false},
    {"params.size larger", size_of_a_later_version, ATTN_ERROR_ARGUMENT, "params.size", "expected",
     false},
    {"params.size between two versions", size_of_no_version, ATTN_ERROR_ARGUMENT, "params.size",
     "expected", false},
    {"precision 2", precision_unknown, ATTN_ERROR_ARGUMENT, "params.precision", "attn_precision",
     false},
    {"no scale for d_qk 0", scale_missing, ATTN_ERROR_ARGUMENT, "params.scale", "give", false},
    {"soft_cap -1", cap_negative, ATTN_ERROR_ARGUMENT, "params.soft_cap", "finite", false},
    {"soft_cap NaN", cap_nan, ATTN_ERROR_ARGUMENT, "params.soft_cap", "finite", false},
    {"soft_cap inf", cap_infinite, ATTN_ERROR_ARGUMENT, "params.soft_cap", "finite", false},
    {"alignment 3", alignment_unknown, ATTN_ERROR_ARGUMENT, "params.alignment", "attn_alignment",
     false},
    {"offset beyond the limit", offset_too_far, ATTN_ERROR_ARGUMENT, "params.offset",
     "ATTN_POSITION_LIMIT", false},
    {"offset far below", offset_too_far_back, ATTN_ERROR_ARGUMENT, "params.offset",
     "ATTN_POSITION_LIMIT", false},
    {"window_left beyond", left_too_far, ATTN_ERROR_ARGUMENT, "params.window_left",
     "ATTN_WINDOW_OPEN", false},
    {"window_right beyond", right_too_far, ATTN_ERROR_ARGUMENT, "params.window_right",
     "ATTN_WINDOW_OPEN", false},
    {"window_right lowest", right_lowest, ATTN_ERROR_ARGUMENT, "params.window_right",
     "ATTN_WINDOW_OPEN", false},
    {"key length -1", length_negative, ATTN_ERROR_ARGUMENT, "key_lengths[1]", "0 to 7", false},
    {"key length 8", length_beyond_keys, ATTN_ERROR_ARGUMENT, "key_lengths[1] is 8", "0 to 7",
     false},
    {"keep's shape", keep_of_another_shape, ATTN_ERROR_SHAPE, "params.keep", "[2, 4, 5, 7]", false},
    {"keep of floats", keep_of_floats, ATTN_ERROR_TYPE, "params.keep", "bool", false},
    {"keep without data", keep_without_data, ATTN_ERROR_ARGUMENT, "params.keep", "data", false},
    {"bias's shape", bias_of_another_shape, ATTN_ERROR_SHAPE, "params.bias", "[2, 4, 5, 7]", false},
    {"bias of booleans", bias_of_booleans, ATTN_ERROR_TYPE, "params.bias", "f32", false},
    {"bias without data", bias_without_data, ATTN_ERROR_ARGUMENT, "params.bias", "data", false},
    {"q of booleans", q_of_booleans, ATTN_ERROR_TYPE, "q ", "f32", false},
    {"k of an unknown type", k_of_an_unknown_type, ATTN_ERROR_TYPE, "k ", "f32", false},
    {"q without data", q_without_data, ATTN_ERROR_ARGUMENT, "q ", "data", false},
    {"k without data", k_without_data, ATTN_ERROR_ARGUMENT, "k ", "data", false},
    {"q of negative size", q_of_negative_size, ATTN_ERROR_SHAPE, "q ", "at least 0", false},
    {"k's batch", k_of_another_batch, ATTN_ERROR_SHAPE, "k ", "expected 2", false},
    {"k's dim", k_of_another_dim, ATTN_ERROR_SHAPE, "k ", "expected 3", false},
    {"no key heads", no_key_heads, ATTN_ERROR_SHAPE, "k ", "no key heads", false},
    {"4 heads, 3 key heads", heads_not_a_multiple, ATTN_ERROR_SHAPE, "heads", "multiple", false},
    {"4 heads, 8 key heads", more_key_heads_than_heads, ATTN_ERROR_SHAPE, "heads", "multiple",
     false},
    {"q beyond memory", q_beyond_memory, ATTN_ERROR_SHAPE, "q ", "address space", false},
    {"k beyond memory", k_beyond_memory_backwards, ATTN_ERROR_SHAPE, "k ", "address space", false},
    {"v of booleans", v_of_booleans, ATTN_ERROR_TYPE, "v ", "f32", true},
    {"v without data", v_without_data, ATTN_ERROR_ARGUMENT, "v ", "data", true},
    {"v's heads", v_of_other_heads, ATTN_ERROR_SHAPE, "v ", "[2, 2, 7, 6]", true},
    {"v's length", v_of_another_length, ATTN_ERROR_SHAPE, "v ", "[2, 2, 7, 6]", true},
    {"v's batch", v_of_another_batch, ATTN_ERROR_SHAPE, "v ", "[2, 2, 7, 6]", true},
    {"o of booleans", o_of_booleans, ATTN_ERROR_TYPE, "o ", "f32", true},
    {"o's dim", o_of_another_dim, ATTN_ERROR_SHAPE, "o ", "[2, 4, 5, 6]", true},
    {"o's length", o_of_another_length, ATTN_ERROR_SHAPE, "o ", "[2, 4, 5, 6]", true},
    {"o without data", o_without_data, ATTN_ERROR_ARGUMENT, "o ", "data", true},
    {"stats's dim", stats_of_another_dim, ATTN_ERROR_SHAPE, "stats", "[2, 4, 5, 2]", false},
    {"stats of booleans", stats_of_booleans, ATTN_ERROR_TYPE, "stats", "f32", false},
};

static void make_fault(const void *argument)
{
    attention_check_fault(begin, argument);
}

/* Laid out with nothing behind it, so that what the struct of version 0.1 does not have cannot be
 * read. */
static void params_of_an_older_version(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_EQUAL(attention_call_weights(&call), ATTN_SUCCESS);
    float *o = tensor_packed_copy(&call.o), *weights = tensor_packed_copy(&call.weights);
    const size_t size = offsetof(attn_params, precision);
    attn_params *older = guarded_bytes(size, sizeof(int64_t), GUARD_BEHIND);
    memcpy(older, &call.problem.params, size);
    memcpy(older, &size, sizeof size);
    const struct attention_problem *problem = &call.problem;
    CHECK_EQUAL(attn_forward(call.context, older, &problem->q, &problem->k, &problem->v, &call.o,
                             &call.stats),
                ATTN_SUCCESS);
    CHECK_EQUAL(attn_weights(call.context, older, &problem->q, &problem->k, &call.stats, NULL,
                             &call.weights),
                ATTN_SUCCESS);
    CHECK_SAME_BITS((const float *)call.o.data, o, ROWS * D_V);
    CHECK_SAME_BITS((const float *)call.weights.data, weights, ROWS * KEYS);
    attention_call_end(&call);
}

static void missing_pointers(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    attn_context *context = call.context;
    const attn_tensor *q = &call.problem.q, *k = &call.problem.k, *v = &call.problem.v;
    const attn_tensor *o = &call.o, *stats = &call.stats, *part = &call.weights;
    attention_call_check_message(&call, attn_forward(context, NULL, NULL, k, v, o, NULL),
                                 ATTN_ERROR_ARGUMENT, "q is NULL", "expected");
    attention_call_check_message(&call, attn_forward(context, NULL, q, NULL, v, o, NULL),
                                 ATTN_ERROR_ARGUMENT, "k is NULL", "expected");
    attention_call_check_message(&call, attn_forward(context, NULL, q, k, NULL, o, NULL),
                                 ATTN_ERROR_ARGUMENT, "v is NULL", "expected");
    attention_call_check_message(&call, attn_forward(context, NULL, q, k, v, NULL, NULL),
                                 ATTN_ERROR_ARGUMENT, "o is NULL", "expected");
    attention_call_check_message(&call, attn_weights(context, NULL, NULL, k, stats, NULL, part),
                                 ATTN_ERROR_ARGUMENT, "q is NULL", "expected");
    attention_call_check_message(&call, attn_weights(context, NULL, q, NULL, stats, NULL, part),
                                 ATTN_ERROR_ARGUMENT, "k is NULL", "expected");
    attention_call_check_message(&call, attn_weights(context, NULL, q, k, NULL, NULL, part),
                                 ATTN_ERROR_ARGUMENT, "stats is NULL", "expected");
    attention_call_check_message(&call, attn_weights(context, NULL, q, k, stats, NULL, NULL),
                                 ATTN_ERROR_ARGUMENT, "weights is NULL", "expected");
    CHECK_EQUAL(attn_forward(NULL, NULL, q, k, v, o, NULL), ATTN_ERROR_ARGUMENT);
    CHECK_EQUAL(attn_decode(NULL, NULL, q, k, v, o, NULL), ATTN_ERROR_ARGUMENT);
    CHECK_EQUAL(attn_weights(NULL, NULL, q, k, stats, NULL, part), ATTN_ERROR_ARGUMENT);
    CHECK_UNWRITTEN((const float *)o->data, ROWS * D_V);
    CHECK_UNWRITTEN((const float *)part->data, ROWS * KEYS);
    attn_context_destroy(context);
}

static void parts_outside_the_tensors(const void *argument)
{
    (void)argument;
    static const int64_t sizes[4] = {BATCH, HEADS, QUERIES, KEYS};
    for (int axis = 0; axis < 4; axis++) {
        const int64_t begins[] = {1, -1, sizes[axis], sizes[axis] + 1, INT64_MAX, INT64_MIN};
        for (size_t n = 0; n < COUNT(begins); n++) {
            struct attention_call call;
            begin(&call);
            attention_call_forward(&call);
            int64_t part_begin[4] = {0};
            part_begin[axis] = begins[n];
            call.begin = part_begin;
            test_context("axis %d, begin %lld", axis, (long long)begins[n]);
            attention_call_check_message(&call, attention_call_weights(&call), ATTN_ERROR_SHAPE,
                                         "weights", "expected");
            CHECK_UNWRITTEN((const float *)call.weights.data, ROWS * KEYS);
            attention_call_end(&call);
        }
    }
}

static void weights_of_the_wrong_kind(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    attention_call_forward(&call);
    void *data = call.weights.data;
    call.weights.type = ATTN_BOOL;
    attention_call_check_message(&call, attention_call_weights(&call), ATTN_ERROR_TYPE, "weights",
                                 "f32");
    call.weights.type = ATTN_F32;
    call.weights.data = NULL;
    attention_call_check_message(&call, attention_call_weights(&call), ATTN_ERROR_ARGUMENT,
                                 "weights", "data");
    call.weights.data = data;
    call.weights.stride[3] = 0;
    attention_call_check_message(&call, attention_call_weights(&call), ATTN_ERROR_OVERLAP,
                                 "weights", "twice");
    CHECK_UNWRITTEN((const float *)data, ROWS * KEYS);
    attention_call_end(&call);
}

/* A failure is forgotten with the next success; a context stays usable. */
static void the_message_is_of_the_last_call(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    CHECK_EQUAL(strlen(attn_message(call.context)), 0);
    call.problem.params.soft_cap = -1;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_ERROR_ARGUMENT);
    call.problem.params.soft_cap = 0;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_EQUAL(strlen(attn_message(call.context)), 0);
    call.problem.params.soft_cap = -1;
    CHECK_EQUAL(attention_call_weights(&call), ATTN_ERROR_ARGUMENT);
    call.problem.params.soft_cap = 0;
    CHECK_EQUAL(attention_call_weights(&call), ATTN_SUCCESS);
    CHECK_EQUAL(strlen(attn_message(call.context)), 0);
    attention_call_end(&call);
}

/* Empty axes are a success; a fault beside them still is one. */
static void empty_calls_are_checked_too(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    call.problem.q.shape[2] = call.o.shape[2] = call.stats.shape[2] = 0;
    call.problem.keep.shape[2] = call.problem.bias.shape[2] = 1;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    call.problem.k.shape[3] = D_QK + 1;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_ERROR_SHAPE);
    attention_call_end(&call);
}

static void initial_params(const void *argument)
{
    (void)argument;
    attn_params params;
    memset(&params, 0xff, sizeof params);
    attn_params_init(&params);
    CHECK_EQUAL(params.size, sizeof params);
    CHECK(isnan(params.scale) && params.soft_cap == 0);
    CHECK_EQUAL(params.alignment, ATTN_ALIGN_TOP_LEFT);
    CHECK(params.offset == 0 && params.causal == 0);
    CHECK(params.window_left == ATTN_WINDOW_OPEN && params.window_right == ATTN_WINDOW_OPEN);
    CHECK(!params.key_lengths && !params.keep && !params.bias && !params.alibi_slopes);
    CHECK(!params.sinks);
    CHECK_EQUAL(params.precision, ATTN_PRECISION_EXACT);
    CHECK(params.sequences == 0 && !params.query_starts && !params.key_starts);
    CHECK(!params.prefix_lengths && !params.query_documents && !params.key_documents);
    CHECK(!params.change_scores && !params.key_range && !params.callback_user);
    CHECK(!params.key_scales && !params.value_scales);
    CHECK(!params.block_table && params.block_table_width == 0);
}

int main(void)
{
    for (size_t n = 0; n < COUNT(faults); n++)
        test_run(make_fault, &faults[n], "%s", faults[n].what);
    test_run(params_of_an_older_version, NULL, "params of version 0.1");
    test_run(missing_pointers, NULL, "missing pointers");
    test_run(parts_outside_the_tensors, NULL, "parts of the weights outside the tensors");
    test_run(weights_of_the_wrong_kind, NULL, "weights of the wrong kind");
    test_run(the_message_is_of_the_last_call, NULL, "the message is of the last call");
    test_run(empty_calls_are_checked_too, NULL, "empty calls are checked too");
    test_run(initial_params, NULL, "attn_params_init sets every field");
    return test_finish();
}
