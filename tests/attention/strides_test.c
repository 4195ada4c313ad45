/* Views of any shape in memory give the bits that packed copies give. */
#include "harness/test.h"

#include <math.h>
#include <string.h>

#include "harness/attention_problem.h"
#include "harness/compare.h"
#include "harness/isa.h"

static const struct attention_sizes usual = {2, 4, 2, 19, 101, 17, 9};

/* The problem with its inputs packed. */
static void solve_packed(attn_context *context, const struct attention_problem *problem,
                         struct attention_result *result)
{
    struct attention_problem packed = {.params = problem->params};
    packed.q = tensor_copy(&problem->q, LAYOUT_PACKED, GUARD_BEHIND);
    packed.k = tensor_copy(&problem->k, LAYOUT_PACKED, GUARD_BEHIND);
    packed.v = tensor_copy(&problem->v, LAYOUT_PACKED, GUARD_BEHIND);
    if (problem->params.keep) {
        packed.keep = tensor_copy(&problem->keep, LAYOUT_PACKED, GUARD_BEHIND);
        packed.params.keep = &packed.keep;
    }
    if (problem->params.bias) {
        packed.bias = tensor_copy(&problem->bias, LAYOUT_PACKED, GUARD_BEHIND);
        packed.params.bias = &packed.bias;
    }
    attention_solve(context, &packed, result);
}

static void inputs_in_any_layout(attn_context *context)
{
    for (enum layout layout = 0; layout < LAYOUT_INPUTS; layout++) {
        for (int which = 0; which < 5; which++) {
            for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++) {
                struct attention_problem problem;
                struct attention_result strided, packed;
                if (!test_takes_one_in(19))
                    continue;
                attention_make(&problem, &usual, 1);
                const int64_t mask[4] = {2, 4, 19, 101};
                attention_add_keep(&problem, mask, 2, 3);
                attention_add_bias(&problem, mask, 3);
                attn_tensor *tensors[] = {&problem.q, &problem.k, &problem.v, &problem.keep,
                                          &problem.bias};
                *tensors[which] = tensor_copy(tensors[which], layout, side);
                attention_solve(context, &problem, &strided);
                solve_packed(context, &problem, &packed);
                test_context("layout %d of input %d, side %d", (int)layout, which, (int)side);
                CHECK_SAME_RESULT(&strided, &packed);
                guarded_release_all();
            }
        }
    }
}

static void outputs_in_any_layout(attn_context *context)
{
    for (enum layout layout = 0; layout < LAYOUT_OUTPUTS; layout++) {
        for (enum guard_side side = GUARD_BEHIND; side <= GUARD_BEFORE; side++) {
            struct attention_problem problem;
            struct attention_result strided, packed;
            if (!test_takes_one_in(5))
                continue;
            attention_make(&problem, &usual, 4);
            solve_packed(context, &problem, &packed);
            problem.output_layout = layout;
            problem.side = side;
            attention_solve(context, &problem, &strided);
            test_context("layout %d, side %d", (int)layout, (int)side);
            CHECK_SAME_RESULT(&strided, &packed);
            guarded_release_all();
        }
    }
}

static void gaps_of_outputs_stay_as_they_are(attn_context *context)
{
    enum { GAP = 3, D = 5, ROWS = 18, ROW = D + GAP };
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 1, 1, ROWS, 7, 4, D}, 5);
    float *memory = guarded_floats(ROWS * ROW, GUARD_BEHIND);
    attn_tensor o = {memory + 1, ATTN_F32, {1, 1, ROWS, D}, {ROWS * ROW, ROWS * ROW, ROW, 1}};
    CHECK_EQUAL(attn_forward(context, NULL, &problem.q, &problem.k, &problem.v, &o, NULL),
                ATTN_SUCCESS);
    for (int row = 0; row < ROWS; row++) {
        CHECK_UNWRITTEN(memory + row * ROW, 1);
        CHECK_UNWRITTEN(memory + row * ROW + 1 + D, GAP - 1);
        for (int c = 0; c < D; c++)
            CHECK(isfinite(memory[row * ROW + 1 + c]));
    }
}

/* q | k | v | o of each token side by side, heads within, as one linear layer writes them. */
static void slices_of_one_buffer(attn_context *context)
{
    enum { BATCH = 2, HEADS = 3, TOKENS = 23, D = 8, ROW = 4 * HEADS * D };
    float *memory = guarded_floats(BATCH * TOKENS * ROW, GUARD_BEHIND);
    struct random_source source = {6};
    random_floats(&source, -1, 1, memory, BATCH * TOKENS * ROW);
    attn_tensor slices[4];
    for (int n = 0; n < 4; n++)
        slices[n] = (attn_tensor){
            memory + n * HEADS * D, ATTN_F32, {BATCH, HEADS, TOKENS, D}, {TOKENS * ROW, D, ROW, 1}};
    struct attention_problem problem = {.q = slices[0], .k = slices[1], .v = slices[2]};
    attn_params_init(&problem.params);
    struct attention_result packed;
    solve_packed(context, &problem, &packed);
    CHECK_EQUAL(attn_forward(context, NULL, &slices[0], &slices[1], &slices[2], &slices[3], NULL),
                ATTN_SUCCESS);
    CHECK_SAME_BITS(tensor_packed_copy(&slices[3]), packed.o, packed.outputs);
}

/* A tensor [2, 1, rows, d] whose batches lie more than 2³¹ elements apart, in address space of
 * which two places are touched. */
static attn_tensor far_apart(int64_t rows, int64_t d, int64_t batch_stride)
{
    size_t batch_bytes = (size_t)(rows * d) * sizeof(float);
    size_t far = (size_t)(batch_stride < 0 ? -batch_stride : batch_stride) * sizeof(float);
    char *space = guarded_address_space(far + batch_bytes);
    guarded_touch(space, batch_bytes);
    guarded_touch(space + far, batch_bytes);
    void *first = batch_stride < 0 ? space + far : space;
    return (attn_tensor){first, ATTN_F32, {2, 1, rows, d}, {batch_stride, rows * d, d, 1}};
}

static void strides_beyond_31_bits(attn_context *context)
{
    const int64_t strides[] = {(INT64_C(1) << 31) + 64, (INT64_C(1) << 32) + 64,
                               -(INT64_C(1) << 31) - 64};
    for (size_t n = 0; n < COUNT(strides); n++) {
        struct attention_problem problem;
        attn_params_init(&problem.params);
        problem.q = far_apart(17, 5, strides[n]);
        problem.k = far_apart(99, 5, strides[n]);
        problem.v = far_apart(99, 3, strides[n]);
        struct random_source source = {7};
        tensor_fill_random(&problem.q, &source, -1, 1);
        tensor_fill_random(&problem.k, &source, -1, 1);
        tensor_fill_random(&problem.v, &source, -1, 1);
        attn_tensor o = far_apart(17, 3, strides[n]), stats = far_apart(17, 2, strides[n]);
        attn_tensor weights = far_apart(17, 99, strides[n]);
        struct attention_result packed;
        solve_packed(context, &problem, &packed);
        test_context("batch stride %lld", (long long)strides[n]);
        CHECK_EQUAL(attn_forward(context, NULL, &problem.q, &problem.k, &problem.v, &o, &stats),
                    ATTN_SUCCESS);
        CHECK_EQUAL(attn_weights(context, NULL, &problem.q, &problem.k, &stats, NULL, &weights),
                    ATTN_SUCCESS);
        CHECK_SAME_BITS(tensor_packed_copy(&o), packed.o, packed.outputs);
        CHECK_SAME_BITS(tensor_packed_copy(&stats), packed.stats, 2 * packed.rows);
        CHECK_SAME_BITS(tensor_packed_copy(&weights), packed.weights, packed.weight_count);
        guarded_release_all();
    }
}

static void packed_view(const void *argument)
{
    (void)argument;
    float data[1];
    attn_tensor tensor = attn_tensor_packed(data, ATTN_F32, 2, 3, 5, 7);
    const int64_t shape[4] = {2, 3, 5, 7}, stride[4] = {105, 35, 7, 1};
    CHECK(tensor.data == data && tensor.type == ATTN_F32);
    CHECK(memcmp(tensor.shape, shape, sizeof shape) == 0);
    CHECK(memcmp(tensor.stride, stride, sizeof stride) == 0);
}

int main(void)
{
    isa_each_context("inputs in any layout", inputs_in_any_layout);
    isa_each_context("outputs in any layout", outputs_in_any_layout);
    isa_each_context("gaps of outputs stay as they are", gaps_of_outputs_stay_as_they_are);
    isa_each_context("slices of one buffer", slices_of_one_buffer);
    isa_each_context("batch strides beyond 31 bits", strides_beyond_31_bits);
    test_run(packed_view, NULL, "attn_tensor_packed is row-major");
    return test_finish();
}
