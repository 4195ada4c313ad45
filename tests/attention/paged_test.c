/* attn_decode and attn_forward of keys and values in pages: the same bits as of those in one piece.
 */
#include "harness/test.h"

#include "harness/attention_sequences.h"
#include "harness/attention_storage.h"
#include "harness/compare.h"
#include "harness/isa.h"

enum { KEYS = 900 };

static void check_pages(attn_context *context, const struct attention_problem *problem)
{
    static const int64_t page_lengths[] = {1, 7, 16, 64, 383, 5000};
    struct attention_result decoded, forward, in_pages;
    attention_solve_decode(context, problem, &decoded);
    attention_solve(context, problem, &forward);
    for (size_t n = 0; n < COUNT(page_lengths); n++) {
        if (!test_takes_one_in(3))
            continue;
        struct attention_problem paged;
        attention_page(problem, page_lengths[n], n, &paged);
        test_context("pages of %d keys", (int)page_lengths[n]);
        attention_solve_decode(context, &paged, &in_pages);
        CHECK_SAME_RESULT(&in_pages, &decoded);
        attention_solve(context, &paged, &in_pages);
        CHECK_SAME_BITS(in_pages.o, forward.o, forward.outputs);
        CHECK_SAME_BITS(in_pages.stats, forward.stats, 2 * forward.rows);
    }
}

static void batches(attn_context *context)
{
    static const attn_type types[] = {ATTN_F32, ATTN_BF16, ATTN_F16, ATTN_I8};
    static const int64_t lengths[2] = {KEYS, 517};
    for (size_t n = 0; n < COUNT(types); n++) {
        if (!test_takes_one_in(2))
            continue;
        struct attention_problem problem;
        attention_make(&problem, &(struct attention_sizes){2, 6, 2, 2, KEYS, 24, 36}, n);
        attention_store(&problem, ATTN_F32, types[n], types[3 - n]);
        problem.params.key_lengths = lengths;
        if (n % 2)
            problem.params.causal = 1;
        problem.params.alignment = ATTN_ALIGN_OFFSET;
        problem.params.offset = 300;
        check_pages(context, &problem);
        guarded_release_all();
    }
}

static void packed_sequences(attn_context *context)
{
    static const int64_t queries[4] = {1, 0, 16, 2}, keys[4] = {400, 3, 77, 420};
    struct attention_problem problem;
    attention_make(&problem, &(struct attention_sizes){1, 4, 2, 20, KEYS, 16, 16}, 9);
    attention_add_sequences(&problem, 4, queries, keys);
    problem.params.causal = 1;
    problem.params.alignment = ATTN_ALIGN_BOTTOM_RIGHT;
    check_pages(context, &problem);
}

int main(void)
{
    isa_each_context("batches", batches);
    isa_each_context("packed sequences", packed_sequences);
    return test_finish();
}
