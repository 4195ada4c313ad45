/* Hundreds of random problems with options of every kind at once, against the definition. */
#include "harness/test.h"

#include <stdio.h>

#include "harness/attention_storage.h"
#include "harness/isa.h"
#include "random_problem.h"

enum { PROBLEMS = 800 };

/* Pages instead of a length, where the harness can make them of this problem. */
static bool is_for_pages(struct random_source *source, const attn_params *params)
{
    bool is_masked = params->keep || params->bias || params->query_documents;
    return random_one_in(source, 4) && !(params->sequences > 0 && is_masked);
}

static bool is_for_decode(const struct attention_problem *problem)
{
    const attn_params *params = &problem->params;
    if (params->dropout > 0)
        return false;
    int64_t queries = problem->q.shape[2], most = 0;
    for (int64_t s = 0; s < reference_sequences(params, problem->q.shape[0]); s++) {
        struct reference_sequence sequence =
            reference_sequence_at(params, s, queries, reference_keys(params, &problem->k));
        most = sequence.queries > most ? sequence.queries : most;
    }
    return most <= ATTN_DECODE_MAX_QUERIES;
}

static void check_problem(attn_context *context, const struct attention_problem *problem)
{
    struct attention_result result;
    attention_solve(context, problem, &result);
    CHECK_RESULT(problem, &result);
    if (!is_for_decode(problem))
        return;
    attention_solve_decode(context, problem, &result);
    CHECK_RESULT(problem, &result);
}

static void everything_at_once(attn_isa isa)
{
    attn_context *context = isa_context(isa, 1);
    const uint64_t problems = test_is_reduced() ? PROBLEMS / 32 : PROBLEMS;
    for (uint64_t seed = 0; seed < problems; seed++) {
        struct random_source source = {seed};
        struct attention_problem problem, paged;
        struct random_arrays arrays;
        random_problem(&source, &problem, &arrays);
        test_context("seed %d", (int)seed);
        check_problem(context, &problem);
        if (is_for_pages(&source, &problem.params)) {
            attention_page(&problem, random_integer(&source, 1, 30), seed, &paged);
            test_context("seed %d in pages", (int)seed);
            check_problem(context, &paged);
        }
        guarded_release_all();
    }
    attn_context_destroy(context);
}

int main(void)
{
    isa_each("everything at once", everything_at_once);
    printf("# largest error: %.2f of %.0f allowed\n", attention_largest_error(),
           ATTENTION_ERROR_FACTOR);
    return test_finish();
}
