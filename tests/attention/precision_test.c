/* params.precision: where bf16 products may be used and the CPU has them, the result keeps their
 * bound and all the laws; elsewhere nothing changes. */
#include "harness/test.h"

#include <math.h>

#include <string.h>

#include "base/cpu.h"
#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/dots.h"
#include "harness/isa.h"

static const struct attention_sizes sizes[] = {
    {1, 1, 1, 1, 1, 1, 1},      {1, 1, 1, 3, 2, 2, 2},       {2, 4, 2, 21, 97, 7, 3},
    {1, 2, 1, 33, 101, 64, 72}, {1, 1, 1, 40, 200, 129, 13}, {1, 6, 2, 70, 191, 48, 40},
};

static attn_precision precision_of(attn_context *context, attn_operation operation,
                                   const struct attention_problem *problem)
{
    attn_explanation explanation = {.size = sizeof explanation};
    CHECK_EQUAL(attn_explain(context, operation, &problem->params, &problem->q, &problem->k,
                             &problem->v,
                             &(attn_tensor){.type = ATTN_F32,
                                            .shape = {problem->q.shape[0], problem->q.shape[1],
                                                      problem->q.shape[2], problem->v.shape[3]}},
                             &explanation),
                ATTN_SUCCESS);
    return explanation.precision;
}

static void make(struct attention_problem *problem, const struct attention_sizes *size, attn_type v)
{
    attention_make(problem, size, 7);
    attention_store(problem, ATTN_BF16, ATTN_BF16, v);
    problem->params.precision = ATTN_PRECISION_BF16;
}

static void keeps_its_bound(attn_context *context)
{
    for (size_t n = 0; n < COUNT(sizes); n++)
        for (int variant = 0; variant < 4; variant++) {
            struct attention_problem problem;
            struct attention_result result;
            if (!test_takes_one_in(11))
                continue;
            test_context("size %d, variant %d", (int)n, variant);
            make(&problem, &sizes[n], variant & 1 ? ATTN_F32 : ATTN_BF16);
            problem.params.causal = variant >= 2;
            problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
            attention_solve(context, &problem, &result);
            CHECK_RESULT(&problem, &result);
            guarded_release_all();
        }
}

/* Without bf16 products, and where types do not allow them, not a bit differs. */
static void else_as_exact(attn_context *context)
{
    for (size_t n = 0; n < COUNT(sizes); n++) {
        struct attention_problem problem, exact;
        struct attention_result result, same;
        if (!test_takes_one_in(3))
            continue;
        test_context("size %d", (int)n);
        make(&problem, &sizes[n], ATTN_BF16);
        if (precision_of(context, ATTN_OPERATION_FORWARD, &problem) == ATTN_PRECISION_BF16)
            attention_store(&problem, ATTN_F32, ATTN_BF16, ATTN_BF16);
        CHECK_EQUAL(precision_of(context, ATTN_OPERATION_FORWARD, &problem), ATTN_PRECISION_EXACT);
        attention_copy(&problem, &exact);
        exact.params.precision = ATTN_PRECISION_EXACT;
        attention_solve(context, &problem, &result);
        attention_solve(context, &exact, &same);
        CHECK_SAME_RESULT(&result, &same);
        guarded_release_all();
    }
}

static void decode_is_exact(attn_context *context)
{
    struct attention_problem problem;
    make(&problem, &sizes[1], ATTN_BF16);
    CHECK_EQUAL(precision_of(context, ATTN_OPERATION_DECODE, &problem), ATTN_PRECISION_EXACT);
    guarded_release_all();
}

/* Each head alone, and layouts that have to be copied, give the same bits. */
static void rows_are_their_own(attn_context *context)
{
    for (size_t n = 0; n < COUNT(sizes); n++)
        for (enum layout layout = LAYOUT_PACKED; layout < LAYOUT_OUTPUTS; layout++) {
            struct attention_problem problem, alone, moved;
            struct attention_result whole, part, expected, other;
            if (!test_takes_one_in(11))
                continue;
            test_context("size %d, layout %d", (int)n, (int)layout);
            make(&problem, &sizes[n], ATTN_BF16);
            attention_solve(context, &problem, &whole);
            attention_copy(&problem, &moved);
            moved.q = tensor_copy(&problem.q, layout, GUARD_BEHIND);
            moved.k = tensor_copy(&problem.k, layout, GUARD_BEHIND);
            moved.v = tensor_copy(&problem.v, layout, GUARD_BEHIND);
            attention_solve(context, &moved, &other);
            CHECK_SAME_RESULT(&other, &whole);
            if (sizes[n].batch == 1) {
                int64_t head = sizes[n].heads - 1;
                attention_one_head(&problem, head, &alone);
                attention_solve(context, &alone, &part);
                attention_result_part(&problem, &whole,
                                      &(struct attention_part){.head = head,
                                                               .batches = 1,
                                                               .heads = 1,
                                                               .queries = sizes[n].queries,
                                                               .keys = sizes[n].keys},
                                      &expected);
                CHECK_SAME_RESULT(&part, &expected);
            }
            guarded_release_all();
        }
}

/* A query by itself, whose tiles then begin and end elsewhere, gives the bits that it gives among
 * others. */
static void queries_are_their_own(attn_context *context)
{
    enum { QUERIES = 150 };
    const struct attention_sizes size = {1, 1, 1, QUERIES, QUERIES, 48, 40};
    struct attention_problem problem, alone;
    struct attention_result whole, part, expected;
    make(&problem, &size, ATTN_BF16);
    problem.params.causal = 1;
    problem.params.window_left = 50;
    attention_solve(context, &problem, &whole);
    for (int64_t row = 0; row < QUERIES; row += 7) {
        test_context("query %d", (int)row);
        attention_copy(&problem, &alone);
        alone.q.data = (uint16_t *)problem.q.data + row * problem.q.stride[2];
        alone.q.shape[2] = 1;
        alone.params.alignment = ATTN_ALIGN_OFFSET;
        alone.params.offset = row;
        attention_solve(context, &alone, &part);
        attention_result_part(
            &problem, &whole,
            &(struct attention_part){
                .query = row, .batches = 1, .heads = 1, .queries = 1, .keys = QUERIES},
            &expected);
        CHECK_SAME_RESULT(&part, &expected);
    }
}

/* NaN and infinities in excluded keys and values. */
static void excluded_rows_do_not_leak(attn_context *context)
{
    for (size_t n = 2; n < COUNT(sizes); n++) {
        struct attention_problem problem, clean;
        struct attention_result result, expected;
        test_context("size %d", (int)n);
        make(&problem, &sizes[n], ATTN_BF16);
        problem.params.causal = 1;
        attention_copy(&problem, &clean);
        clean.k = tensor_copy(&problem.k, LAYOUT_PACKED, GUARD_BEHIND);
        clean.v = tensor_copy(&problem.v, LAYOUT_PACKED, GUARD_BEHIND);
        int64_t first = sizes[n].queries / 2;
        for (int64_t b = 0; b < sizes[n].batch; b++)
            for (int64_t h = 0; h < sizes[n].key_heads; h++)
                for (int64_t j = first; j < sizes[n].keys; j++) {
                    for (int64_t c = 0; c < sizes[n].d_qk; c++) {
                        tensor_set(&problem.k, b, h, j, c, j % 2 ? (double)NAN : (double)INFINITY);
                        tensor_set(&clean.k, b, h, j, c, 0.0);
                    }
                    for (int64_t c = 0; c < sizes[n].d_v; c++) {
                        tensor_set(&problem.v, b, h, j, c, j % 2 ? (double)INFINITY : (double)NAN);
                        tensor_set(&clean.v, b, h, j, c, 0.0);
                    }
                }
        attention_solve(context, &problem, &result);
        attention_solve(context, &clean, &expected);
        size_t rows = (size_t)first * (size_t)sizes[n].d_v;
        for (size_t i = 0; i < rows; i++)
            CHECK(result.o[i] == expected.o[i]);
        guarded_release_all();
    }
}

#if defined(ATTN_WITH_AMX)
static bool tiles_are_released(void)
{
    unsigned char shapes[64], released[64] = {0};
    __asm__ volatile("sttilecfg %0" : "=m"(shapes));
    return memcmp(shapes, released, sizeof shapes) == 0;
}

/* Threads go back to their owner without tiles, which would slow down what they do next. */
static void gives_tiles_back(const void *argument)
{
    (void)argument;
    if (!attn_cpu_has_bf16_tiles()) {
        test_skip("no AMX here");
        return;
    }
    attn_context *context = isa_context(ATTN_ISA_BEST, 1);
    struct attention_problem problem;
    struct attention_result result;
    make(&problem, &sizes[3], ATTN_BF16);
    attention_solve(context, &problem, &result);
    CHECK(tiles_are_released());
    attn_context_destroy(context);
}
#endif

int main(void)
{
    isa_each_context("keeps the bound of the precision", keeps_its_bound);
    dots_each_context("keeps the bound of the precision", keeps_its_bound);
    isa_each_context("as exact where it is of no use", else_as_exact);
    isa_each_context("decode is explained as exact", decode_is_exact);
    dots_each_context("bits of a row are its own", rows_are_their_own);
    dots_each_context("bits of a query are its own", queries_are_their_own);
    dots_each_context("excluded NaN and infinity do not leak", excluded_rows_do_not_leak);
#if defined(ATTN_WITH_AMX)
    test_run(gives_tiles_back, NULL, "a call gives the tiles back");
#endif
    return test_finish();
}
