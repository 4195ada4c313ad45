/* The handed cases of tests/data/cases/backward.json, and those of attention.json with dropout. */
#include "harness/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/case_check.h"
#include "attention/case_input.h"
#include "harness/attention_gradient.h"
#include "harness/compare.h"
#include "harness/isa.h"

struct visit {
    const json_t *json;
    attn_isa isa;
};

static void check_gradients(const json_t *json, const struct gradient_result *result)
{
    case_check_field(json, "dq", result->q, result->of_q);
    case_check_field(json, "dk", result->k, result->of_k);
    case_check_field(json, "dv", result->v, result->of_v);
    case_check_field(json, "dbias", result->bias, result->of_bias);
    case_check_field(json, "dsink", result->sinks, result->of_sinks);
}

static void check_packed_equals(attn_context *context, struct attention_problem *problem,
                                const struct gradient_call *call,
                                const struct gradient_result *result)
{
    problem->q = tensor_copy(&problem->q, LAYOUT_PACKED, GUARD_BEHIND);
    problem->k = tensor_copy(&problem->k, LAYOUT_PACKED, GUARD_BEHIND);
    problem->v = tensor_copy(&problem->v, LAYOUT_PACKED, GUARD_BEHIND);
    struct gradient_result packed;
    gradient_solve(context, problem, call, &packed);
    CHECK_SAME_GRADIENTS(&packed, result);
}

/* With V = 1, d_o = 1 and one key, dV is the sum of all o: both drop the same weights. */
static void check_one_mask(const struct attention_result *forward,
                           const struct gradient_result *gradients, double tolerance)
{
    size_t rows = forward->outputs / gradients->of_v;
    for (size_t head = 0; head < gradients->of_v; head++) {
        double sum = 0;
        for (size_t i = 0; i < rows; i++)
            sum += forward->o[head * rows + i];
        CHECK_WITHIN(gradients->v[head], sum, tolerance);
    }
    /* A softmax of one key has no gradient. */
    for (size_t i = 0; i < gradients->of_q; i++)
        CHECK_WITHIN(gradients->q[i], 0, tolerance);
    for (size_t i = 0; i < gradients->of_k; i++)
        CHECK_WITHIN(gradients->k[i], 0, tolerance);
}

static void run_backward(const json_t *json, attn_context *context, struct case_input *input)
{
    const json_t *expected = json_object_get(json, "expected");
    const json_t *laws = json_object_get(json, "laws");
    struct gradient_call call = {.d_o = input->d_o};
    for (size_t seed = 0; seed < input->seed_count; seed++) {
        input->problem.params.dropout_seed = input->seeds[seed];
        struct gradient_result result;
        gradient_solve(context, &input->problem, &call, &result);
        check_gradients(json, &result);
        if (json_object_get(expected, "dv_equals")) {
            struct attention_result forward;
            attention_solve(context, &input->problem, &forward);
            check_one_mask(&forward, &result, case_tolerance(json, "dv"));
        }
        for (size_t i = 0; i < json_array_size(laws); i++) {
            const char *law = json_string_value(json_array_get(laws, i));
            if (strcmp(law, "packed-equals") == 0)
                check_packed_equals(context, &input->problem, &call, &result);
            else
                test_fail(__FILE__, __LINE__, "the law %s is not known here", law);
        }
    }
}

/* Each o is one of two numbers; over all seeds both occur. */
static void check_one_of(const json_t *json, const json_t *choices,
                         const struct attention_result *result, bool occurred[2])
{
    double tolerance = case_tolerance(json, "o");
    CHECK_EQUAL(json_array_size(choices), 2);
    for (size_t i = 0; i < result->outputs; i++) {
        double distance[2];
        for (size_t n = 0; n < 2; n++)
            distance[n] = result->o[i] - case_number(json_array_get(choices, n));
        size_t nearer = distance[0] * distance[0] < distance[1] * distance[1] ? 0 : 1;
        CHECK_WITHIN(distance[nearer], 0, tolerance);
        occurred[nearer] = true;
    }
}

static void check_forward_law(const char *law, attn_isa isa, attn_context *context,
                              const struct attention_problem *problem,
                              const struct attention_result *result)
{
    test_context("law %s", law);
    struct attention_problem changed;
    struct attention_result other;
    attention_copy(problem, &changed);
    if (strcmp(law, "threads-equal") == 0) {
        attn_context *threads = isa_context(isa, 3);
        attention_solve(threads, problem, &other);
        CHECK_SAME_RESULT(&other, result);
        attn_context_destroy(threads);
    } else if (strcmp(law, "backward-same-mask") == 0) {
        struct gradient_call call;
        struct gradient_result gradients;
        gradient_call_make(&call, problem, 1);
        tensor_fill(&call.d_o, 1);
        gradient_solve(context, problem, &call, &gradients);
        check_one_mask(result, &gradients, 1e-5);
    } else if (strcmp(law, "same-bits-without-dropout") == 0) {
        changed.params.dropout_seed = 0;
        attention_solve(context, &changed, &other);
        CHECK_SAME_RESULT(&other, result);
    } else {
        test_fail(__FILE__, __LINE__, "the law %s is not known here", law);
    }
}

static void run_dropout(const json_t *json, attn_isa isa, attn_context *context,
                        struct case_input *input)
{
    const json_t *choices = json_object_get(json_object_get(json, "expected"), "o_is_one_of");
    const json_t *laws = json_object_get(json, "laws");
    bool occurred[2] = {false, false};
    for (size_t seed = 0; seed < input->seed_count; seed++) {
        input->problem.params.dropout_seed = input->seeds[seed];
        struct attention_result result;
        attention_solve(context, &input->problem, &result);
        case_check_floats(json, "o", result.o, result.outputs);
        case_check_floats(json, "weights", result.weights, result.weight_count);
        if (choices)
            check_one_of(json, choices, &result, occurred);
        for (size_t i = 0; i < json_array_size(laws); i++)
            check_forward_law(json_string_value(json_array_get(laws, i)), isa, context,
                              &input->problem, &result);
    }
    if (choices)
        CHECK(occurred[0] && occurred[1]);
}

static void run_case(const void *argument)
{
    const struct visit *visit = argument;
    struct case_input input;
    if (!case_input_read(json_object_get(visit->json, "input"), &input))
        return;
    attn_context *context = isa_context(visit->isa, 1);
    if (strcmp(json_string_value(json_object_get(visit->json, "op")), "backward") == 0)
        run_backward(visit->json, context, &input);
    else
        run_dropout(visit->json, visit->isa, context, &input);
    attn_context_destroy(context);
}

static void there_are_cases(const void *argument)
{
    CHECK(json_array_size((const json_t *)argument) > 15);
}

static void run_file(const char *name, bool dropout_only)
{
    const char *folder = getenv("ATTN_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/cases/%s", folder ? folder : ".", name);
    json_error_t error;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!file)
        test_bail_out("ATTN_TEST_DATA has no such file of cases that can be read");
    const json_t *cases = json_object_get(file, "cases");
    test_run(there_are_cases, cases, "there are cases in %s", name);
    for (int value = 0; value < ATTN_ISA_BEST; value++) {
        attn_isa isa = (attn_isa)value;
        if (!isa_is_available(isa))
            continue;
        for (size_t i = 0; i < json_array_size(cases); i++) {
            struct visit visit = {json_array_get(cases, i), isa};
            if (dropout_only && !json_object_get(json_object_get(visit.json, "input"), "dropout"))
                continue;
            test_run(run_case, &visit, "%s [%s]",
                     json_string_value(json_object_get(visit.json, "name")), attn_isa_name(isa));
        }
    }
    json_decref(file);
}

int main(void)
{
    run_file("backward.json", false);
    run_file("attention.json", true);
    return test_finish();
}
