/* Shapes whose numbers of rows, entries or elements leave 64 bits: nothing is multiplied, walked
 * through or allocated for them. */
#include "harness/test.h"

#include "harness/compare.h"
#include "harness/isa.h"

enum { D = 2 };

static const int64_t many = INT64_C(1) << 40;

static attn_tensor repeated(void *data, int64_t batch, int64_t heads, int64_t length, int64_t dim)
{
    return (attn_tensor){data, ATTN_F32, {batch, heads, length, dim}, {0, 0, 0, 1}};
}

static void rows_beyond_memory_are_refused(attn_context *context)
{
    attn_tensor q = repeated(NULL, many, many, many, D), k = repeated(NULL, many, 1, 3, D);
    for (int operation = ATTN_OPERATION_FORWARD; operation <= ATTN_OPERATION_FORWARD_INSPECT;
         operation++) {
        attn_explanation explanation = {.size = sizeof explanation};
        q.shape[2] = operation == ATTN_OPERATION_DECODE ? 1 : many;
        test_context("operation %d", operation);
        CHECK_EQUAL(
            attn_explain(context, (attn_operation)operation, NULL, &q, &k, &k, &q, &explanation),
            ATTN_ERROR_SHAPE);
        CHECK_CONTAINS(attn_message(context), "q has shape");
    }
}

static void many_batches_are_explained(attn_context *context)
{
    attn_tensor q = repeated(NULL, many, 1, 1, D), k = repeated(NULL, many, 1, 3, D);
    attn_explanation explanation = {.size = sizeof explanation};
    CHECK_EQUAL(attn_explain(context, ATTN_OPERATION_DECODE, NULL, &q, &k, &k, &q, &explanation),
                ATTN_SUCCESS);
    CHECK_EQUAL(explanation.items, many);
}

static void a_part_of_many_rows(attn_context *context)
{
    float data[D] = {0}, state[2] = {0, 4}, weights[2] = {0};
    attn_tensor q = repeated(data, many, many, many, D), k = repeated(data, many, 1, 4, D);
    attn_tensor stats = repeated(state, many, many, many, 2);
    attn_tensor part = attn_tensor_packed(weights, ATTN_F32, 1, 1, 1, 2);
    const int64_t begin[4] = {many - 1, many - 1, many - 1, 2};
    CHECK_EQUAL(attn_weights(context, NULL, &q, &k, &stats, begin, &part), ATTN_SUCCESS);
    CHECK_WITHIN(weights[0], 0.25, 0);
    CHECK_WITHIN(weights[1], 0.25, 0);
}

/* Rounded up to whole vectors, d would leave 64 bits. */
static void widest_rows(attn_context *context)
{
    float data = 1, output;
    attn_tensor q = repeated(&data, 1, 1, 1, INT64_MAX), o = repeated(&output, 1, 1, 1, 1);
    attn_tensor v = repeated(&data, 1, 1, 1, 1);
    q.stride[3] = 0;
    CHECK_EQUAL(attn_decode(context, NULL, &q, &q, &v, &o, NULL), ATTN_ERROR_MEMORY);
    CHECK_EQUAL(attn_forward(context, NULL, &q, &q, &v, &o, NULL), ATTN_ERROR_MEMORY);
}

/* Behind the entries that lengths reach, memory is not the table's. */
static void an_output_behind_the_table(attn_context *context)
{
    union {
        int32_t table[4];
        float output[4];
    } memory = {.table = {0}};
    const int64_t length = 1;
    float rows[D] = {3, 5};
    attn_params params;
    attn_params_init(&params);
    params.block_table = memory.table;
    params.block_table_width = 1000;
    params.key_lengths = &length;
    attn_tensor q = attn_tensor_packed(rows, ATTN_F32, 1, 1, 1, D);
    attn_tensor o = attn_tensor_packed(memory.output + 1, ATTN_F32, 1, 1, 1, D);
    CHECK_EQUAL(attn_forward(context, &params, &q, &q, &q, &o, NULL), ATTN_SUCCESS);
    CHECK_WITHIN(memory.output[1], 3, 0);
    o.data = memory.output;
    CHECK_EQUAL(attn_forward(context, &params, &q, &q, &q, &o, NULL), ATTN_ERROR_OVERLAP);
}

int main(void)
{
    isa_each_context("rows beyond memory are refused", rows_beyond_memory_are_refused);
    isa_each_context("many batches are explained", many_batches_are_explained);
    isa_each_context("a part of many rows", a_part_of_many_rows);
    isa_each_context("widest rows", widest_rows);
    isa_each_context("an output behind the table", an_output_behind_the_table);
    return test_finish();
}
