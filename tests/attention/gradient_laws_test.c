/* What must hold between gradients: of parts and of wholes, of changed and of unchanged inputs, and
 * where NaN stands in pairs that are excluded. "The same" means the same bits. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/attention_gradient.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, QUERIES = 41, KEYS = 131, D_QK = 7, D_V = 6 };
static const struct attention_sizes usual = {BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V};

static const attn_type types[] = {ATTN_F32, ATTN_F64};

static void make(struct attention_problem *problem, attn_type type, uint64_t seed)
{
    attention_make(problem, &usual, seed);
    attention_store(problem, type, type, type);
}

/* Element (b, h, i, c) of a gradient [., heads, length, dim]. */
static size_t place(int64_t b, int64_t h, int64_t i, int64_t c, int64_t heads, int64_t length,
                    int64_t dim)
{
    return (size_t)(((b * heads + h) * length + i) * dim + c);
}

static void check_all_zero(const char *what, const double *gradient, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(gradient[i] == 0)) {
            test_fail(__FILE__, __LINE__, "%s[%zu] is %g, expected 0", what, i, gradient[i]);
            return;
        }
}

static void check_equal_doubles(const char *what, const double *actual, const double *expected,
                                size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(actual[i] == expected[i])) {
            test_fail(__FILE__, __LINE__, "%s[%zu] is %.9g, expected %.9g", what, i, actual[i],
                      expected[i]);
            return;
        }
}

/* Powers of two come out of every sum. */
static void proportional_to_d_o(attn_context *context)
{
    for (size_t t = 0; t < COUNT(types); t++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result once, four_times;
        const float sinks[HEADS] = {0.5f, -1, 2, -INFINITY};
        make(&problem, types[t], 1);
        attention_add_bias(&problem, (int64_t[]){1, HEADS, QUERIES, KEYS}, 2);
        problem.params.causal = 1;
        problem.params.sinks = sinks;
        gradient_call_make(&call, &problem, 3);
        gradient_solve(context, &problem, &call, &once);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t h = 0; h < HEADS; h++)
                for (int64_t i = 0; i < QUERIES; i++)
                    for (int64_t c = 0; c < D_V; c++)
                        tensor_set(&call.d_o, b, h, i, c, -4 * tensor_get(&call.d_o, b, h, i, c));
        gradient_solve(context, &problem, &call, &four_times);
        double *const gradients[] = {once.q, once.k, once.v, once.bias, once.sinks};
        const size_t counts[] = {once.of_q, once.of_k, once.of_v, once.of_bias, once.of_sinks};
        for (size_t n = 0; n < COUNT(counts); n++)
            for (size_t i = 0; i < counts[n]; i++)
                gradients[n][i] *= -4;
        check_equal_doubles("dq", four_times.q, once.q, once.of_q);
        check_equal_doubles("dk", four_times.k, once.k, once.of_k);
        check_equal_doubles("dv", four_times.v, once.v, once.of_v);
        check_equal_doubles("dbias", four_times.bias, once.bias, once.of_bias);
        check_equal_doubles("dsinks", four_times.sinks, once.sinks, once.of_sinks);

        tensor_fill(&call.d_o, 0);
        gradient_solve(context, &problem, &call, &once);
        check_all_zero("dq", once.q, once.of_q);
        check_all_zero("dk", once.k, once.of_k);
        check_all_zero("dv", once.v, once.of_v);
        check_all_zero("dbias", once.bias, once.of_bias);
        check_all_zero("dsinks", once.sinks, once.of_sinks);
    }
}

/* A score and its row's sink move the output together with all others of the row: dS sums to 0. */
static void gradients_of_a_row_sum_to_zero(attn_context *context)
{
    for (size_t t = 0; t < COUNT(types); t++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result result;
        make(&problem, types[t], 4);
        attention_add_bias(&problem, (int64_t[]){BATCH, HEADS, QUERIES, KEYS}, 5);
        gradient_call_make(&call, &problem, 6);
        gradient_solve(context, &problem, &call, &result);
        double bound = types[t] == ATTN_F64 ? 1e-14 : 1e-6;
        for (size_t row = 0; row < result.of_bias / KEYS; row++) {
            double sum = 0;
            for (size_t j = 0; j < KEYS; j++)
                sum += result.bias[row * KEYS + j];
            CHECK_WITHIN(sum, 0, bound);
        }
        guarded_release_all();

        const float sinks[HEADS] = {3, 1, 2, 0};
        make(&problem, types[t], 4);
        attention_add_bias(&problem, (int64_t[]){1, HEADS, 1, 1}, 5);
        problem.params.sinks = sinks;
        gradient_call_make(&call, &problem, 6);
        gradient_solve(context, &problem, &call, &result);
        for (size_t h = 0; h < HEADS; h++)
            CHECK_WITHIN(result.bias[h] + result.sinks[h], 0, bound * QUERIES);
    }
}

/* Also beside a row of NaN. */
static void a_sink_of_minus_infinity_is_none(attn_context *context)
{
    const float sinks[HEADS] = {-INFINITY, 1, -INFINITY, 0};
    for (size_t t = 0; t < COUNT(types); t++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result result;
        make(&problem, types[t], 4);
        problem.params.sinks = sinks;
        gradient_call_make(&call, &problem, 6);
        for (int64_t h = 0; h < HEADS; h++)
            tensor_set(&problem.q, 0, h, 1, 0, NAN);
        gradient_solve(context, &problem, &call, &result);
        for (size_t h = 0; h < HEADS; h++)
            CHECK(h % 2 ? isnan(result.sinks[h]) : result.sinks[h] == 0);
        guarded_release_all();
    }
}

/* What one number of the bias stands for is summed. */
static void shared_bias_is_summed(attn_context *context)
{
    static const int64_t full[4] = {BATCH, HEADS, QUERIES, KEYS};
    for (int which = 0; which < 16; which++) {
        struct attention_problem problem, shared;
        struct gradient_call call;
        struct gradient_result all, summed;
        int64_t shape[4];
        if (!test_takes_one_in(5))
            continue;
        for (int axis = 0; axis < 4; axis++)
            shape[axis] = which >> axis & 1 ? full[axis] : 1;
        make(&problem, ATTN_F32, 7);
        attention_copy(&problem, &shared);
        attention_add_bias(&shared, shape, 8);
        attention_add_bias(&problem, full, 8);
        double *expected = guarded_doubles(tensor_elements(&shared.bias));
        double *tolerance = guarded_doubles(tensor_elements(&shared.bias));
        for (size_t i = 0; i < tensor_elements(&shared.bias); i++)
            expected[i] = tolerance[i] = 0;
        gradient_call_make(&call, &problem, 9);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t h = 0; h < HEADS; h++)
                for (int64_t i = 0; i < QUERIES; i++)
                    for (int64_t j = 0; j < KEYS; j++)
                        tensor_set(&problem.bias, b, h, i, j, tensor_get(&shared.bias, b, h, i, j));
        gradient_solve(context, &problem, &call, &all);
        gradient_solve(context, &shared, &call, &summed);
        for (int64_t b = 0; b < BATCH; b++)
            for (int64_t h = 0; h < HEADS; h++)
                for (int64_t i = 0; i < QUERIES; i++)
                    for (int64_t j = 0; j < KEYS; j++) {
                        size_t at = 0;
                        const int64_t index[4] = {b, h, i, j};
                        for (int axis = 0; axis < 4; axis++)
                            at = at * (size_t)shape[axis] +
                                 (size_t)(shape[axis] == 1 ? 0 : index[axis]);
                        double term = all.bias[place(b, h, i, j, HEADS, QUERIES, KEYS)];
                        expected[at] += term;
                        tolerance[at] += 0x1p-22 * fabs(term) + 1e-12;
                    }
        test_context("bias of shape %d", which);
        CHECK_NEAR_DOUBLES(summed.bias, expected, tolerance, summed.of_bias);
        /* How a bias lies changes no score, and so no other gradient. */
        summed.of_bias = 0;
        all.of_bias = 0;
        CHECK_SAME_GRADIENTS(&summed, &all);
        guarded_release_all();
    }
}

/* A key head gets the sum over the heads that read it. */
static void groups_are_summed(attn_context *context)
{
    struct attention_problem problem, repeated;
    struct gradient_call call;
    struct gradient_result grouped, single;
    make(&problem, ATTN_F32, 10);
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    attention_copy(&problem, &repeated);
    repeated.k = tensor_allocate(ATTN_F32, BATCH, HEADS, KEYS, D_QK, LAYOUT_PACKED, GUARD_BEHIND);
    repeated.v = tensor_allocate(ATTN_F32, BATCH, HEADS, KEYS, D_V, LAYOUT_PACKED, GUARD_BEHIND);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t j = 0; j < KEYS; j++) {
                for (int64_t c = 0; c < D_QK; c++)
                    tensor_set(&repeated.k, b, h, j, c, tensor_get(&problem.k, b, h / 2, j, c));
                for (int64_t c = 0; c < D_V; c++)
                    tensor_set(&repeated.v, b, h, j, c, tensor_get(&problem.v, b, h / 2, j, c));
            }
    gradient_call_make(&call, &problem, 11);
    gradient_solve(context, &problem, &call, &grouped);
    gradient_solve(context, &repeated, &call, &single);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t g = 0; g < KEY_HEADS; g++)
            for (int64_t j = 0; j < KEYS; j++) {
                for (int64_t c = 0; c < D_QK; c++)
                    CHECK_WITHIN(grouped.k[place(b, g, j, c, KEY_HEADS, KEYS, D_QK)],
                                 single.k[place(b, 2 * g, j, c, HEADS, KEYS, D_QK)] +
                                     single.k[place(b, 2 * g + 1, j, c, HEADS, KEYS, D_QK)],
                                 1e-6);
                for (int64_t c = 0; c < D_V; c++)
                    CHECK_WITHIN(grouped.v[place(b, g, j, c, KEY_HEADS, KEYS, D_V)],
                                 single.v[place(b, 2 * g, j, c, HEADS, KEYS, D_V)] +
                                     single.v[place(b, 2 * g + 1, j, c, HEADS, KEYS, D_V)],
                                 1e-6);
            }
}

/* With a causal mask a query's gradient does not depend on later keys and values, nor a key's on
 * earlier queries and outputs. */
static void future_and_past_are_apart(attn_context *context)
{
    static const int64_t cuts[] = {1, 8, 16, 17, 32, 40};
    for (size_t n = 0; n < COUNT(cuts) * COUNT(types); n++) {
        int64_t cut = cuts[n % COUNT(cuts)];
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result before, after;
        struct random_source source = {12};
        if (!test_takes_one_in(5))
            continue;
        make(&problem, types[n / COUNT(cuts)], 13);
        problem.params.causal = 1;
        gradient_call_make(&call, &problem, 14);
        gradient_solve(context, &problem, &call, &before);
        for (int64_t h = 0; h < KEY_HEADS; h++)
            for (int64_t j = cut; j < KEYS; j++)
                for (int64_t c = 0; c < D_V; c++) {
                    tensor_set(&problem.k, 1, h, j, c, random_float(&source, -9, 9));
                    tensor_set(&problem.v, 1, h, j, c, random_float(&source, -9, 9));
                }
        gradient_solve(context, &problem, &call, &after);
        test_context("keys from %d on changed", (int)cut);
        for (int64_t h = 0; h < HEADS; h++)
            check_equal_doubles("dq", after.q + place(1, h, 0, 0, HEADS, QUERIES, D_QK),
                                before.q + place(1, h, 0, 0, HEADS, QUERIES, D_QK),
                                (size_t)(cut * D_QK));
        guarded_release_all();

        make(&problem, types[n / COUNT(cuts)], 13);
        problem.params.causal = 1;
        gradient_call_make(&call, &problem, 14);
        gradient_solve(context, &problem, &call, &before);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < cut; i++)
                for (int64_t c = 0; c < D_V; c++) {
                    tensor_set(&problem.q, 1, h, i, c, random_float(&source, -9, 9));
                    tensor_set(&call.d_o, 1, h, i, c, random_float(&source, -9, 9));
                }
        gradient_solve(context, &problem, &call, &after);
        test_context("queries below %d changed", (int)cut);
        for (int64_t h = 0; h < KEY_HEADS; h++) {
            size_t first = place(1, h, cut, 0, KEY_HEADS, KEYS, D_QK);
            check_equal_doubles("dk", after.k + first, before.k + first,
                                (size_t)((KEYS - cut) * D_QK));
            first = place(1, h, cut, 0, KEY_HEADS, KEYS, D_V);
            check_equal_doubles("dv", after.v + first, before.v + first,
                                (size_t)((KEYS - cut) * D_V));
        }
        guarded_release_all();
    }
}

/* Rows and keys that take part in nothing: exactly 0, whatever stands in them. */
static void nothing_gives_nothing(attn_context *context)
{
    static const int64_t lengths[] = {100, 0};
    const float sinks[HEADS] = {0.5f, -1, 2, -INFINITY};
    for (size_t n = 0; n < 2 * COUNT(types); n++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result clean, spoiled;
        double spoil = n / COUNT(types) ? NAN : (double)INFINITY;
        make(&problem, types[n % COUNT(types)], 15);
        attention_add_bias(&problem, (int64_t[]){1, 1, QUERIES, KEYS}, 16);
        problem.params.key_lengths = lengths;
        problem.params.causal = 1;
        problem.params.alignment = ATTN_ALIGN_OFFSET;
        problem.params.offset = -5;
        problem.params.sinks = sinks;
        gradient_call_make(&call, &problem, 17);
        gradient_solve(context, &problem, &call, &clean);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t i = 0; i < QUERIES; i++)
                for (int64_t c = 0; c < D_V; c++) {
                    if (i < 5)
                        tensor_set(&problem.q, 0, h, i, c, spoil);
                    if (i < 5)
                        tensor_set(&call.d_o, 0, h, i, c, -spoil);
                    tensor_set(&problem.q, 1, h, i, c, -spoil);
                    tensor_set(&call.d_o, 1, h, i, c, spoil);
                }
        for (int64_t h = 0; h < KEY_HEADS; h++)
            for (int64_t j = 0; j < KEYS; j++)
                for (int64_t c = 0; c < D_V; c++) {
                    /* Query 40 is the last, and stands at key 35. */
                    if (j > 35)
                        tensor_set(&problem.k, 0, h, j, c, spoil);
                    if (j > 35)
                        tensor_set(&problem.v, 0, h, j, c, spoil);
                    tensor_set(&problem.k, 1, h, j, c, spoil);
                    tensor_set(&problem.v, 1, h, j, c, -spoil);
                }
        gradient_solve(context, &problem, &call, &spoiled);
        test_context("%g where nothing is kept", spoil);
        /* Which way a tile takes may depend on what it holds. */
        CHECK_GRADIENTS(&problem, &call, &clean);
        CHECK_GRADIENTS(&problem, &call, &spoiled);
        check_all_zero("dq", spoiled.q, 5 * D_QK);
        check_all_zero("dq", spoiled.q + spoiled.of_q / 2, spoiled.of_q / 2);
        check_all_zero("dk", spoiled.k + spoiled.of_k / 2, spoiled.of_k / 2);
        check_all_zero("dv", spoiled.v + spoiled.of_v / 2, spoiled.of_v / 2);
        check_all_zero("dk", spoiled.k + 36 * D_QK, (KEYS - 36) * D_QK);
        check_all_zero("dv", spoiled.v + 36 * D_V, (KEYS - 36) * D_V);
        guarded_release_all();
    }
}

/* Where a NaN or an infinity stands, and in what. */
struct spot {
    const char *what;
    int64_t query, key; /* one of them is −1 */
    bool in_first;      /* q or k; else d_o or v */
};

/* What is kept is spoilt, as the definition says, and nothing else. */
static void nan_reaches_what_keeps_it(attn_context *context)
{
    static const struct spot spots[] = {
        {"q", 17, -1, true},
        {"d_o", 17, -1, false},
        {"k", -1, 20, true},
        {"v", -1, 20, false},
        {"the last k", -1, KEYS - 1, true},
    };
    for (size_t n = 0; n < COUNT(spots) * COUNT(types); n++)
        for (int mask = 0; mask < 4; mask++) {
            const struct spot *spot = &spots[n % COUNT(spots)];
            struct attention_problem problem;
            struct gradient_call call;
            struct gradient_result result;
            if (!test_takes_one_in(5))
                continue;
            make(&problem, types[n / COUNT(spots)], 18);
            problem.params.causal = mask == 1;
            problem.params.window_left = mask == 2 ? 3 : ATTN_WINDOW_OPEN;
            if (mask == 3)
                attention_add_keep(&problem, (int64_t[]){1, 1, QUERIES, KEYS}, 19, 2);
            gradient_call_make(&call, &problem, 20);
            for (int64_t c = 0; c < D_V; c++) {
                if (spot->query >= 0)
                    tensor_set(spot->in_first ? &problem.q : &call.d_o, 0, 1, spot->query, c, NAN);
                else
                    tensor_set(spot->in_first ? &problem.k : &problem.v, 0, 0, spot->key, c, NAN);
            }
            gradient_solve(context, &problem, &call, &result);
            test_context("NaN in %s, mask %d", spot->what, mask);
            CHECK_GRADIENTS(&problem, &call, &result);
            guarded_release_all();
        }
}

/* Gradients do not depend on which others are asked for. */
static void one_gradient_alone(attn_context *context)
{
    for (size_t t = 0; t < COUNT(types); t++) {
        struct attention_problem problem;
        struct gradient_call call;
        struct gradient_result all;
        const float sinks[HEADS] = {0.5f, -1, 2, -INFINITY};
        make(&problem, types[t], 21);
        attention_add_bias(&problem, (int64_t[]){1, HEADS, 1, KEYS}, 22);
        problem.params.sinks = sinks;
        problem.params.soft_cap = 5;
        gradient_call_make(&call, &problem, 23);
        gradient_solve(context, &problem, &call, &all);
        attn_tensor o =
            tensor_allocate(types[t], BATCH, HEADS, QUERIES, D_V, LAYOUT_PACKED, GUARD_BEHIND);
        attn_tensor stats =
            tensor_allocate(types[t], BATCH, HEADS, QUERIES, 2, LAYOUT_PACKED, GUARD_BEHIND);
        CHECK_EQUAL(
            attn_forward(context, &problem.params, &problem.q, &problem.k, &problem.v, &o, &stats),
            ATTN_SUCCESS);
        const int64_t of_sinks[4] = {1, HEADS, 1, 1};
        const int64_t *const shapes[] = {problem.q.shape, problem.k.shape, problem.v.shape,
                                         problem.bias.shape, of_sinks};
        const double *const expected[] = {all.q, all.k, all.v, all.bias, all.sinks};
        for (size_t n = 0; n < COUNT(shapes); n++) {
            attn_gradients gradients;
            attn_gradients_init(&gradients);
            attn_tensor alone = tensor_allocate(types[t], shapes[n][0], shapes[n][1], shapes[n][2],
                                                shapes[n][3], LAYOUT_PACKED, GUARD_BEHIND);
            const attn_tensor **const places[] = {&gradients.q, &gradients.k, &gradients.v,
                                                  &gradients.bias, &gradients.sinks};
            *places[n] = &alone;
            CHECK_EQUAL(attn_backward(context, &problem.params, &problem.q, &problem.k, &problem.v,
                                      &o, &stats, &call.d_o, &gradients),
                        ATTN_SUCCESS);
            attn_tensor copy = tensor_convert(&alone, ATTN_F64, LAYOUT_PACKED, GUARD_BEHIND);
            test_context("gradient %zu alone", n);
            check_equal_doubles("alone", copy.data, expected[n], tensor_elements(&alone));
        }
    }
}

/* Each option that makes threads wait for each other, or sums what several of them made. */
static void threads_change_nothing(attn_isa isa)
{
    static const int64_t shapes[][4] = {
        {BATCH, HEADS, QUERIES, KEYS}, {1, HEADS, 1, KEYS}, {BATCH, 1, QUERIES, 1}, {1, 1, 1, 1}};
    attn_context *alone = isa_context(isa, 1);
    const float sinks[HEADS] = {0.5f, -1, 2, -INFINITY};
    for (int threads = 2; threads <= 5; threads++) {
        attn_context *many = isa_context(isa, threads);
        for (size_t n = 0; n < COUNT(shapes) * COUNT(types); n++) {
            struct attention_problem problem;
            struct gradient_call call;
            struct gradient_result expected, result;
            if (!test_takes_one_in(5))
                continue;
            make(&problem, types[n % COUNT(types)], 24);
            attention_add_bias(&problem, shapes[n / COUNT(types)], 25);
            problem.params.sinks = n % 3 ? sinks : NULL;
            problem.params.causal = n % 2 == 1;
            problem.params.dropout = n % 4 == 3 ? 0.5f : 0;
            gradient_call_make(&call, &problem, 26);
            gradient_solve(alone, &problem, &call, &expected);
            gradient_solve(many, &problem, &call, &result);
            test_context("%d threads, case %zu", threads, n);
            CHECK_SAME_GRADIENTS(&result, &expected);
            guarded_release_all();
        }
        attn_context_destroy(many);
    }
    attn_context_destroy(alone);
}

int main(void)
{
    isa_each_context("gradient laws: proportional to d_o", proportional_to_d_o);
    isa_each_context("gradient laws: dS of a row sums to 0", gradients_of_a_row_sum_to_zero);
    isa_each_context("gradient laws: a shared bias is summed", shared_bias_is_summed);
    isa_each_context("gradient laws: groups are summed", groups_are_summed);
    isa_each_context("gradient laws: future and past are apart", future_and_past_are_apart);
    isa_each_context("gradient laws: nothing gives nothing", nothing_gives_nothing);
    isa_each_context("gradient laws: NaN reaches what keeps it", nan_reaches_what_keeps_it);
    isa_each_context("gradient laws: a sink of -inf is none", a_sink_of_minus_infinity_is_none);
    isa_each_context("gradient laws: one gradient alone", one_gradient_alone);
    isa_each("gradient laws: threads change nothing", threads_change_nothing);
    return test_finish();
}
