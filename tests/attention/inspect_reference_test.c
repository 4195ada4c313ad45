/* Inspection against the whole matrix of weights: hundreds of random problems with options of every
 * kind at once. */
#include "harness/test.h"

#include <math.h>

#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"
#include "inspect_call.h"
#include "random_problem.h"

enum { PROBLEMS = 300 };

/* A problem with all that is right of it. */
struct known {
    const struct attention_problem *problem;
    struct attention_result whole; /* attn_forward and attn_weights */
    struct reference_attention right;
    int64_t keys;
};

static double weight_of(const struct known *c, size_t row, int64_t key)
{
    size_t at = row * (size_t)c->keys + (size_t)key;
    return c->whole.exact_weights ? c->whole.exact_weights[at] : (double)c->whole.weights[at];
}

/* Σ of a key's weights over rows begin..end−1 of q, by the definition, and how far f32 may be off.
 */
static double right_sum(const struct known *c, size_t sum, int64_t begin, int64_t end,
                        double *error)
{
    const int64_t queries = c->problem->q.shape[2];
    const size_t head = sum / (size_t)c->keys, key = sum % (size_t)c->keys;
    double total = 0;
    *error = 0;
    for (int64_t i = begin; i < end && i < queries; i++) {
        size_t at = (head * (size_t)queries + (size_t)i) * (size_t)c->keys + key;
        total += c->right.weights[at];
        *error += ATTENTION_ERROR_FACTOR * c->right.weights_error[at];
    }
    *error += 1e-6 * total;
    return total;
}

/* −Σ p·ln p, the sink's share among them. */
static double right_entropy(const struct known *c, size_t row)
{
    const struct attention_problem *problem = c->problem;
    double sum = 0;
    for (int64_t j = 0; j < c->keys; j++) {
        double p = c->right.weights[row * (size_t)c->keys + (size_t)j];
        sum -= p > 0 ? p * log(p) : 0;
    }
    if (problem->params.sinks && c->right.l[row] > 0) {
        int64_t head = (int64_t)row / problem->q.shape[2] % problem->q.shape[1];
        double p = exp((double)problem->params.sinks[head] - c->right.m[row]) / c->right.l[row];
        sum -= p > 0 ? p * log(p) : 0;
    }
    return sum;
}

/* The list of a row: weights are those of attn_weights, none is left out that is larger, and all
 * keys that the row keeps are there where there is room. */
static void check_list(const struct known *c, const struct inspect_result *result, size_t row)
{
    const double *weights = result->top_weights + row * (size_t)result->top;
    const double *keys = result->top_keys + row * (size_t)result->top;
    bool *listed = guarded_bytes((size_t)c->keys, 1, GUARD_BEHIND);
    for (int64_t j = 0; j < c->keys; j++)
        listed[j] = false;
    int64_t count = 0;
    for (; count < result->top && keys[count] >= 0; count++) {
        int64_t key = (int64_t)keys[count];
        CHECK(key < c->keys && !listed[key]);
        listed[key] = true;
        CHECK_WITHIN(weights[count], weight_of(c, row, key), 0);
        /* Scores fall; exp may make of two that are neighbours two that are not in order. */
        if (count > 0)
            CHECK(weights[count] <= weights[count - 1] * (1 + 0x1p-21));
    }
    for (int64_t n = count; n < result->top; n++) {
        CHECK_WITHIN(weights[n], 0, 0);
        CHECK_WITHIN(keys[n], -1, 0);
    }
    for (int64_t j = 0; j < c->keys; j++) {
        if (listed[j])
            continue;
        double weight = weight_of(c, row, j);
        CHECK(count < result->top ? weight == 0 : weight <= weights[count - 1] * (1 + 0x1p-21));
    }
}

static void check_rows(const struct known *c, const struct inspect_result *result)
{
    for (size_t row = 0; row < result->rows; row++) {
        double largest = 0;
        for (int64_t j = 0; j < c->keys; j++)
            if (weight_of(c, row, j) > largest)
                largest = weight_of(c, row, j);
        CHECK_WITHIN(result->maximum[row], largest, largest * 0x1p-21);
        CHECK_WITHIN(result->entropy[row], right_entropy(c, row),
                     1e-6 + 4 * ATTENTION_ERROR_FACTOR * c->right.lse_error[row]);
        if (result->top > 0)
            check_list(c, result, row);
    }
}

static void check_sums(const struct known *c, const struct inspect_wants *wants,
                       const struct inspect_result *result)
{
    for (size_t n = 0; n < result->sums; n++) {
        double error;
        double right = right_sum(c, n, wants->query_begin, wants->query_end, &error);
        CHECK_WITHIN(result->key_sums[n], right, error);
    }
}

static void check_problem(attn_context *context, const struct attention_problem *problem,
                          struct random_source *source)
{
    struct inspect_wants wants =
        inspect_everything(random_one_in(source, 4) ? random_integer(source, 1, ATTN_TOP_LIMIT)
                                                    : random_integer(source, 1, 9));
    wants.key_sums = inspect_has_sums(problem);
    if (random_one_in(source, 2)) {
        wants.query_begin = random_integer(source, 0, problem->q.shape[2] + 3);
        wants.query_end = wants.query_begin + random_integer(source, 0, problem->q.shape[2]);
    }
    struct known c = {.problem = problem, .keys = reference_keys(&problem->params, &problem->k)};
    attention_solve(context, problem, &c.whole);
    reference_attention(&problem->params, &problem->q, &problem->k, &problem->v, &c.right);
    struct inspect_result forward, after;
    inspect_solve_forward(context, problem, &wants, &forward);
    inspect_solve(context, problem, &wants, &after);
    inspect_check_same(&forward, &after);
    for (size_t i = 0; i < c.whole.outputs; i++)
        CHECK_WITHIN(forward.o[i], c.whole.exact_o ? c.whole.exact_o[i] : (double)c.whole.o[i], 0);
    for (size_t i = 0; i < 2 * c.whole.rows; i++)
        CHECK_WITHIN(forward.stats[i],
                     c.whole.exact_stats ? c.whole.exact_stats[i] : (double)c.whole.stats[i], 0);
    check_rows(&c, &after);
    if (wants.key_sums)
        check_sums(&c, &wants, &after);
}

static void everything_at_once(attn_isa isa)
{
    attn_context *context = isa_context(isa, 1);
    const uint64_t problems = test_is_reduced() ? PROBLEMS / 16 : PROBLEMS;
    for (uint64_t seed = 0; seed < problems; seed++) {
        struct random_source source = {seed + 5000};
        struct attention_problem problem, paged;
        struct random_arrays arrays;
        random_problem(&source, &problem, &arrays);
        const attn_params *params = &problem.params;
        const bool is_masked = params->keep || params->bias || params->query_documents;
        test_context("seed %d", (int)seed);
        check_problem(context, &problem, &source);
        if (random_one_in(&source, 4) && !(params->sequences > 0 && is_masked)) {
            attention_page(&problem, random_integer(&source, 1, 30), seed, &paged);
            test_context("seed %d in pages", (int)seed);
            check_problem(context, &paged, &source);
        }
        guarded_release_all();
    }
    attn_context_destroy(context);
}

int main(void)
{
    isa_each("everything at once", everything_at_once);
    return test_finish();
}
