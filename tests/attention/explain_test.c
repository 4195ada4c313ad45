/* attn_explain: what it tells is what the call does. */
#include "harness/test.h"

#include <stdlib.h>

#include "attention/context.h"
#include "harness/attention_storage.h"
#include "harness/dots.h"
#include "harness/isa.h"
#include "kernel/dot_kernels.h"

static attn_explanation explain(attn_context *context, attn_operation operation,
                                const struct attention_problem *problem)
{
    attn_explanation explanation = {.size = sizeof explanation};
    const attn_tensor *q = &problem->q;
    attn_tensor o = attn_tensor_packed(NULL, ATTN_F32, q->shape[0], q->shape[1], q->shape[2],
                                       problem->v.shape[3]);
    CHECK_EQUAL(attn_explain(context, operation, &problem->params, q, &problem->k, &problem->v, &o,
                             &explanation),
                ATTN_SUCCESS);
    return explanation;
}

static void precision_is_the_one_used(attn_context *context)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, 3, 40, 8, 8}, 1);
    attention_store(&problem, ATTN_BF16, ATTN_BF16, ATTN_F32);
    problem.params.precision = ATTN_PRECISION_BF16;

    attn_explanation decode = explain(context, ATTN_OPERATION_DECODE, &problem);
    CHECK_EQUAL(decode.precision, ATTN_PRECISION_EXACT);
    CHECK_CONTAINS(decode.text, "exact: decode has no bf16 products");

    attn_explanation forward = explain(context, ATTN_OPERATION_FORWARD, &problem);
    CHECK_CONTAINS(forward.text, forward.precision == ATTN_PRECISION_BF16
                                     ? "; products of bf16 pairs"
                                     : "; exact: bf16 products need bf16 q and k and a CPU");

    problem.params.precision = ATTN_PRECISION_EXACT;
    CHECK_EQUAL(explain(context, ATTN_OPERATION_FORWARD, &problem).precision, ATTN_PRECISION_EXACT);
}

static void words_name_the_products(attn_context *context)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, 3, 40, 8, 8}, 1);
    attention_store(&problem, ATTN_BF16, ATTN_BF16, ATTN_BF16);
    problem.params.precision = ATTN_PRECISION_BF16;
    const struct attn_dot_kernels *dots = context->kernels->dots;
    attn_explanation forward = explain(context, ATTN_OPERATION_FORWARD, &problem);
    CHECK_CONTAINS(forward.text, dots->name);
    CHECK_EQUAL(forward.panel_queries, dots->panel_vectors * context->kernels->vector_lanes);
}

static void words_name_the_numbers(attn_context *context)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, 1, 40, 8, 8}, 1);
    attn_explanation forward = explain(context, ATTN_OPERATION_FORWARD, &problem);
    CHECK_CONTAINS(forward.text, attn_isa_name(forward.isa));
    CHECK_CONTAINS(forward.text, ", 1 item of at most 1 panel");
    CHECK_EQUAL(forward.items, 1);
    CHECK_EQUAL(forward.threads, 1);
    attn_explanation decode = explain(context, ATTN_OPERATION_DECODE, &problem);
    CHECK_EQUAL(decode.panel_queries, 1);
    CHECK_CONTAINS(decode.text, "each row of K and V is read for 1 query, chunks of ");

    attention_make(&problem, &(struct attention_sizes){1, 2, 1, 1, 40, 8, 8}, 1);
    decode = explain(context, ATTN_OPERATION_DECODE, &problem);
    CHECK_EQUAL(decode.panel_queries, 2);
    CHECK_CONTAINS(decode.text, "each row of K and V is read for 2 queries at once, chunks of ");

    attention_store(&problem, ATTN_F32, ATTN_F16, ATTN_F32);
    CHECK_CONTAINS(explain(context, ATTN_OPERATION_FORWARD, &problem).text,
                   "; k goes through a copy of one block (not f32)");
}

static int64_t allocated; /* bytes, in all */

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    allocated += (int64_t)bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

/* The workspace is what a call then takes, to the byte; asking takes nothing. */
static void workspace_is_what_is_taken(const void *argument)
{
    (void)argument;
    static const attn_operation operations[] = {ATTN_OPERATION_FORWARD, ATTN_OPERATION_DECODE,
                                                ATTN_OPERATION_WEIGHTS};
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_I8};
    for (size_t n = 0; n < COUNT(operations) * COUNT(types); n++) {
        struct attention_problem problem;
        attention_make(&problem, &(struct attention_sizes){1, 4, 2, 3, 2000, 24, 40}, 1);
        attn_type type = types[n % COUNT(types)];
        attention_store(&problem, type == ATTN_I8 ? ATTN_F32 : type, type, type);
        float out[4 * 3 * 40], statistics[4 * 3 * 2], weights[3];
        for (size_t i = 0; i < COUNT(statistics); i++)
            statistics[i] = 1;
        attn_tensor o = attn_tensor_packed(out, ATTN_F32, 1, 4, 3, 40);
        attn_tensor stats = attn_tensor_packed(statistics, ATTN_F32, 1, 4, 3, 2);
        attn_tensor part = attn_tensor_packed(weights, ATTN_F32, 1, 1, 1, 3);
        attn_options options;
        attn_options_init(&options);
        options.allocate = allocate;
        options.release = release;
        options.threads = 2;
        attn_context *context;
        CHECK_EQUAL(attn_context_create(&context, &options), ATTN_SUCCESS);
        int64_t before = allocated;
        attn_operation operation = operations[n / COUNT(types)];
        test_context("operation %d, type %d", (int)operation, (int)type);
        int64_t told = explain(context, operation, &problem).workspace;
        CHECK_EQUAL(allocated, before);
        attn_status status = operation == ATTN_OPERATION_FORWARD
                                 ? attn_forward(context, &problem.params, &problem.q, &problem.k,
                                                &problem.v, &o, &stats)
                             : operation == ATTN_OPERATION_DECODE
                                 ? attn_decode(context, &problem.params, &problem.q, &problem.k,
                                               &problem.v, &o, &stats)
                                 : attn_weights(context, &problem.params, &problem.q, &problem.k,
                                                &stats, NULL, &part);
        CHECK_EQUAL(status, ATTN_SUCCESS);
        CHECK_EQUAL(told, allocated - before);
        attn_context_destroy(context);
        guarded_release_all();
    }
}

int main(void)
{
    isa_each_context("precision is the one used", precision_is_the_one_used);
    dots_each_context("the words name the products", words_name_the_products);
    isa_each_context("words name the numbers", words_name_the_numbers);
    test_run(workspace_is_what_is_taken, NULL, "workspace is what is taken");
    return test_finish();
}
