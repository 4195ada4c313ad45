/* The handed cases of tests/data/cases/attention.json. */
#include "harness/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/case_check.h"
#include "attention/case_input.h"
#include "harness/compare.h"
#include "harness/isa.h"

struct visit {
    const json_t *json;
    attn_isa isa;
};

static void check_values(const json_t *json, const struct attention_result *result)
{
    case_check_floats(json, "o", result->o, result->outputs);
    case_check_floats(json, "weights", result->weights, result->weight_count);
    float *lse = guarded_floats(result->rows, GUARD_BEHIND);
    for (size_t row = 0; row < result->rows; row++)
        lse[row] = (float)(result->stats[2 * row] + log(result->stats[2 * row + 1]));
    case_check_floats(json, "lse", lse, result->rows);
}

static void check_packed_equals(attn_context *context, struct attention_problem *problem,
                                const struct attention_result *result)
{
    problem->q = tensor_copy(&problem->q, LAYOUT_PACKED, GUARD_BEHIND);
    problem->k = tensor_copy(&problem->k, LAYOUT_PACKED, GUARD_BEHIND);
    problem->v = tensor_copy(&problem->v, LAYOUT_PACKED, GUARD_BEHIND);
    struct attention_result packed;
    attention_solve(context, problem, &packed);
    CHECK_SAME_RESULT(result, &packed);
}

/* In these cases whatever is not finite stands in an excluded place. */
static void check_clean_equals(attn_context *context, const struct attention_problem *problem,
                               const struct attention_result *result)
{
    const attn_tensor *const tensors[] = {&problem->k, &problem->v};
    for (int n = 0; n < 2; n++) {
        if (tensors[n]->type != ATTN_F32)
            test_bail_out("a case with clean-equals is not f32");
        float *data = tensors[n]->data;
        for (size_t i = 0; i < tensor_elements(tensors[n]); i++)
            if (!isfinite(data[i]))
                data[i] = 0;
    }
    struct attention_result clean;
    attention_solve(context, problem, &clean);
    CHECK_SAME_RESULT(result, &clean);
}

static void check_asking_equals(attn_context *context, const struct attention_problem *problem,
                                const struct attention_result *result)
{
    const int64_t *shape = problem->q.shape;
    attn_tensor o = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], problem->v.shape[3],
                                    LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(
        attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o, NULL),
        ATTN_SUCCESS);
    CHECK_SAME_BITS((const float *)o.data, result->o, result->outputs);
}

static void check_rows_sum_to_one(const struct attention_result *result)
{
    size_t keys = result->weight_count / result->rows;
    for (size_t row = 0; row < result->rows; row++) {
        double sum = 0;
        for (size_t j = 0; j < keys; j++)
            sum += result->weights[row * keys + j];
        CHECK_WITHIN(sum, 1, 1e-6);
    }
}

/* The last token changed: the rows before it stay. For one batch and one head. */
static void check_past_unchanged(attn_context *context, const struct attention_problem *problem,
                                 const struct attention_result *result)
{
    const attn_tensor *const tensors[] = {&problem->q, &problem->k, &problem->v};
    for (int n = 0; n < 3; n++) {
        attn_tensor last = tensor_part(tensors[n], 2, tensors[n]->shape[2] - 1, 1);
        tensor_fill(&last, 30);
    }
    struct attention_result changed;
    attention_solve(context, problem, &changed);
    size_t rows = result->rows - 1, d_v = result->outputs / result->rows;
    CHECK_SAME_BITS(changed.o, result->o, rows * d_v);
    CHECK_SAME_BITS(changed.stats, result->stats, rows * 2);
}

static void check_law(const char *law, attn_context *context, struct attention_problem *problem,
                      const struct attention_result *result)
{
    test_context("law %s", law);
    if (strcmp(law, "packed-equals") == 0)
        check_packed_equals(context, problem, result);
    else if (strcmp(law, "clean-equals") == 0)
        check_clean_equals(context, problem, result);
    else if (strcmp(law, "asking-equals") == 0)
        check_asking_equals(context, problem, result);
    else if (strcmp(law, "rows-sum-to-one") == 0)
        check_rows_sum_to_one(result);
    else if (strcmp(law, "past-unchanged") == 0)
        check_past_unchanged(context, problem, result);
    else
        test_fail(__FILE__, __LINE__, "the law %s is not known here", law);
}

/* The cases that are refused are about heads. */
static void check_refused(attn_context *context, const struct attention_problem *problem)
{
    const int64_t *shape = problem->q.shape;
    attn_tensor o = tensor_allocate(ATTN_F32, shape[0], shape[1], shape[2], problem->v.shape[3],
                                    LAYOUT_PACKED, GUARD_BEHIND);
    CHECK_EQUAL(
        attn_forward(context, &problem->params, &problem->q, &problem->k, &problem->v, &o, NULL),
        ATTN_ERROR_SHAPE);
    CHECK_CONTAINS(attn_message(context), "query heads");
    CHECK_CONTAINS(attn_message(context), "key heads");
    CHECK_UNWRITTEN((const float *)o.data, tensor_elements(&o));
}

static void run_forward(const json_t *json, attn_isa isa)
{
    struct case_input input;
    if (!case_input_read(json_object_get(json, "input"), &input))
        return;
    attn_context *context = isa_context(isa, 1);
    if (json_object_get(json_object_get(json, "expected"), "refused")) {
        check_refused(context, &input.problem);
    } else {
        struct attention_result result;
        attention_solve(context, &input.problem, &result);
        check_values(json, &result);
        const json_t *laws = json_object_get(json, "laws");
        for (size_t i = 0; i < json_array_size(laws); i++)
            check_law(json_string_value(json_array_get(laws, i)), context, &input.problem, &result);
    }
    attn_context_destroy(context);
}

/* Two parts with log-sum-exps. */
static void run_merge(const json_t *json, attn_isa isa)
{
    const json_t *parts = json_object_get(json_object_get(json, "input"), "parts");
    attn_tensor o[2], lse[2];
    CHECK_EQUAL(json_array_size(parts), 2);
    for (size_t n = 0; n < 2; n++) {
        const json_t *part = json_array_get(parts, n);
        o[n] = case_tensor(json_object_get(part, "o"), ATTN_F32);
        lse[n] = case_tensor(json_object_get(part, "lse"), ATTN_F32);
    }
    attn_tensor merged = tensor_allocate(ATTN_F32, o[0].shape[0], o[0].shape[1], o[0].shape[2],
                                         o[0].shape[3], LAYOUT_PACKED, GUARD_BEHIND);
    attn_tensor merged_lse = tensor_allocate(ATTN_F32, lse[0].shape[0], lse[0].shape[1],
                                             lse[0].shape[2], 1, LAYOUT_PACKED, GUARD_BEHIND);
    attn_context *context = isa_context(isa, 1);
    for (int swapped = 0; swapped < 2; swapped++) {
        int first = swapped, second = !swapped;
        CHECK_EQUAL(attn_merge(context, &o[first], &lse[first], &o[second], &lse[second], &merged,
                               &merged_lse),
                    ATTN_SUCCESS);
        case_check_floats(json, "o", merged.data, tensor_elements(&merged));
        case_check_floats(json, "lse", merged_lse.data, tensor_elements(&merged_lse));
    }
    attn_context_destroy(context);
}

static void run_alibi_slopes(const json_t *json)
{
    const json_t *heads = json_object_get(json_object_get(json, "input"), "heads");
    const json_t *expected = json_object_get(json_object_get(json, "expected"), "slopes");
    for (size_t i = 0; i < json_array_size(heads); i++) {
        int64_t count = json_integer_value(json_array_get(heads, i));
        float *slopes = guarded_floats((size_t)count, GUARD_BEHIND);
        attn_alibi_slopes(count, slopes);
        size_t expected_count;
        double *numbers =
            case_numbers(json_object_get(json_array_get(expected, i), "data"), &expected_count);
        CHECK_EQUAL(expected_count, count);
        for (size_t h = 0; h < expected_count; h++)
            CHECK_WITHIN(slopes[h], numbers[h], case_tolerance(json, "slopes"));
    }
}

static void run_case(const void *argument)
{
    const struct visit *visit = argument;
    const char *op = json_string_value(json_object_get(visit->json, "op"));
    if (strcmp(op, "merge") == 0)
        run_merge(visit->json, visit->isa);
    else if (strcmp(op, "alibi_slopes") == 0)
        run_alibi_slopes(visit->json);
    else if (strcmp(op, "forward") == 0)
        run_forward(visit->json, visit->isa);
    else
        test_fail(__FILE__, __LINE__, "the operation %s is not known here", op);
}

static void there_are_cases(const void *argument)
{
    CHECK(json_array_size((const json_t *)argument) > 40);
}

int main(void)
{
    const char *folder = getenv("ATTN_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/cases/attention.json", folder ? folder : ".");
    json_error_t error;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!file)
        test_bail_out("ATTN_TEST_DATA has no cases/attention.json that can be read");
    const json_t *cases = json_object_get(file, "cases");
    test_run(there_are_cases, cases, "there are cases");
    for (int value = 0; value < ATTN_ISA_BEST; value++) {
        attn_isa isa = (attn_isa)value;
        if (!isa_is_available(isa))
            continue;
        for (size_t i = 0; i < json_array_size(cases); i++) {
            struct visit visit = {json_array_get(cases, i), isa};
            if (json_object_get(json_object_get(visit.json, "input"), "dropout"))
                continue; /* backward_cases_test.c */
            test_run(run_case, &visit, "%s [%s]",
                     json_string_value(json_object_get(visit.json, "name")), attn_isa_name(isa));
        }
    }
    json_decref(file);
    return test_finish();
}
