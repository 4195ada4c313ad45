/* Gradients of f64 against finite differences of attn_forward: with L = Σ o·d_o, each element of q,
 * k, v, the bias and the sinks is moved by itself, with every mask and option. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>

#include "harness/attention_gradient.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { BATCH = 2, HEADS = 4, KEY_HEADS = 2, QUERIES = 5, KEYS = 7, D_QK = 3, D_V = 4 };
static const struct attention_sizes tiny = {BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, D_QK, D_V};

/* A power of two, with q and k on a coarse grid: so changed scores are exact in f32, and a step of
 * one element is a step of L without noise. */
static const double step = 0x1p-5;

/* Relative to the largest element of a gradient. What change_gradients is given is f32. */
static const double usual_bound = 1e-8, callback_bound = 1e-6;

static double loss(attn_context *context, const struct attention_problem *problem,
                   const struct gradient_call *call, const attn_tensor *o)
{
    if (attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, o, NULL) !=
        ATTN_SUCCESS)
        test_fail(__FILE__, __LINE__, "%s", attn_message(context));
    const double *output = o->data, *d_o = call->d_o.data;
    double sum = 0;
    for (size_t i = 0; i < tensor_elements(o); i++)
        sum += output[i] * d_o[i];
    return sum;
}

/* What is moved: an array of f64, or of f32. */
struct moved {
    const char *what;
    double *doubles;
    float *floats;
    const double *gradient;
    size_t count;
};

static double value_of(const struct moved *moved, size_t i)
{
    return moved->doubles ? moved->doubles[i] : (double)moved->floats[i];
}

static void set_value(const struct moved *moved, size_t i, double value)
{
    if (moved->doubles)
        moved->doubles[i] = value;
    else
        moved->floats[i] = (float)value;
}

/* The central difference of eighth order (B. Fornberg, "Generation of Finite Difference Formulas on
 * Arbitrarily Spaced Grids" (1988), table 1). */
static double difference(attn_context *context, const struct attention_problem *problem,
                         const struct gradient_call *call, const attn_tensor *o,
                         const struct moved *moved, size_t i)
{
    static const double factors[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
    double middle = value_of(moved, i), sum = 0;
    for (int n = 0; n < 4; n++) {
        set_value(moved, i, middle + (n + 1) * step);
        double above = loss(context, problem, call, o);
        set_value(moved, i, middle - (n + 1) * step);
        sum += factors[n] * (above - loss(context, problem, call, o));
    }
    set_value(moved, i, middle);
    return sum / step;
}

static void check_moved(attn_context *context, const struct attention_problem *problem,
                        const struct gradient_call *call, const attn_tensor *o,
                        const struct moved *moved, double bound)
{
    double *expected = guarded_doubles(moved->count), *tolerance = guarded_doubles(moved->count);
    double largest = 0;
    for (size_t i = 0; i < moved->count; i++) {
        /* What excludes its key is not moved. */
        bool excludes = value_of(moved, i) == -INFINITY;
        expected[i] = excludes ? 0 : difference(context, problem, call, o, moved, i);
        largest = fmax(largest, fabs(expected[i]));
    }
    for (size_t i = 0; i < moved->count; i++)
        tolerance[i] = bound * largest + 1e-12;
    compare_near_doubles(__FILE__, __LINE__, moved->what, moved->gradient, expected, tolerance,
                         moved->count);
}

/* Arrays that params point to. */
struct arrays {
    int64_t lengths[4], prefixes[4];
    float slopes[HEADS], sinks[HEADS];
};

static void check(attn_context *context, const struct attention_problem *problem, double bound)
{
    struct gradient_call call;
    struct gradient_result result;
    gradient_call_make(&call, problem, 77);
    gradient_solve(context, problem, &call, &result);
    CHECK_GRADIENTS(problem, &call, &result);
    const int64_t *shape = problem->q.shape;
    attn_tensor o = tensor_allocate(ATTN_F64, shape[0], shape[1], shape[2], problem->v.shape[3],
                                    LAYOUT_PACKED, GUARD_BEHIND);
    /* Of params, what is moved is the test's own array. */
    const struct moved moved[] = {
        {"dq", problem->q.data, NULL, result.q, result.of_q},
        {"dk", problem->k.data, NULL, result.k, result.of_k},
        {"dv", problem->v.data, NULL, result.v, result.of_v},
        {"dbias", problem->bias.data, NULL, result.bias, result.of_bias},
        {"dsinks", NULL, (float *)(uintptr_t)problem->params.sinks, result.sinks, result.of_sinks},
    };
    for (size_t n = 0; n < COUNT(moved); n++)
        if (moved[n].count > 0)
            check_moved(context, problem, &call, &o, &moved[n], bound);
}

/* Multiples of 1/8 between −1 and 1. */
static void coarsen(const attn_tensor *tensor)
{
    double *elements = tensor->data;
    for (size_t i = 0; i < tensor_elements(tensor); i++)
        elements[i] = rint(elements[i] * 4) / 8;
}

static void make(struct attention_problem *problem, const struct attention_sizes *sizes,
                 uint64_t seed)
{
    attention_make(problem, sizes, seed);
    attention_store(problem, ATTN_F64, ATTN_F64, ATTN_F64);
    coarsen(&problem->q);
    coarsen(&problem->k);
}

static void dense(struct attention_problem *problem, struct arrays *arrays)
{
    (void)problem, (void)arrays;
}

static void causal_top_left(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.causal = 1;
}

static void causal_bottom_right(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.causal = 1;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
}

/* The first two queries see no key. */
static void causal_behind(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.causal = 1;
    problem->params.alignment = ATTN_ALIGN_OFFSET;
    problem->params.offset = -2;
}

static void window(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    problem->params.window_left = 2;
    problem->params.window_right = 1;
}

static void prefix(struct attention_problem *problem, struct arrays *arrays)
{
    arrays->prefixes[0] = 3;
    problem->params.causal = 1;
    problem->params.prefix_lengths = arrays->prefixes;
}

static void lengths(struct attention_problem *problem, struct arrays *arrays)
{
    arrays->lengths[0] = 4;
    problem->params.key_lengths = arrays->lengths;
}

static void documents(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    attention_add_documents(problem, 3, 3);
}

static void keep(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    attention_add_keep(problem, (int64_t[]){BATCH, 1, QUERIES, KEYS}, 4, 3);
}

static void alibi(struct attention_problem *problem, struct arrays *arrays)
{
    attn_alibi_slopes(HEADS, arrays->slopes);
    problem->params.alibi_slopes = arrays->slopes;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
}

static void soft_cap(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.soft_cap = 0.5f;
}

static void sinks(struct attention_problem *problem, struct arrays *arrays)
{
    static const float given[HEADS] = {0.5f, -INFINITY, 1.25f, -2};
    for (int h = 0; h < HEADS; h++)
        arrays->sinks[h] = given[h];
    problem->params.sinks = arrays->sinks;
}

/* A row without a key has its sink alone. */
static void sinks_of_empty_rows(struct attention_problem *problem, struct arrays *arrays)
{
    sinks(problem, arrays);
    causal_behind(problem, arrays);
}

static void dropout(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.dropout = 0.3f;
    problem->params.dropout_seed = UINT64_C(0x0123456789abcdef);
    problem->params.dropout_batch = 5;
    problem->params.dropout_query = 11;
}

static void dropout_of_all(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.dropout = 1;
}

static void negative_scale(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.scale = -0.75f;
}

static void scale_of_zero(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.scale = 0;
}

static void key_range(void *user, int64_t sequence, int64_t head, int64_t query, int64_t queries,
                      int64_t *begin, int64_t *end)
{
    (void)user, (void)queries;
    *begin = (sequence + head) % 3;
    *end = *end < query + 4 ? *end : query + 4;
}

static void narrowed_keys(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.key_range = key_range;
}

/* s becomes s²/4 on one diagonal, s/2 + 1 on the next, and nothing on a third. */
static void change_scores(void *user, const attn_score_tile *tile)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            float *s = &tile->scores[i * tile->query_stride + j * tile->key_stride];
            int64_t kind = (tile->query + i + tile->key + j + tile->head + tile->sequence) % 4;
            if (kind == 0)
                *s *= *s / 4;
            else if (kind == 1)
                *s = *s / 2 + 1;
            else if (kind == 2)
                *s = -INFINITY;
        }
}

static void change_gradients(void *user, const attn_score_tile *tile, float *gradients)
{
    (void)user;
    for (int64_t i = 0; i < tile->queries; i++)
        for (int64_t j = 0; j < tile->keys; j++) {
            int64_t at = i * tile->query_stride + j * tile->key_stride;
            int64_t kind = (tile->query + i + tile->key + j + tile->head + tile->sequence) % 4;
            if (kind == 0)
                gradients[at] *= tile->scores[at] / 2;
            else if (kind == 1)
                gradients[at] /= 2;
        }
}

static void callbacks(struct attention_problem *problem, struct arrays *arrays)
{
    (void)arrays;
    problem->params.scale = 0.5f;
    problem->params.change_scores = change_scores;
    problem->params.change_gradients = change_gradients;
}

static void coarse_bias(struct attention_problem *problem, const int64_t shape[4])
{
    attention_add_bias(problem, shape, 5);
    attention_store_bias(problem, ATTN_F64);
    coarsen(&problem->bias);
}

static void callbacks_and_masks(struct attention_problem *problem, struct arrays *arrays)
{
    callbacks(problem, arrays);
    coarse_bias(problem, (int64_t[]){1, HEADS, QUERIES, KEYS});
    causal_bottom_right(problem, arrays);
    problem->params.key_range = key_range;
}

static void everything(struct attention_problem *problem, struct arrays *arrays)
{
    coarse_bias(problem, (int64_t[]){BATCH, 1, QUERIES, KEYS});
    tensor_set(&problem->bias, 1, 0, 2, 3, -INFINITY);
    prefix(problem, arrays);
    window(problem, arrays);
    keep(problem, arrays);
    alibi(problem, arrays);
    soft_cap(problem, arrays);
    sinks(problem, arrays);
    dropout(problem, arrays);
    negative_scale(problem, arrays);
}

/* One way to call. */
struct variant {
    const char *what;
    void (*change)(struct attention_problem *problem, struct arrays *arrays);
    double bound;
};

static void check_variant(attn_context *context, const struct attention_sizes *sizes,
                          const struct variant *variant)
{
    struct attention_problem problem;
    struct arrays arrays = {.lengths = {KEYS, 5, 0, 0}};
    make(&problem, sizes, 1);
    variant->change(&problem, &arrays);
    test_context("%s", variant->what);
    check(context, &problem, variant->bound);
    guarded_release_all();
}

static void each_option(attn_context *context)
{
    static const struct variant variants[] = {
        {"dense", dense, usual_bound},
        {"causal, top left", causal_top_left, usual_bound},
        {"causal, bottom right", causal_bottom_right, usual_bound},
        {"causal, rows without a key", causal_behind, usual_bound},
        {"window", window, usual_bound},
        {"prefix", prefix, usual_bound},
        {"lengths", lengths, usual_bound},
        {"documents", documents, usual_bound},
        {"keep", keep, usual_bound},
        {"ALiBi", alibi, usual_bound},
        {"soft cap", soft_cap, usual_bound},
        {"sinks", sinks, usual_bound},
        {"sinks of rows without a key", sinks_of_empty_rows, usual_bound},
        {"dropout", dropout, usual_bound},
        {"dropout of all", dropout_of_all, usual_bound},
        {"negative scale", negative_scale, usual_bound},
        {"scale of 0", scale_of_zero, usual_bound},
        {"key range", narrowed_keys, usual_bound},
        {"callbacks", callbacks, callback_bound},
        {"callbacks and masks", callbacks_and_masks, callback_bound},
        {"everything", everything, usual_bound},
    };
    for (size_t n = 0; n < COUNT(variants); n++)
        if (test_takes_one_in(7))
            check_variant(context, &tiny, &variants[n]);
}

/* Each axis full or 1. */
static void each_broadcast_of_a_bias(attn_context *context)
{
    static const int64_t full[4] = {BATCH, HEADS, QUERIES, KEYS};
    for (int which = 0; which < 16; which++) {
        struct attention_problem problem;
        int64_t shape[4];
        if (!test_takes_one_in(7))
            continue;
        for (int axis = 0; axis < 4; axis++)
            shape[axis] = which >> axis & 1 ? full[axis] : 1;
        make(&problem, &tiny, 2);
        coarse_bias(&problem, shape);
        tensor_set(&problem.bias, 0, 0, 0, 0, -1e4);
        problem.params.causal = 1;
        test_context("bias [%d, %d, %d, %d]", (int)shape[0], (int)shape[1], (int)shape[2],
                     (int)shape[3]);
        check(context, &problem, usual_bound);
        guarded_release_all();
    }
}

static void packed_sequences(attn_context *context)
{
    static const struct variant variants[] = {
        {"packed", dense, usual_bound},
        {"packed, causal", causal_bottom_right, usual_bound},
        {"packed, sinks", sinks, usual_bound},
        {"packed, dropout", dropout, usual_bound},
        {"packed, ALiBi", alibi, usual_bound},
        {"packed, callbacks", callbacks, callback_bound},
        {"packed, lengths", lengths, usual_bound},
    };
    for (size_t n = 0; n < COUNT(variants); n++)
        for (int shared = 0; shared < 3; shared++) {
            struct attention_problem problem;
            struct arrays arrays = {.lengths = {2, 0, 0, 1}};
            const int64_t bias[3][4] = {{1, HEADS, 9, 11}, {1, 1, 1, 11}, {1, HEADS, 1, 1}};
            if (!test_takes_one_in(7))
                continue;
            make(&problem, &(struct attention_sizes){1, HEADS, KEY_HEADS, 9, 11, D_QK, D_V}, 3);
            attention_add_sequences(&problem, 4, (int64_t[]){2, 0, 3, 3}, (int64_t[]){4, 2, 0, 4});
            variants[n].change(&problem, &arrays);
            coarse_bias(&problem, bias[shared]);
            test_context("%s, bias %d", variants[n].what, shared);
            check(context, &problem, variants[n].bound);
            guarded_release_all();
        }
}

static void other_shapes(attn_context *context)
{
    static const struct attention_sizes sizes[] = {
        {1, 1, 1, 1, 1, 1, 1}, {1, 3, 1, 2, 5, 1, 3}, {1, 2, 2, 3, 4, 5, 0},  {2, 2, 1, 3, 0, 2, 2},
        {1, 1, 1, 0, 3, 2, 2}, {0, 2, 2, 3, 4, 2, 2}, {1, 1, 1, 2, 99, 2, 3},
    };
    for (size_t n = 0; n < COUNT(sizes); n++)
        check_variant(context, &sizes[n], &(struct variant){"other shapes", dense, usual_bound});
    struct attention_problem problem;
    make(&problem, &(struct attention_sizes){1, 2, 2, 3, 4, 0, 5}, 2);
    problem.params.scale = 1;
    test_context("d_qk = 0");
    check(context, &problem, usual_bound);
}

int main(void)
{
    isa_each_context("differences: each option", each_option);
    isa_each_context("differences: each broadcast of a bias", each_broadcast_of_a_bias);
    isa_each_context("differences: packed sequences", packed_sequences);
    isa_each_context("differences: other shapes", other_shapes);
    printf("# largest error: %.2f of %.0f allowed\n", gradient_largest_error(),
           GRADIENT_ERROR_FACTOR);
    return test_finish();
}
