/* What attn_backward promises beside right numbers (gradient_reference_test.c): the same bits for
 * any threads, whatever was in the workspace before; and what dropout does in both directions. */
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/attention_gradient.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

static void *allocate_filled(void *user, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes))
        return NULL;
    /* NaN in every type: what is read without having been written shows. */
    memset(memory, *(const int *)user, bytes);
    return memory;
}

static void release_filled(void *user, void *memory)
{
    (void)user;
    free(memory);
}

/* A context of so many threads whose memory is full of this byte. */
static attn_context *filled_context(attn_isa isa, int threads, int *byte)
{
    attn_options options;
    attn_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.allocate = allocate_filled;
    options.release = release_filled;
    options.user = byte;
    attn_context *context = NULL;
    if (attn_context_create(&context, &options) != ATTN_SUCCESS)
        test_bail_out("a context cannot be made");
    return context;
}

/* A problem that is right, and has the same bits with every number of threads. */
static void check_threads(attn_isa isa, const struct attention_problem *problem)
{
    struct gradient_call call;
    struct gradient_result expected, actual;
    gradient_call_make(&call, problem, 5);
    int zero = 0, ones = 0xff;
    attn_context *context = filled_context(isa, 1, &zero);
    gradient_solve(context, problem, &call, &expected);
    CHECK_GRADIENTS(problem, &call, &expected);
    attn_context_destroy(context);
    for (int threads = test_is_reduced() ? 3 : 1; threads <= 5; threads += 2) {
        context = filled_context(isa, threads, &ones);
        gradient_solve(context, problem, &call, &actual);
        CHECK_SAME_GRADIENTS(&actual, &expected);
        attn_context_destroy(context);
    }
}

/* Lengths around those at which a sequence gets one chunk of keys more, and blocks without a rest.
 */
static void chunks_of_keys(attn_isa isa)
{
    static const int64_t keys[] = {1, 96, 97, 1023, 1025, 2048, 2049, 3073, 8300};
    for (size_t n = 0; n < COUNT(keys); n++) {
        struct attention_problem problem;
        if (!test_takes_one_in(5))
            continue;
        test_context("%d keys", (int)keys[n]);
        attention_make(&problem, &(struct attention_sizes){1, 2, 1, 23, keys[n], 5, 3}, n);
        problem.params.causal = n % 2;
        problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        check_threads(isa, &problem);
        guarded_release_all();
    }
}

/* Key lengths that leave some chunks of a sequence without a key. */
static void chunks_without_keys(attn_isa isa)
{
    static const int64_t lengths[] = {0, 1, 95, 97, 1300, 2500};
    for (size_t n = 0; n + 1 < COUNT(lengths); n++) {
        struct attention_problem problem;
        if (!test_takes_one_in(3))
            continue;
        attention_make(&problem, &(struct attention_sizes){2, 2, 2, 20, 2500, 4, 6}, n);
        problem.params.key_lengths = &lengths[n];
        test_context("lengths %d and %d", (int)lengths[n], (int)lengths[n + 1]);
        check_threads(isa, &problem);
        guarded_release_all();
    }
}

/* Packed sequences of very different lengths, with rows behind the last one. */
static void chunks_of_packed_sequences(attn_isa isa)
{
    static const int64_t queries[] = {3, 0, 70, 33, 1}, keys[] = {1, 5, 2100, 0, 1100};
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 2, 1, 120, 3300, 3, 4}, 1);
    attention_add_sequences(&problem, COUNT(queries), queries, keys);
    if (!test_is_reduced())
        check_threads(isa, &problem);
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    check_threads(isa, &problem);
}

/* A bias for each way to share it: what adds to the same numbers is done in one order. */
static void lines_of_a_bias(attn_isa isa)
{
    static const struct attention_sizes sizes = {2, 4, 2, 19, 1200, 3, 4};
    for (int shared = 0; shared < 16; shared++) {
        int64_t shape[4] = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
        for (int axis = 0; axis < 4; axis++)
            if (shared >> axis & 1)
                shape[axis] = 1;
        struct attention_problem problem;
        if (!test_takes_one_in(5))
            continue;
        attention_make(&problem, &sizes, (uint64_t)shared);
        attention_add_bias(&problem, shape, 3);
        problem.output_layout = shared % 2 ? LAYOUT_REVERSED : LAYOUT_HEADS_INSIDE;
        test_context("shared axes %d", shared);
        check_threads(isa, &problem);
        guarded_release_all();
    }
}

/* Queries of more than one pass of panels. */
static void passes_of_panels(attn_isa isa)
{
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 3, 1, 500, 130, 3, 70}, 4);
    if (!test_is_reduced())
        check_threads(isa, &problem);
    problem.params.window_left = 20;
    problem.params.window_right = 3;
    check_threads(isa, &problem);
}

enum { KEPT_STEP = 47 }; /* one key in so many is excluded, its last */

static void double_scores(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++)
            tile->scores[i * tile->query_stride + j * tile->key_stride] *= 2;
}

/* Gradients of excluded scores become what must not be used. */
static void double_gradients(void *user, const attn_score_tile *scores, float *gradients)
{
    (void)user;
    for (int64_t i = 0; i < scores->queries; i++)
        for (int64_t j = 0; j < scores->keys; j++) {
            int64_t place = i * scores->query_stride + j * scores->key_stride;
            int64_t query = scores->query + i, key = scores->key + j;
            bool excluded = key > query || key % KEPT_STEP == KEPT_STEP - 1;
            gradients[place] = excluded ? NAN : gradients[place] * 2;
        }
}

enum exclusion_option { WITH_CAP, WITH_CALLBACK, WITH_DROPOUT, WITH_PAIRS, OPTIONS };

/* Keys at many places of their blocks that keep excludes, beside a causal mask: passes of panels
 * meet a block first without them. NaN there has the bits of 0 there. */
static void excluded_keys_of_nan(attn_context *context)
{
    enum { LENGTH = 700 };
    for (int option = 0; option < OPTIONS; option++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result result[2];
        attention_make(&problem, &(struct attention_sizes){1, 2, 1, LENGTH, LENGTH, 4, 6}, 3);
        if (option == WITH_PAIRS)
            attention_store(&problem, ATTN_BF16, ATTN_BF16, ATTN_BF16);
        static const int64_t shape[4] = {1, 1, 1, LENGTH};
        attention_add_keep(&problem, shape, 1, 2);
        for (int64_t j = 0; j < LENGTH; j++)
            tensor_set(&problem.keep, 0, 0, 0, j, j % KEPT_STEP != KEPT_STEP - 1);
        problem.params.causal = 1;
        problem.params.soft_cap = option == WITH_CAP ? 3 : 0;
        problem.params.dropout = option == WITH_DROPOUT ? 0.4f : 0;
        problem.params.precision =
            option == WITH_PAIRS ? ATTN_PRECISION_BF16 : ATTN_PRECISION_EXACT;
        if (option == WITH_CALLBACK) {
            problem.params.change_scores = double_scores;
            problem.params.change_gradients = double_gradients;
        }
        gradient_call_make(&call, &problem, 4);
        for (int n = 0; n < 2; n++) {
            for (int64_t j = KEPT_STEP - 1; j < LENGTH; j += KEPT_STEP)
                for (int64_t c = 0; c < 6; c++) {
                    if (c < 4)
                        tensor_set(&problem.k, 0, 0, j, c, n ? (c == 1 ? INFINITY : NAN) : 0);
                    tensor_set(&problem.v, 0, 0, j, c, n ? NAN : 0);
                }
            gradient_solve(context, &problem, &call, &result[n]);
        }
        test_context("option %d", option);
        CHECK_SAME_GRADIENTS(&result[1], &result[0]);
        if (option != WITH_PAIRS)
            CHECK_GRADIENTS(&problem, &call, &result[1]);
        guarded_release_all();
    }
}

static const struct attention_sizes usual = {2, 4, 2, 41, 205, 16, 12};

static void solve_both(attn_context *context, const struct attention_problem *problem,
                       struct attention_result *forward, struct gradient_result *backward)
{
    struct gradient_call call;
    gradient_call_make(&call, problem, 9);
    attention_solve(context, problem, forward);
    gradient_solve(context, problem, &call, backward);
}

static void dropout_of_zero_is_none(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result plain, seeded;
    struct gradient_result plain_gradients, seeded_gradients;
    for (int type = 0; type < 2; type++) {
        attention_make(&problem, &usual, 1);
        if (type == 1)
            attention_store(&problem, ATTN_BF16, ATTN_BF16, ATTN_BF16);
        problem.params.precision = type == 1 ? ATTN_PRECISION_BF16 : ATTN_PRECISION_EXACT;
        solve_both(context, &problem, &plain, &plain_gradients);
        problem.params.dropout_seed = UINT64_MAX;
        problem.params.dropout_batch = INT64_MAX;
        problem.params.dropout_query = 77;
        solve_both(context, &problem, &seeded, &seeded_gradients);
        CHECK_SAME_RESULT(&seeded, &plain);
        CHECK_SAME_GRADIENTS(&seeded_gradients, &plain_gradients);
    }
}

/* With 1 nothing is kept: O and all gradients are 0; statistics and weights stay. */
static void dropout_of_one_is_all(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result plain, dropped;
    struct gradient_result gradients;
    attention_make(&problem, &usual, 2);
    attention_solve(context, &problem, &plain);
    problem.params.dropout = 1;
    solve_both(context, &problem, &dropped, &gradients);
    CHECK_ALL(dropped.o, 0, dropped.outputs);
    CHECK_SAME_BITS(dropped.stats, plain.stats, plain.rows * 2);
    CHECK_SAME_BITS(dropped.weights, plain.weights, plain.weight_count);
    for (size_t i = 0; i < gradients.of_q; i++)
        CHECK(gradients.q[i] == 0);
    for (size_t i = 0; i < gradients.of_k; i++)
        CHECK(gradients.k[i] == 0);
    for (size_t i = 0; i < gradients.of_v; i++)
        CHECK(gradients.v[i] == 0);
}

static void dropout_is_right(attn_context *context)
{
    static const float rates[] = {0x1p-40f, 0.1f, 0.5f, 0.875f};
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F64};
    for (size_t n = 0; n < COUNT(rates) * COUNT(types); n++) {
        struct attention_problem problem;
        struct attention_result forward;
        struct gradient_call call;
        struct gradient_result backward;
        attn_type type = types[n / COUNT(rates)];
        if (!test_takes_one_in(5))
            continue;
        attention_make(&problem, &usual, n);
        if (type != ATTN_F32)
            attention_store(&problem, type, type, type);
        if (type == ATTN_BF16)
            problem.params.precision = ATTN_PRECISION_BF16;
        problem.params.dropout = rates[n % COUNT(rates)];
        problem.params.dropout_seed = UINT64_C(0x9e3779b97f4a7c15) * (n + 1);
        problem.params.dropout_batch = n % 2 ? INT64_C(0xffffffff) : 0; /* the counter wraps */
        problem.params.dropout_query = n % 3 ? INT64_C(0x1fffffff0) : 3;
        problem.params.causal = n % 2;
        gradient_call_make(&call, &problem, n);
        test_context("rate %g, type %d", (double)problem.params.dropout, (int)type);
        attention_solve(context, &problem, &forward);
        CHECK_RESULT(&problem, &forward);
        gradient_solve(context, &problem, &call, &backward);
        CHECK_GRADIENTS(&problem, &call, &backward);
        guarded_release_all();
    }
}

/* A batch, and the last queries, alone: with the offsets they draw what the whole draws. */
static void parts_draw_what_the_whole_draws(attn_context *context)
{
    struct attention_problem whole, part;
    struct attention_result all, some;
    enum { FIRST = 19 };
    attention_make(&whole, &usual, 6);
    whole.params.dropout = 0.3f;
    whole.params.dropout_seed = 11;
    attention_solve(context, &whole, &all);
    attention_copy(&whole, &part);
    part.q = tensor_part(&whole.q, 0, 1, 1);
    part.q = tensor_part(&part.q, 2, FIRST, usual.queries - FIRST);
    part.k = tensor_part(&whole.k, 0, 1, 1);
    part.v = tensor_part(&whole.v, 0, 1, 1);
    part.params.dropout_batch = 1;
    part.params.dropout_query = FIRST;
    attention_solve(context, &part, &some);
    for (int64_t h = 0; h < usual.heads; h++) {
        int64_t row = (usual.heads + h) * usual.queries + FIRST;
        int64_t rows = usual.queries - FIRST;
        CHECK_SAME_BITS(some.o + h * rows * usual.d_v, all.o + row * usual.d_v,
                        (size_t)(rows * usual.d_v));
    }
}

int main(void)
{
    isa_each("backward: chunks of keys", chunks_of_keys);
    isa_each("backward: chunks without keys", chunks_without_keys);
    isa_each("backward: chunks of packed sequences", chunks_of_packed_sequences);
    isa_each("backward: lines of a bias", lines_of_a_bias);
    isa_each("backward: passes of panels", passes_of_panels);
    isa_each_context("backward: excluded keys of NaN", excluded_keys_of_nan);
    isa_each_context("dropout of zero is none", dropout_of_zero_is_none);
    isa_each_context("dropout of one is all", dropout_of_one_is_all);
    isa_each_context("dropout is right", dropout_is_right);
    isa_each_context("parts draw what the whole draws", parts_draw_what_the_whole_draws);
    return test_finish();
}
