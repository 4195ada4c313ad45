/* attn_decode: against the definition, and its laws. "The same" means the same bits, of decode with
 * decode. Lengths stand around the edges of blocks (384 keys) and chunks (768). */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "attention_call.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { MOST = ATTN_DECODE_MAX_QUERIES };

static const float slopes[8] = {0.5f, 0.25f, 0.125f, 0.06f, 0.03f, 0.01f, 0.002f, 0};
static const float sinks[8] = {0.5f, -INFINITY, 3, -1, 20, 0, 1, -60};

/* Softcap, bias, distance, mask, window, prefix and sink at once. */
static void add_everything(struct attention_problem *problem)
{
    static const int64_t prefixes[4] = {3, 100, 0, 1};
    const int64_t queries = problem->q.shape[2], keys = problem->k.shape[2];
    attn_params *params = &problem->params;
    attention_add_keep(problem, (int64_t[]){1, problem->q.shape[1], queries, keys}, 11, 7);
    attention_add_bias(problem, (int64_t[]){1, 1, queries, keys}, 12);
    params->soft_cap = 5;
    params->alibi_slopes = slopes;
    params->sinks = sinks;
    params->causal = 1;
    params->alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    params->window_left = keys / 2;
    params->prefix_lengths = prefixes;
}

static void follows_the_definition(attn_context *context)
{
    static const int64_t lengths[] = {1, 2, 47, 49, 130, 383, 384, 385, 768, 769, 1600};
    static const int64_t dims[][2] = {{128, 128}, {64, 64}, {1, 3}, {40, 17}, {100, 31}, {8, 140}};
    static const int64_t groups[] = {1, 2, 3, 4, 7};
    static const int64_t queries[] = {1, 2, 3, 16};
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F16, ATTN_I8};
    for (size_t n = 0; n < 44; n++) {
        if (!test_takes_one_in(9))
            continue;
        const int64_t keys = lengths[n % COUNT(lengths)], *d = dims[n % COUNT(dims)];
        const int64_t group = groups[n % COUNT(groups)];
        const struct attention_sizes sizes = {1,    group, 1,   queries[n / 3 % COUNT(queries)],
                                              keys, d[0],  d[1]};
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &sizes, n);
        if (n % 3 == 2)
            add_everything(&problem);
        attn_type type = types[n / 4 % COUNT(types)];
        attention_store(&problem, n % 2 ? ATTN_BF16 : ATTN_F32, type, types[n % COUNT(types)]);
        test_context("%d keys, group %d, %d queries, dims %d and %d, type %d", (int)keys,
                     (int)group, (int)sizes.queries, (int)d[0], (int)d[1], (int)type);
        attention_solve_decode(context, &problem, &result);
        CHECK_RESULT(&problem, &result);
        guarded_release_all();
    }
}

enum { HEADS = 8, KEY_HEADS = 2, KEYS = 1300, D_QK = 36, D_V = 20 };
static const struct attention_sizes usual = {1, HEADS, KEY_HEADS, MOST, KEYS, D_QK, D_V};

/* Plain and with everything, in all storages; at last windows, which begin anywhere in a block. */
enum { KINDS = 10 };
static void make_kind(struct attention_problem *problem, int kind)
{
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F16, ATTN_I8};
    attention_make(problem, &usual, 5);
    if (kind >= 8) {
        problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        problem->params.window_left = kind == 8 ? 40 : 903;
    } else if (kind % 2) {
        add_everything(problem);
    }
    attention_store(problem, ATTN_F32, types[kind / 2 % 4], types[3 - kind / 2 % 4]);
    test_context("kind %d", kind);
}

/* Row `row` of a head. */
static void check_row(const struct attention_result *actual, size_t row,
                      const struct attention_result *expected, size_t expected_row)
{
    CHECK_SAME_BITS(actual->o + row * D_V, expected->o + expected_row * D_V, D_V);
    CHECK_SAME_BITS(actual->stats + row * 2, expected->stats + expected_row * 2, 2);
}

/* How many queries and heads go through the keys together changes no bit. */
static void rows_do_not_depend_on_their_neighbours(attn_context *context)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!test_takes_one_in(3))
            continue;
        struct attention_problem problem;
        struct attention_result all;
        make_kind(&problem, kind);
        attention_solve_decode(context, &problem, &all);
        for (int64_t head = 0; head < HEADS; head += 3) {
            struct attention_problem alone;
            struct attention_result result;
            attention_one_head(&problem, head, &alone);
            attention_solve_decode(context, &alone, &result);
            for (size_t row = 0; row < MOST; row++)
                check_row(&result, row, &all, (size_t)head * MOST + row);
            /* The last queries alone: bottom-right alignment leaves them where they were. */
            for (int64_t count = 1; count <= 5; count++) {
                struct attention_problem last;
                attention_copy(&alone, &last);
                last.q = tensor_part(&alone.q, 2, MOST - count, count);
                if (alone.params.keep)
                    last.keep = tensor_part(&alone.keep, 2, MOST - count, count);
                if (alone.params.bias)
                    last.bias = tensor_part(&alone.bias, 2, MOST - count, count);
                attention_solve_decode(context, &last, &result);
                for (int64_t row = 0; row < count; row++)
                    check_row(&result, (size_t)row, &all,
                              (size_t)(head * MOST + MOST - count + row));
            }
        }
        guarded_release_all();
    }
}

/* Chunks shared by threads give what one thread gives. */
static void threads_change_no_bit(attn_isa isa)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!test_takes_one_in(3))
            continue;
        struct attention_problem problem;
        struct attention_result one, result;
        make_kind(&problem, kind);
        attn_context *context = isa_context(isa, 1);
        attention_solve_decode(context, &problem, &one);
        attn_context_destroy(context);
        for (int threads = 2; threads <= 5; threads++) {
            if (!test_takes_one_in(2))
                continue;
            context = isa_context(isa, threads);
            attention_solve_decode(context, &problem, &result);
            CHECK_SAME_RESULT(&result, &one);
            attn_context_destroy(context);
        }
        guarded_release_all();
    }
}

/* In every layout of the inputs. */
static void strides_change_no_bit(attn_context *context)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (!test_takes_one_in(3))
            continue;
        struct attention_problem problem;
        struct attention_result packed, result;
        make_kind(&problem, kind);
        attention_solve_decode(context, &problem, &packed);
        for (enum layout layout = 0; layout < LAYOUT_OUTPUTS; layout++) {
            if (!test_takes_one_in(5))
                continue;
            struct attention_problem strided;
            attention_copy(&problem, &strided);
            strided.q = tensor_copy(&problem.q, layout, GUARD_BEHIND);
            strided.k = tensor_copy(&problem.k, layout, GUARD_BEHIND);
            strided.v = tensor_copy(&problem.v, layout, GUARD_BEFORE);
            strided.output_layout = layout;
            attention_solve_decode(context, &strided, &result);
            CHECK_SAME_RESULT(&result, &packed);
        }
        guarded_release_all();
    }
}

/* NaN and infinities in keys and values that a row excludes do not reach it, though its neighbours
 * keep them. */
static void nothing_excluded_leaks(attn_context *context)
{
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F16};
    for (size_t n = 0; n < COUNT(types); n++) {
        struct attention_problem problem;
        struct attention_result clean, result;
        attention_make(&problem, &usual, 6);
        attention_store(&problem, ATTN_F32, types[n], types[n]);
        problem.params.causal = 1;
        problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
        attention_solve_decode(context, &problem, &clean);
        const int64_t place = KEYS - 6; /* of query MOST − 6 and later ones */
        for (int64_t h = 0; h < KEY_HEADS; h++) {
            tensor_set(&problem.k, 0, h, place, D_QK / 2, NAN);
            tensor_set(&problem.v, 0, h, place, 3, h ? NAN : -INFINITY);
        }
        attention_solve_decode(context, &problem, &result);
        for (size_t row = 0; row < HEADS * MOST; row++) {
            test_context("type %d, row %d", (int)types[n], (int)row);
            if (row % MOST < MOST - 6)
                check_row(&result, row, &clean, row);
            else
                CHECK_ALL(result.o + row * D_V, NAN, D_V);
        }
        guarded_release_all();
    }
}

/* A value of infinity or NaN that is kept stays in its column. */
static void kept_values_reach_their_column(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result clean, result;
    attention_make(&problem, &usual, 7);
    attention_solve_decode(context, &problem, &clean);
    tensor_set(&problem.v, 0, 0, 700, 4, INFINITY);
    tensor_set(&problem.v, 0, 1, 701, 5, NAN);
    attention_solve_decode(context, &problem, &result);
    for (size_t row = 0; row < HEADS * MOST; row++)
        for (size_t c = 0; c < D_V; c++) {
            bool second = row >= HEADS / KEY_HEADS * MOST;
            float expected = c != (second ? 5 : 4) ? clean.o[row * D_V + c]
                             : second              ? NAN
                                                   : INFINITY;
            CHECK_ALL(result.o + row * D_V + c, expected, 1);
        }
}

/* What a window does not reach is not read at all. */
static void keys_outside_a_window_are_not_touched(attn_context *context)
{
    enum { LONG = 40000, WIDTH = 300, D = 8 };
    attn_tensor q = tensor_allocate(ATTN_F32, 1, 2, 1, D, LAYOUT_PACKED, GUARD_BEHIND);
    float *k = guarded_address_space(LONG * D * sizeof(float));
    float *v = guarded_address_space(LONG * D * sizeof(float));
    float *last_k = k + (LONG - 4096) * D, *last_v = v + (LONG - 4096) * D;
    guarded_touch(last_k, 4096 * D * sizeof(float));
    guarded_touch(last_v, 4096 * D * sizeof(float));
    struct random_source source = {8};
    tensor_fill_random(&q, &source, -1, 1);
    random_floats(&source, -1, 1, last_k, 4096 * D);
    random_floats(&source, -1, 1, last_v, 4096 * D);
    attn_tensor keys = attn_tensor_packed(k, ATTN_F32, 1, 1, LONG, D);
    attn_tensor values = attn_tensor_packed(v, ATTN_F32, 1, 1, LONG, D);
    float wide[2 * D], narrow[2 * D];
    attn_tensor o = attn_tensor_packed(wide, ATTN_F32, 1, 2, 1, D);
    attn_params params;
    attn_params_init(&params);
    params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    params.window_left = WIDTH - 1;
    CHECK_EQUAL(attn_decode(context, &params, &q, &keys, &values, &o, NULL), ATTN_SUCCESS);
    /* The same keys alone. */
    keys = attn_tensor_packed(k + (LONG - WIDTH) * D, ATTN_F32, 1, 1, WIDTH, D);
    values = attn_tensor_packed(v + (LONG - WIDTH) * D, ATTN_F32, 1, 1, WIDTH, D);
    o.data = narrow;
    CHECK_EQUAL(attn_decode(context, NULL, &q, &keys, &values, &o, NULL), ATTN_SUCCESS);
    for (int i = 0; i < 2 * D; i++)
        CHECK_WITHIN(wide[i], narrow[i], 1e-6);
}

/* Of 0 and −0, which are equal, m is always the same. */
static void zero_maxima_have_one_sign(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result result;
    attention_make(&problem, &(struct attention_sizes){1, 4, 1, MOST, 63, 2, 8}, 8);
    problem.params.scale = 0;
    attention_solve_decode(context, &problem, &result);
    for (size_t row = 0; row < result.rows; row++)
        CHECK(!signbit(result.stats[2 * row]));
}

static void too_many_queries_are_refused(const void *argument)
{
    (void)argument;
    struct attention_call call;
    attention_call_begin(&call, &(struct attention_sizes){2, 2, 1, MOST + 1, 9, 4, 4});
    attention_call_check_message(&call, attention_call_decode(&call), ATTN_ERROR_SHAPE, "q",
                                 "expected at most 16");
    attention_call_end(&call);
    attention_call_begin(&call, &(struct attention_sizes){1, 2, 1, 2 * MOST + 3, 90, 4, 4});
    const int64_t queries[2] = {MOST, MOST + 1}, keys[2] = {40, 40};
    attention_add_sequences(&call.problem, 2, queries, keys);
    attention_call_check_message(&call, attention_call_decode(&call), ATTN_ERROR_SHAPE,
                                 "sequence 1", "expected at most 16");
    attention_call_end(&call);
    /* Rows that belong to no sequence do not count. */
    attention_call_begin(&call, &(struct attention_sizes){1, 2, 1, 3 * MOST, 90, 4, 4});
    const int64_t few[2] = {MOST, 1};
    attention_add_sequences(&call.problem, 2, few, keys);
    CHECK_EQUAL(attention_call_decode(&call), ATTN_SUCCESS);
    attention_call_end(&call);
}

int main(void)
{
    isa_each_context("follows the definition", follows_the_definition);
    isa_each_context("rows do not depend on their neighbours",
                     rows_do_not_depend_on_their_neighbours);
    isa_each("threads change no bit", threads_change_no_bit);
    isa_each_context("strides change no bit", strides_change_no_bit);
    isa_each_context("nothing excluded leaks", nothing_excluded_leaks);
    isa_each_context("kept values reach their column", kept_values_reach_their_column);
    isa_each_context("keys outside a window are not touched",
                     keys_outside_a_window_are_not_touched);
    isa_each_context("zero maxima have one sign", zero_maxima_have_one_sign);
    test_run(too_many_queries_are_refused, NULL, "too many queries are refused");
    return test_finish();
}
