#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "nn/self_attention.h"

/* A layer with its weights, an input and what comes out. */
struct problem {
    struct self_attention layer;
    float *weights; /* what the layer points into */
    int64_t width, tokens;
    float *x, *y;
};

enum { MATRICES = 4 };

static struct problem make_problem(int64_t width, int64_t heads, int64_t d, int64_t tokens)
{
    const int64_t inner = heads * d;
    const int64_t a_matrix = width * inner, a_bias = inner > width ? inner : width;
    struct problem problem = {.width = width, .tokens = tokens};
    problem.weights = malloc((size_t)(MATRICES * (a_matrix + a_bias)) * sizeof(float));
    problem.x = malloc((size_t)(tokens * width) * sizeof(float));
    problem.y = malloc((size_t)(tokens * width) * sizeof(float));
    assert_true(problem.weights && problem.x && problem.y);
    for (int64_t n = 0; n < MATRICES * (a_matrix + a_bias); n++)
        problem.weights[n] = sinf((float)(n * n % 9973)) / sqrtf((float)width) * 1.5f;
    for (int64_t n = 0; n < tokens * width; n++)
        problem.x[n] = cosf((float)(n * 37 % 1009));

    struct linear *layers[MATRICES] = {&problem.layer.query, &problem.layer.key,
                                       &problem.layer.value, &problem.layer.output};
    for (int n = 0; n < MATRICES; n++) {
        float *weight = problem.weights + n * (a_matrix + a_bias);
        *layers[n] =
            (struct linear){.weight = weight, .bias = weight + a_matrix, .in = width, .out = inner};
    }
    problem.layer.output.in = inner;
    problem.layer.output.out = width;
    problem.layer.heads = heads;
    return problem;
}

static void free_problem(struct problem *problem)
{
    free(problem->weights);
    free(problem->x);
    free(problem->y);
}

static bool run(const struct compute *compute, const struct self_attention *layer,
                const int64_t *starts, int64_t sequences, const float *x, float *y,
                const struct attention_observer *observer, struct attn_error *error)
{
    const struct packed_batch batch = {sequences, starts};
    const int64_t tokens = packed_batch_tokens(&batch);
    /* Exactly as much as is asked for: the sanitizer sees any step beyond. */
    float *workspace = malloc((size_t)self_attention_workspace(layer, tokens) * sizeof *workspace);
    assert_non_null(workspace);
    memset(y, 0, (size_t)(tokens * layer->output.out) * sizeof *y);
    bool done = self_attention_forward(compute, layer, &batch, x, y, workspace, observer, error);
    free(workspace);
    return done;
}

static double project(const struct linear *linear, const float *x, int64_t o)
{
    double sum = linear->bias ? (double)linear->bias[o] : 0.0;
    for (int64_t c = 0; c < linear->in; c++)
        sum += (double)x[c] * (double)linear->weight[o * linear->in + c];
    return sum;
}

/* The definition in double for one sequence; y without the output's bias. */
static void reference(const struct self_attention *layer, const float *x, int64_t length, float *y)
{
    const int64_t width = layer->query.in, inner = layer->query.out, d = inner / layer->heads;
    double *q = malloc((size_t)(4 * length * inner + length) * sizeof *q);
    assert_non_null(q);
    double *k = q + length * inner, *v = k + length * inner, *o = v + length * inner;
    double *p = o + length * inner;
    for (int64_t t = 0; t < length; t++)
        for (int64_t c = 0; c < inner; c++) {
            q[t * inner + c] = project(&layer->query, x + t * width, c);
            k[t * inner + c] = project(&layer->key, x + t * width, c);
            v[t * inner + c] = project(&layer->value, x + t * width, c);
        }
    for (int64_t first = 0; first < inner; first += d)
        for (int64_t i = 0; i < length; i++) {
            double sum = 0.0;
            for (int64_t j = 0; j < length; j++) {
                double score = 0.0;
                for (int64_t c = first; c < first + d; c++)
                    score += q[i * inner + c] * k[j * inner + c];
                p[j] = exp(score / sqrt((double)d));
                sum += p[j];
            }
            for (int64_t c = first; c < first + d; c++) {
                o[i * inner + c] = 0.0;
                for (int64_t j = 0; j < length; j++)
                    o[i * inner + c] += p[j] / sum * v[j * inner + c];
            }
        }
    for (int64_t t = 0; t < length; t++)
        for (int64_t c = 0; c < width; c++) {
            double sum = 0.0;
            for (int64_t n = 0; n < inner; n++)
                sum += o[t * inner + n] * (double)layer->output.weight[c * inner + n];
            y[t * width + c] = (float)sum;
        }
    free(q);
}

/* Lengths that come again, side by side and apart: 4, 4, 4, 1, 9, 4, 33, 33, 2. */
static void follows_the_definition(const struct compute *compute)
{
    const int64_t starts[] = {0, 4, 8, 12, 13, 22, 26, 59, 92, 94};
    enum { SEQUENCES = sizeof starts / sizeof starts[0] - 1 };
    const int64_t shapes[][3] = {{4, 1, 4},  {8, 2, 4},  {48, 3, 16}, {96, 3, 32},
                                 {10, 5, 2}, {12, 2, 9}, {30, 1, 7}};
    for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++) {
        struct problem problem =
            make_problem(shapes[n][0], shapes[n][1], shapes[n][2], starts[SEQUENCES]);
        float *expected = malloc((size_t)(problem.tokens * problem.width) * sizeof *expected);
        assert_non_null(expected);
        struct attn_error error;
        assert_true(
            run(compute, &problem.layer, starts, SEQUENCES, problem.x, problem.y, NULL, &error));
        for (int s = 0; s < SEQUENCES; s++)
            reference(&problem.layer, problem.x + starts[s] * problem.width,
                      starts[s + 1] - starts[s], expected + starts[s] * problem.width);
        assert_near(problem.y, expected, (size_t)(problem.tokens * problem.width), 2e-5);
        free(expected);
        free_problem(&problem);
    }
}

static void test_follows_the_definition(void **state)
{
    (void)state;
    each_isa(2, follows_the_definition);
}

/* y may be x: then it becomes x + attention(x). */
static void adds_to_its_input(const struct compute *compute)
{
    const int64_t starts[] = {0, 7};
    struct problem problem = make_problem(12, 3, 4, 7);
    struct attn_error error;
    assert_true(run(compute, &problem.layer, starts, 1, problem.x, problem.y, NULL, &error));
    for (int64_t n = 0; n < problem.tokens * problem.width; n++)
        problem.y[n] += problem.x[n];

    const struct packed_batch batch = {1, starts};
    float *workspace =
        malloc((size_t)self_attention_workspace(&problem.layer, 7) * sizeof *workspace);
    assert_non_null(workspace);
    assert_true(self_attention_forward(compute, &problem.layer, &batch, problem.x, problem.x,
                                       workspace, NULL, &error));
    assert_near(problem.x, problem.y, (size_t)(problem.tokens * problem.width), 1e-5);
    free(workspace);
    free_problem(&problem);
}

static void test_adds_to_its_input(void **state)
{
    (void)state;
    each_isa(1, adds_to_its_input);
}

/* A handed case of one batch without masks, and its laws: zeros as biases, and Wq, Wk and Wv as one
 * matrix, change nothing. */
static void no_bias(const struct compute *compute)
{
    json_t *file = test_data_json("cases/layers.json");
    const json_t *one = case_find(file, "no_bias_is_a_bias_of_zero");
    const char *const names[MATRICES] = {"wq", "wk", "wv", "wo"};
    float *weights[MATRICES], zeros[4] = {0};
    struct self_attention layer = {.heads = 1};
    struct linear *layers[MATRICES] = {&layer.query, &layer.key, &layer.value, &layer.output};
    for (int n = 0; n < MATRICES; n++) {
        weights[n] = case_numbers(case_field(one, "input", names[n]), NULL);
        *layers[n] = (struct linear){.weight = weights[n], .in = 4, .out = 4};
    }
    float *x = case_numbers(case_field(one, "input", "x"), NULL);
    float *expected = case_numbers(case_field(one, "expected", "y"), NULL);
    double tolerance = json_number_value(case_field(one, "tolerance", "y"));

    const int64_t starts[] = {0, 3};
    float y[12], with_zeros[12];
    struct attn_error error;
    assert_true(run(compute, &layer, starts, 1, x, y, NULL, &error));
    assert_near(y, expected, 12, tolerance);
    for (int n = 0; n < MATRICES; n++)
        layers[n]->bias = zeros;
    assert_true(run(compute, &layer, starts, 1, x, with_zeros, NULL, &error));
    assert_memory_equal(y, with_zeros, sizeof y);

    float packed[3 * 16], of_packed[12];
    for (int n = 0; n < 3; n++) {
        memcpy(packed + n * 16, weights[n], 16 * sizeof *packed);
        layers[n]->weight = packed + n * 16;
        layers[n]->bias = NULL;
    }
    assert_true(run(compute, &layer, starts, 1, x, of_packed, NULL, &error));
    assert_near(of_packed, y, 12, 1e-6);

    for (int n = 0; n < MATRICES; n++)
        free(weights[n]);
    free(x);
    free(expected);
    json_decref(file);
}

static void test_no_bias(void **state)
{
    (void)state;
    each_isa(1, no_bias);
}

/* Whatever stands beside a sequence in the batch: its rows stay the same to rounding. */
static void test_alone_or_among_others(void **state)
{
    (void)state;
    const int64_t starts[] = {0, 12, 24, 64, 71};
    struct problem problem = make_problem(64, 4, 16, 71);
    float alone[40 * 64];
    struct compute compute = make_compute(1);
    struct attn_error error;
    assert_true(run(&compute, &problem.layer, starts, 4, problem.x, problem.y, NULL, &error));
    for (int n = 0; n < 4; n++) {
        const int64_t begin = starts[n] * problem.width,
                      alone_starts[] = {0, starts[n + 1] - starts[n]};
        assert_true(
            run(&compute, &problem.layer, alone_starts, 1, problem.x + begin, alone, NULL, &error));
        assert_near(alone, problem.y + begin, (size_t)(alone_starts[1] * problem.width), 1e-6);
    }
    compute_destroy(&compute);
    free_problem(&problem);
}

static void test_threads(void **state)
{
    (void)state;
    const int64_t starts[] = {0, 30, 60, 71};
    struct problem problem = make_problem(48, 6, 8, 71);
    float *four = malloc(71 * 48 * sizeof *four);
    assert_non_null(four);
    struct attn_error error;
    struct compute compute = make_compute(1);
    assert_true(run(&compute, &problem.layer, starts, 3, problem.x, problem.y, NULL, &error));
    compute_destroy(&compute);
    compute = make_compute(4);
    assert_true(run(&compute, &problem.layer, starts, 3, problem.x, four, NULL, &error));
    compute_destroy(&compute);
    assert_near(four, problem.y, 71 * 48, 1e-6);
    free(four);
    free_problem(&problem);
}

struct watcher {
    const struct packed_batch *batch;
    bool stop;
    int calls;
};

/* A row of weights of all tokens sums to 1 within begin..end−1, its own sequence, and is 0
 * elsewhere. */
static void assert_own_sequence_only(const float *row, int64_t tokens, int64_t begin, int64_t end)
{
    double sum = 0.0;
    for (int64_t j = 0; j < tokens; j++)
        if (begin <= j && j < end)
            sum += (double)row[j];
        else
            assert_true(row[j] == 0.0f);
    assert_true(fabs(sum - 1.0) <= 1e-6);
}

/* Each head's weights of the whole batch are one block a sequence along the diagonal. */
static bool watch(void *user, const struct compute *compute, const struct attention_record *record,
                  struct attn_error *error)
{
    struct watcher *watcher = user;
    const struct packed_batch *batch = watcher->batch;
    const int64_t tokens = packed_batch_tokens(batch), heads = record->q.shape[1];
    float *weights = malloc((size_t)(heads * tokens * tokens) * sizeof *weights);
    assert_non_null(weights);
    for (int64_t n = 0; n < heads * tokens * tokens; n++)
        weights[n] = NAN;
    attn_tensor all = attn_tensor_packed(weights, ATTN_F32, 1, heads, tokens, tokens);
    assert_int_equal(attn_weights(compute->attention, record->params, &record->q, &record->k,
                                  &record->stats, NULL, &all),
                     ATTN_SUCCESS);
    for (int64_t head = 0; head < heads; head++)
        for (int64_t s = 0; s < batch->sequences; s++)
            for (int64_t i = batch->starts[s]; i < batch->starts[s + 1]; i++)
                assert_own_sequence_only(weights + (head * tokens + i) * tokens, tokens,
                                         batch->starts[s], batch->starts[s + 1]);
    free(weights);
    watcher->calls++;
    return !watcher->stop || attn_error_set(error, "seen enough");
}

static void test_observer(void **state)
{
    (void)state;
    const int64_t starts[] = {0, 5, 10, 30, 35, 36};
    const struct packed_batch batch = {5, starts};
    struct problem problem = make_problem(24, 3, 8, 36);
    float watched[36 * 24];
    struct compute compute = make_compute(2);
    struct attn_error error;
    assert_true(run(&compute, &problem.layer, starts, 5, problem.x, problem.y, NULL, &error));

    struct watcher watcher = {.batch = &batch};
    struct attention_observer observer = {watch, &watcher, NULL};
    assert_true(run(&compute, &problem.layer, starts, 5, problem.x, watched, &observer, &error));
    assert_int_equal(watcher.calls, 1);
    assert_memory_equal(watched, problem.y, sizeof watched); /* looking changes no bit */

    watcher = (struct watcher){.batch = &batch, .stop = true};
    assert_false(run(&compute, &problem.layer, starts, 5, problem.x, watched, &observer, &error));
    assert_int_equal(watcher.calls, 1);
    assert_message(&error, "seen enough");
    compute_destroy(&compute);
    free_problem(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_definition),
        cmocka_unit_test(test_adds_to_its_input),
        cmocka_unit_test(test_no_bias),
        cmocka_unit_test(test_alone_or_among_others),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_observer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
