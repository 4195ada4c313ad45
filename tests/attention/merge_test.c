/* attn_merge: parts of a problem against the whole, empty parts, both forms of statistics. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { HEADS = 3, QUERIES = 5, KEYS = 300, D = 70, ROWS = HEADS * QUERIES };

/* Keys begin..begin+count−1 of a problem. */
static void solve_part(attn_context *context, const struct attention_problem *problem,
                       int64_t begin, int64_t count, struct attention_result *result)
{
    struct attention_problem part;
    attention_copy(problem, &part);
    part.k = tensor_part(&problem->k, 2, begin, count);
    part.v = tensor_part(&problem->v, 2, begin, count);
    attention_solve_decode(context, &part, result);
}

static attn_tensor rows_of(void *data, attn_type type, int64_t dim)
{
    return attn_tensor_packed(data, type, 1, HEADS, QUERIES, dim);
}

/* The log-sum-exps of statistics. */
static float *lse_of(const float *stats)
{
    float *lse = guarded_floats(ROWS, GUARD_BEHIND);
    for (int row = 0; row < ROWS; row++)
        lse[row] = stats[2 * row] + logf(stats[2 * row + 1]);
    return lse;
}

static void parts_make_the_whole(attn_context *context)
{
    struct attention_problem problem;
    struct attention_result whole, one, two;
    attention_make(&problem, &(struct attention_sizes){1, HEADS, 1, QUERIES, KEYS, 16, D}, 1);
    attention_solve_decode(context, &problem, &whole);
    for (int64_t cut = 0; cut <= KEYS; cut += 60) {
        solve_part(context, &problem, 0, cut, &one);
        solve_part(context, &problem, cut, KEYS - cut, &two);
        for (int form = 0; form < 4; form++) {
            bool first_lse = form & 1, second_lse = form & 2;
            attn_tensor o[3], stats[3];
            o[0] = rows_of(one.o, ATTN_F32, D);
            o[1] = rows_of(two.o, ATTN_F32, D);
            o[2] = rows_of(guarded_floats(ROWS * D, GUARD_BEHIND), ATTN_F32, D);
            stats[0] = rows_of(first_lse ? lse_of(one.stats) : one.stats, ATTN_F32, 2 - first_lse);
            stats[1] =
                rows_of(second_lse ? lse_of(two.stats) : two.stats, ATTN_F32, 2 - second_lse);
            stats[2] = rows_of(guarded_floats(ROWS * 2, GUARD_BEHIND), ATTN_F32, 2);
            test_context("cut at %d, form %d", (int)cut, form);
            CHECK_EQUAL(attn_merge(context, &o[0], &stats[0], &o[1], &stats[1], &o[2], &stats[2]),
                        ATTN_SUCCESS);
            const float *merged = o[2].data, *state = stats[2].data;
            for (size_t i = 0; i < ROWS * D; i++)
                CHECK_WITHIN(merged[i], whole.o[i], 2e-6);
            for (int row = 0; row < ROWS; row++)
                CHECK_WITHIN(state[2 * row] + logf(state[2 * row + 1]),
                             whole.stats[2 * row] + logf(whole.stats[2 * row + 1]), 4e-6);
            stats[2] = rows_of(guarded_floats(ROWS, GUARD_BEHIND), ATTN_F32, 1);
            CHECK_EQUAL(attn_merge(context, &o[1], &stats[1], &o[0], &stats[0], &o[2], &stats[2]),
                        ATTN_SUCCESS);
            const float *lse = stats[2].data;
            for (int row = 0; row < ROWS; row++)
                CHECK_WITHIN(lse[row], whole.stats[2 * row] + logf(whole.stats[2 * row + 1]), 4e-6);
        }
    }
}

/* Rows of one element and one statistic each. */
struct small {
    double o[2], m[2], l[2];
    double expected_o, expected_m, expected_l;
};
static const struct small rows[] = {
    {{1, 7}, {0, 0}, {1, 1}, 4, 0, 2},
    {{1, 7}, {3, -INFINITY}, {2, 5}, 1, 3, 2},
    {{NAN, 7}, {-INFINITY, -2}, {NAN, 4}, 7, -2, 4},
    {{NAN, INFINITY}, {-INFINITY, -INFINITY}, {3, 0}, 0, -INFINITY, 0},
    {{1, 2}, {1000, -1000}, {1, 1}, 1, 1000, 1},
    {{1, 2}, {0, NAN}, {1, 1}, NAN, NAN, NAN},
    {{1, 2}, {INFINITY, 0}, {1, 1}, NAN, INFINITY, NAN},
    {{1, 2}, {0, 0}, {NAN, 1}, NAN, 0, NAN},
    {{INFINITY, 2}, {0, 0}, {1, 1}, INFINITY, 0, 2},
    {{4, 2}, {0, 0}, {1, 3}, 2.5, 0, 4},
};

static void check_number(double actual, double expected)
{
    if (isfinite(expected))
        CHECK_WITHIN(actual, expected, 1e-6);
    else
        CHECK_ALL(&(float){(float)actual}, (float)expected, 1);
}

static void special_rows(attn_context *context)
{
    enum { COUNT_ROWS = COUNT(rows) };
    static const attn_type types[] = {ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_F64};
    for (size_t t = 0; t < COUNT(types); t++) {
        attn_type stats_type = types[t] == ATTN_F64 ? ATTN_F64 : ATTN_F32;
        attn_type mixed = types[t] == ATTN_F64 ? ATTN_F64 : ATTN_BF16;
        attn_tensor o[3], stats[3];
        for (int n = 0; n < 3; n++) {
            o[n] = tensor_allocate(n == 1 ? mixed : types[t], 1, 1, COUNT_ROWS, 1, LAYOUT_SPREAD,
                                   GUARD_BEHIND);
            stats[n] =
                tensor_allocate(stats_type, 1, 1, COUNT_ROWS, 2, LAYOUT_TRANSPOSED, GUARD_BEFORE);
        }
        for (int row = 0; row < COUNT_ROWS; row++)
            for (int n = 0; n < 2; n++) {
                tensor_set(&o[n], 0, 0, row, 0, rows[row].o[n]);
                tensor_set(&stats[n], 0, 0, row, 0, rows[row].m[n]);
                tensor_set(&stats[n], 0, 0, row, 1, rows[row].l[n]);
            }
        CHECK_EQUAL(attn_merge(context, &o[0], &stats[0], &o[1], &stats[1], &o[2], &stats[2]),
                    ATTN_SUCCESS);
        for (int row = 0; row < COUNT_ROWS; row++) {
            test_context("type %d, row %d", (int)types[t], row);
            check_number(tensor_get(&o[2], 0, 0, row, 0), rows[row].expected_o);
            check_number(tensor_get(&stats[2], 0, 0, row, 0), rows[row].expected_m);
            check_number(tensor_get(&stats[2], 0, 0, row, 1), rows[row].expected_l);
        }
    }
}

/* An expected refusal, or a success with an empty message. */
static void check_refusal(attn_context *context, attn_tensor *const t[6], attn_status status,
                          const char *says)
{
    CHECK_EQUAL(attn_merge(context, t[0], t[1], t[2], t[3], t[4], t[5]), status);
    CHECK_CONTAINS(attn_message(context), says);
}

static void wrong_arguments(attn_context *context)
{
    attn_tensor t[6], *all[6];
    for (int n = 0; n < 6; n++) {
        t[n] = tensor_allocate(ATTN_F32, 1, 2, 3, n % 2 ? 2 : 4, LAYOUT_PACKED, GUARD_BEHIND);
        tensor_fill(&t[n], 1);
        all[n] = &t[n];
    }
    check_refusal(context, all, ATTN_SUCCESS, "");
    const float *written = t[4].data, *written_stats = t[5].data;
    tensor_fill(&t[4], 7);
    tensor_fill(&t[5], 7);
    static const char *const names[6] = {"o1", "stats1", "o2", "stats2", "o", "stats"};
    for (int n = 0; n < 6; n++) {
        const attn_tensor right = t[n];
        test_context("%s", names[n]);
        if (n < 5) {
            all[n] = NULL;
            check_refusal(context, all, ATTN_ERROR_ARGUMENT, names[n]);
            all[n] = &t[n];
        }
        t[n].type = n % 2 ? ATTN_BF16 : ATTN_I8;
        check_refusal(context, all, ATTN_ERROR_TYPE, names[n]);
        t[n] = right;
        t[n].shape[2] = 2;
        check_refusal(context, all, ATTN_ERROR_SHAPE, "has shape");
        t[n] = right;
        if (n % 2) {
            t[n].shape[3] = 3;
            check_refusal(context, all, ATTN_ERROR_SHAPE,
                          "dim 3, expected 2 (m and l) or 1 (a log-sum-exp)");
            t[n] = right;
        }
    }
    for (int n = 0; n < 5; n++)
        for (int output = 4; output < 6; output++) {
            const attn_tensor right = t[output];
            if (n == output)
                continue;
            test_context("%s within %s", names[output], names[n]);
            t[output].data = (float *)t[n].data;
            check_refusal(context, all, ATTN_ERROR_OVERLAP, "share memory");
            t[output] = right;
        }
    t[4].stride[2] = 0;
    check_refusal(context, all, ATTN_ERROR_OVERLAP, "o has strides");
    CHECK_ALL(written, 7, 2 * 3 * 4);
    CHECK_ALL(written_stats, 7, 2 * 3 * 2);
}

/* Without rows there is nothing to do; without elements statistics are still written. */
static void nothing_to_merge(attn_context *context)
{
    attn_tensor none = attn_tensor_packed(NULL, ATTN_F32, 0, 2, 3, 4);
    attn_tensor no_stats = attn_tensor_packed(NULL, ATTN_F32, 0, 2, 3, 1);
    CHECK_EQUAL(attn_merge(context, &none, &no_stats, &none, &no_stats, &none, &no_stats),
                ATTN_SUCCESS);
    /* Rows by the quintillion, and nothing in them. */
    float lse = 1;
    const int64_t many = INT64_C(1) << 40;
    attn_tensor wide = {NULL, ATTN_F32, {many, many, 1, 0}, {0}};
    attn_tensor wide_stats = {&lse, ATTN_F32, {many, many, 1, 1}, {0}};
    CHECK_EQUAL(attn_merge(context, &wide, &wide_stats, &wide, &wide_stats, &wide, NULL),
                ATTN_SUCCESS);
    attn_tensor empty = attn_tensor_packed(NULL, ATTN_F32, 1, 1, 1, 0);
    float one[2] = {1, 2}, two[2] = {1, 3}, all[2];
    attn_tensor first = attn_tensor_packed(one, ATTN_F32, 1, 1, 1, 2);
    attn_tensor second = attn_tensor_packed(two, ATTN_F32, 1, 1, 1, 2);
    attn_tensor sum = attn_tensor_packed(all, ATTN_F32, 1, 1, 1, 2);
    CHECK_EQUAL(attn_merge(context, &empty, &first, &empty, &second, &empty, &sum), ATTN_SUCCESS);
    CHECK_WITHIN(all[0], 1, 0);
    CHECK_WITHIN(all[1], 5, 0);
}

int main(void)
{
    isa_each_context("parts make the whole", parts_make_the_whole);
    isa_each_context("special rows", special_rows);
    isa_each_context("wrong arguments", wrong_arguments);
    isa_each_context("nothing to merge", nothing_to_merge);
    return test_finish();
}
