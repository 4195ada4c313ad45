/* Element types: every combination that is allowed, against the reference and against the same
 * numbers in f32; and what is said to the others. tests/attention/double_test.c has f64. */
#include "harness/test.h"

#include <math.h>

#include "attention_call.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/element.h"
#include "harness/isa.h"

static const attn_type float_types[] = {ATTN_F32, ATTN_F16, ATTN_BF16};
static const attn_type row_types[] = {ATTN_F32, ATTN_F16, ATTN_BF16, ATTN_I8};

static const char *name_of(attn_type type)
{
    const char *const names[] = {"f32", "bool", "f64", "f16", "bf16", "i8"};
    return names[type];
}

static const struct attention_sizes sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 4, 2, 21, 98, 7, 3},
    {1, 2, 1, 17, 101, 64, 72},
    {1, 1, 1, 9, 33, 130, 5},
};

/* Conversion on the way in is all that a type changes: the bits are those of the same numbers in
 * f32. On the way out one rounding is added. */
static void check_types(attn_context *context, const struct attention_sizes *size, attn_type q,
                        attn_type k, attn_type v)
{
    struct attention_problem problem, wide;
    struct attention_result result, same, rounded;
    attention_make(&problem, size, 1);
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    attention_store(&problem, q, k, v);
    test_context("q %s, k %s, v %s, %d keys", name_of(q), name_of(k), name_of(v), (int)size->keys);
    attention_solve(context, &problem, &result);
    CHECK_RESULT(&problem, &result);
    attention_widen(&problem, &wide);
    attention_solve(context, &wide, &same);
    CHECK_SAME_RESULT(&result, &same);

    problem.output_type = q;
    attention_solve(context, &problem, &rounded);
    for (size_t i = 0; i < result.outputs; i++)
        result.o[i] = (float)element_round(q, (double)result.o[i]);
    CHECK_SAME_RESULT(&rounded, &result);
}

static void every_combination(attn_context *context)
{
    for (size_t n = 0; n < COUNT(sizes); n++)
        for (size_t q = 0; q < COUNT(float_types); q++)
            for (size_t k = 0; k < COUNT(row_types); k++)
                for (size_t v = 0; v < COUNT(row_types); v++) {
                    if (!test_takes_one_in(29))
                        continue;
                    check_types(context, &sizes[n], float_types[q], row_types[k], row_types[v]);
                    guarded_release_all();
                }
}

/* Every way to lie in memory; head and row strides of 0 give other numbers, so the packed copy of
 * the same tensor is what the bits are held against. */
static void check_layout(attn_context *context, attn_type q, attn_type rows, enum layout layout,
                         enum guard_side side)
{
    struct attention_problem problem, packed;
    struct attention_result result, same;
    attention_make(&problem, &(struct attention_sizes){2, 4, 2, 5, 20, 70, 66}, 2);
    attention_store(&problem, q, rows, rows);
    problem.output_type = q;
    problem.q = tensor_copy(&problem.q, layout, side);
    problem.k = tensor_copy(&problem.k, layout, side);
    problem.v = tensor_copy(&problem.v, layout, side);
    if (rows == ATTN_I8) {
        problem.key_scales = tensor_copy(&problem.key_scales, layout, side);
        problem.value_scales = tensor_copy(&problem.value_scales, layout, side);
    }
    attention_copy(&problem, &packed);
    packed.q = tensor_copy(&problem.q, LAYOUT_PACKED, GUARD_BEHIND);
    packed.k = tensor_copy(&problem.k, LAYOUT_PACKED, GUARD_BEHIND);
    packed.v = tensor_copy(&problem.v, LAYOUT_PACKED, GUARD_BEHIND);
    problem.output_layout = layout < LAYOUT_OUTPUTS ? layout : LAYOUT_PADDED;
    problem.side = side;
    test_context("q %s, k and v %s, layout %d", name_of(q), name_of(rows), (int)layout);
    attention_solve(context, &problem, &result);
    attention_solve(context, &packed, &same);
    CHECK_SAME_RESULT(&result, &same);
}

static void every_layout(attn_context *context)
{
    for (size_t q = 0; q < COUNT(float_types); q++)
        for (size_t rows = 0; rows < COUNT(row_types); rows++)
            for (enum layout layout = 0; layout < LAYOUT_INPUTS; layout++)
                for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++) {
                    if (!test_takes_one_in(11))
                        continue;
                    check_layout(context, float_types[q], row_types[rows], layout, side);
                    guarded_release_all();
                }
}

/* Scales of each shape that stretches over the rows. */
static void scales_of_any_shape(attn_context *context)
{
    const struct attention_sizes size = {2, 4, 2, 17, 41, 12, 5};
    struct random_source source = {3};
    for (unsigned shape = 0; shape < 8; shape++) {
        struct attention_problem problem;
        struct attention_result result;
        attention_make(&problem, &size, 4);
        attention_store(&problem, ATTN_F32, ATTN_I8, ATTN_I8);
        int64_t batch = shape & 1 ? size.batch : 1, heads = shape & 2 ? size.key_heads : 1;
        int64_t keys = shape & 4 ? size.keys : 1;
        attn_tensor scales =
            tensor_allocate(ATTN_F32, batch, heads, keys, 1, LAYOUT_PADDED, GUARD_BEHIND);
        tensor_fill_random(&scales, &source, -0.02f, 0.02f);
        problem.key_scales = scales;
        problem.value_scales = tensor_copy(&scales, LAYOUT_REVERSED, GUARD_BEFORE);
        test_context("scales [%d, %d, %d, 1]", (int)batch, (int)heads, (int)keys);
        attention_solve(context, &problem, &result);
        CHECK_RESULT(&problem, &result);
    }
}

/* A bias of another type than f32 is one of f32 with the same numbers. */
static void bias_of_any_type(attn_context *context)
{
    const int64_t shapes[][4] = {{2, 4, 21, 37}, {1, 1, 21, 1}, {1, 4, 1, 37}};
    for (size_t type = 0; type < COUNT(float_types); type++)
        for (size_t n = 0; n < COUNT(shapes); n++) {
            struct attention_problem problem, wide;
            struct attention_result result, same;
            attention_make(&problem, &(struct attention_sizes){2, 4, 2, 21, 37, 8, 8}, 5);
            attention_add_bias(&problem, shapes[n], 6);
            tensor_set(&problem.bias, 0, 0, 3, 0, -INFINITY);
            attention_store_bias(&problem, float_types[type]);
            test_context("bias %s of shape %zu", name_of(float_types[type]), n);
            attention_solve(context, &problem, &result);
            CHECK_RESULT(&problem, &result);
            attention_widen(&problem, &wide);
            attention_solve(context, &wide, &same);
            CHECK_SAME_RESULT(&result, &same);
        }
}

/* What f16 cannot hold becomes infinity on the way out, and tiny numbers lose bits or vanish. */
static void outputs_beyond_f16(attn_context *context)
{
    const float values[] = {65504, 65519, 65520, 1e6f, -1e6f, 1e-7f, 1e-9f, -1e-9f};
    attn_tensor q = tensor_allocate(ATTN_F16, 1, 1, 1, 1, LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor k = tensor_allocate(ATTN_F32, 1, 1, 1, 1, LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor v = tensor_allocate(ATTN_F32, 1, 1, 1, COUNT(values), LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor o = tensor_allocate(ATTN_F16, 1, 1, 1, COUNT(values), LAYOUT_PACKED, GUARD_BEHIND);
    tensor_fill(&q, 1);
    tensor_fill(&k, 1);
    for (size_t c = 0; c < COUNT(values); c++)
        tensor_set(&v, 0, 0, 0, (int64_t)c, (double)values[c]);
    CHECK_EQUAL(attn_forward(context, NULL, &q, &k, &v, &o, NULL), ATTN_SUCCESS);
    for (size_t c = 0; c < COUNT(values); c++)
        CHECK_WITHIN(tensor_get(&o, 0, 0, 0, (int64_t)c),
                     element_round(ATTN_F16, (double)values[c]), 0);
}

/* One tensor of a right call in f32 gets a type that it must not have. */
static const struct refusal {
    attn_type q, k, v, o, stats, bias, weights;
    const char *message;
    bool weights_alone, forward_alone;
} refusals[] = {
    {.q = ATTN_BOOL, .message = "q has type bool, expected f32, f16, bf16 or f64"},
    {.q = ATTN_I8, .message = "q has type i8, expected f32, f16, bf16 or f64"},
    {.q = (attn_type)77, .message = "q has type unknown, expected f32, f16, bf16 or f64"},
    {.k = ATTN_F64, .message = "k has type f64, expected f32, f16, bf16 or i8"},
    {.k = ATTN_BOOL, .message = "k has type bool, expected f32, f16, bf16 or i8"},
    {.q = ATTN_F64, .message = "k has type f32, expected f64"},
    {.v = ATTN_F64,
     .message = "v has type f64, expected f32, f16, bf16 or i8",
     .forward_alone = true},
    {.q = ATTN_F64,
     .k = ATTN_F64,
     .message = "v has type f32, expected f64",
     .forward_alone = true},
    {.o = ATTN_F16, .message = "o has type f16, expected f32", .forward_alone = true},
    {.q = ATTN_BF16,
     .o = ATTN_F16,
     .message = "o has type f16, expected f32 or bf16",
     .forward_alone = true},
    {.q = ATTN_F64,
     .k = ATTN_F64,
     .v = ATTN_F64,
     .message = "o has type f32, expected f64",
     .forward_alone = true},
    {.stats = ATTN_F16, .message = "stats has type f16, expected f32"},
    {.stats = ATTN_F64, .message = "stats has type f64, expected f32"},
    {.bias = ATTN_F64, .message = "params.bias has type f64, expected f32, f16 or bf16"},
    {.bias = ATTN_I8, .message = "params.bias has type i8, expected f32, f16 or bf16"},
    {.weights = ATTN_F16, .message = "weights has type f16, expected f32", .weights_alone = true},
    {.k = ATTN_I8, .message = "params.key_scales is NULL"},
    {.v = ATTN_I8, .message = "params.value_scales is NULL", .forward_alone = true},
};

/* Types alone are changed: elements are as far apart as doubles, so that every view is valid. */
static attn_tensor as_type(const attn_tensor *tensor, attn_type type)
{
    attn_tensor wide =
        tensor_allocate(ATTN_F64, tensor->shape[0], tensor->shape[1], tensor->shape[2],
                        tensor->shape[3], LAYOUT_PACKED, GUARD_BEHIND);
    wide.type = type;
    return wide;
}

static void wrong_types(const void *argument)
{
    (void)argument;
    for (size_t n = 0; n < COUNT(refusals); n++) {
        const struct refusal *refusal = &refusals[n];
        struct attention_call call;
        attention_call_begin(&call, &(struct attention_sizes){1, 2, 1, 3, 5, 4, 2});
        attention_add_bias(&call.problem, (int64_t[]){1, 1, 3, 5}, 7);
        call.problem.q = as_type(&call.problem.q, refusal->q);
        call.problem.k = as_type(&call.problem.k, refusal->k);
        call.problem.v = as_type(&call.problem.v, refusal->v);
        call.problem.bias = as_type(&call.problem.bias, refusal->bias);
        call.o = as_type(&call.o, refusal->o);
        call.stats = as_type(&call.stats, refusal->stats);
        call.weights = as_type(&call.weights, refusal->weights);
        bool scales = refusal->k == ATTN_I8 || refusal->v == ATTN_I8;
        attn_status expected = scales ? ATTN_ERROR_ARGUMENT : ATTN_ERROR_TYPE;
        test_context("refusal %zu", n);
        if (!refusal->weights_alone) {
            CHECK_EQUAL(attention_call_forward(&call), expected);
            CHECK_CONTAINS(attn_message(call.context), refusal->message);
        }
        if (!refusal->forward_alone) {
            CHECK_EQUAL(attention_call_weights(&call), expected);
            CHECK_CONTAINS(attn_message(call.context), refusal->message);
        }
        attention_call_end(&call);
    }
}

/* The scale of a key that a row excludes is as little read into it as the key. */
static void scales_of_excluded_keys_do_not_leak(attn_context *context)
{
    enum { QUERIES = 2, HEADS = 2, KEYS = 90, D = 8, BY_ALL = 17, BY_FIRST = 50 };
    struct attention_problem problem, broken;
    attention_make(&problem, &(struct attention_sizes){1, HEADS, 1, QUERIES, KEYS, D, D}, 4);
    attention_store(&problem, ATTN_F32, ATTN_I8, ATTN_I8);
    attention_add_keep(&problem, (int64_t[]){1, 1, QUERIES, KEYS}, 5, 9);
    for (int64_t i = 0; i < QUERIES; i++)
        tensor_set(&problem.keep, 0, 0, i, BY_ALL, 0);
    tensor_set(&problem.keep, 0, 0, 0, BY_FIRST, 0);
    tensor_set(&problem.keep, 0, 0, 1, BY_FIRST, 1);
    for (int kept = 0; kept < 2; kept++) {
        struct attention_result clean[2], result[2];
        attention_copy(&problem, &broken);
        broken.key_scales = tensor_copy(&problem.key_scales, LAYOUT_PACKED, GUARD_BEHIND);
        broken.value_scales = tensor_copy(&problem.value_scales, LAYOUT_PACKED, GUARD_BEHIND);
        const int64_t key = kept ? BY_FIRST : BY_ALL;
        tensor_set(&broken.value_scales, 0, 0, key, 0, NAN);
        if (!kept)
            tensor_set(&broken.key_scales, 0, 0, key, 0, INFINITY);
        attention_solve(context, &problem, &clean[0]);
        attention_solve_decode(context, &problem, &clean[1]);
        attention_solve(context, &broken, &result[0]);
        attention_solve_decode(context, &broken, &result[1]);
        for (int call = 0; call < 2; call++)
            for (size_t row = 0; row < HEADS * QUERIES; row++) {
                test_context("%s, key %d, row %zu", call ? "decode" : "forward", (int)key, row);
                if (kept && row % QUERIES == 1)
                    CHECK_ALL(result[call].o + row * D, NAN, D);
                else
                    CHECK_SAME_BITS(result[call].o + row * D, clean[call].o + row * D, D);
            }
    }
}

int main(void)
{
    isa_each_context("every combination of types", every_combination);
    isa_each_context("every layout of every type", every_layout);
    isa_each_context("i8: scales of any shape", scales_of_any_shape);
    isa_each_context("i8: scales of excluded keys do not leak",
                     scales_of_excluded_keys_do_not_leak);
    isa_each_context("bias of any type", bias_of_any_type);
    isa_each_context("outputs that f16 cannot hold", outputs_beyond_f16);
    test_run(wrong_types, NULL, "types that are not taken");
    return test_finish();
}
