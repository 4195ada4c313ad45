/* Laws that hold whatever the numbers are. "The same" means the same bits unless a test says how
 * near. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, QUERIES = 41, KEYS = 203, D_QK = 11, D_V = 13 };

static const struct attention_sizes usual = {BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V};
static const int64_t full_mask[4] = {BATCH, HEADS, QUERIES, KEYS};
static const int64_t lengths[BATCH] = {KEYS, 150};
static const float slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f};
static const float sinks[HEADS] = {0.5f, -INFINITY, 3, -1};

/* Every option on. */
static void make_rich(struct attention_problem *problem)
{
    attention_make(problem, &usual, 1);
    attention_add_keep(problem, full_mask, 2, 5);
    attention_add_bias(problem, full_mask, 3);
    problem->params.alignment = ATTN_ALIGN_OFFSET;
    problem->params.offset = 120;
    problem->params.causal = 1;
    problem->params.window_left = 110;
    problem->params.key_lengths = lengths;
    problem->params.alibi_slopes = slopes;
    problem->params.sinks = sinks;
    problem->params.soft_cap = 5;
}

static void ones_blend_to_one(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result result;
    make_rich(&problem);
    problem.params.sinks = NULL;
    tensor_fill(&problem.v, 1);
    attention_solve(context, &problem, &result);
    for (size_t i = 0; i < result.outputs; i++)
        CHECK_WITHIN(result.o[i], result.stats[2 * (i / D_V) + 1] > 0 ? 1 : 0, 1e-6);
}

static void the_future_leaves_the_past_alone(attn_context *context)
{
    const int64_t positions[] = {1, 7, 8, 15, 16, 17, 40};
    for (size_t n = 0; n < COUNT(positions); n++) {
        for (int64_t offset = 0; offset <= 100; offset += 50) {
            struct attention_problem problem;
            struct attention_result before, after;
            attention_make(&problem, &(struct attention_sizes){1, 2, 1, QUERIES, KEYS, D_QK, D_V},
                           4);
            problem.params.causal = 1;
            problem.params.alignment = ATTN_ALIGN_OFFSET;
            problem.params.offset = offset;
            attention_solve(context, &problem, &before);
            struct random_source source = {5};
            int64_t first = positions[n];
            attn_tensor q = tensor_part(&problem.q, 2, first, QUERIES - first);
            attn_tensor k = tensor_part(&problem.k, 2, first + offset, KEYS - first - offset);
            attn_tensor v = tensor_part(&problem.v, 2, first + offset, KEYS - first - offset);
            tensor_fill_random(&q, &source, -90, 90);
            tensor_fill_random(&k, &source, -90, 90);
            tensor_fill_random(&v, &source, -90, 90);
            attention_solve(context, &problem, &after);
            test_context("from token %d on, offset %d", (int)first, (int)offset);
            for (size_t head = 0; head < 2; head++) {
                size_t row = head * QUERIES, rows = (size_t)first;
                CHECK_SAME_BITS(after.o + row * D_V, before.o + row * D_V, rows * D_V);
                CHECK_SAME_BITS(after.stats + row * 2, before.stats + row * 2, rows * 2);
                CHECK_SAME_BITS(after.weights + row * KEYS, before.weights + row * KEYS,
                                rows * KEYS);
            }
            CHECK(memcmp(after.o + first * D_V, before.o + first * D_V, D_V * sizeof(float)) != 0);
            guarded_release_all();
        }
    }
}

/* Within what rounding the shifted scores costs. */
static void shifting_all_scores(attn_context *context)
{
    for (float shift = -64; shift <= 64; shift += 32) {
        struct attention_problem problem;
        struct attention_result plain, shifted;
        attention_make(&problem, &usual, 6);
        attention_solve(context, &problem, &plain);
        attention_add_bias(&problem, (int64_t[]){1, 1, 1, 1}, 0);
        tensor_fill(&problem.bias, shift);
        attention_solve(context, &problem, &shifted);
        test_context("by %g", (double)shift);
        for (size_t i = 0; i < plain.outputs; i++)
            CHECK_WITHIN(shifted.o[i], plain.o[i], 2e-5);
        for (size_t row = 0; row < plain.rows; row++)
            CHECK_WITHIN(shifted.stats[2 * row], plain.stats[2 * row] + shift, 1e-5);
    }
}

/* Within what another order of summation costs. */
static void permuting_the_keys(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result straight, permuted;
    attention_make(&problem, &usual, 7);
    attention_add_keep(&problem, full_mask, 8, 4);
    attention_solve(context, &problem, &straight);
    /* Last key first. */
    attn_tensor *by_key[] = {&problem.k, &problem.v};
    for (size_t i = 0; i < COUNT(by_key); i++) {
        *by_key[i] = tensor_part(by_key[i], 2, KEYS - 1, KEYS);
        by_key[i]->stride[2] = -by_key[i]->stride[2];
    }
    problem.keep = tensor_part(&problem.keep, 3, KEYS - 1, KEYS);
    problem.keep.stride[3] = -problem.keep.stride[3];
    attention_solve(context, &problem, &permuted);
    for (size_t i = 0; i < straight.outputs; i++)
        CHECK_WITHIN(permuted.o[i], straight.o[i], 2e-6);
    for (size_t row = 0; row < straight.rows; row++) {
        CHECK(permuted.stats[2 * row] == straight.stats[2 * row]);
        for (size_t j = 0; j < KEYS; j++)
            CHECK_WITHIN(permuted.weights[row * KEYS + KEYS - 1 - j],
                         straight.weights[row * KEYS + j], 1e-6);
    }
}

static void linear_in_the_values(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result first, second, both;
    make_rich(&problem);
    attention_solve(context, &problem, &first);
    float *v = problem.v.data;
    size_t count = tensor_elements(&problem.v);
    float *v_first = tensor_packed_copy(&problem.v);
    struct random_source source = {9};
    tensor_fill_random(&problem.v, &source, -1, 1);
    attention_solve(context, &problem, &second);
    for (size_t i = 0; i < count; i++)
        v[i] = 2 * v_first[i] - 3 * v[i];
    attention_solve(context, &problem, &both);
    for (size_t i = 0; i < both.outputs; i++)
        CHECK_WITHIN(both.o[i], 2 * (double)first.o[i] - 3 * (double)second.o[i], 5e-6);
    CHECK_SAME_BITS(both.weights, first.weights, first.weight_count);
}

static void asking_changes_nothing(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result asked;
    make_rich(&problem);
    attention_solve(context, &problem, &asked);
    attn_tensor o =
        tensor_allocate(ATTN_F32, BATCH, HEADS, QUERIES, D_V, LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(
        attn_forward(context, &problem.params, &problem.q, &problem.k, &problem.v, &o, NULL),
        ATTN_SUCCESS);
    CHECK_SAME_BITS((const float *)o.data, asked.o, asked.outputs);

    /* Statistics are there without values, too. */
    problem.v.shape[3] = 0;
    o.shape[3] = 0;
    attn_tensor stats =
        tensor_allocate(ATTN_F32, BATCH, HEADS, QUERIES, 2, LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(
        attn_forward(context, &problem.params, &problem.q, &problem.k, &problem.v, &o, &stats),
        ATTN_SUCCESS);
    CHECK_SAME_BITS((const float *)stats.data, asked.stats, 2 * asked.rows);
}

static void any_number_of_threads(attn_isa isa)
{
    struct attention_problem problem;
    struct attention_result one, many;
    make_rich(&problem);
    attn_context *context = isa_context(isa, 1);
    attention_solve(context, &problem, &one);
    attn_context_destroy(context);
    for (int threads = 2; threads <= 5; threads++) {
        if (!test_takes_one_in(3))
            continue;
        context = isa_context(isa, threads);
        for (int again = 0; again < 3; again++) {
            attention_solve(context, &problem, &many);
            test_context("%d threads", threads);
            CHECK_SAME_RESULT(&many, &one);
        }
        attn_context_destroy(context);
    }
}

static void a_batch_and_head_alone(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result all;
    make_rich(&problem);
    attention_solve(context, &problem, &all);
    for (int64_t b = 0; b < BATCH; b++) {
        for (int64_t h = 0; h < HEADS; h++) {
            if (!test_takes_one_in(3))
                continue;
            struct attention_problem batch, alone;
            struct attention_result result, expected;
            attention_one_sequence(&problem, b, &batch);
            attention_one_head(&batch, h, &alone);
            attention_solve(context, &alone, &result);
            attention_result_part(&problem, &all,
                                  &(struct attention_part){.batch = b,
                                                           .head = h,
                                                           .batches = 1,
                                                           .heads = 1,
                                                           .queries = QUERIES,
                                                           .keys = KEYS},
                                  &expected);
            test_context("batch %d, head %d", (int)b, (int)h);
            CHECK_SAME_RESULT(&result, &expected);
        }
    }
}

static void queries_in_parts(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result all;
    make_rich(&problem);
    attention_solve(context, &problem, &all);
    const int64_t cuts[][2] = {{0, 1}, {0, 7},  {1, 16},  {5, 17},          {7, 1},
                               {8, 8}, {15, 3}, {16, 25}, {QUERIES - 1, 1}, {3, 33}};
    for (size_t n = 0; n < COUNT(cuts); n++) {
        int64_t first = cuts[n][0], count = cuts[n][1];
        struct attention_problem part = {.params = problem.params};
        struct attention_result result;
        part.q = tensor_part(&problem.q, 2, first, count);
        part.k = problem.k;
        part.v = problem.v;
        part.keep = tensor_part(&problem.keep, 2, first, count);
        part.bias = tensor_part(&problem.bias, 2, first, count);
        part.params.keep = &part.keep;
        part.params.bias = &part.bias;
        part.params.offset = problem.params.offset + first;
        attention_solve(context, &part, &result);
        test_context("queries %d to %d", (int)first, (int)(first + count - 1));
        for (int64_t head = 0; head < BATCH * HEADS; head++) {
            int64_t from = head * count, to = head * QUERIES + first;
            CHECK_SAME_BITS(result.o + from * D_V, all.o + to * D_V, (size_t)(count * D_V));
            CHECK_SAME_BITS(result.stats + from * 2, all.stats + to * 2, (size_t)(count * 2));
            CHECK_SAME_BITS(result.weights + from * KEYS, all.weights + to * KEYS,
                            (size_t)(count * KEYS));
        }
    }
}

static void grouped_heads_are_repeated_heads(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result grouped, repeated;
    make_rich(&problem);
    attention_solve(context, &problem, &grouped);
    attn_tensor *shared[] = {&problem.k, &problem.v};
    for (size_t i = 0; i < COUNT(shared); i++) {
        attn_tensor wide = tensor_allocate(ATTN_F32, BATCH, HEADS, KEYS, shared[i]->shape[3],
                                           LAYOUT_PACKED, GUARD_BEHIND);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t h = 0; h < HEADS; h++)
                for (int64_t j = 0; j < KEYS; j++)
                    for (int64_t c = 0; c < wide.shape[3]; c++)
                        tensor_set(&wide, b, h, j, c,
                                   (float)tensor_get(shared[i], b, h / (HEADS / KEY_HEADS), j, c));
        *shared[i] = wide;
    }
    attention_solve(context, &problem, &repeated);
    CHECK_SAME_RESULT(&repeated, &grouped);
}

/* Storage changes the numbers once, and nothing else; options of every kind beside it. */
static void stored_types_are_their_numbers(attn_context *context)
{
    static const attn_type types[][3] = {{ATTN_F32, ATTN_F16, ATTN_F16},
                                         {ATTN_F16, ATTN_F32, ATTN_BF16},
                                         {ATTN_BF16, ATTN_BF16, ATTN_BF16},
                                         {ATTN_F32, ATTN_I8, ATTN_I8},
                                         {ATTN_BF16, ATTN_I8, ATTN_F32}};
    for (size_t n = 0; n < COUNT(types); n++) {
        if (!test_takes_one_in(2))
            continue;
        struct attention_problem problem, wide;
        struct attention_result stored, expected;
        make_rich(&problem);
        attention_store(&problem, types[n][0], types[n][1], types[n][2]);
        attention_store_bias(&problem, n % 2 ? ATTN_F16 : ATTN_BF16);
        attention_widen(&problem, &wide);
        attention_solve(context, &problem, &stored);
        attention_solve(context, &wide, &expected);
        test_context("types %zu", n);
        CHECK_SAME_RESULT(&stored, &expected);
        guarded_release_all();
    }
}

/* A callback that leaves every score as it is. */
static void leave_scores(void *user, const attn_score_tile *tile)
{
    (void)user, (void)tile;
}

static void leave_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                        int64_t *begin, int64_t *end)
{
    (void)user, (void)sequence, (void)head, (void)query, (void)queries, (void)begin, (void)end;
}

/* An option that excludes nothing and adds nothing. */
static void neutral_options_change_nothing(attn_context *context)
{
    static const int64_t all_keys[BATCH] = {KEYS, KEYS};
    static const float flat[HEADS] = {0, 0, 0, 0};
    static const float no_sinks[HEADS] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    struct attention_result plain, result;
    struct attention_problem problem;
    attention_make(&problem, &usual, 10);
    attention_solve(context, &problem, &plain);
    for (int option = 0; option < 11; option++) {
        if (!test_takes_one_in(4))
            continue;
        attention_make(&problem, &usual, 10);
        attn_params *params = &problem.params;
        params->alignment = ATTN_ALIGN_OFFSET;
        switch (option) {
        case 0:
            attention_add_keep(&problem, full_mask, 0, INT64_C(1) << 62);
            break;
        case 1:
            attention_add_bias(&problem, full_mask, 0);
            tensor_fill(&problem.bias, 0);
            break;
        case 2:
            params->key_lengths = all_keys;
            break;
        case 3:
            params->alibi_slopes = flat;
            break;
        case 4:
            params->sinks = no_sinks;
            break;
        case 5:
            params->causal = 1;
            params->offset = KEYS - 1;
            break;
        case 6:
            params->window_left = QUERIES - 1;
            params->window_right = KEYS - 1;
            break;
        case 7:
            params->change_scores = leave_scores;
            break;
        case 8:
            params->key_range = leave_range;
            break;
        case 9:
            params->causal = 1;
            params->offset = ATTN_POSITION_LIMIT;
            break;
        default:
            params->scale = 1 / sqrtf(D_QK);
        }
        attention_solve(context, &problem, &result);
        test_context("option %d", option);
        CHECK_SAME_RESULT(&result, &plain);
    }
}

static void the_past_of_a_context_changes_nothing(attn_isa isa)
{
    attn_context *fresh = isa_context(isa, 2), *used = isa_context(isa, 2);
    struct attention_problem small, large;
    struct attention_result expected, result;
    make_rich(&large);
    attention_make(&small, &(struct attention_sizes){1, 1, 1, 3, 5, 2, 4}, 11);
    attention_solve(fresh, &small, &expected);
    tensor_fill(&large.v, NAN); /* what it leaves in the workspace */
    attention_solve(used, &large, &result);
    attention_solve(used, &small, &result);
    CHECK_SAME_RESULT(&result, &expected);
    attn_context_destroy(fresh);
    attn_context_destroy(used);
}

int main(void)
{
    isa_each_context("values of one blend to one", ones_blend_to_one);
    isa_each_context("causal: the future leaves the past alone", the_future_leaves_the_past_alone);
    isa_each_context("shifting all scores", shifting_all_scores);
    isa_each_context("permuting the keys", permuting_the_keys);
    isa_each_context("linear in the values", linear_in_the_values);
    isa_each_context("asking for statistics changes nothing", asking_changes_nothing);
    isa_each("any number of threads", any_number_of_threads);
    isa_each_context("a batch and head alone or among others", a_batch_and_head_alone);
    isa_each_context("queries in parts", queries_in_parts);
    isa_each_context("grouped heads are repeated heads", grouped_heads_are_repeated_heads);
    isa_each_context("stored types are their numbers", stored_types_are_their_numbers);
    isa_each_context("neutral options change nothing", neutral_options_change_nothing);
    isa_each("the past of a context changes nothing", the_past_of_a_context_changes_nothing);
    return test_finish();
}
