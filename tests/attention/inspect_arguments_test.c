/* Calls of attn_inspect and attn_forward_inspect that are wrong in one thing; what is planned is
 * what is taken, O(L) of it; and memory that runs out. */
#include "harness/test.h"

#include <stdlib.h>
#include <string.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { BATCH = 2, HEADS = 4, QUERIES = 5, KEYS = 7, TOP = 3 };

/* A right call of both, for a test to make one thing wrong in. Points into itself. */
struct call {
    attn_context *context;
    struct attention_problem problem;
    attn_tensor o, stats, top_weights, top_keys, entropy, maximum, key_sums;
    const attn_tensor *given_stats;
    attn_inspection inspection;
    const attn_inspection *given;
};

static attn_tensor output(attn_type type, int64_t rows, int64_t width)
{
    return tensor_allocate(type, BATCH, HEADS, rows, width, LAYOUT_PACKED, GUARD_BEHIND);
}

static void begin(struct call *call)
{
    memset(call, 0, sizeof *call);
    attn_context_create(&call->context, NULL);
    attention_make(&call->problem, &(struct attention_sizes){BATCH, HEADS, 2, QUERIES, KEYS, 3, 4},
                   1);
    call->o = output(ATTN_F32, QUERIES, 4);
    call->stats = output(ATTN_F32, QUERIES, 2);
    call->top_weights = output(ATTN_F32, QUERIES, TOP);
    call->top_keys = output(ATTN_I32, QUERIES, TOP);
    call->entropy = output(ATTN_F32, QUERIES, 1);
    call->maximum = output(ATTN_F32, QUERIES, 1);
    call->key_sums = output(ATTN_F32, KEYS, 1);
    attn_inspection_init(&call->inspection);
    call->inspection.top_weights = &call->top_weights;
    call->inspection.top_keys = &call->top_keys;
    call->inspection.entropy = &call->entropy;
    call->inspection.maximum = &call->maximum;
    call->inspection.key_sums = &call->key_sums;
    call->given = &call->inspection;
    call->given_stats = &call->stats;
}

static attn_status inspect(struct call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_inspect(call->context, &problem->params, &problem->q, &problem->k,
                        call->given_stats, call->given);
}

static attn_status forward_inspect(struct call *call)
{
    const struct attention_problem *problem = &call->problem;
    return attn_forward_inspect(call->context, &problem->params, &problem->q, &problem->k,
                                &problem->v, &call->o, call->given_stats, call->given);
}

static void no_inspection(struct call *call)
{
    call->given = NULL;
}
static void no_size(struct call *call)
{
    call->inspection.size = 0;
}
static void later_size(struct call *call)
{
    call->inspection.size += 8;
}
static void no_keys(struct call *call)
{
    call->inspection.top_keys = NULL;
}
static void no_weights(struct call *call)
{
    call->inspection.top_weights = NULL;
}
static void begin_below(struct call *call)
{
    call->inspection.query_begin = -1;
}
static void begin_behind(struct call *call)
{
    call->inspection.query_begin = 4;
    call->inspection.query_end = 3;
}
static void no_top(struct call *call)
{
    call->top_weights.shape[3] = call->top_keys.shape[3] = 0;
}
static void wide_top(struct call *call)
{
    call->top_weights = output(ATTN_F32, QUERIES, ATTN_TOP_LIMIT + 1);
    call->top_keys = output(ATTN_I32, QUERIES, ATTN_TOP_LIMIT + 1);
}
static void unequal_top(struct call *call)
{
    call->top_keys.shape[3] = TOP - 1;
}
static void float_keys(struct call *call)
{
    call->top_keys.type = ATTN_F32;
}
static void whole_entropy(struct call *call)
{
    call->entropy.type = ATTN_I32;
}
static void wide_entropy(struct call *call)
{
    call->entropy.shape[3] = 2;
}
static void short_maximum(struct call *call)
{
    call->maximum.shape[2]--;
}
static void sums_of_queries(struct call *call)
{
    call->key_sums.shape[2] = QUERIES;
}
static void entropy_twice(struct call *call)
{
    call->entropy.stride[1] = 0;
}
static void entropy_in_maximum(struct call *call)
{
    call->entropy.data = call->maximum.data;
}
static void keys_in_weights(struct call *call)
{
    call->top_keys.data = call->top_weights.data;
}
static void sums_in_q(struct call *call)
{
    call->key_sums.data = call->problem.q.data;
}
static void entropy_in_stats(struct call *call)
{
    call->entropy = call->stats;
    call->entropy.shape[3] = 1;
}
static void paged_sequences(struct call *call)
{
    struct attention_problem packed, *problem = &call->problem;
    attention_make(&packed, &(struct attention_sizes){1, HEADS, 2, QUERIES, KEYS, 3, 4}, 1);
    attention_add_sequences(&packed, 1, (int64_t[]){QUERIES}, (int64_t[]){KEYS});
    attention_page(&packed, KEYS, 1, problem);
    call->o.shape[0] = call->stats.shape[0] = call->entropy.shape[0] = 1;
    call->maximum.shape[0] = call->top_keys.shape[0] = call->top_weights.shape[0] = 1;
    call->key_sums.shape[0] = 1;
}
static void no_q(struct call *call)
{
    call->problem.q.data = NULL;
}

static const struct fault {
    const char *what;
    void (*change)(struct call *call);
    attn_status status;
    const char *names, *says;
} faults[] = {
    {"no inspection", no_inspection, ATTN_ERROR_ARGUMENT, "inspection", "attn_inspection_init"},
    {"size 0", no_size, ATTN_ERROR_ARGUMENT, "inspection.size", "expected"},
    {"a later size", later_size, ATTN_ERROR_ARGUMENT, "inspection.size", "expected"},
    {"weights alone", no_keys, ATTN_ERROR_ARGUMENT, "top_keys is NULL", "or neither"},
    {"keys alone", no_weights, ATTN_ERROR_ARGUMENT, "top_weights is NULL", "or neither"},
    {"query_begin −1", begin_below, ATTN_ERROR_ARGUMENT, "query_begin is -1", "expected 0"},
    {"query_begin behind the end", begin_behind, ATTN_ERROR_ARGUMENT, "query_begin is 4", "is 3"},
    {"k 0", no_top, ATTN_ERROR_SHAPE, "wants 0 weights", "1 to 64"},
    {"k 65", wide_top, ATTN_ERROR_SHAPE, "wants 65 weights", "1 to 64"},
    {"k that differ", unequal_top, ATTN_ERROR_SHAPE, "top_keys", "expected"},
    {"keys of f32", float_keys, ATTN_ERROR_TYPE, "top_keys", "expected i32"},
    {"entropy of i32", whole_entropy, ATTN_ERROR_TYPE, "entropy has type i32", "expected f32"},
    {"entropy of two", wide_entropy, ATTN_ERROR_SHAPE, "entropy", "expected"},
    {"maximum of fewer rows", short_maximum, ATTN_ERROR_SHAPE, "maximum", "expected"},
    {"sums of queries", sums_of_queries, ATTN_ERROR_SHAPE, "key_sums", "expected"},
    {"entropy twice", entropy_twice, ATTN_ERROR_OVERLAP, "entropy", "twice"},
    {"entropy in maximum", entropy_in_maximum, ATTN_ERROR_OVERLAP, "maximum", "apart"},
    {"keys in weights", keys_in_weights, ATTN_ERROR_OVERLAP, "top_weights", "apart"},
    {"sums in q", sums_in_q, ATTN_ERROR_OVERLAP, "key_sums and q", "apart"},
    {"entropy in stats", entropy_in_stats, ATTN_ERROR_OVERLAP, "entropy and stats", "apart"},
    {"sums of packed pages", paged_sequences, ATTN_ERROR_UNSUPPORTED, "key_sums", "block table"},
    {"q without data", no_q, ATTN_ERROR_ARGUMENT, "q has no data", "expected"},
};

static void wrong_calls(const void *argument)
{
    const struct fault *fault = argument;
    for (int forward = 0; forward < 2; forward++) {
        struct call call;
        begin(&call);
        fault->change(&call);
        attn_status status = forward ? forward_inspect(&call) : inspect(&call);
        const char *message = attn_message(call.context);
        test_context("%s, forward %d: %s", fault->what, forward, message);
        CHECK_EQUAL(status, fault->status);
        CHECK_CONTAINS(message, fault->names);
        CHECK_CONTAINS(message, fault->says);
        CHECK(strchr(message, '\n') == NULL);
        CHECK_UNWRITTEN(call.o.data, tensor_elements(&call.o));
        CHECK_UNWRITTEN(call.maximum.data, tensor_elements(&call.maximum));
        attn_context_destroy(call.context);
        guarded_release_all();
    }
}

static void statistics_are_an_input(const void *argument)
{
    (void)argument;
    struct call call;
    begin(&call);
    call.given_stats = NULL;
    CHECK_EQUAL(inspect(&call), ATTN_ERROR_ARGUMENT);
    CHECK_CONTAINS(attn_message(call.context), "stats");
    CHECK_EQUAL(forward_inspect(&call), ATTN_SUCCESS);
    CHECK_EQUAL(attn_inspect(NULL, NULL, NULL, NULL, NULL, NULL), ATTN_ERROR_ARGUMENT);
    CHECK_EQUAL(attn_forward_inspect(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                ATTN_ERROR_ARGUMENT);
    attn_context_destroy(call.context);
}

static void nothing_wanted(const void *argument)
{
    (void)argument;
    struct call call;
    begin(&call);
    attn_inspection_init(&call.inspection);
    CHECK_EQUAL(inspect(&call), ATTN_SUCCESS);
    CHECK_EQUAL(forward_inspect(&call), ATTN_SUCCESS);
    attn_context_destroy(call.context);
}

/* Keys have no place in 32 bits; nothing of them is there to be read. */
static void more_keys_than_i32(const void *argument)
{
    (void)argument;
    struct call call;
    begin(&call);
    call.inspection.key_sums = NULL;
    call.problem.k.shape[2] = INT64_C(1) << 31;
    call.problem.k.stride[2] = 0;
    CHECK_EQUAL(inspect(&call), ATTN_ERROR_SHAPE);
    CHECK_CONTAINS(attn_message(call.context), "k has 2147483648 keys");
    attn_context_destroy(call.context);
}

/* Allocations that are left, and bytes that were given. */
struct counting {
    int64_t left;
    size_t bytes;
};

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    struct counting *counting = user;
    if (counting->left-- <= 0)
        return NULL;
    counting->bytes += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static bool counting_context(attn_context **context, struct counting *counting)
{
    attn_options options;
    attn_options_init(&options);
    options.threads = 2;
    options.allocate = allocate;
    options.release = release;
    options.user = counting;
    return attn_context_create(context, &options) == ATTN_SUCCESS;
}

/* Both calls with the 8 largest weights; stats of attn_forward_inspect are not wanted. */
static attn_status call_all(attn_context *context, bool forward, attn_type type, int64_t length,
                            int64_t *told)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, length, length, 8, 8}, 1);
    attention_store(&problem, type, type, type);
    const attn_type number = type == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    attn_tensor out[7];
    const int64_t widths[7] = {8, 2, 8, 8, 1, 1, 1};
    for (int n = 0; n < 7; n++)
        out[n] = tensor_allocate(n == 3 ? ATTN_I32 : number, 1, 2, length, widths[n], LAYOUT_PACKED,
                                 GUARD_BEHIND);
    for (int64_t i = 0; i < length; i++)
        for (int64_t h = 0; h < 2; h++)
            for (int64_t c = 0; c < 2; c++)
                tensor_set(&out[1], 0, h, i, c, 100);
    attn_inspection inspection;
    attn_inspection_init(&inspection);
    inspection.top_weights = &out[2];
    inspection.top_keys = &out[3];
    inspection.entropy = &out[4];
    inspection.maximum = &out[5];
    inspection.key_sums = &out[6];
    attn_explanation explanation = {.size = sizeof explanation};
    attn_status status =
        attn_explain(context, forward ? ATTN_OPERATION_FORWARD_INSPECT : ATTN_OPERATION_INSPECT,
                     &problem.params, &problem.q, &problem.k, forward ? &problem.v : NULL,
                     forward ? &out[0] : NULL, &explanation);
    CHECK_EQUAL(status, ATTN_SUCCESS);
    CHECK_CONTAINS(explanation.text, number == ATTN_F64 ? "f64"
                                     : forward          ? "forward with inspection, "
                                                        : "inspection, ");
    if (number == ATTN_F32)
        CHECK_CONTAINS(explanation.text, "; key_sums by ");
    *told = explanation.workspace;
    status = forward ? attn_forward_inspect(context, &problem.params, &problem.q, &problem.k,
                                            &problem.v, &out[0], NULL, &inspection)
                     : attn_inspect(context, &problem.params, &problem.q, &problem.k, &out[1],
                                    &inspection);
    if (status)
        for (int n = 0; n < 7; n++)
            if (n != 1 && out[n].type == ATTN_F32)
                CHECK_UNWRITTEN(out[n].data, tensor_elements(&out[n]));
    return status;
}

static void workspace_is_what_is_taken(const void *argument)
{
    (void)argument;
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F64};
    for (int forward = 0; forward < 2; forward++)
        for (size_t n = 0; n < COUNT(types); n++) {
            int64_t told[2];
            for (int size = 0; size < 2; size++) {
                struct counting counting = {.left = INT64_MAX};
                attn_context *context;
                CHECK(counting_context(&context, &counting));
                size_t before = counting.bytes;
                test_context("forward %d, type %d, size %d", forward, (int)types[n], size);
                CHECK_EQUAL(call_all(context, forward, types[n], 300 << size, &told[size]),
                            ATTN_SUCCESS);
                CHECK_EQUAL(told[size], counting.bytes - before);
                attn_context_destroy(context);
                guarded_release_all();
            }
            /* At most doubled, and far from the matrix, whose half million weights would show. */
            CHECK(told[1] <= 2 * told[0]);
        }
}

/* Packed sequences in pages, whose keys have no sums: the rest is explained, and is what is taken.
 */
static void pages_are_explained_without_sums(const void *argument)
{
    (void)argument;
    for (int forward = 0; forward < 2; forward++) {
        struct counting counting = {.left = INT64_MAX};
        struct call call;
        begin(&call);
        attn_context_destroy(call.context);
        CHECK(counting_context(&call.context, &counting));
        paged_sequences(&call);
        const size_t before = counting.bytes;
        const struct attention_problem *problem = &call.problem;
        attn_explanation told = {.size = sizeof told};
        CHECK_EQUAL(attn_explain(call.context,
                                 forward ? ATTN_OPERATION_FORWARD_INSPECT : ATTN_OPERATION_INSPECT,
                                 &problem->params, &problem->q, &problem->k, &problem->v, &call.o,
                                 &told),
                    ATTN_SUCCESS);
        CHECK(strstr(told.text, "key_sums") == NULL);
        call.top_weights = output(ATTN_F32, QUERIES, 8);
        call.top_keys = output(ATTN_I32, QUERIES, 8);
        call.top_weights.shape[0] = call.top_keys.shape[0] = 1;
        call.inspection.key_sums = NULL;
        if (forward)
            call.given_stats = NULL;
        CHECK_EQUAL(forward ? forward_inspect(&call) : inspect(&call), ATTN_SUCCESS);
        CHECK_EQUAL(told.workspace, counting.bytes - before);
        attn_context_destroy(call.context);
        guarded_release_all();
    }
}

static void memory_runs_out(const void *argument)
{
    (void)argument;
    for (int forward = 0; forward < 2; forward++) {
        int64_t failures = 0;
        for (;; failures++) {
            struct counting counting = {.left = failures};
            attn_context *context;
            if (!counting_context(&context, &counting))
                continue;
            int64_t told;
            attn_status status = call_all(context, forward, ATTN_F32, 100, &told);
            if (status != ATTN_SUCCESS) {
                CHECK_EQUAL(status, ATTN_ERROR_MEMORY);
                CHECK(attn_message(context)[0] != '\0');
                counting.left = INT64_MAX;
                CHECK_EQUAL(call_all(context, forward, ATTN_F32, 100, &told), ATTN_SUCCESS);
            }
            attn_context_destroy(context);
            guarded_release_all();
            if (status == ATTN_SUCCESS)
                break;
        }
        CHECK(failures > 0);
    }
}

/* q and o are there, of any number of rows. */
static void sizes_that_leave_the_range(const void *argument)
{
    (void)argument;
    attn_context *context = isa_context(ATTN_ISA_BEST, 1);
    static float number[2];
    attn_tensor q = {number, ATTN_F32, {1 << 20, 1 << 20, INT64_C(1) << 40, 1}, {0, 0, 0, 0}};
    attn_tensor k = {number, ATTN_F32, {1 << 20, 1 << 20, 1, 1}, {0, 0, 0, 0}};
    attn_tensor v = {NULL, ATTN_F32, {1 << 20, 1 << 20, 1, 0}, {0, 0, 0, 0}};
    attn_tensor o = {NULL, ATTN_F32, {1 << 20, 1 << 20, INT64_C(1) << 40, 0}, {0, 0, 0, 0}};
    attn_tensor stats = {number, ATTN_F32, {1 << 20, 1 << 20, INT64_C(1) << 40, 2}, {0, 0, 0, 0}};
    attn_inspection inspection;
    attn_inspection_init(&inspection);
    CHECK_EQUAL(attn_forward_inspect(context, NULL, &q, &k, &v, &o, NULL, &inspection),
                ATTN_ERROR_MEMORY);
    CHECK_EQUAL(attn_inspect(context, NULL, &q, &k, &stats, &inspection), ATTN_ERROR_MEMORY);
    attn_explanation explanation = {.size = sizeof explanation};
    CHECK_EQUAL(
        attn_explain(context, ATTN_OPERATION_INSPECT, NULL, &q, &k, NULL, NULL, &explanation),
        ATTN_ERROR_SHAPE);
    attn_context_destroy(context);
}

int main(void)
{
    for (size_t n = 0; n < COUNT(faults); n++)
        test_run(wrong_calls, &faults[n], "refuses %s", faults[n].what);
    test_run(statistics_are_an_input, NULL, "statistics are an input");
    test_run(nothing_wanted, NULL, "nothing wanted");
    test_run(more_keys_than_i32, NULL, "more keys than i32");
    test_run(workspace_is_what_is_taken, NULL, "workspace is what is taken");
    test_run(pages_are_explained_without_sums, NULL, "pages are explained without sums");
    test_run(memory_runs_out, NULL, "memory runs out");
    test_run(sizes_that_leave_the_range, NULL, "sizes that leave the range");
    return test_finish();
}
