/* Outputs that meet themselves, an input or each other are refused, nothing written; views that
 * only interleave are not. */
#include "harness/test.h"

#include <string.h>

#include "attention_call.h"
#include "harness/attention_problem.h"
#include "harness/compare.h"

enum { BATCH = 2, HEADS = 2, QUERIES = 5, KEYS = 7, D = 4, ROWS = BATCH * HEADS * QUERIES };

static void begin(struct attention_call *call)
{
    attention_call_begin(call, &(struct attention_sizes){BATCH, HEADS, HEADS, QUERIES, KEYS, D, D});
}

static void check_refused(struct attention_call *call, attn_status status, const char *output,
                          const char *other)
{
    CHECK_EQUAL(status, ATTN_ERROR_OVERLAP);
    CHECK_CONTAINS(attn_message(call->context), output);
    CHECK_CONTAINS(attn_message(call->context), other);
    CHECK_CONTAINS(attn_message(call->context), "expected");
}

static void an_output_on_itself(const void *argument)
{
    (void)argument;
    for (int axis = 0; axis < 4; axis++) {
        struct attention_call call;
        begin(&call);
        float *memory = call.o.data;
        call.o.stride[axis] = 0;
        test_context("stride 0 on axis %d", axis);
        check_refused(&call, attention_call_forward(&call), "o ", "twice");
        CHECK_UNWRITTEN(memory, ROWS * D);
        attention_call_end(&call);
    }
    /* Rows that reach into the next one, heads that lie on batches, a reversed axis on another. */
    const int64_t strides[][4] = {{40, 20, 3, 1}, {20, 20, 4, 1}, {40, 20, 4, 4},
                                  {40, 20, 2, 1}, {40, 16, 4, 1}, {6, 2, 4, 1}};
    for (size_t n = 0; n < COUNT(strides); n++) {
        struct attention_call call;
        begin(&call);
        memcpy(call.o.stride, strides[n], sizeof strides[n]);
        test_context("strides %zu", n);
        check_refused(&call, attention_call_forward(&call), "o ", "twice");
        CHECK_UNWRITTEN((const float *)call.o.data, ROWS * D);
        attention_call_end(&call);
    }
}

static void axes_of_one_may_have_any_stride(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    call.problem.q.shape[0] = call.problem.k.shape[0] = call.problem.v.shape[0] = 1;
    call.o.shape[0] = call.stats.shape[0] = call.weights.shape[0] = 1;
    call.o.stride[0] = call.stats.stride[0] = call.weights.stride[0] = 0;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_EQUAL(attention_call_weights(&call), ATTN_SUCCESS);
    attention_call_end(&call);
}

static void an_output_on_an_input(const void *argument)
{
    (void)argument;
    const char *const names[] = {"q", "k", "v", "params.bias", "stats"};
    for (size_t n = 0; n < COUNT(names); n++) {
        /* From the first byte, from the last, one element in. */
        for (int place = 0; place < 3; place++) {
            struct attention_call call;
            begin(&call);
            attention_add_bias(&call.problem, (int64_t[]){1, 1, QUERIES, KEYS}, 2);
            attn_tensor *inputs[] = {&call.problem.q, &call.problem.k, &call.problem.v,
                                     &call.problem.bias, &call.stats};
            float *data = inputs[n]->data;
            size_t count = tensor_elements(inputs[n]);
            float *before = tensor_packed_copy(inputs[n]);
            /* Room for the output, too, around the input. */
            float *room = guarded_floats(2 * ROWS * D + count, GUARD_BEHIND);
            float *inside = room + ROWS * D;
            memcpy(inside, data, count * sizeof *data);
            inputs[n]->data = inside;
            call.o.data = place == 0   ? inside
                          : place == 1 ? inside + count - 1
                                       : inside - ROWS * D + 1;
            test_context("o at place %d of %s", place, names[n]);
            check_refused(&call, attention_call_forward(&call), "o ", names[n]);
            CHECK_SAME_BITS(inside, before, count);
            CHECK_UNWRITTEN(room, ROWS * D);
            CHECK_UNWRITTEN(inside + count, ROWS * D);

            /* Beside it is not on it. */
            call.o.data = inside + count;
            CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
            CHECK(n == 4 || memcmp(inside, before, count * sizeof *before) == 0);
            attention_call_end(&call);
        }
    }
}

static void statistics_and_weights_on_inputs(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    void *apart = call.stats.data;
    attn_tensor *const inputs[] = {&call.problem.q, &call.problem.k, &call.problem.v};
    const char *const names[] = {"q", "k", "v"};
    for (size_t n = 0; n < COUNT(inputs); n++) {
        call.stats.data = inputs[n]->data;
        test_context("stats on %s", names[n]);
        check_refused(&call, attention_call_forward(&call), "stats", names[n]);
    }
    call.stats.data = apart;
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    for (size_t n = 0; n < 2; n++) {
        call.weights.data = inputs[n]->data;
        test_context("weights on %s", names[n]);
        check_refused(&call, attention_call_weights(&call), "weights", names[n]);
    }
    call.weights.data = call.stats.data;
    test_context("weights on stats");
    check_refused(&call, attention_call_weights(&call), "weights", "stats");
    attention_call_end(&call);
}

/* A mask is bytes, an output floats: any byte that both have counts. */
static void an_output_on_a_mask(const void *argument)
{
    (void)argument;
    for (size_t byte = 0; byte < 8; byte++) {
        struct attention_call call;
        begin(&call);
        attention_add_keep(&call.problem, (int64_t[]){1, 1, 1, KEYS}, 2, 2);
        unsigned char *room = (unsigned char *)call.o.data;
        memset(room, 1, ROWS * D * sizeof(float));
        call.problem.keep.data = room + ROWS * D * sizeof(float) / 2 + byte;
        test_context("mask at byte %zu", byte);
        check_refused(&call, attention_call_forward(&call), "o ", "params.keep");
        attention_call_end(&call);
    }
}

static void outputs_on_arrays_of_params(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    memset(call.o.data, 0, ROWS * D * sizeof(float));
    call.problem.params.alibi_slopes = call.o.data;
    check_refused(&call, attention_call_forward(&call), "o ", "alibi_slopes");
    call.problem.params.alibi_slopes = NULL;
    call.problem.params.sinks = (float *)call.o.data + 3;
    check_refused(&call, attention_call_forward(&call), "o ", "sinks");
    call.problem.params.sinks = NULL;
    call.problem.params.key_lengths = call.o.data;
    check_refused(&call, attention_call_forward(&call), "o ", "key_lengths");
    attention_call_end(&call);
}

/* o and stats, and then o and an input, in turn in one buffer: by rows, and by single elements. */
static void interleaved_views_are_legal(const void *argument)
{
    (void)argument;
    enum { ROW = D + 2 };
    struct attention_call call;
    begin(&call);
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    float *expected = tensor_packed_copy(&call.o);
    float *stats = tensor_packed_copy(&call.stats);

    float *rows = guarded_floats(ROWS * ROW, GUARD_BEHIND);
    const int64_t by_rows[4] = {HEADS * QUERIES * ROW, QUERIES * ROW, ROW, 1};
    call.o.data = rows;
    call.stats.data = rows + D;
    memcpy(call.o.stride, by_rows, sizeof by_rows);
    memcpy(call.stats.stride, by_rows, sizeof by_rows);
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_SAME_BITS(tensor_packed_copy(&call.o), expected, ROWS * D);
    CHECK_SAME_BITS(tensor_packed_copy(&call.stats), stats, ROWS * 2);

    /* One more element to the left and they meet. */
    call.stats.data = rows + D - 1;
    check_refused(&call, attention_call_forward(&call), "stats", "o");

    float *pairs = guarded_floats(2 * ROWS * D, GUARD_BEHIND);
    const int64_t by_elements[4] = {2 * HEADS * QUERIES * D, 2 * QUERIES * D, 2 * D, 2};
    attn_tensor q = {pairs + 1, ATTN_F32, {BATCH, HEADS, QUERIES, D}, {0}};
    memcpy(q.stride, by_elements, sizeof by_elements);
    for (int64_t i = 0; i < ROWS * D; i++)
        pairs[2 * i + 1] = ((const float *)call.problem.q.data)[i];
    call.problem.q = q;
    call.o.data = pairs;
    memcpy(call.o.stride, by_elements, sizeof by_elements);
    call.stats = tensor_allocate(ATTN_F32, BATCH, HEADS, QUERIES, 2, LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    CHECK_SAME_BITS(tensor_packed_copy(&call.o), expected, ROWS * D);
    attention_call_end(&call);
}

static void inputs_may_meet(const void *argument)
{
    (void)argument;
    struct attention_call call;
    begin(&call);
    call.problem.v = call.problem.k;
    call.problem.q = tensor_part(&call.problem.k, 2, 0, QUERIES);
    CHECK_EQUAL(attention_call_forward(&call), ATTN_SUCCESS);
    attention_call_end(&call);
}

/* The stride of an axis of one element leads nowhere and may be any number, and a tensor without
 * elements may be NULL with any strides. UBSan sees where one of them is still computed with. */
static void strides_that_lead_nowhere(const void *argument)
{
    (void)argument;
    enum { ROW = 8 };
    const int64_t wild[] = {INT64_MAX, INT64_MIN, -INT64_MAX, INT64_MAX / 4 + 1};
    attn_context *context;
    attn_context_create(&context, NULL);
    for (size_t n = 0; n < COUNT(wild); n++) {
        float room[4 * ROW] = {0}, keys[8] = {0};
        attn_tensor k = attn_tensor_packed(keys, ATTN_F32, 1, 1, 2, 4);
        attn_tensor q = {room, ATTN_F32, {1, 1, 4, 4}, {wild[n], wild[n], ROW, 1}};
        attn_tensor o = q;
        o.data = room + 4;
        test_context("stride %lld", (long long)wild[n]);
        CHECK_EQUAL(attn_forward(context, NULL, &q, &k, &k, &o, NULL), ATTN_SUCCESS);
        o.data = room + 3;
        CHECK_EQUAL(attn_forward(context, NULL, &q, &k, &k, &o, NULL), ATTN_ERROR_OVERLAP);
    }

    attn_params params;
    attn_params_init(&params);
    params.scale = 1.0f;
    float values[6] = {1, 2, 3, 4, 5, 6}, out[4], statistics[4];
    attn_tensor q = {NULL, ATTN_F32, {1, 1, 2, 0}, {-7, -7, -7, -7}};
    attn_tensor k = {NULL, ATTN_F32, {1, 1, 3, 0}, {-7, -7, -7, -7}};
    attn_tensor v = attn_tensor_packed(values, ATTN_F32, 1, 1, 3, 2);
    attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, 1, 2, 2);
    attn_tensor s = attn_tensor_packed(statistics, ATTN_F32, 1, 1, 2, 2);
    CHECK_EQUAL(attn_forward(context, &params, &q, &k, &v, &o, &s), ATTN_SUCCESS);
    CHECK(out[0] > 2.9999f && out[0] < 3.0001f);

    attn_tensor huge = attn_tensor_packed(NULL, ATTN_F32, INT64_MAX, 1, 1, 0);
    CHECK_EQUAL(attn_forward(context, &params, &huge, &huge, &huge, &huge, NULL), ATTN_SUCCESS);
    attn_context_destroy(context);
}

int main(void)
{
    test_run(an_output_on_itself, NULL, "an output on itself");
    test_run(axes_of_one_may_have_any_stride, NULL, "axes of one may have any stride");
    test_run(an_output_on_an_input, NULL, "an output on an input or on the other output");
    test_run(statistics_and_weights_on_inputs, NULL, "statistics and weights on inputs");
    test_run(an_output_on_a_mask, NULL, "an output on a mask");
    test_run(outputs_on_arrays_of_params, NULL, "an output on arrays of params");
    test_run(interleaved_views_are_legal, NULL, "interleaved views are legal");
    test_run(strides_that_lead_nowhere, NULL, "strides that lead nowhere");
    test_run(inputs_may_meet, NULL, "inputs may meet");
    return test_finish();
}
