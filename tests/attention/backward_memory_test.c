/* The workspace of attn_backward: as large as attn_explain says; and what happens without it. */
#include "harness/test.h"

#include <stdlib.h>

#include "backward_call.h"
#include "harness/compare.h"
#include "harness/isa.h"

static void leave_scores(void *user, const attn_score_tile *tile)
{
    (void)user, (void)tile;
}

/* Fails once `left` allocations are made, and remembers the largest. */
struct counting_allocator {
    int64_t left;
    size_t largest;
};

static void *allocate_counted(void *user, size_t bytes, size_t alignment)
{
    struct counting_allocator *allocator = user;
    void *memory = NULL;
    if (allocator->left-- <= 0)
        return NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes))
        return NULL;
    if (bytes > allocator->largest)
        allocator->largest = bytes;
    return memory;
}

static void release_counted(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static attn_status counted_context(attn_context **context, attn_isa isa,
                                   struct counting_allocator *allocator)
{
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = 2;
    options.allocate = allocate_counted;
    options.release = release_counted;
    options.user = allocator;
    return attn_context_create(context, &options);
}

static void explanation_tells_the_workspace(attn_isa isa)
{
    static const struct attention_sizes of[] = {{1, 2, 1, 300, 1700, 20, 48},
                                                {3, 2, 2, 9, 9, 4, 4}};
    for (size_t n = 0; n < COUNT(of); n++) {
        struct counting_allocator allocator = {.left = INT64_MAX};
        attn_context *context;
        CHECK_EQUAL(counted_context(&context, isa, &allocator), ATTN_SUCCESS);
        struct backward_call call;
        backward_call_begin(&call, context, &of[n]);
        call.gradients.sinks = NULL;
        attn_explanation explanation = {.size = sizeof explanation};
        CHECK_EQUAL(attn_explain(context, ATTN_OPERATION_BACKWARD, &call.problem.params,
                                 &call.problem.q, &call.problem.k, &call.problem.v, &call.o,
                                 &explanation),
                    ATTN_SUCCESS);
        CHECK_CONTAINS(explanation.text, "backward, ");
        CHECK_CONTAINS(explanation.text, attn_isa_name(explanation.isa));
        CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
        CHECK_EQUAL(explanation.workspace, allocator.largest);
        call.problem.params.change_scores = leave_scores;
        CHECK_EQUAL(attn_explain(context, ATTN_OPERATION_BACKWARD, &call.problem.params,
                                 &call.problem.q, &call.problem.k, &call.problem.v, &call.o,
                                 &explanation),
                    ATTN_ERROR_UNSUPPORTED);
        attn_context_destroy(context);
    }
}

static void every_allocation_may_fail(attn_isa isa)
{
    struct counting_allocator allocator = {.left = INT64_MAX};
    int64_t n = 0;
    for (bool succeeded = false; !succeeded && n < 100; n++) {
        attn_context *context = NULL;
        allocator.left = n;
        if (counted_context(&context, isa, &allocator) != ATTN_SUCCESS)
            continue;
        test_context("allocation %d fails", (int)n);
        /* The forward pass may fail in the same way: its results come from another context. */
        struct backward_call call;
        attn_context *other = isa_context(isa, 1);
        backward_call_begin(&call, other, &backward_call_sizes);
        call.context = context;
        attn_status status = backward_call_run(&call);
        succeeded = status == ATTN_SUCCESS;
        if (!succeeded) {
            CHECK_EQUAL(status, ATTN_ERROR_MEMORY);
            CHECK_CONTAINS(attn_message(context), "memory");
            backward_call_check_unwritten(&call);
            allocator.left = INT64_MAX;
            CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
        }
        float *d_q = tensor_packed_copy(&call.d_q);
        call.context = other;
        CHECK_EQUAL(backward_call_run(&call), ATTN_SUCCESS);
        CHECK_SAME_BITS((const float *)call.d_q.data, d_q, tensor_elements(&call.d_q));
        attn_context_destroy(other);
        attn_context_destroy(context);
    }
    CHECK(n > 2 && n < 100);
}

/* Sizes whose workspace no machine has are refused, not wrapped around. */
static void workspace_beyond_all_memory(attn_context *context)
{
    float zero = 0;
    const int64_t huge = INT64_C(1) << 58;
    const attn_tensor one = {&zero, ATTN_F32, {1, 1, 1, huge}, {0, 0, 0, 0}};
    const attn_tensor v = {&zero, ATTN_F32, {1, 1, 1, 1}, {0, 0, 0, 0}};
    const attn_tensor stats = {&zero, ATTN_F32, {1, 1, 1, 2}, {0, 0, 0, 0}};
    float output = 3;
    const attn_tensor d_v = {&output, ATTN_F32, {1, 1, 1, 1}, {1, 1, 1, 1}};
    attn_gradients gradients;
    attn_gradients_init(&gradients);
    gradients.v = &d_v;
    CHECK_EQUAL(attn_backward(context, NULL, &one, &one, &v, &v, &stats, &v, &gradients),
                ATTN_ERROR_MEMORY);
    const attn_tensor rows = {&zero, ATTN_F32, {huge, huge, huge, 1}, {0, 0, 0, 0}};
    const attn_tensor row_stats = {&zero, ATTN_F32, {huge, huge, huge, 2}, {0, 0, 0, 0}};
    gradients.v = NULL;
    CHECK_EQUAL(
        attn_backward(context, NULL, &rows, &rows, &rows, &rows, &row_stats, &rows, &gradients),
        ATTN_ERROR_MEMORY);
    CHECK(output == 3);
}

int main(void)
{
    isa_each("an explanation tells the workspace", explanation_tells_the_workspace);
    isa_each("every allocation may fail", every_allocation_may_fail);
    isa_each_context("workspace beyond all memory", workspace_beyond_all_memory);
    return test_finish();
}
