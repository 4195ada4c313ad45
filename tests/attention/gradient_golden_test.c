/* Gradients against PyTorch's, from tests/data/golden/backward.txt and backward.bin, which
 * scripts/golden_backward.py makes. */
#include "harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/attention_gradient.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { MAX_HEADS = 8, NAME_SIZE = 32 };

/* Of the largest element of a gradient. bf16: PyTorch rounds weights and gradients on the way. */
static const double f32_bound = 1e-5, f64_bound = 1e-7, bf16_bound = 2e-2;

/* One line of backward.txt. */
struct golden {
    char name[NAME_SIZE], type[NAME_SIZE];
    struct attention_sizes sizes;
    int causal;
    float cap;
    int64_t bias[4];
    int sinks, keep;
};

static FILE *open_golden(const char *name)
{
    char path[4096];
    const char *directory = getenv("ATTN_TEST_DATA");
    snprintf(path, sizeof path, "%s/golden/%s", directory ? directory : "tests/data", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        test_bail_out("no tests/data/golden: set ATTN_TEST_DATA");
    return file;
}

static bool read_golden(FILE *file, struct golden *golden)
{
    int64_t *const integers[] = {&golden->sizes.batch,     &golden->sizes.heads,
                                 &golden->sizes.key_heads, &golden->sizes.queries,
                                 &golden->sizes.keys,      &golden->sizes.d_qk,
                                 &golden->sizes.d_v};
    long long number;
    if (fscanf(file, "%31s %31s", golden->name, golden->type) != 2)
        return false;
    bool complete = true;
    for (size_t n = 0; n < COUNT(integers); n++) {
        complete &= fscanf(file, "%lld", &number) == 1;
        *integers[n] = number;
    }
    complete &= fscanf(file, "%d %f", &golden->causal, &golden->cap) == 2;
    for (int axis = 0; axis < 4; axis++) {
        complete &= fscanf(file, "%lld", &number) == 1;
        golden->bias[axis] = number;
    }
    complete &= fscanf(file, "%d %d", &golden->sinks, &golden->keep) == 2;
    if (!complete)
        test_bail_out("backward.txt has a short line");
    return true;
}

/* The inputs that the script made. */
static void make_problem(const struct golden *golden, float *sinks,
                         struct attention_problem *problem, struct gradient_call *call)
{
    const struct attention_sizes *sizes = &golden->sizes;
    attention_make(problem, sizes, 1);
    problem->params.causal = golden->causal;
    problem->params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    problem->params.soft_cap = golden->cap;
    if (golden->bias[0])
        attention_add_bias(problem, golden->bias, 2);
    for (int n = 0; n < MAX_HEADS; n++)
        sinks[n] = 0.5f * (float)n - 1;
    problem->params.sinks = golden->sinks ? sinks : NULL;
    if (golden->keep)
        attention_add_keep(problem, (int64_t[]){sizes->batch, 1, sizes->queries, sizes->keys}, 3,
                           3);
    gradient_call_make(call, problem, 4);
}

static void store_as(struct attention_problem *problem, struct gradient_call *call, attn_type type)
{
    attention_store(problem, type, type, type);
    call->d_o = tensor_convert(&call->d_o, type, LAYOUT_PACKED, GUARD_BEHIND);
}

/* Numbers of f32, the lowest byte first. */
static double *read_numbers(FILE *file, size_t count)
{
    double *numbers = guarded_doubles(count);
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[4];
        if (fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
            test_bail_out("backward.bin is too short");
        uint32_t bits = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                        (uint32_t)bytes[3] << 24;
        float number;
        memcpy(&number, &bits, sizeof number);
        numbers[i] = (double)number;
    }
    return numbers;
}

static void check_gradient(const char *what, const double *actual, const double *expected,
                           size_t count, double bound)
{
    double largest = 0, *tolerance = guarded_doubles(count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++)
        tolerance[i] = bound * largest;
    compare_near_doubles(__FILE__, __LINE__, what, actual, expected, tolerance, count);
}

/* The gradients of one problem, in the order of the file. */
struct expected {
    double *q, *k, *v, *bias, *sinks;
};

static void check_problem(attn_context *context, const struct attention_problem *problem,
                          const struct gradient_call *call, const struct expected *expected,
                          double bound)
{
    struct gradient_result result;
    gradient_solve(context, problem, call, &result);
    check_gradient("dq", result.q, expected->q, result.of_q, bound);
    check_gradient("dk", result.k, expected->k, result.of_k, bound);
    check_gradient("dv", result.v, expected->v, result.of_v, bound);
    check_gradient("dbias", result.bias, expected->bias, result.of_bias, bound);
    check_gradient("dsinks", result.sinks, expected->sinks, result.of_sinks, bound);
}

static void check_golden(attn_context *context, const struct golden *golden, FILE *data)
{
    struct attention_problem problem;
    struct gradient_call call;
    float sinks[MAX_HEADS];
    make_problem(golden, sinks, &problem, &call);
    struct expected expected = {0};
    expected.q = read_numbers(data, tensor_elements(&problem.q));
    expected.k = read_numbers(data, tensor_elements(&problem.k));
    expected.v = read_numbers(data, tensor_elements(&problem.v));
    if (golden->bias[0])
        expected.bias = read_numbers(data, tensor_elements(&problem.bias));
    if (golden->sinks)
        expected.sinks = read_numbers(data, (size_t)golden->sizes.heads);

    test_context("%s", golden->name);
    if (strcmp(golden->type, "bf16") == 0) {
        store_as(&problem, &call, ATTN_BF16);
        check_problem(context, &problem, &call, &expected, bf16_bound);
        problem.params.precision = ATTN_PRECISION_BF16;
        check_problem(context, &problem, &call, &expected, bf16_bound);
        return;
    }
    check_problem(context, &problem, &call, &expected, f32_bound);
    store_as(&problem, &call, ATTN_F64);
    check_problem(context, &problem, &call, &expected, f64_bound);
}

static void golden_gradients(attn_context *context)
{
    FILE *index = open_golden("backward.txt"), *data = open_golden("backward.bin");
    struct golden golden;
    int problems = 0;
    for (; read_golden(index, &golden); problems++) {
        check_golden(context, &golden, data);
        guarded_release_all();
    }
    CHECK(problems > 0);
    CHECK(fgetc(data) == EOF);
    fclose(index);
    fclose(data);
}

int main(void)
{
    isa_each_context("gradients: PyTorch's", golden_gradients);
    return test_finish();
}
